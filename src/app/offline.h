/* offline.h - operations on the store of a data folder without being its node, and without
 * disturbing one: backup, pause, queries, migration and checks.
 *
 * store/sqlite/sqlite_backup.h describes backup and pause. */
#ifndef GL_APP_OFFLINE_H
#define GL_APP_OFFLINE_H

#include "api/request.h"
#include "port/findings.h"

/* Copies the database `from` into one file `to`. Returns how many jobs it has, and how many have
 * not ended. With `salvage`, also copies a database that has lost commits. */
int gl_offline_backup(const char *from, const char *to, bool salvage, uint64_t *ret_jobs,
                      uint64_t *ret_unfinished, struct gl_why *reterr_why);

/* Checks the database `path`, which must not be in use; with a `reason`, pauses its unfinished
 * jobs. */
int gl_offline_pause(const char *path, const char *reason, uint64_t *ret_jobs,
                     uint64_t *ret_unfinished, struct gl_why *reterr_why);

/* LIST, STATUS, EVENTS (without waiting), HUMAN, WHY, NODES, NODE_SHOW or CLUSTER. The answer is
 * appended to `body`. Changes nothing, starts nothing, takes no lock. `store`: a URL; "": SQLite in
 * the folder. `runs_root`: where workers leave their questions. */
int gl_offline_query(const char *data, const char *store, const char *runs_root,
                     struct gl_request *rq, struct gl_buf *body, struct gl_why *reterr_why);

/* Copies everything from one store to another (api/migrate.h). Locks the folders involved. If this
 * data folder belongs to the source, it belongs to the target afterwards. */
struct gl_offline_migration {
    gl_str context;        /* the context to copy */
    const char *data;      /* the data folder */
    const char *from, *to; /* URLs */
    bool allow_loss;
    void (*on_progress)(void *owner, uint64_t entries); /* called from time to time; may be NULL */
    void *owner;
    /* The answer. */
    uint64_t entries, jobs;
    bool is_continued; /* an earlier run was continued */
    bool has_moved;    /* the data folder now belongs to the target */
};
int gl_offline_migrate(struct gl_offline_migration *m, struct gl_why *reterr_why);

/* For `glia doctor`: is the SQLite store of this folder intact? GL_E_NOT_FOUND: there is none. */
int gl_offline_check_store(const char *data, struct gl_why *reterr_why);
/* The same for any store, with all findings; for the folder's own store also whether it is still
 * the one the folder was used with. */
int gl_offline_check(const char *data, const char *store, struct gl_arena *a,
                     struct gl_findings *ret, struct gl_why *reterr_why);
/* Does the folder belong to a store with another URL than this one? */
bool gl_offline_is_other_store(const char *data, const char *store);
/* Checks the store that the folder's node is configured with. If the folder belongs to another one,
 * that is a finding, whatever its URL. */
int gl_offline_check_own(const char *data, const char *store, struct gl_arena *a,
                         struct gl_findings *ret, struct gl_why *reterr_why);
/* The path of the keeper's program. */
int gl_offline_find_keeper(struct gl_arena *a, const char **ret, struct gl_why *reterr_why);

#endif
