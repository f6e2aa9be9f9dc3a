/* calls.c - the port's operations, generated from calls.def, and what surrounds each of them:
 * resetting the request, allocating the call, and completing it. */
#include "store/common/calls.h"

#include <event2/event.h>

#include "base/check.h"
#include "base/limits.h"
#include "os/random.h"
#include "port/checksum.h"

enum { PAGE_MAX = 10000 }; /* limit on the writes in an export page */

static size_t page_limit(size_t limit)
{
    return limit == 0 ? 1 : limit < PAGE_MAX ? limit : PAGE_MAX;
}

static void begin(struct gl_store *port, struct gl_store_req *req, struct gl_call what)
{
    struct gl_calls *s = GL_CONTAINER(port, struct gl_calls, port);

    GL_ASSERT(what.type < GL_CALLS_N);
    GL_ASSERT(req->done != NULL);
    /* A request may be reused; results of its previous use must not be visible. */
    *req = (struct gl_store_req){.done = req->done, .owner = req->owner};
    struct gl_call *call = gl_pool_alloc(&s->pool, s->engine->call_bytes);
    *call = what;
    call->req = req;
    gl_list_init(&call->link);
    s->pending_n++;
    GL_ASSERT(s->pending_n > 0);
    s->engine->begin(s, call);
}

/* The port's functions: call_commit(), call_resolve(), ... Each fills in a struct gl_call and hands
 * it to begin(). */
#define CALLER struct gl_store *port, struct gl_store_req *req
#define PLAIN(...) __VA_ARGS__
#define CALL(NAME, name, context_, arguments, parameters)                                        \
    static void call_##name parameters                                                           \
    {                                                                                            \
        begin(port, req,                                                                         \
              (struct gl_call){.type = GL_CALL_##NAME, .context = (context_), PLAIN arguments}); \
    }
#include "store/common/calls.def"
#undef CALL

static void call_listen(struct gl_store *port, const struct gl_store_events *events)
{
    GL_CONTAINER(port, struct gl_calls, port)->events = *events;
}

static void call_close(struct gl_store *port, void (*closed)(void *owner), void *owner)
{
    struct gl_calls *s = GL_CONTAINER(port, struct gl_calls, port);
    GL_ASSERT(!s->closing);
    s->closing = true;
    s->closed = closed;
    s->closed_owner = owner;
    /* The listener may be freed while the store closes: it gets no more events. */
    s->events = (struct gl_store_events){0};
    s->engine->close(s);
    GL_ASSERT(s->closing);
}

void gl_calls_init(struct gl_calls *s, const struct gl_calls_engine *engine, struct gl_loop *loop)
{
    GL_ASSERT(engine->call_bytes >= sizeof(struct gl_call));
    GL_ASSERT(loop != NULL);
    s->ops = (struct gl_store_ops){
        .name = engine->name,
        .shared = engine->shared,
        .listen = call_listen,
        .close = call_close,
#define CALL(NAME, name_, context, arguments, parameters) .name_ = call_##name_,
#include "store/common/calls.def"
#undef CALL
    };
    s->port.ops = &s->ops;
    s->engine = engine;
    s->loop = loop;
    gl_pool_init(&s->pool);
    struct gl_entropy entropy = gl_random_entropy();
    /* Seeded at random: backoff must differ between nodes. */
    uint64_t seed;
    entropy.fill(&entropy, &seed, sizeof(seed));
    gl_rng_init(&s->rng, seed);
}

void gl_calls_done(struct gl_calls *s)
{
    GL_ASSERT(s->pending_n == 0);
    GL_ASSERT(s->pool.used_bytes == 0); /* every call was freed when it was completed */
    gl_pool_done(&s->pool);
}

void gl_calls_complete(struct gl_calls *s, struct gl_call *call)
{
    struct gl_store_req *req = call->req;

    GL_ASSERT(s->pending_n > 0);
    GL_ASSERT(gl_list_empty(&call->link));
    /* Freed before `done` runs, so an engine must not touch the call afterwards. */
    gl_pool_free(&s->pool, call, s->engine->call_bytes);
    s->pending_n--;
    req->done(req); /* Last: `done` may issue the next request, or free this one. */
}

void gl_calls_closed(struct gl_calls *s)
{
    GL_ASSERT(s->closing);
    GL_ASSERT(s->pending_n == 0);
    /* Copied first: engine->free() frees the struct that holds them. */
    void (*closed)(void *owner) = s->closed;
    void *owner = s->closed_owner;
    s->engine->free(s);
    if (closed != NULL) {
        closed(owner);
    }
}

static void turn(struct gl_loop *loop)
{
    int err = event_base_loop(gl_loop_base(loop), EVLOOP_ONCE);
    GL_ASSERT(err >= 0);
}

void gl_calls_run_loop_once(struct gl_calls *s)
{
    turn(s->loop);
}

static void set_flag(void *flag)
{
    *(bool *)flag = true;
}

void gl_calls_close(struct gl_calls *s)
{
    struct gl_loop *loop = s->loop;
    bool is_closed = false;

    GL_ASSERT(!s->closing);
    call_close(&s->port, set_flag, &is_closed);
    while (!is_closed) {
        turn(loop); /* through `loop`: the store may be freed by now */
    }
}

gl_ms gl_calls_now(const struct gl_calls *s)
{
    struct gl_clock *clock = gl_loop_clock(s->loop);
    return clock->now(clock);
}

struct gl_ulid gl_calls_new_id(const struct gl_calls *s)
{
    struct gl_entropy entropy = gl_random_entropy();
    uint8_t chance[10];
    struct gl_ulid id;
    entropy.fill(&entropy, chance, sizeof(chance));
    gl_id_make(&id, gl_calls_now(s), chance);
    return id;
}

void gl_calls_identified(struct gl_calls *s, gl_str identity)
{
    if (s->events.met != NULL) {
        s->events.met(s->events.owner, identity);
    }
}

void gl_calls_changed(struct gl_calls *s, const char *why)
{
    if (s->events.changed != NULL) {
        s->events.changed(s->events.owner, why);
    }
}

void gl_calls_woken(struct gl_calls *s, gl_str context, gl_str word)
{
    if (s->events.woken != NULL && word.n > 0) {
        s->events.woken(s->events.owner, context, word);
    }
}

/* ---- checks shared by all engines ---- */

bool gl_call_is_refused(const struct gl_calls *s, struct gl_call *call)
{
    struct gl_store_req *req = call->req;

    GL_ASSERT(call->req->status == 0);
    if (s->closing) {
        req->status =
            gl_why(&req->why, GL_E_UNAVAILABLE, "store unavailable: the store is closing");
    } else if (!gl_str_is_id(call->context)) {
        req->status = gl_why(&req->why, GL_E_INVALID, "\"%.*s\" is not a valid context name",
                             GL_STR_ARG(call->context));
    }
    return req->status < 0;
}

int gl_call_check_sizes(const struct gl_tx *tx, size_t bytes_max, struct gl_why *reterr_why)
{
    size_t bytes = 0;

    for (size_t i = 0; i < tx->writes_n; i++) {
        const struct gl_write *w = &tx->writes[i];
        bytes += w->value.n + w->id.n + w->kind.n;
        if (w->value.n > GL_RECORD_BYTES_MAX) {
            return gl_why(reterr_why, GL_E_LIMIT,
                          "%.*s %.*s has %zu bytes; the store accepts up to %d in one record",
                          GL_STR_ARG(w->kind), GL_STR_ARG(w->id), w->value.n,
                          (int)GL_RECORD_BYTES_MAX);
        }
    }
    if (bytes > bytes_max) {
        return gl_why(reterr_why, GL_E_LIMIT,
                      "the transaction has at least %zu bytes; the store accepts up to %zu", bytes,
                      bytes_max);
    }
    return 0;
}

void gl_call_conflict(struct gl_call *call, size_t i)
{
    const struct gl_guard *g = &call->tx->guards[i];

    GL_ASSERT(i < call->tx->guards_n);
    call->req->refused = i;
    call->req->status = gl_why(&call->req->why, GL_E_CONFLICT,
                               "guard %zu of the transaction on %.*s %.*s did not hold", i,
                               GL_STR_ARG(g->kind), GL_STR_ARG(g->id));
    GL_ASSERT(call->req->status < 0);
}

uint32_t gl_call_checksum(const struct gl_write *w)
{
    GL_ASSERT(w->type == GL_WRITE_PUT || w->type == GL_WRITE_PUT_NEW);
    return gl_checksum_record(&(struct gl_record){.kind = w->kind,
                                                  .id = w->id,
                                                  .rev = w->rev,
                                                  .owner = w->owner,
                                                  .token = w->token,
                                                  .live = w->live,
                                                  .value = w->value});
}
