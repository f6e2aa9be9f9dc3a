/* housekeeping.c - a thread that resumes suspended connections and enforces timeouts.
 *
 * The control thread leaves the answers to shared event waits here, so that a thousand watchers
 * cost it no more than one. libmicrohttpd has no timers of its own. The thread sleeps while there
 * are no connections. */
#include <errno.h>
#include <time.h>

#include "base/check.h"
#include "http/http_call.h"
#include "http/job_event_polls.h"

enum {
    PING_MS_MAX = 5000, /* a loop that answers no ping for this long is considered hung */
};

int64_t gl_http_now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- pings ---- */

static void on_pong(struct gl_loop_task *t)
{
    struct gl_http *h = t->owner;

    pthread_mutex_lock(&h->lock);
    h->is_pinging = false;
    for (struct gl_link *l; (l = gl_list_first(&h->pings)) != NULL;) {
        gl_list_remove(l);
        gl_list_push(&h->pings_done, l);
    }
    h->asked_n--;
    pthread_cond_broadcast(&h->wakeup);
    pthread_mutex_unlock(&h->lock);
}

void gl_housekeeping_ping(struct gl_http_call *c)
{
    struct gl_http *h = c->http;

    pthread_mutex_lock(&h->lock);
    if (h->is_refusing) {
        pthread_mutex_unlock(&h->lock);
        gl_reply_error(c, GL_R_NODE_STOPPING, "this node is stopping", NULL);
        return;
    }
    c->due_ms = gl_http_now_ms() + PING_MS_MAX;
    h->asked_n++;
    MHD_suspend_connection(c->connection);
    gl_list_push(&h->pings, &c->link);
    if (!h->is_pinging) {
        h->is_pinging = true;
        h->asked_n++; /* the ping itself, which may outlive its waiters */
        h->ping = (struct gl_loop_task){.run = on_pong, .owner = h};
        gl_loop_post(h->config.loop, &h->ping);
    }
    pthread_cond_broadcast(&h->wakeup); /* the next deadline has changed */
    pthread_mutex_unlock(&h->lock);
}

/* With the lock held. Pings that waited too long are answered with an error. */
static int64_t expire_pings(struct gl_http *h, int64_t now_ms)
{
    for (struct gl_link *l; (l = gl_list_first(&h->pings)) != NULL;) {
        struct gl_http_call *c = GL_CONTAINER(l, struct gl_http_call, link);

        if (c->due_ms > now_ms) {
            return c->due_ms;
        }
        c->rq.code = gl_why(&c->rq.why, GL_R_NODE_SILENT, "the node has not responded for %d s",
                            PING_MS_MAX / 1000);
        gl_list_remove(l);
        gl_list_push(&h->pings_done, l);
    }
    return INT64_MAX;
}

/* ---- the thread ---- */

static void move_all(struct gl_link *from, struct gl_link *to)
{
    gl_list_init(to);
    for (struct gl_link *l; (l = gl_list_first(from)) != NULL;) {
        gl_list_remove(l);
        gl_list_push(to, l);
    }
}

/* Without the lock: the lists are no longer reachable from `h`. */
static void resume_waiting(struct gl_http *h, struct gl_link *pings, struct gl_link *polls)
{
    for (struct gl_link *l; (l = gl_list_first(pings)) != NULL;) {
        struct gl_http_call *c = GL_CONTAINER(l, struct gl_http_call, link);

        gl_list_remove(l);
        c->is_complete = true;
        MHD_resume_connection(c->connection);
        gl_http_task_done(h);
    }
    for (struct gl_link *l; (l = gl_list_first(polls)) != NULL;) {
        gl_list_remove(l);
        gl_job_event_polls_deliver(GL_CONTAINER(l, struct gl_job_event_poll, link));
        gl_http_task_done(h);
    }
}

static void sleep_until(struct gl_http *h, int64_t due_ms)
{
    struct timespec until = {.tv_sec = (time_t)(due_ms / 1000),
                             .tv_nsec = (long)(due_ms % 1000) * 1000000};

    if (due_ms == INT64_MAX) {
        (void)pthread_cond_wait(&h->wakeup, &h->lock);
    } else {
        (void)pthread_cond_timedwait(&h->wakeup, &h->lock, &until);
    }
}

static void *run_thread(void *owner)
{
    struct gl_http *h = owner;
    struct gl_link pings, polls;

    pthread_mutex_lock(&h->lock);
    while (!h->is_closing) {
        int64_t now_ms = gl_http_now_ms();
        int64_t arrivals_ms = gl_connections_enforce_timeouts(h, now_ms);
        int64_t pings_ms = expire_pings(h, now_ms);

        if (gl_list_empty(&h->pings_done) && gl_list_empty(&h->polls_done)) {
            sleep_until(h, arrivals_ms < pings_ms ? arrivals_ms : pings_ms);
            continue;
        }
        move_all(&h->pings_done, &pings);
        move_all(&h->polls_done, &polls);
        pthread_mutex_unlock(&h->lock);
        resume_waiting(h, &pings, &polls);
        pthread_mutex_lock(&h->lock);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

bool gl_housekeeping_start(struct gl_http *h)
{
    h->has_housekeeping = pthread_create(&h->housekeeping, NULL, run_thread, h) == 0;
    return h->has_housekeeping;
}

void gl_housekeeping_stop(struct gl_http *h)
{
    if (!h->has_housekeeping) {
        return;
    }
    pthread_mutex_lock(&h->lock);
    h->is_closing = true;
    pthread_cond_broadcast(&h->wakeup);
    pthread_mutex_unlock(&h->lock);
    (void)pthread_join(h->housekeeping, NULL);
}
