/* redis.c - opening, closing, and dispatching requests to the links.
 *
 * Time is driven by one timer, the tick: it runs every 50 ms while anything is pending, sooner if
 * somebody asks for it, and not at all while the store is idle. Timeouts, reconnects and the end of
 * closing all happen in it. */
#include "store/redis/redis.h"

#include <event2/event.h>
#include <stdio.h>

#include "base/check.h"
#include "store/common/conn_tls.h"
#include "store/redis/redis_parts.h"

enum { TICK_MS = 50 };

/* Number of replicas a confirmed command waits for. By default one, if the server has ever had a
 * replica or is managed by Sentinel; a standalone server never needs to wait. */
unsigned gl_redis_replicas_wanted(const struct gl_redis *s)
{
    if (s->url.wait_replicas >= 0) {
        return (unsigned)s->url.wait_replicas;
    }
    return s->had_replicas || s->url.sentinel ? 1 : 0;
}

/* ---- time ---- */

void gl_redis_schedule_tick(struct gl_redis *s, gl_ms in_ms)
{
    gl_ms at = gl_calls_now(&s->calls) + in_ms;
    struct timeval t = {.tv_sec = in_ms / 1000, .tv_usec = in_ms % 1000 * 1000};

    GL_ASSERT(in_ms >= 0);
    /* An earlier tick is scheduled already and will schedule the next one. */
    if (s->tick_at <= at) {
        return;
    }
    s->tick_at = at;
    (void)evtimer_add(s->tick, &t);
}

/* Is the store closing and everything done? A posted flush still refers to its link, so it
 * counts. */
static bool is_over(const struct gl_redis *s)
{
    return s->calls.closing && s->calls.pending_n == 0 && !s->links[GL_REDIS_WRITER].flushing;
}

static void free_store(struct gl_calls *calls)
{
    struct gl_redis *s = GL_CONTAINER(calls, struct gl_redis, calls);

    GL_ASSERT(calls->pending_n == 0);
    for (int i = 0; i < GL_REDIS_ROLES_N; i++) {
        gl_redis_link_done(&s->links[i]);
    }
    gl_redis_plan_free(s->plan);
    event_free(s->tick);
    gl_conn_tls_free(s->tls);
    gl_calls_done(calls);
    gl_arena_done(&s->arena);
    gl_mem_free(s);
}

static void on_tick(evutil_socket_t fd, short what, void *owner)
{
    (void)fd;
    (void)what;
    struct gl_redis *s = owner;
    gl_ms now = gl_calls_now(&s->calls);
    bool idle = true;
    s->tick_at = INT64_MAX;
    for (int i = 0; i < GL_REDIS_ROLES_N; i++) {
        gl_redis_link_tick(&s->links[i], now);
    }
    if (is_over(s)) {
        gl_calls_closed(&s->calls);
        return;
    }
    for (int i = 0; i < GL_REDIS_ROLES_N; i++) {
        idle = idle && gl_redis_link_idle(&s->links[i]);
    }
    if (!idle) {
        gl_redis_schedule_tick(s, TICK_MS);
    }
}

/* ---- requests ---- */

static const struct gl_redis_verb *const verbs[GL_CALLS_N] = {
#define CALL(NAME, name, context, arguments, parameters) [GL_CALL_##NAME] = &gl_redis_verb_##name,
#include "store/common/calls.def"
#undef CALL
};

/* Must replicas confirm it? A session that was declared dead must stay dead, even after a failover.
 * A `resolve` confirms the transaction it reports on. */
static bool is_confirmed(const struct gl_redis *s, const struct gl_call *call)
{
    GL_ASSERT(call->type < GL_CALLS_N);
    switch (call->type) {
    case GL_CALL_COMMIT:
        return call->tx->confirm || s->url.wait_all;
    case GL_CALL_SESSION_DEAD:
        return call->session.declare;
    case GL_CALL_SESSION_OPEN:
    case GL_CALL_SESSION_RENEW:
    case GL_CALL_RESOLVE:
        return true;
    default:
        return false;
    }
}

static void begin(struct gl_calls *calls, struct gl_call *call)
{
    struct gl_redis *s = GL_CONTAINER(calls, struct gl_redis, calls);
    struct gl_redis_op *op = GL_CONTAINER(call, struct gl_redis_op, call);

    GL_ASSERT(call->type < GL_CALLS_N);
    GL_ASSERT(!calls->closing);
    op->store = s;
    op->verb = verbs[call->type];
    op->called_at = gl_calls_now(calls);
    op->confirm = is_confirmed(s, call);
    if (call->type == GL_CALL_SESSION_OPEN) {
        op->opening = gl_rng_u64(&calls->rng);
    } else if (call->type == GL_CALL_COMMIT &&
               gl_call_check_sizes(call->tx, GL_REDIS_COMMIT_BYTES_MAX, NULL) < 0) {
        op->verb = &gl_redis_verb_too_large; /* it must not overtake earlier commits */
    } else if (call->type == GL_CALL_EXPORT && call->export.after.n == 0) {
        gl_redis_plan_free(s->plan); /* the first page: make a new plan */
        s->plan = NULL;
    }
    gl_redis_link_push(&s->links[op->verb->writes ? GL_REDIS_WRITER : GL_REDIS_READER], op);
    if (s->tick_at == INT64_MAX) {
        gl_redis_schedule_tick(s, TICK_MS);
    }
}

void gl_redis_complete(struct gl_redis *s, struct gl_redis_op *op)
{
    char *kept = op->kept;

    GL_ASSERT(s->calls.pending_n > 0);
    GL_ASSERT(gl_list_empty(&op->call.link));
    gl_calls_complete(&s->calls, &op->call);
    gl_mem_free(kept);
    if (is_over(s)) {
        gl_redis_schedule_tick(s, 0);
    }
}

void gl_redis_fail(struct gl_redis *s, struct gl_redis_op *op, int code, const char *text)
{
    struct gl_why why; /* copied first: `text` may be in the request itself */

    GL_ASSERT(code < 0);
    (void)gl_why(&why, code, "store unavailable: %s", text);
    op->call.req->why = why;
    op->call.req->status = why.code;
    GL_ASSERT(op->call.req->status < 0);
    gl_redis_complete(s, op);
}

void gl_redis_refuse(struct gl_redis *s, const struct gl_why *why)
{
    GL_ASSERT(why->code != 0);
    s->refusal = *why;
    gl_redis_schedule_tick(s, 0);
}

static void close_store(struct gl_calls *calls)
{
    GL_ASSERT(calls->closing);
    gl_redis_schedule_tick(GL_CONTAINER(calls, struct gl_redis, calls), 0);
}

/* ---- opening ---- */

static const struct gl_calls_engine engine = {
    .name = "redis",
    .shared = true,
    .call_bytes = sizeof(struct gl_redis_op),
    .begin = begin,
    .close = close_store,
    .free = free_store,
};

static const char *or_null(gl_str s)
{
    return s.n > 0 ? s.p : NULL;
}

/* Certificates are loaded when the store is opened, so that a bad file is reported at once. */
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

int gl_redis_open(struct gl_store **ret, const struct gl_redis_config *cfg, struct gl_loop *loop,
                  struct gl_why *reterr_why)
{
    GL_ASSERT(cfg->url != NULL);
    struct gl_redis *s = gl_mem_alloc(sizeof(*s));
    gl_calls_init(&s->calls, &engine, loop);
    s->allow_loss = cfg->allow_loss;
    s->tick_at = INT64_MAX;
    s->read_only = cfg->read_only;
    (void)snprintf(s->identity, sizeof(s->identity), "%s",
                   cfg->identity != NULL ? cfg->identity : "");
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
        free_store(&s->calls);
        return err;
    }
    gl_redis_schedule_tick(s, 0);
    *ret = &s->calls.port;
    return 0;
}
