/* loop.c - see loop.h.
 *
 * Other threads hand in work through two lists under a mutex and an eventfd. Only the poster that
 * finds its list empty writes to the eventfd: anything posted before the loop takes the list needs
 * no further wake-up.
 *
 * The alarm is a timerfd on CLOCK_BOOTTIME, because libevent's own timers stop while the machine
 * sleeps. It is set only when the new time is earlier than the current setting: a node moves its
 * alarm with every event, mostly to a later time, and an early alarm just rearms itself. */
#include "os/loop.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"

enum { NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

struct gl_loop {
    struct event_base *base;
    bool stop;

    pthread_mutex_t lock; /* guards the posted tasks */
    struct posted {
        struct gl_loop_task *first, *last;
    } ordinary, urgent;
    int wake_fd;
    struct event *wake;

    struct gl_clock clock;
    gl_ms wall_start;   /* wall time when the loop was made ... */
    int64_t boot_start; /* ... and CLOCK_BOOTTIME, in ns, at that time */
    gl_ms alarm_at;     /* INT64_MAX: none */
    gl_ms timer_at;     /* the setting of the timerfd; never later than alarm_at */
    int timer_fd;
    struct event *timer;
};

static int64_t boot_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_BOOTTIME, &t); /* Cannot fail for an existing clock. */
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static struct gl_loop *of_clock(struct gl_clock *c)
{
    return GL_CONTAINER(c, struct gl_loop, clock);
}

static gl_ms now(struct gl_clock *c)
{
    const struct gl_loop *l = of_clock(c);
    return l->wall_start + (boot_ns() - l->boot_start) / NS_PER_MS;
}

static void set_timer(struct gl_loop *l, gl_ms at)
{
    l->timer_at = at;
    struct itimerspec when = {0}; /* all zero: disarmed */
    if (at != INT64_MAX) {
        gl_ms ahead = at > l->wall_start ? at - l->wall_start : 0;
        int64_t ns = INT64_MAX;
        if (ahead < (INT64_MAX - l->boot_start) / NS_PER_MS) {
            ns = l->boot_start + ahead * NS_PER_MS;
        }
        when.it_value.tv_sec = ns / NS_PER_S;
        when.it_value.tv_nsec = ns % NS_PER_S;
    }
    int err = timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
    GL_ASSERT(err == 0);
}

static void alarm_set(struct gl_clock *c, gl_ms at)
{
    struct gl_loop *l = of_clock(c);
    l->alarm_at = at;
    if (at < l->timer_at) {
        set_timer(l, at);
    }
}

/* Read the counter of an eventfd or timerfd; it may have been read already. */
static void drain(int fd)
{
    uint64_t count;
    ssize_t n = read(fd, &count, sizeof(count));
    GL_ASSERT(n == (ssize_t)sizeof(count) || errno == EAGAIN || errno == EINTR);
}

static void on_timer(evutil_socket_t fd, short what, void *owner)
{
    (void)what;
    struct gl_loop *l = owner;
    drain(fd);
    l->timer_at = INT64_MAX;
    if (l->alarm_at == INT64_MAX) {
        return;
    }
    if (l->alarm_at > now(&l->clock)) {
        set_timer(l, l->alarm_at);
        return;
    }
    l->alarm_at = INT64_MAX;
    if (l->clock.fire != NULL) {
        l->clock.fire(l->clock.owner);
    }
}

static struct gl_loop_task *take(struct gl_loop *l, struct posted *list)
{
    pthread_mutex_lock(&l->lock);
    struct gl_loop_task *t = list->first;
    list->first = list->last = NULL;
    pthread_mutex_unlock(&l->lock);
    return t;
}

/* Run the first task of a chain; returns the rest. */
static struct gl_loop_task *run_first(struct gl_loop_task *t)
{
    struct gl_loop_task *next = t->next; /* `run` returns the task to its owner. */
    t->next = NULL;
    t->run(t);
    return next;
}

/* A node under full load always has some milliseconds of work in its list, and a query takes
 * several rounds through it: urgent tasks go in between. */
static void on_wake(evutil_socket_t fd, short what, void *owner)
{
    (void)what;
    struct gl_loop *l = owner;
    drain(fd); /* Before taking the lists: anything posted in between wakes us again. */
    struct gl_loop_task *t = take(l, &l->ordinary);
    do {
        for (struct gl_loop_task *u = take(l, &l->urgent); u != NULL;) {
            u = run_first(u);
        }
        if (t != NULL) {
            t = run_first(t);
        }
    } while (t != NULL);
}

void gl_loop_post(struct gl_loop *l, struct gl_loop_task *t)
{
    GL_ASSERT(t->run != NULL);
    t->next = NULL;
    pthread_mutex_lock(&l->lock);
    struct posted *list = t->is_urgent ? &l->urgent : &l->ordinary;
    bool was_empty = list->first == NULL;
    if (was_empty) {
        list->first = t;
    } else {
        list->last->next = t;
    }
    list->last = t;
    /* Under the lock: once it is released the loop may run the task, stop, and be freed. */
    if (was_empty) {
        ssize_t n;
        do {
            n = write(l->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
        } while (n < 0 && errno == EINTR);
        GL_ASSERT(n == (ssize_t)sizeof(uint64_t));
    }
    pthread_mutex_unlock(&l->lock);
}

static struct event *watch(struct gl_loop *l, int fd, event_callback_fn on_ready)
{
    if (fd < 0) {
        return NULL;
    }
    struct event *e = event_new(l->base, fd, EV_READ | EV_PERSIST, on_ready, l);
    if (e != NULL && event_add(e, NULL) < 0) {
        event_free(e);
        return NULL;
    }
    return e;
}

static void start_clock(struct gl_loop *l)
{
    struct timespec wall;
    (void)clock_gettime(CLOCK_REALTIME, &wall);
    l->wall_start = (gl_ms)wall.tv_sec * 1000 + wall.tv_nsec / NS_PER_MS;
    l->boot_start = boot_ns();
    l->alarm_at = l->timer_at = INT64_MAX;
    l->clock.now = now;
    l->clock.alarm = alarm_set;
}

int gl_loop_new(struct gl_loop **ret, struct gl_why *reterr_why)
{
    struct gl_loop *l = gl_mem_alloc(sizeof(*l));
    pthread_mutex_init(&l->lock, NULL);
    start_clock(l);
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    l->base = event_base_new();
    if (l->base != NULL) {
        l->wake = watch(l, l->wake_fd, on_wake);
        l->timer = watch(l, l->timer_fd, on_timer);
    }
    if (l->wake == NULL || l->timer == NULL) {
        int err = errno;
        gl_loop_free(l);
        return gl_why(reterr_why, GL_E_IO, "cannot start the event loop: %s", strerror(err));
    }
    *ret = l;
    return 0;
}

void gl_loop_free(struct gl_loop *l)
{
    if (l == NULL) {
        return;
    }
    /* A task that never runs would break the promise to its owner. */
    GL_ASSERT(l->ordinary.first == NULL);
    GL_ASSERT(l->urgent.first == NULL);
    if (l->wake != NULL) {
        event_free(l->wake);
    }
    if (l->timer != NULL) {
        event_free(l->timer);
    }
    if (l->base != NULL) {
        event_base_free(l->base);
    }
    if (l->wake_fd >= 0) {
        (void)close(l->wake_fd);
    }
    if (l->timer_fd >= 0) {
        (void)close(l->timer_fd);
    }
    pthread_mutex_destroy(&l->lock);
    gl_mem_free(l);
}

struct event_base *gl_loop_base(struct gl_loop *l)
{
    return l->base;
}

void gl_loop_run(struct gl_loop *l)
{
    while (!l->stop) {
        int err = event_base_loop(l->base, EVLOOP_NO_EXIT_ON_EMPTY);
        GL_ASSERT(err >= 0);
    }
    l->stop = false;
}

void gl_loop_stop(struct gl_loop *l)
{
    l->stop = true; /* libevent forgets a break requested before the loop runs. */
    (void)event_base_loopbreak(l->base);
}

struct gl_clock *gl_loop_clock(struct gl_loop *l)
{
    return &l->clock;
}
