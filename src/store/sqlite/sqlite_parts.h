/* sqlite_parts.h - internals of the SQLite store, shared by the files of this folder. Ownership by
 * thread:
 *
 *   control thread   gl_sqlite: the calls, and their number
 *   writer thread    its gl_sqlite_worker: its queue and its connections
 *   reader thread    the same for reads
 *
 * The settings (folder, vfs, loop, ...) are written before the threads start and never change. */
#ifndef GL_STORE_SQLITE_PARTS_H
#define GL_STORE_SQLITE_PARTS_H

#include <pthread.h>

#include "base/map.h"
#include "store/common/calls.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/sqlite_db.h"

/* sqlite_contexts.c: the open databases of one thread, by context. They are opened on demand and
 * stay open. A database whose COMMIT failed is reopened and recovered before it is handed out
 * again. */

struct gl_sqlite_contexts {
    const struct gl_sqlite *store;
    enum gl_sqlite_role role;
    struct gl_map slots; /* of structs private to that file */
};

void gl_sqlite_contexts_init(struct gl_sqlite_contexts *c, const struct gl_sqlite *s,
                             enum gl_sqlite_role role);
void gl_sqlite_contexts_done(struct gl_sqlite_contexts *c); /* closes all databases */

/* The database of a context, ready for use. For a reader, GL_E_NOT_FOUND means the context is
 * empty. */
int gl_sqlite_contexts_get(struct gl_sqlite_contexts *c, gl_str context, struct gl_sqlite_db **ret,
                           struct gl_why *reterr_why);
/* The same if it is open already, else NULL. */
struct gl_sqlite_db *gl_sqlite_contexts_find(struct gl_sqlite_contexts *c, gl_str context);
/* Close this connection after an error; the next gl_sqlite_contexts_get() opens a new one. With
 * `in_doubt` the error was one of COMMIT, and what the file holds is unknown. */
void gl_sqlite_contexts_drop(struct gl_sqlite_contexts *c, struct gl_sqlite_db *db, bool in_doubt);

/* Call `each` for every open database. */
void gl_sqlite_contexts_each(struct gl_sqlite_contexts *c, void (*each)(struct gl_sqlite_db *db));

/* sqlite_queue.c: passes calls from the control thread to a worker thread. */

struct gl_sqlite_queue {
    pthread_mutex_t lock; /* protects the other fields */
    pthread_cond_t filled;
    struct gl_link calls;
    bool closed;
};

void gl_sqlite_queue_init(struct gl_sqlite_queue *q);
void gl_sqlite_queue_done(struct gl_sqlite_queue *q);
void gl_sqlite_queue_push(struct gl_sqlite_queue *q, struct gl_call *call);
void gl_sqlite_queue_close(struct gl_sqlite_queue *q); /* queued calls will still be taken */

/* Wait until the queue is non-empty or closed. False: neither happened within `ms` milliseconds. */
bool gl_sqlite_queue_wait(struct gl_sqlite_queue *q, int64_t ms);

/* Move all queued calls to `to`, blocking if both are empty. False: the queue is closed and both
 * are empty. */
bool gl_sqlite_queue_take(struct gl_sqlite_queue *q, struct gl_link *to);

/* ---- threads ---- */

struct gl_sqlite_worker {
    struct gl_sqlite *store;
    pthread_t thread;
    struct gl_loop_task ended;
    struct gl_sqlite_queue queue;
    struct gl_sqlite_contexts contexts;

    /* Used by the writer only. */
    struct gl_arena *arena;        /* of the current completion: holds results */
    struct gl_buf session;         /* id of the session opened last; empty: none yet */
    struct gl_buf about;           /* its published text, as in its row */
    bool session_over;             /* that session has been ended */
    struct gl_buf barrier_session; /* the session whose transactions ... */
    uint64_t barrier;   /* ... up to this number are refused: `resolve` has answered "never" */
    struct gl_buf text; /* scratch */
};

struct gl_sqlite {
    struct gl_calls calls; /* first */

    /* Settings. */
    const char *folder, *vfs; /* vfs: NULL is SQLite's default */
    bool read_only;
    size_t group_max;
    int64_t idle_ms;
    struct gl_arena arena; /* holds the texts above */

    int threads_n; /* still running; owned by the control thread */
    struct gl_sqlite_worker workers[GL_SQLITE_ROLES_N];
};

/* On the control thread: finish closing the store if it is closing and nothing is left to do. */
void gl_sqlite_finish_close(struct gl_sqlite *s);

/* The thread functions. They return when their queue is closed and empty, after posting `ended`. */
void *gl_sqlite_writer_main(void *worker);
void *gl_sqlite_reader_main(void *worker);

/* sqlite_completion.c: hands finished calls, with the memory of their results, back to the control
 * thread in one post. */

struct gl_sqlite_completion {
    struct gl_loop_task task;
    struct gl_sqlite *store;
    struct gl_link calls;
    struct gl_arena arena; /* lives until the last `done` of the calls has run */
};

struct gl_sqlite_completion *gl_sqlite_completion_new(struct gl_sqlite *s);
void gl_sqlite_completion_post(struct gl_sqlite_completion *b); /* taken; must not be empty */

/* sqlite_group.c: group commit: many transactions of the port in one SQL transaction, with one
 * sync. */

/* Commit the `n` calls starting at `first`, all of one context and session, and set their
 * statuses. */
void gl_sqlite_group_commit(struct gl_sqlite_worker *w, struct gl_call *first, size_t n);

/* sqlite_apply.c: applies one transaction of the port inside the SQL transaction of its group.
 *
 * All guards are evaluated before the first write, so a refused transaction has written nothing and
 * the group needs no savepoints. */

/* Sets call->req->status: 0 applied, GL_E_CONFLICT (with `refused`), GL_E_LIMIT. Returns the rc. If
 * it is not SQLITE_OK the transaction may be half written, and the SQL transaction must be rolled
 * back. */
int gl_sqlite_apply(struct gl_sqlite_db *db, struct gl_call *call);

/* sqlite_call.c: the writer's calls other than commits, one at a time: sessions and `resolve`. */

/* Returns the request's status. Results are copied to w->arena. */
int gl_sqlite_call_run(struct gl_sqlite_worker *w, struct gl_call *call);

/* sqlite_session.c: session rows, and the memory of transaction outcomes. */

/* To be called inside an SQL transaction. All return the rc. */

/* Insert the row of a new session, with the node's last incarnation + 1, and mark every other
 * session dead. The new id is appended to `id`. */
int gl_sqlite_session_begin(struct gl_sqlite_db *db, gl_str node, gl_str nonce, gl_str about,
                            struct gl_buf *id, uint64_t *ret_incarnation);
/* Copy the writer's session, which was opened in the default database, to this one, unless it is
 * there already: either as the only live session, or as ended. */
int gl_sqlite_session_propagate(struct gl_sqlite_worker *w, struct gl_sqlite_db *db);
/* *ret_known: the session has a row. */
int gl_sqlite_session_find(struct gl_sqlite_db *db, gl_str id, bool *ret_known, bool *ret_dead);

/* Remember a group, under the next group_n, in one row: its session, its first and last
 * transaction, and those that were not applied (req->status != 0). `n`: number of calls from
 * `first`. */
int gl_sqlite_session_remember(struct gl_sqlite_db *db, const struct gl_call *first, size_t n,
                               struct gl_buf *scratch);
/* *ret_status: 0 committed; GL_E_CONFLICT refused, or never arrived; GL_E_UNKNOWN forgotten. */
int gl_sqlite_session_recall(struct gl_sqlite_db *db, gl_str session, uint64_t tx_id,
                             int *ret_status);

/* sqlite_read.c: the reads of the port, on a reader's connection.
 *
 * Fills the results of the call's request from `arena` and returns the rc. A NULL `db` means the
 * context is empty. */

int gl_sqlite_read(struct gl_sqlite_db *db, struct gl_call *call, struct gl_arena *arena);

#endif
