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

#include "store/common/calls.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/sqlite_contexts.h"
#include "store/sqlite/sqlite_queue.h"

struct gl_sqlite_worker {
    struct gl_sqlite *store;
    pthread_t thread;
    struct gl_loop_task ended;
    struct gl_sqlite_queue queue;
    struct gl_sqlite_contexts contexts;

    /* The writer's. */
    struct gl_arena *arena; /* of the batch: for results */
    struct gl_buf session;  /* the id of the session opened last; empty before */
    struct gl_buf about;    /* the text in its row */
    bool session_over;      /* it was ended */
    struct gl_buf barred;   /* the session whose transactions ... */
    uint64_t barrier;       /* ... up to this number are refused: `resolve` answered "never" */
    struct gl_buf text;     /* scratch */
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
void gl_sqlite_settle(struct gl_sqlite *s);

/* The threads. They end when their queue is closed and empty, and then post `ended`. */
void *gl_sqlite_writer_main(void *worker);
void *gl_sqlite_reader_main(void *worker);

#endif
