/* sqlite_queue.h - the way from the control thread to a worker thread. */
#ifndef GL_STORE_SQLITE_QUEUE_H
#define GL_STORE_SQLITE_QUEUE_H

#include <pthread.h>

#include "store/common/calls.h"

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

#endif
