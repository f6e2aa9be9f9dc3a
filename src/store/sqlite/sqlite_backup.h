/* sqlite_backup.h - backups of one database file: make a consistent copy while others write to it,
 * and prepare a restored copy for its new node.
 *
 * Synchronous and independent of an open store, which is not disturbed. */
#ifndef GL_STORE_SQLITE_BACKUP_H
#define GL_STORE_SQLITE_BACKUP_H

#include "base/err.h"
#include "base/str.h"

/* Copy `from` to `to`, which must not exist, as of one moment, then verify the copy. The copy is a
 * single synced file without a WAL. Reports the number of jobs and of unfinished jobs. With
 * `salvage`, a database that has lost acknowledged commits (sqlite_synced.h) is copied without
 * them. */
int gl_sqlite_backup_make(const char *from, const char *to, bool salvage, uint64_t *ret_jobs,
                          uint64_t *ret_unfinished, struct gl_why *reterr_why);

/* Move every running job of an unused database towards a pause, with `reason`, so that no node
 * starts work from a restored backup unasked. Steps that were running are left alone: the next node
 * must determine their outcome. */
int gl_sqlite_backup_pause(const char *path, const char *reason, uint64_t *ret_jobs,
                           uint64_t *ret_unfinished, struct gl_why *reterr_why);

#endif
