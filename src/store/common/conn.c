/* conn.c - a connection as a state machine over libevent: resolve the name, try each address in
 * turn until one connects (including the TLS handshake), then pass bytes on until it ends. One
 * timer covers everything up to the connection being open.
 *
 * The owner may close the connection from inside any callback. `callback_depth` counts the
 * callbacks on the stack; while it is not 0 the struct is only marked closed, and end_callback()
 * frees it. */
#include "store/common/conn.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "os/loop.h"
#include "store/common/conn_lookup.h"
#include "store/common/conn_tls.h"

/* Received bytes are passed on in pieces of at most this size, to bound the contiguous memory. */
enum { PIECE_BYTES = 64 << 10 };

struct gl_conn {
    struct gl_loop *loop;
    struct gl_conn_events events;
    char *host; /* also the name the certificate must have */
    uint16_t port;
    const struct gl_conn_tls *tls;

    struct gl_conn_lookup *lookup;     /* in progress */
    struct gl_conn_address *addresses; /* result of the lookup */
    size_t addresses_n, address_at;    /* address_at: the next to try */
    struct bufferevent *bev;
    struct event *timer; /* limits the time until it is open */
    bool open, over;     /* over: `ended` has been called */
    int callback_depth;  /* callbacks of the owner on the stack ... */
    bool closed;         /* ... in which the owner has closed us */
};

static void free_conn(struct gl_conn *c)
{
    GL_ASSERT(c->closed);
    GL_ASSERT(c->callback_depth == 0);
    if (c->lookup != NULL) {
        gl_conn_lookup_cancel(c->lookup);
    }
    if (c->bev != NULL) {
        bufferevent_free(c->bev);
    }
    event_free(c->timer);
    gl_mem_free(c->addresses);
    gl_mem_free(c->host);
    gl_mem_free(c);
}

/* After a callback: free the connection if the owner closed it. False: it is closed. */
static bool end_callback(struct gl_conn *c)
{
    GL_ASSERT(c->callback_depth > 0);
    c->callback_depth--;
    if (c->closed && c->callback_depth == 0) {
        free_conn(c);
        return false;
    }
    return !c->closed;
}

/* Report the end, once. The owner still has to close the connection. */
static void report_end(struct gl_conn *c, const struct gl_why *why)
{
    if (c->over) {
        return;
    }
    c->over = true;
    (void)event_del(c->timer);
    c->callback_depth++;
    c->events.ended(c->events.owner, why);
    (void)end_callback(c);
}

static void try_next(struct gl_conn *c, const struct gl_why *why);

/* The owner may close the connection while data is left; the rest is then dropped. */
static void on_read(struct bufferevent *bev, void *owner)
{
    struct gl_conn *c = owner;
    struct evbuffer *in = bufferevent_get_input(bev);
    c->callback_depth++;
    for (size_t n; !c->closed && (n = evbuffer_get_length(in)) > 0;) {
        n = n < PIECE_BYTES ? n : PIECE_BYTES;
        const char *p = (const char *)evbuffer_pullup(in, (ev_ssize_t)n);
        c->events.received(c->events.owner, (gl_str){p, n});
        (void)evbuffer_drain(in, n);
    }
    (void)end_callback(c);
}

static void set(int fd, int level, int option, int value)
{
    GL_ASSERT(fd >= 0);
    (void)setsockopt(fd, level, option, &value, sizeof(value)); /* best effort */
}

/* Keepalive detects a vanished peer within half a minute, even on a connection that only
 * listens. */
static void set_options(int fd)
{
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

static void on_open(struct gl_conn *c)
{
    GL_ASSERT(!c->open);
    (void)event_del(c->timer);
    set_options(bufferevent_getfd(c->bev));
    c->open = true;
    c->callback_depth++;
    c->events.opened(c->events.owner);
    (void)end_callback(c);
}

/* The reason for an error or end-of-file event. errno is read first, before other calls change
 * it. */
static void why_ended(struct gl_conn *c, short what, struct gl_why *ret)
{
    int err = EVUTIL_SOCKET_ERROR();
    if (c->tls != NULL && gl_conn_tls_why(c->bev, c->host, ret)) {
        return;
    }
    if (what & BEV_EVENT_EOF) {
        (void)gl_why(ret, GL_E_UNAVAILABLE, "%s:%u closed the connection", c->host, c->port);
        return;
    }
    (void)gl_why(ret, GL_E_UNAVAILABLE, "%s %s:%u: %s",
                 c->open ? "lost connection to" : "cannot connect to", c->host, c->port,
                 err != 0 ? evutil_socket_error_to_string(err) : "unknown error");
}

/* Before the connection is open an error moves on to the next address; afterwards it is the end. */
static void on_event(struct bufferevent *bev, short what, void *owner)
{
    (void)bev;
    struct gl_conn *c = owner;
    struct gl_why why;
    if (what & BEV_EVENT_CONNECTED) {
        on_open(c);
        return;
    }
    why_ended(c, what, &why);
    if (c->open) {
        report_end(c, &why);
    } else {
        try_next(c, &why);
    }
}

static void on_timer(evutil_socket_t fd, short what, void *owner)
{
    (void)fd;
    (void)what;
    struct gl_conn *c = owner;
    struct gl_why why;
    (void)gl_why(&why, GL_E_UNAVAILABLE, "cannot connect to %s:%u: timed out", c->host, c->port);
    report_end(c, &why);
}

/* Start connecting to one address. On failure errno has the reason. */
static int start(struct gl_conn *c, const struct gl_conn_address *a)
{
    struct event_base *base = gl_loop_base(c->loop);

    GL_ASSERT(c->address_at <= c->addresses_n);
    if (c->bev != NULL) {
        bufferevent_free(c->bev);
        c->bev = NULL;
    }
    c->bev = c->tls == NULL
                 ? bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS)
                 : gl_conn_tls_bufferevent(c->tls, base, c->host);
    if (c->bev == NULL) {
        return -1;
    }
    bufferevent_setcb(c->bev, on_read, NULL, on_event, c);
    /* libevent would create the socket without close-on-exec, and steps would inherit it. */
    int fd = socket(a->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bufferevent_setfd(c->bev, fd) < 0) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return -1;
    }
    struct sockaddr_storage address = a->address;
    if (bufferevent_socket_connect(c->bev, (struct sockaddr *)&address, (int)a->bytes) < 0) {
        return -1;
    }
    return bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}

static void try_next(struct gl_conn *c, const struct gl_why *why)
{
    struct gl_why last = *why;

    GL_ASSERT(c->address_at <= c->addresses_n);
    GL_ASSERT(!c->open);
    while (c->address_at < c->addresses_n) {
        if (start(c, &c->addresses[c->address_at++]) == 0) {
            return;
        }
        (void)gl_why(&last, GL_E_UNAVAILABLE, "cannot connect to %s:%u: %s", c->host, c->port,
                     strerror(errno));
    }
    report_end(c, &last);
}

static void on_found(void *owner, const struct gl_conn_address *addresses, size_t n,
                     const struct gl_why *why)
{
    struct gl_conn *c = owner;

    GL_ASSERT(c->addresses_n == 0);
    c->lookup = NULL;
    if (n > 0) {
        c->addresses = gl_mem_alloc(n * sizeof(*addresses));
        memcpy(c->addresses, addresses, n * sizeof(*addresses));
        c->addresses_n = n;
    }
    try_next(c, why);
}

struct gl_conn *gl_conn_open(struct gl_loop *loop, const struct gl_conn_target *target,
                             const struct gl_conn_events *events)
{
    struct gl_conn *c = gl_mem_alloc(sizeof(*c));

    GL_ASSERT(target->host.n > 0);
    GL_ASSERT(target->timeout_ms > 0);
    c->loop = loop;
    c->events = *events;
    c->port = target->port;
    c->tls = target->tls;
    c->host = gl_mem_alloc(target->host.n + 1);
    memcpy(c->host, target->host.p, target->host.n);
    c->timer = evtimer_new(gl_loop_base(loop), on_timer, c);
    GL_ASSERT(c->timer != NULL);
    struct timeval t = {.tv_sec = target->timeout_ms / 1000,
                        .tv_usec = target->timeout_ms % 1000 * 1000};
    (void)evtimer_add(c->timer, &t);
    c->lookup = gl_conn_lookup(loop, c->host, c->port, on_found, c);
    return c;
}

void gl_conn_send(struct gl_conn *c, gl_str bytes)
{
    GL_ASSERT(c->bev != NULL);
    (void)bufferevent_write(c->bev, bytes.p, bytes.n); /* fails only if out of memory */
}

size_t gl_conn_unsent(const struct gl_conn *c)
{
    return c->bev != NULL ? evbuffer_get_length(bufferevent_get_output(c->bev)) : 0;
}

void gl_conn_close(struct gl_conn *c)
{
    if (c == NULL) {
        return;
    }
    c->over = true;
    c->closed = true;
    if (c->callback_depth == 0) {
        free_conn(c);
    }
}
