/* sqlite_backup.h - the database of a context as one file: copied while others write to it, looked
 * over, and made ready for a second life.
 *
 * Synchronous, and without the store: whoever holds the folder does not notice. */
#ifndef GL_STORE_SQLITE_BACKUP_H
#define GL_STORE_SQLITE_BACKUP_H

#include "base/err.h"
#include "base/str.h"

/* Copy `from` to `to`, which must not exist, as of one moment; then look it over. It is one file,
 * without a log beside it, and synced. Told: how many jobs it holds, and how many have not ended.
 * With `salvage` a database that has lost commits (sqlite_synced.h) is copied without them. */
int gl_sqlite_backup_make(const char *from, const char *to, bool salvage, uint64_t *ret_jobs,
                          uint64_t *ret_unfinished, struct gl_why *reterr_why);

/* In a database that nobody uses: every job that runs is on its way to a pause, by `reason`, before
 * any node sees it. Steps that ran are left as they are: it is for the next node to find out what
 * became of them. */
int gl_sqlite_backup_pause(const char *path, const char *reason, uint64_t *ret_jobs,
                           uint64_t *ret_unfinished, struct gl_why *reterr_why);

#endif
