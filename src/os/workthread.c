#include "os/workthread.h"

#include <pthread.h>

#include "base/check.h"
#include "base/mem.h"

struct gl_workthread {
    struct gl_work port;
    struct gl_loop *loop;
    pthread_t thread;

    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t moved;
    struct gl_link waiting; /* tasks, in the order they were posted */
    struct gl_link finished;
    struct gl_work_task *running;
    bool is_closing;
    bool is_posted; /* `task` has been posted to the loop */

    struct gl_loop_task task;
};

/* On the loop: complete the finished tasks. A task may post another one, or free itself. */
static void on_finished(struct gl_loop_task *t)
{
    struct gl_workthread *w = t->owner;
    struct gl_link *l;

    pthread_mutex_lock(&w->lock);
    w->is_posted = false;
    while ((l = gl_list_first(&w->finished)) != NULL) {
        struct gl_work_task *task = GL_CONTAINER(l, struct gl_work_task, link);

        gl_list_remove(l);
        pthread_mutex_unlock(&w->lock);
        task->done(task);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
}

/* With the lock held: the task has run. */
static void finish(struct gl_workthread *w)
{
    gl_list_push(&w->finished, &w->running->link);
    w->running = NULL;
    pthread_cond_broadcast(&w->moved); /* for gl_workthread_clear() */
    if (!w->is_posted) {
        w->is_posted = true;
        gl_loop_post(w->loop, &w->task);
    }
}

static void *work(void *owner)
{
    struct gl_workthread *w = owner;

    pthread_mutex_lock(&w->lock);
    while (!w->is_closing) {
        struct gl_link *l = gl_list_first(&w->waiting);

        if (l == NULL) {
            pthread_cond_wait(&w->moved, &w->lock);
            continue;
        }
        gl_list_remove(l);
        w->running = GL_CONTAINER(l, struct gl_work_task, link);
        pthread_mutex_unlock(&w->lock);
        w->running->run(w->running);
        pthread_mutex_lock(&w->lock);
        finish(w);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void post(struct gl_work *port, struct gl_work_task *t)
{
    struct gl_workthread *w = GL_CONTAINER(port, struct gl_workthread, port);

    pthread_mutex_lock(&w->lock);
    if (!w->is_closing) {
        gl_list_push(&w->waiting, &t->link);
        pthread_cond_broadcast(&w->moved);
    }
    pthread_mutex_unlock(&w->lock);
}

int gl_workthread_open(struct gl_workthread **ret, struct gl_loop *loop, struct gl_why *reterr_why)
{
    struct gl_workthread *w = gl_mem_alloc(sizeof(*w));

    w->port.post = post;
    w->loop = loop;
    w->task = (struct gl_loop_task){.run = on_finished, .owner = w, .is_urgent = true};
    gl_list_init(&w->waiting);
    gl_list_init(&w->finished);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->moved, NULL);
    if (pthread_create(&w->thread, NULL, work, w) != 0) {
        pthread_mutex_destroy(&w->lock);
        pthread_cond_destroy(&w->moved);
        gl_mem_free(w);
        return gl_why(reterr_why, GL_E_UNAVAILABLE,
                      "cannot start a thread: raise the limit on processes (ulimit -u)");
    }
    *ret = w;
    return 0;
}

struct gl_work *gl_workthread_port(struct gl_workthread *w)
{
    return &w->port;
}

void gl_workthread_clear(struct gl_workthread *w)
{
    pthread_mutex_lock(&w->lock);
    gl_list_init(&w->waiting);
    while (w->running != NULL) {
        pthread_cond_wait(&w->moved, &w->lock);
    }
    gl_list_init(&w->finished);
    pthread_mutex_unlock(&w->lock);
}

void gl_workthread_stop(struct gl_workthread *w)
{
    bool was_closing;

    gl_workthread_clear(w);
    pthread_mutex_lock(&w->lock);
    was_closing = w->is_closing;
    w->is_closing = true;
    pthread_cond_broadcast(&w->moved);
    pthread_mutex_unlock(&w->lock);
    if (!was_closing) {
        (void)pthread_join(w->thread, NULL); /* it exists and exits */
    }
}

void gl_workthread_free(struct gl_workthread *w)
{
    if (w == NULL) {
        return;
    }
    GL_ASSERT(w->is_closing);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->moved);
    gl_mem_free(w);
}
