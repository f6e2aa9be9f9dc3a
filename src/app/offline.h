/* offline.h - what can be done with the store of a data folder without being its node, and without
 * disturbing one: the second place, besides daemon.c, that names adapters (stores.c is the third).
 *
 * store/sqlite/sqlite_backup.h says what backup and hold do. */
#ifndef GL_APP_OFFLINE_H
#define GL_APP_OFFLINE_H

#include "api/request.h"
#include "port/findings.h"

/* The database `from` as one file `to`. Told: how many jobs it holds, and how many have not ended.
 * With `salvage` also one that has lost commits. */
int gl_offline_backup(const char *from, const char *to, bool salvage, uint64_t *ret_jobs,
                      uint64_t *ret_unfinished, struct gl_why *reterr_why);

/* Look over the database `path`, which nobody uses; with a `reason`, hold its unfinished jobs. */
int gl_offline_hold(const char *path, const char *reason, uint64_t *ret_jobs,
                    uint64_t *ret_unfinished, struct gl_why *reterr_why);

/* LIST, STATUS, EVENTS (without waiting), HUMAN, WHY, NODES, NODE_SHOW or CLUSTER: the answer is
 * appended to `body`. Changes nothing, starts nothing, takes no lock. `store`: the URL of one; "" :
 * SQLite in the folder. `runs_root`: where workers have left their questions. */
int gl_offline_query(const char *data, const char *store, const char *runs_root,
                     struct gl_request *rq, struct gl_buf *body, struct gl_why *reterr_why);

/* Everything from one store into another: api/migrate.h says how. Takes the locks of the folders
 * that are concerned; if this folder belongs to the source, it belongs to the target afterwards. */
struct gl_offline_migration {
    gl_str context;        /* whose content moves */
    const char *data;      /* the data folder */
    const char *from, *to; /* URLs */
    bool allow_loss;
    void (*on_progress)(void *owner, uint64_t entries); /* from time to time; may be NULL */
    void *owner;
    /* The answer. */
    uint64_t entries, jobs;
    bool is_continued; /* an earlier try was */
    bool has_moved;    /* the folder belongs to the target now */
};
int gl_offline_migrate(struct gl_offline_migration *m, struct gl_why *reterr_why);

/* For who doubts: is the store of this folder sound (GL_E_NOT_FOUND: there is none), and where is
 * the keeper's program? */
int gl_offline_check_store(const char *data, struct gl_why *reterr_why);
/* The same of any store, with all that is remarkable about it; for that of the folder also whether
 * it still is the one the folder has used. */
int gl_offline_check(const char *data, const char *store, struct gl_arena *a,
                     struct gl_findings *ret, struct gl_why *reterr_why);
/* Does the folder belong to another store than this one, by what they are called? */
bool gl_offline_is_other_store(const char *data, const char *store);
/* Of the store that is meant for the folder's node: one that is not the folder's is bad, whatever
 * its name. */
int gl_offline_check_own(const char *data, const char *store, struct gl_arena *a,
                         struct gl_findings *ret, struct gl_why *reterr_why);
int gl_offline_find_keeper(struct gl_arena *a, const char **ret, struct gl_why *reterr_why);

#endif
