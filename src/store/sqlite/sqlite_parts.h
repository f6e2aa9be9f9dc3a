/* sqlite_parts.h - the store's inside, for the files of this folder: who owns what.
 *
 *   control thread   gl_sqlite: the ops table, the pool of ops, the count of what is under way
 *   writer thread    gl_sqlite_writer: its queue and its connections
 *   reader thread    gl_sqlite_reader: the same for reads
 *
 * The settings (folder, vfs, loop, ...) are written before the threads start and never again. */
#ifndef GL_STORE_SQLITE_PARTS_H
#define GL_STORE_SQLITE_PARTS_H

#include <pthread.h>

#include "base/mem.h"
#include "os/loop.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/sqlite_contexts.h"
#include "store/sqlite/sqlite_queue.h"

struct gl_sqlite_writer {
    struct gl_sqlite *store;
    pthread_t thread;
    struct gl_loop_task ended;
    struct gl_sqlite_queue queue;
    struct gl_sqlite_contexts contexts;
    struct gl_buf session; /* the id of the session opened last; empty before */
    struct gl_buf about;   /* what stands in its row */
    bool session_over;     /* it was ended */
    struct gl_buf barred;  /* the session whose transactions ... */
    uint64_t barrier;      /* ... up to this number are refused: `resolve` has said "never" */
    struct gl_buf text;    /* scratch */
};

struct gl_sqlite_reader {
    struct gl_sqlite *store;
    pthread_t thread;
    struct gl_loop_task ended;
    struct gl_sqlite_queue queue;
    struct gl_sqlite_contexts contexts;
};

struct gl_sqlite {
    struct gl_store port;

    /* Settings. */
    struct gl_loop *loop;
    const char *folder, *vfs; /* vfs: NULL is SQLite's own */
    bool read_only;
    size_t group_max;
    int64_t idle_ms;
    struct gl_arena arena; /* holds the texts above */

    /* The control thread's. */
    struct gl_pool pool; /* of ops */
    size_t pending_n;    /* ops under way */
    int threads_n;       /* threads that have not ended */
    bool closing;
    void (*closed)(void *owner);
    void *closed_owner;

    struct gl_sqlite_writer writer;
    struct gl_sqlite_reader reader;
};

/* On the control thread: give the op back and call `done`. */
void gl_sqlite_complete(struct gl_sqlite *s, struct gl_sqlite_op *op);
/* On the control thread: if the store is closing and nothing is left to do, end it. */
void gl_sqlite_settle(struct gl_sqlite *s);

/* The threads. They end when their queue is closed and empty, and then post `ended`. */
void *gl_sqlite_writer_main(void *writer);
void *gl_sqlite_reader_main(void *reader);

#endif
