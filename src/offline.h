/* offline.h - what can be done with the store of a data folder without being its node, and without
 * disturbing one: the second place, besides daemon.c, that names adapters.
 *
 * store/sqlite_backup.h says what these do. */
#ifndef GL_OFFLINE_H
#define GL_OFFLINE_H

#include "base/err.h"
#include "base/str.h"

/* The database `from` as one file `to`. Told: how many jobs it holds, and how many have not ended.
 */
int gl_offline_backup(const char *from, const char *to, uint64_t *ret_jobs,
                      uint64_t *ret_unfinished, struct gl_why *reterr_why);

/* Look over the database `path`, which nobody uses; with a `reason`, hold its unfinished jobs. */
int gl_offline_hold(const char *path, const char *reason, uint64_t *ret_jobs,
                    uint64_t *ret_unfinished, struct gl_why *reterr_why);

#endif
