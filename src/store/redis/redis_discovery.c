/* redis_discovery.c - finds the server to connect to: the one in the URL, or the primary that a
 * sentinel names. Sentinels are asked one after the other, beginning with the one that answered
 * last. Whether the server really is a primary is checked later, in the handshake. */
#include <stdio.h>

#include "base/check.h"
#include "store/redis/redis_parts.h"

struct gl_redis_discovery {
    struct gl_redis_link *link;
    struct gl_conn *conn; /* to a sentinel */
    struct gl_redis_reader *reader;
    unsigned tried;
    bool authenticated; /* AUTH is done */
    gl_ms since;
    struct gl_why why; /* why the last sentinel did not help */
};

static const struct gl_redis_host *sentinel(const struct gl_redis *s)
{
    GL_ASSERT(s->url.hosts_n > 0);
    return &s->url.hosts[s->sentinel_at % s->url.hosts_n];
}

static void close_sentinel(struct gl_redis_discovery *f)
{
    gl_conn_close(f->conn);
    gl_redis_reader_free(f->reader);
    f->conn = NULL;
    f->reader = NULL;
}

void gl_redis_discovery_stop(struct gl_redis_link *l)
{
    if (l->discovery != NULL) {
        close_sentinel(l->discovery);
        gl_mem_free(l->discovery);
        l->discovery = NULL;
    }
}

static void ask_sentinel(struct gl_redis_discovery *f);

/* The current sentinel did not help: ask the next, or give up after one round. */
static void try_next_sentinel(struct gl_redis_discovery *f)
{
    struct gl_redis_link *l = f->link;
    struct gl_redis *s = l->store;

    GL_ASSERT(f->tried < f->link->store->url.hosts_n);
    close_sentinel(f);
    s->sentinel_at = (s->sentinel_at + 1) % (unsigned)s->url.hosts_n;
    if (++f->tried < s->url.hosts_n) {
        ask_sentinel(f);
        return;
    }
    struct gl_why why;
    (void)gl_why(&why, GL_E_UNAVAILABLE, "no sentinel knows the primary '%s': %s", s->url.name.p,
                 f->why.text);
    gl_redis_link_lost(l, &why); /* `f` has been freed */
}

/* AUTH first if a password is configured, then the question. */
static void send_question(struct gl_redis_discovery *f)
{
    const struct gl_redis_url *u = &f->link->store->url;
    struct gl_buf b = {0};
    if (!f->authenticated && u->sentinel_password.n > 0) {
        gl_redis_auth(&b, u->sentinel_user, u->sentinel_password);
    } else {
        f->authenticated = true;
        gl_redis_command(&b, gl_arg_c("SENTINEL"), gl_arg_c("get-master-addr-by-name"),
                         gl_arg_text(u->name));
    }
    gl_conn_send(f->conn, gl_buf_view(&b));
    gl_buf_done(&b);
}

static void on_opened(void *owner)
{
    send_question(owner);
}

static void on_address(struct gl_redis_discovery *f, const struct gl_redis_reply *reply)
{
    struct gl_redis_link *l = f->link;
    gl_str host = gl_redis_text(gl_redis_item(reply, 0));
    uint64_t port = 0;

    GL_ASSERT(f->authenticated);
    if (host.n == 0 || !gl_redis_u64(gl_redis_item(reply, 1), &port) || port == 0 ||
        port > UINT16_MAX) {
        /* Not an error of the sentinel: it simply does not monitor this primary. */
        const struct gl_redis_host *h = sentinel(l->store);
        (void)gl_why(&f->why, GL_E_UNAVAILABLE, "%s:%u knows no primary of that name", h->host.p,
                     h->port);
        try_next_sentinel(f);
        return;
    }
    struct gl_arena a = {0};
    host = gl_str_dup(&a, host);
    gl_redis_discovery_stop(l);
    gl_redis_link_connect(l, host, (uint16_t)port);
    gl_arena_done(&a);
}

static void on_reply(struct gl_redis_discovery *f, const struct gl_redis_reply *reply)
{
    if (reply->type == GL_REDIS_ERROR) {
        (void)gl_redis_error_why(&f->why, GL_E_UNAVAILABLE, reply->text);
        (void)gl_why_prefix(&f->why, "sentinel %s", sentinel(f->link->store)->host.p);
        try_next_sentinel(f);
    } else if (!f->authenticated) {
        f->authenticated = true;
        send_question(f);
    } else {
        on_address(f, reply);
    }
}

static void on_received(void *owner, gl_str bytes)
{
    struct gl_redis_discovery *f = owner;
    const struct gl_redis_reply *reply = NULL;
    int err = gl_redis_reader_feed(f->reader, bytes, &f->why);
    if (err == 0) {
        err = gl_redis_reader_next(f->reader, &reply, &f->why);
    }
    if (err < 0) {
        try_next_sentinel(f);
    } else if (reply != NULL) {
        on_reply(f, reply); /* one question, one reply: nothing else to read */
    }
}

static void on_ended(void *owner, const struct gl_why *why)
{
    struct gl_redis_discovery *f = owner;
    f->why = *why;
    try_next_sentinel(f);
}

static void ask_sentinel(struct gl_redis_discovery *f)
{
    struct gl_redis *s = f->link->store;
    const struct gl_redis_host *h = sentinel(s);

    GL_ASSERT(f->tried < s->url.hosts_n);
    f->authenticated = false;
    f->since = gl_calls_now(&s->calls);
    f->reader = gl_redis_reader_new();
    f->conn = gl_conn_open(
        s->calls.loop,
        &(struct gl_conn_target){.host = h->host,
                                 .port = h->port,
                                 .timeout_ms = s->url.connect_timeout_ms,
                                 .tls = s->tls},
        &(struct gl_conn_events){
            .owner = f, .opened = on_opened, .received = on_received, .ended = on_ended});
}

/* Called in the state DISCOVERY; ends in gl_redis_link_connect() or gl_redis_link_lost(). */
void gl_redis_discovery_start(struct gl_redis_link *l)
{
    struct gl_redis *s = l->store;

    GL_ASSERT(l->state == GL_REDIS_DISCOVERY);
    if (!s->url.sentinel) {
        gl_redis_link_connect(l, s->url.hosts[0].host, s->url.hosts[0].port);
        return;
    }
    l->discovery = gl_mem_alloc(sizeof(*l->discovery));
    l->discovery->link = l;
    ask_sentinel(l->discovery);
}

/* The connection has a timeout of its own; this one covers a sentinel that accepts it and does not
 * reply. */
void gl_redis_discovery_tick(struct gl_redis_link *l, gl_ms now)
{
    struct gl_redis_discovery *f = l->discovery;
    const struct gl_redis *s = l->store;

    GL_ASSERT(l->state == GL_REDIS_DISCOVERY);
    if (f != NULL && now - f->since >= s->url.connect_timeout_ms + 500) {
        const struct gl_redis_host *h = sentinel(s);
        (void)gl_why(&f->why, GL_E_UNAVAILABLE, "sentinel %s:%u does not answer", h->host.p,
                     h->port);
        try_next_sentinel(f);
    }
}
