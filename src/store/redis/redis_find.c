/* Which server is it? The one in the address; or the primary the sentinels name, who are asked in
 * turn, beginning with the one that knew last time. That it is a primary is seen later, when it is
 * greeted. */
#include <stdio.h>

#include "base/check.h"
#include "store/redis/redis_parts.h"

struct gl_redis_finder {
    struct gl_redis_link *link;
    struct gl_conn *conn; /* to a sentinel */
    struct gl_redis_reader *reader;
    unsigned tried;
    bool greeted; /* past AUTH */
    gl_ms since;
    struct gl_why why; /* of the last one that did not help */
};

static const struct gl_redis_host *sentinel(const struct gl_redis *s)
{
    GL_ASSERT(s->url.hosts_n > 0);
    return &s->url.hosts[s->sentinel_at % s->url.hosts_n];
}

static void hang_up(struct gl_redis_finder *f)
{
    gl_conn_close(f->conn);
    gl_redis_reader_free(f->reader);
    f->conn = NULL;
    f->reader = NULL;
}

void gl_redis_find_stop(struct gl_redis_link *l)
{
    if (l->finder != NULL) {
        hang_up(l->finder);
        gl_mem_free(l->finder);
        l->finder = NULL;
    }
}

static void ask(struct gl_redis_finder *f);

/* This one did not help. */
static void next(struct gl_redis_finder *f)
{
    struct gl_redis_link *l = f->link;
    struct gl_redis *s = l->store;

    GL_ASSERT(f->tried < f->link->store->url.hosts_n);
    hang_up(f);
    s->sentinel_at = (s->sentinel_at + 1) % (unsigned)s->url.hosts_n;
    if (++f->tried < s->url.hosts_n) {
        ask(f);
        return;
    }
    struct gl_why why;
    (void)gl_why(&why, GL_E_UNAVAILABLE, "no sentinel knows where the primary '%s' is: %s",
                 s->url.name.p, f->why.text);
    gl_redis_link_lost(l, &why); /* the finder is gone */
}

static void say_question(struct gl_redis_finder *f)
{
    const struct gl_redis_url *u = &f->link->store->url;
    struct gl_buf b = {0};
    if (!f->greeted && u->sentinel_password.n > 0) {
        gl_redis_auth(&b, u->sentinel_user, u->sentinel_password);
    } else {
        f->greeted = true;
        gl_redis_say(&b, gl_arg_c("SENTINEL"), gl_arg_c("get-master-addr-by-name"),
                     gl_arg_text(u->name));
    }
    gl_conn_send(f->conn, gl_buf_view(&b));
    gl_buf_done(&b);
}

static void on_opened(void *owner)
{
    say_question(owner);
}

static void on_address(struct gl_redis_finder *f, const struct gl_redis_reply *reply)
{
    struct gl_redis_link *l = f->link;
    gl_str host = gl_redis_text(gl_redis_item(reply, 0));
    uint64_t port = 0;

    GL_ASSERT(f->greeted);
    if (host.n == 0 || !gl_redis_u64(gl_redis_item(reply, 1), &port) || port == 0 ||
        port > UINT16_MAX) {
        const struct gl_redis_host *h = sentinel(l->store);
        (void)gl_why(&f->why, GL_E_UNAVAILABLE, "%s:%u has no primary of that name", h->host.p,
                     h->port);
        next(f);
        return;
    }
    struct gl_arena a = {0};
    host = gl_str_dup(&a, host);
    gl_redis_find_stop(l);
    gl_redis_link_connect(l, host, (uint16_t)port);
    gl_arena_done(&a);
}

static void on_reply(struct gl_redis_finder *f, const struct gl_redis_reply *reply)
{
    if (reply->type == GL_REDIS_ERROR) {
        (void)gl_redis_error_why(&f->why, GL_E_UNAVAILABLE, reply->text);
        (void)gl_why_prefix(&f->why, "sentinel %s", sentinel(f->link->store)->host.p);
        next(f);
    } else if (!f->greeted) {
        f->greeted = true;
        say_question(f);
    } else {
        on_address(f, reply);
    }
}

static void on_received(void *owner, gl_str bytes)
{
    struct gl_redis_finder *f = owner;
    const struct gl_redis_reply *reply = NULL;
    int err = gl_redis_reader_feed(f->reader, bytes, &f->why);
    if (err == 0) {
        err = gl_redis_reader_next(f->reader, &reply, &f->why);
    }
    if (err < 0) {
        next(f);
    } else if (reply != NULL) {
        on_reply(f, reply); /* One question, one answer: nothing is left to read. */
    }
}

static void on_ended(void *owner, const struct gl_why *why)
{
    struct gl_redis_finder *f = owner;
    f->why = *why;
    next(f);
}

static void ask(struct gl_redis_finder *f)
{
    struct gl_redis *s = f->link->store;
    const struct gl_redis_host *h = sentinel(s);

    GL_ASSERT(f->tried < s->url.hosts_n);
    f->greeted = false;
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

void gl_redis_find(struct gl_redis_link *l)
{
    struct gl_redis *s = l->store;

    GL_ASSERT(l->state == GL_REDIS_FINDING);
    if (!s->url.sentinel) {
        gl_redis_link_connect(l, s->url.hosts[0].host, s->url.hosts[0].port);
        return;
    }
    l->finder = gl_mem_alloc(sizeof(*l->finder));
    l->finder->link = l;
    ask(l->finder);
}

void gl_redis_find_tick(struct gl_redis_link *l, gl_ms now)
{
    struct gl_redis_finder *f = l->finder;
    const struct gl_redis *s = l->store;

    GL_ASSERT(l->state == GL_REDIS_FINDING);
    if (f != NULL && now - f->since >= s->url.connect_timeout_ms + 500) {
        const struct gl_redis_host *h = sentinel(s);
        (void)gl_why(&f->why, GL_E_UNAVAILABLE, "the sentinel %s:%u does not answer", h->host.p,
                     h->port);
        next(f);
    }
}
