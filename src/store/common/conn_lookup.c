/* conn_lookup.c - name lookup without blocking the loop.
 *
 * Numeric addresses are resolved at once. For names a detached thread runs getaddrinfo(), and a
 * timer on the loop polls for its result. The result is still delivered later, never from inside
 * gl_conn_lookup(), so that callers have one code path. */
#include "store/common/conn_lookup.h"

#include <event2/event.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "os/loop.h"
#include "store/common/thread.h"

enum { ADDRESSES_MAX = 8 };

/* The data shared with the thread, freed by the last of its two holders. The thread cannot post to
 * the loop, which may be gone by the time getaddrinfo() returns; so the loop polls a flag, at an
 * interval that does not matter compared with a query to a name server. */
struct name_lookup {
    char *host;
    uint16_t port;
    struct gl_conn_address addresses[ADDRESSES_MAX];
    size_t n;
    int err;
    atomic_int holders; /* references: the thread's and the lookup's */
    atomic_bool answered;
};

struct gl_conn_lookup {
    struct name_lookup *question;
    struct event *timer;
    gl_conn_looked_up *found;
    void *owner;
};

static void question_release(struct name_lookup *q)
{
    GL_ASSERT(atomic_load(&q->holders) > 0);
    if (atomic_fetch_sub(&q->holders, 1) == 1) {
        gl_mem_free(q->host);
        gl_mem_free(q);
    }
}

/* 0 or an EAI_* code. */
static int look_up(struct name_lookup *q, int flags)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};
    struct addrinfo *all = NULL;
    char port[8];

    GL_ASSERT(q->n == 0);
    (void)snprintf(port, sizeof(port), "%u", q->port);
    int err = getaddrinfo(q->host, port, &hints, &all);
    if (err != 0) {
        return err;
    }
    for (struct addrinfo *a = all; a != NULL && q->n < ADDRESSES_MAX; a = a->ai_next) {
        struct gl_conn_address *to = &q->addresses[q->n++];
        to->family = a->ai_family;
        to->bytes = a->ai_addrlen;
        memcpy(&to->address, a->ai_addr, a->ai_addrlen);
    }
    freeaddrinfo(all);
    GL_ASSERT(q->n <= ADDRESSES_MAX);
    return 0;
}

static void *run(void *arg)
{
    struct name_lookup *q = arg;
    q->err = look_up(q, 0);
    atomic_store(&q->answered, true);
    question_release(q);
    return NULL;
}

/* If no thread can be started the lookup fails as for a temporary error, and the owner's normal
 * retry applies. */
static void start_thread(struct name_lookup *q)
{
    pthread_t thread;
    atomic_fetch_add(&q->holders, 1);
    int err = gl_thread_start(&thread, run, q);
    if (err == 0) {
        (void)pthread_detach(thread);
        return;
    }
    q->err = EAI_AGAIN;
    atomic_store(&q->answered, true);
    question_release(q);
}

static void free_lookup(struct gl_conn_lookup *l)
{
    event_free(l->timer);
    question_release(l->question);
    gl_mem_free(l);
}

static void poll_in(struct gl_conn_lookup *l, long usec)
{
    struct timeval t = {.tv_usec = usec};

    GL_ASSERT(usec >= 0);
    (void)evtimer_add(l->timer, &t);
}

static void on_timer(evutil_socket_t fd, short what, void *owner)
{
    (void)fd;
    (void)what;
    struct gl_conn_lookup *l = owner;
    struct name_lookup *q = l->question;
    if (!atomic_load(&q->answered)) {
        poll_in(l, 5000);
        return;
    }
    struct gl_why why = {0};
    if (q->err != 0 || q->n == 0) {
        (void)gl_why(&why, GL_E_UNAVAILABLE, "cannot resolve '%s': %s", q->host,
                     q->err != 0 ? gai_strerror(q->err) : "no address found");
    }
    GL_ASSERT(q->n <= ADDRESSES_MAX);
    gl_conn_looked_up *found = l->found;
    void *found_owner = l->owner;
    atomic_fetch_add(&q->holders, 1);
    free_lookup(l);
    found(found_owner, q->addresses, q->n, &why);
    question_release(q);
}

struct gl_conn_lookup *gl_conn_lookup(struct gl_loop *loop, const char *host, uint16_t port,
                                      gl_conn_looked_up *found, void *owner)
{
    struct gl_conn_lookup *l = gl_mem_alloc(sizeof(*l));
    struct name_lookup *q = gl_mem_alloc(sizeof(*q));
    size_t n = strlen(host) + 1;
    q->host = gl_mem_alloc(n);
    memcpy(q->host, host, n);
    q->port = port;
    atomic_init(&q->holders, 1);
    l->question = q;
    l->found = found;
    l->owner = owner;
    l->timer = evtimer_new(gl_loop_base(loop), on_timer, l);
    GL_ASSERT(l->timer != NULL);
    if (look_up(q, AI_NUMERICHOST) == 0) { /* a numeric address */
        atomic_store(&q->answered, true);
        poll_in(l, 0);
    } else {
        start_thread(q);
        poll_in(l, 1000);
    }
    return l;
}

void gl_conn_lookup_cancel(struct gl_conn_lookup *l)
{
    free_lookup(l);
}
