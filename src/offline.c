#include "offline.h"

#include "store/sqlite_backup.h"

int gl_offline_backup(const char *from, const char *to, uint64_t *ret_jobs,
                      uint64_t *ret_unfinished, struct gl_why *reterr_why)
{
    return gl_sqlite_backup_make(from, to, ret_jobs, ret_unfinished, reterr_why);
}

int gl_offline_hold(const char *path, const char *reason, uint64_t *ret_jobs,
                    uint64_t *ret_unfinished, struct gl_why *reterr_why)
{
    return gl_sqlite_backup_hold(path, reason, ret_jobs, ret_unfinished, reterr_why);
}
