/* sqlite_queue.c - a queue with one producer, the control thread, and one consumer, a worker. The
 * consumer takes everything at once, so the lock is held briefly and the calls of one turn can form
 * a group. */
#include "store/sqlite/sqlite_parts.h"

#include <time.h>

#include "base/check.h"

void gl_sqlite_queue_init(struct gl_sqlite_queue *q)
{
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    /* For gl_sqlite_queue_wait(): not affected by clock changes. */
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q->filled, &attr);
    (void)pthread_condattr_destroy(&attr);
    gl_list_init(&q->calls);
    q->closed = false;
    GL_ASSERT(!q->closed);
}

void gl_sqlite_queue_done(struct gl_sqlite_queue *q)
{
    GL_ASSERT(gl_list_empty(&q->calls));
    pthread_cond_destroy(&q->filled);
    pthread_mutex_destroy(&q->lock);
}

void gl_sqlite_queue_push(struct gl_sqlite_queue *q, struct gl_call *call)
{
    GL_ASSERT(gl_list_empty(&call->link));
    pthread_mutex_lock(&q->lock);
    GL_ASSERT(!q->closed);
    bool was_empty = gl_list_empty(&q->calls);
    gl_list_push(&q->calls, &call->link);
    pthread_mutex_unlock(&q->lock);
    /* Only then can the consumer be waiting. */
    if (was_empty) {
        pthread_cond_signal(&q->filled);
    }
}

void gl_sqlite_queue_close(struct gl_sqlite_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_mutex_unlock(&q->lock);
    pthread_cond_signal(&q->filled);
}

bool gl_sqlite_queue_wait(struct gl_sqlite_queue *q, int64_t ms)
{
    struct timespec until;
    int err = 0;

    GL_ASSERT(ms >= 0);
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&q->lock);
    /* err != 0 is the timeout; spurious wake-ups loop. */
    while (gl_list_empty(&q->calls) && !q->closed && err == 0) {
        err = pthread_cond_timedwait(&q->filled, &q->lock, &until);
    }
    bool any = !gl_list_empty(&q->calls) || q->closed;
    pthread_mutex_unlock(&q->lock);
    return any;
}

bool gl_sqlite_queue_take(struct gl_sqlite_queue *q, struct gl_link *to)
{
    struct gl_call *call;
    pthread_mutex_lock(&q->lock);
    while (gl_list_empty(to) && gl_list_empty(&q->calls) && !q->closed) {
        pthread_cond_wait(&q->filled, &q->lock);
    }
    while ((call = gl_call_pop(&q->calls)) != NULL) {
        gl_list_push(to, &call->link);
    }
    pthread_mutex_unlock(&q->lock);
    return !gl_list_empty(to);
}
