#include "store/redis/redis.h"

#include <event2/event.h>
#include <stdio.h>

#include "base/check.h"
#include "base/limits.h"
#include "os/loop.h"
#include "os/random.h"
#include "store/common/conn_tls.h"
#include "store/redis/redis_parts.h"

enum { TICK_MS = 50, COMMIT_BYTES_MAX = 256 << 20, EXPORT_MAX = 10000 };

static struct gl_redis *of_port(struct gl_store *port)
{
    return GL_CONTAINER(port, struct gl_redis, port);
}

gl_ms gl_redis_now(const struct gl_redis *s)
{
    struct gl_clock *c = gl_loop_clock(s->loop);
    return c->now(c);
}

unsigned gl_redis_wait_n(const struct gl_redis *s)
{
    if (s->url.wait_replicas >= 0) {
        return (unsigned)s->url.wait_replicas;
    }
    return s->had_replicas || s->url.sentinel ? 1 : 0;
}

/* ---- time ---- */

void gl_redis_wake_up(struct gl_redis *s, gl_ms in_ms)
{
    gl_ms at = gl_redis_now(s) + in_ms;
    struct timeval t = {.tv_sec = in_ms / 1000, .tv_usec = in_ms % 1000 * 1000};
    if (s->tick_at <= at) {
        return;
    }
    s->tick_at = at;
    (void)evtimer_add(s->tick, &t);
}

static bool is_over(const struct gl_redis *s)
{
    return s->closing && s->pending_n == 0 && !s->links[GL_REDIS_WRITES].flushing;
}

static void free_store(struct gl_redis *s)
{
    for (int i = 0; i < GL_REDIS_ROLES_N; i++) {
        gl_redis_link_done(&s->links[i]);
    }
    gl_redis_plan_free(s->plan);
    event_free(s->tick);
    gl_conn_tls_free(s->tls);
    gl_pool_done(&s->pool);
    gl_arena_done(&s->arena);
    gl_mem_free(s);
}

static void settle(struct gl_redis *s)
{
    void (*closed)(void *owner) = s->closed;
    void *owner = s->closed_owner;
    free_store(s);
    if (closed != NULL) {
        closed(owner);
    }
}

static void on_tick(evutil_socket_t fd, short what, void *owner)
{
    (void)fd;
    (void)what;
    struct gl_redis *s = owner;
    gl_ms now = gl_redis_now(s);
    bool idle = true;
    s->tick_at = INT64_MAX;
    for (int i = 0; i < GL_REDIS_ROLES_N; i++) {
        gl_redis_link_tick(&s->links[i], now);
    }
    if (is_over(s)) {
        settle(s);
        return;
    }
    for (int i = 0; i < GL_REDIS_ROLES_N; i++) {
        idle = idle && gl_redis_link_idle(&s->links[i]);
    }
    if (!idle) {
        gl_redis_wake_up(s, TICK_MS);
    }
}

/* ---- requests ---- */

static struct gl_redis_op *new_op(struct gl_redis *s, struct gl_store_req *req,
                                  const struct gl_redis_verb *verb, gl_str context)
{
    GL_ASSERT(req->done != NULL);
    gl_store_done *done = req->done;
    void *owner = req->owner;
    *req = (struct gl_store_req){.done = done, .owner = owner};
    struct gl_redis_op *op = gl_pool_alloc(&s->pool, sizeof(*op));
    op->req = req;
    op->verb = verb;
    op->context = context;
    op->called_at = gl_redis_now(s);
    gl_list_init(&op->at);
    s->pending_n++;
    return op;
}

static void begin(struct gl_redis *s, struct gl_redis_op *op)
{
    GL_ASSERT(!s->closing);
    gl_redis_link_push(&s->links[op->verb->writes ? GL_REDIS_WRITES : GL_REDIS_READS], op);
    if (s->tick_at == INT64_MAX) {
        gl_redis_wake_up(s, TICK_MS);
    }
}

void gl_redis_complete(struct gl_redis *s, struct gl_redis_op *op)
{
    struct gl_store_req *req = op->req;
    char *kept = op->kept;
    gl_pool_free(&s->pool, op, sizeof(*op));
    s->pending_n--;
    if (is_over(s)) {
        gl_redis_wake_up(s, 0);
    }
    req->done(req); /* It may start the next request, or free this one. */
    gl_mem_free(kept);
}

void gl_redis_fail(struct gl_redis *s, struct gl_redis_op *op, int code, const char *text)
{
    struct gl_why why; /* the text may stand in the request itself */
    (void)gl_why(&why, code, "store unavailable: %s", text);
    op->req->why = why;
    op->req->status = code;
    gl_redis_complete(s, op);
}

void gl_redis_refuse(struct gl_redis *s, const struct gl_why *why)
{
    s->refusal = *why;
    gl_redis_wake_up(s, 0);
}

static void session_open(struct gl_store *port, struct gl_store_req *req,
                         const struct gl_session_wish *wish)
{
    struct gl_redis *s = of_port(port);
    struct gl_redis_op *op = new_op(s, req, &gl_redis_verb_session_open, (gl_str){0});
    op->u.wish = wish;
    op->opening = gl_rng_u64(&s->rng);
    op->confirm = true;
    begin(s, op);
}

static struct gl_redis_op *session_op(struct gl_redis *s, struct gl_store_req *req,
                                      const struct gl_redis_verb *verb, gl_str session)
{
    struct gl_redis_op *op = new_op(s, req, verb, (gl_str){0});
    op->u.session.id = session;
    return op;
}

static void session_renew(struct gl_store *port, struct gl_store_req *req, gl_str session,
                          gl_ms ttl_ms, gl_str about)
{
    struct gl_redis *s = of_port(port);
    struct gl_redis_op *op = session_op(s, req, &gl_redis_verb_session_renew, session);
    op->u.session.ttl_ms = ttl_ms;
    op->u.session.about = about;
    op->confirm = true;
    begin(s, op);
}

static void session_end(struct gl_store *port, struct gl_store_req *req, gl_str session)
{
    struct gl_redis *s = of_port(port);
    begin(s, session_op(s, req, &gl_redis_verb_session_end, session));
}

static void session_dead(struct gl_store *port, struct gl_store_req *req, gl_str session,
                         bool declare)
{
    struct gl_redis *s = of_port(port);
    struct gl_redis_op *op = session_op(s, req, &gl_redis_verb_session_dead, session);
    op->u.session.declare = declare;
    op->confirm = declare; /* What is dead must stay dead, also after a failover. */
    begin(s, op);
}

static void session_list(struct gl_store *port, struct gl_store_req *req)
{
    struct gl_redis *s = of_port(port);
    begin(s, new_op(s, req, &gl_redis_verb_session_list, (gl_str){0}));
}

/* Too large for one command? */
static bool is_too_large(const struct gl_tx *tx)
{
    size_t bytes = 0;
    for (size_t i = 0; i < tx->writes_n; i++) {
        const struct gl_write *w = &tx->writes[i];
        if (w->value.n > GL_RECORD_BYTES_MAX) {
            return true;
        }
        bytes += w->value.n + w->id.n + w->kind.n;
    }
    return bytes > COMMIT_BYTES_MAX;
}

static void commit(struct gl_store *port, struct gl_store_req *req, const struct gl_tx *tx)
{
    struct gl_redis *s = of_port(port);
    struct gl_redis_op *op = new_op(s, req, &gl_redis_verb_commit, tx->context);
    op->u.tx = tx;
    op->confirm = tx->confirm || s->url.wait_all;
    if (is_too_large(tx)) {
        op->verb = &gl_redis_verb_too_large; /* It must not overtake those before it. */
    }
    begin(s, op);
}

static void resolve(struct gl_store *port, struct gl_store_req *req, gl_str context, gl_str session,
                    uint64_t tx_id)
{
    (void)context; /* Numbers rise within a session, whatever the context. */
    struct gl_redis *s = of_port(port);
    struct gl_redis_op *op = session_op(s, req, &gl_redis_verb_resolve, session);
    op->u.session.tx_id = tx_id;
    op->confirm = true;
    begin(s, op);
}

static void get(struct gl_store *port, struct gl_store_req *req, gl_str context,
                const struct gl_key *keys, size_t keys_n)
{
    struct gl_redis *s = of_port(port);
    struct gl_redis_op *op = new_op(s, req, &gl_redis_verb_get, context);
    op->u.get.keys = keys;
    op->u.get.n = keys_n;
    begin(s, op);
}

static void range(struct gl_store *port, struct gl_store_req *req, gl_str context,
                  const struct gl_range *r)
{
    struct gl_redis *s = of_port(port);
    struct gl_redis_op *op = new_op(s, req, &gl_redis_verb_range, context);
    op->u.range = r;
    begin(s, op);
}

static void list(struct gl_store *port, struct gl_store_req *req, gl_str context,
                 const struct gl_listing *l)
{
    struct gl_redis *s = of_port(port);
    struct gl_redis_op *op = new_op(s, req, &gl_redis_verb_list, context);
    op->u.listing = l;
    begin(s, op);
}

static void log_read(struct gl_store *port, struct gl_store_req *req, gl_str context, gl_str kind,
                     gl_str id, int64_t from, size_t limit)
{
    struct gl_redis *s = of_port(port);
    struct gl_redis_op *op = new_op(s, req, &gl_redis_verb_log, context);
    op->u.log.kind = kind;
    op->u.log.id = id;
    op->u.log.from = from;
    op->u.log.limit = limit;
    begin(s, op);
}

static void store_time(struct gl_store *port, struct gl_store_req *req)
{
    struct gl_redis *s = of_port(port);
    begin(s, new_op(s, req, &gl_redis_verb_time, (gl_str){0}));
}

static void export(struct gl_store *port, struct gl_store_req *req, gl_str context, gl_str after,
                   size_t limit)
{
    struct gl_redis *s = of_port(port);
    struct gl_redis_op *op = new_op(s, req, &gl_redis_verb_export, context);
    op->u.export.after = after;
    op->u.export.limit = limit == 0 ? 1 : limit < EXPORT_MAX ? limit : EXPORT_MAX;
    if (after.n == 0) { /* from the beginning: with a new look at what there is */
        gl_redis_plan_free(s->plan);
        s->plan = NULL;
    }
    begin(s, op);
}

static void store_listen(struct gl_store *port, const struct gl_store_events *events)
{
    of_port(port)->events = *events;
}

static void measure(struct gl_store *port, struct gl_store_req *req, gl_str context)
{
    struct gl_redis *s = of_port(port);
    begin(s, new_op(s, req, &gl_redis_verb_measure, context));
}

static void close_store(struct gl_store *port, void (*closed)(void *owner), void *owner)
{
    struct gl_redis *s = of_port(port);
    GL_ASSERT(!s->closing);
    s->closing = true;
    s->closed = closed;
    s->closed_owner = owner;
    s->events = (struct gl_store_events){0};
    gl_redis_wake_up(s, 0);
}

/* ---- opening ---- */

static const struct gl_store_ops ops = {
    .name = "redis",
    .shared = true,
    .session_open = session_open,
    .session_renew = session_renew,
    .session_end = session_end,
    .session_dead = session_dead,
    .session_list = session_list,
    .commit = commit,
    .resolve = resolve,
    .get = get,
    .range = range,
    .list = list,
    .log_read = log_read,
    .time = store_time,
    .export = export,
    .listen = store_listen,
    .measure = measure,
    .close = close_store,
};

static const char *or_null(gl_str s)
{
    return s.n > 0 ? s.p : NULL;
}

static int prepare_tls(struct gl_redis *s, struct gl_why *reterr_why)
{
    if (!s->url.tls) {
        return 0;
    }
    return gl_conn_tls_new(&s->tls,
                           &(struct gl_conn_tls_config){
                               .ca_file = or_null(s->url.tls_ca),
                               .cert_file = or_null(s->url.tls_cert),
                               .key_file = or_null(s->url.tls_key),
                               .name = or_null(s->url.tls_name),
                               .no_verify = s->url.tls_no_verify,
                           },
                           reterr_why);
}

static uint64_t seed(void)
{
    struct gl_entropy e = gl_random_entropy();
    uint64_t v;
    e.fill(&e, &v, sizeof(v));
    return v;
}

int gl_redis_open(struct gl_store **ret, const struct gl_redis_config *cfg, struct gl_loop *loop,
                  struct gl_why *reterr_why)
{
    GL_ASSERT(cfg->url != NULL);
    struct gl_redis *s = gl_mem_alloc(sizeof(*s));
    s->port.ops = &ops;
    s->loop = loop;
    s->allow_loss = cfg->allow_loss;
    s->tick_at = INT64_MAX;
    s->read_only = cfg->read_only;
    (void)snprintf(s->identity, sizeof(s->identity), "%s",
                   cfg->identity != NULL ? cfg->identity : "");
    gl_pool_init(&s->pool);
    gl_rng_init(&s->rng, seed());
    s->tick = evtimer_new(gl_loop_base(loop), on_tick, s);
    GL_ASSERT(s->tick != NULL);
    for (int i = 0; i < GL_REDIS_ROLES_N; i++) {
        gl_redis_link_init(&s->links[i], s, (enum gl_redis_role)i);
    }
    int err = gl_redis_url_parse(&s->url, gl_str_of(cfg->url), &s->arena, reterr_why);
    if (err == 0) {
        err = prepare_tls(s, reterr_why);
    }
    if (err < 0) {
        free_store(s);
        return err;
    }
    gl_redis_wake_up(s, 0);
    *ret = &s->port;
    return 0;
}
