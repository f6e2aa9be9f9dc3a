/* sqlite_parts.h - the store's inside, for the files of this folder: who owns what.
 *
 *   control thread   gl_sqlite: the calls, and their number
 *   writer thread    its gl_sqlite_worker: its queue and its connections
 *   reader thread    the same for reads
 *
 * The settings (folder, vfs, loop, ...) are written before the threads start and never again. */
#ifndef GL_STORE_SQLITE_PARTS_H
#define GL_STORE_SQLITE_PARTS_H

#include <pthread.h>

#include "base/map.h"
#include "store/common/calls.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/sqlite_db.h"

/* sqlite_contexts.c: the open databases of one thread, by context. They are opened on demand and
 * stay open; one whose COMMIT failed is opened again and made certain before it is handed out. */

struct gl_sqlite_contexts {
    const struct gl_sqlite *store;
    enum gl_sqlite_role role;
    struct gl_map slots; /* of a struct private to this module */
};

void gl_sqlite_contexts_init(struct gl_sqlite_contexts *c, const struct gl_sqlite *s,
                             enum gl_sqlite_role role);
void gl_sqlite_contexts_done(struct gl_sqlite_contexts *c); /* closes all */

/* The database of a context, ready for use. For a reader GL_E_NOT_FOUND: the context is empty. */
int gl_sqlite_contexts_get(struct gl_sqlite_contexts *c, gl_str context, struct gl_sqlite_db **ret,
                           struct gl_why *reterr_why);
/* The same if it is open, else NULL. */
struct gl_sqlite_db *gl_sqlite_contexts_find(struct gl_sqlite_contexts *c, gl_str context);
/* Something went wrong on this connection: close it, the next call opens another. With `in_doubt`:
 * it was a COMMIT, and nobody knows what the file holds. */
void gl_sqlite_contexts_drop(struct gl_sqlite_contexts *c, struct gl_sqlite_db *db, bool in_doubt);

/* Call `each` for every open database. */
void gl_sqlite_contexts_each(struct gl_sqlite_contexts *c, void (*each)(struct gl_sqlite_db *db));

/* sqlite_queue.c: the way from the control thread to a worker thread. */

struct gl_sqlite_queue {
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t filled;
    struct gl_link calls;
    bool closed;
};

void gl_sqlite_queue_init(struct gl_sqlite_queue *q);
void gl_sqlite_queue_done(struct gl_sqlite_queue *q);
void gl_sqlite_queue_push(struct gl_sqlite_queue *q, struct gl_call *call);
void gl_sqlite_queue_close(struct gl_sqlite_queue *q); /* what is in it will still be taken */

/* Wait until something is in it or it is closed; false: neither within so many milliseconds. */
bool gl_sqlite_queue_wait(struct gl_sqlite_queue *q, int64_t ms);

/* Append all that waits to `to`; if `to` is empty and nothing waits, wait for something. False: the
 * queue is closed and nothing is left, neither in it nor in `to`. */
bool gl_sqlite_queue_take(struct gl_sqlite_queue *q, struct gl_link *to);

/* ---- threads ---- */

struct gl_sqlite_worker {
    struct gl_sqlite *store;
    pthread_t thread;
    struct gl_loop_task ended;
    struct gl_sqlite_queue queue;
    struct gl_sqlite_contexts contexts;

    /* The writer's. */
    struct gl_arena *arena;        /* of the batch: for results */
    struct gl_buf session;         /* the id of the session opened last; empty before */
    struct gl_buf about;           /* the text in its row */
    bool session_over;             /* it was ended */
    struct gl_buf barrier_session; /* the session whose transactions ... */
    uint64_t barrier;   /* ... up to this number are refused: `resolve` answered "never" */
    struct gl_buf text; /* scratch */
};

struct gl_sqlite {
    struct gl_calls calls; /* first */

    /* Settings. */
    const char *folder, *vfs; /* vfs: NULL is SQLite's own */
    bool read_only;
    size_t group_max;
    int64_t idle_ms;
    struct gl_arena arena; /* holds the texts above */

    int threads_n; /* that have not ended; the control thread's */
    struct gl_sqlite_worker workers[GL_SQLITE_ROLES_N];
};

/* On the control thread: if the store is closing and nothing is left to do, end it. */
void gl_sqlite_finish_close(struct gl_sqlite *s);

/* The threads. They end when their queue is closed and empty, and then post `ended`. */
void *gl_sqlite_writer_main(void *worker);
void *gl_sqlite_reader_main(void *worker);

/* sqlite_completion.c: the way back: finished calls, with the memory their results stand in, handed
 * to the control thread by one post. */

struct gl_sqlite_completion {
    struct gl_loop_task task;
    struct gl_sqlite *store;
    struct gl_link calls;
    struct gl_arena arena; /* lives until the last `done` of the batch has run */
};

struct gl_sqlite_completion *gl_sqlite_completion_new(struct gl_sqlite *s);
void gl_sqlite_completion_post(struct gl_sqlite_completion *b); /* taken; must not be empty */

/* sqlite_group.c: a group of transactions: one SQL transaction, one sync. */

/* Commit `n` calls from `first`, all of one context and one session, and set their status. */
void gl_sqlite_group_commit(struct gl_sqlite_worker *w, struct gl_call *first, size_t n);

/* sqlite_apply.c: one transaction of the port, inside the SQL transaction of its group.
 *
 * All guards are read before the first write. A refused transaction has therefore written nothing,
 * and the group needs no savepoints. */

/* Sets call->req->status: 0 applied, GL_E_CONFLICT (with `refused`), GL_E_LIMIT.
 * Returns the rc. If it is not SQLITE_OK the transaction may be half written: the SQL transaction
 * must be rolled back. */
int gl_sqlite_apply(struct gl_sqlite_db *db, struct gl_call *call);

/* sqlite_call.c: what the writer does besides groups of commits, one call at a time: sessions and
 * the fate of transactions. */

/* The request's status. Results are copied to w->arena. */
int gl_sqlite_call_run(struct gl_sqlite_worker *w, struct gl_call *call);

/* sqlite_session.c: sessions, and the memory of what became of their transactions. */

/* Inside an SQL transaction; all return the rc. */

/* Write the row of a new session, with the node's last incarnation + 1, and mark every other one
 * dead. The id is appended to `id`. */
int gl_sqlite_session_begin(struct gl_sqlite_db *db, gl_str node, gl_str nonce, gl_str about,
                            struct gl_buf *id, uint64_t *ret_incarnation);
/* Tell a database, unless it knows, about the writer's session, which was begun in another one:
 * that it is there and every other one dead, or that it is over. */
int gl_sqlite_session_propagate(struct gl_sqlite_worker *w, struct gl_sqlite_db *db);
/* *ret_known: it has a row. */
int gl_sqlite_session_find(struct gl_sqlite_db *db, gl_str id, bool *ret_known, bool *ret_dead);

/* Remember a group, with the next group_n, in one row: its session, its first and last transaction,
 * and those among them that were not applied (req->status != 0). `n`: number of calls from `first`.
 */
int gl_sqlite_session_remember(struct gl_sqlite_db *db, const struct gl_call *first, size_t n,
                               struct gl_buf *scratch);
/* *ret_status: 0 committed; GL_E_CONFLICT refused, or never arrived; GL_E_UNKNOWN forgotten. */
int gl_sqlite_session_recall(struct gl_sqlite_db *db, gl_str session, uint64_t tx_id,
                             int *ret_status);

/* sqlite_read.c: the reads of the port, on a reader's connection.
 *
 * Each fills the results of its call's request from `arena` and returns the rc. `db` may be NULL:
 * the context is empty. */

int gl_sqlite_read(struct gl_sqlite_db *db, struct gl_call *call, struct gl_arena *arena);

#endif
