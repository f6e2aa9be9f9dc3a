#include "store/sqlite_queue.h"

#include "base/check.h"

void gl_sqlite_queue_init(struct gl_sqlite_queue *q)
{
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->filled, NULL);
    q->ops = (struct gl_sqlite_ops){0};
    q->closed = false;
}

void gl_sqlite_queue_done(struct gl_sqlite_queue *q)
{
    GL_ASSERT(q->ops.first == NULL);
    pthread_cond_destroy(&q->filled);
    pthread_mutex_destroy(&q->lock);
}

void gl_sqlite_queue_push(struct gl_sqlite_queue *q, struct gl_sqlite_op *op)
{
    pthread_mutex_lock(&q->lock);
    GL_ASSERT(!q->closed);
    bool was_empty = q->ops.first == NULL;
    gl_sqlite_op_push(&q->ops, op);
    pthread_mutex_unlock(&q->lock);
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

bool gl_sqlite_queue_take(struct gl_sqlite_queue *q, struct gl_sqlite_ops *to)
{
    pthread_mutex_lock(&q->lock);
    while (to->first == NULL && q->ops.first == NULL && !q->closed) {
        pthread_cond_wait(&q->filled, &q->lock);
    }
    gl_sqlite_op_splice(to, &q->ops);
    pthread_mutex_unlock(&q->lock);
    return to->first != NULL;
}
