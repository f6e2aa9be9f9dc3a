/* feed.c - feeds one event to the core, and gives the effects it returns to the ports.
 *
 * The effects of a step live in its batch until the last of them is done. Batches are reused: every
 * event needs one. */
#include "base/check.h"
#include "core/snapshot.h"
#include "node/agent_input.h"
#include "node/flight_recorder.h"
#include "node/node_state.h"

enum { BATCHES_KEPT = 64, BATCH_BYTES_KEPT = 256 << 10 };

struct feed {
    struct gl_link all, idle; /* struct gl_batch: in use; free for reuse */
    size_t idle_n;
    bool is_on;            /* the core is handling an event ... */
    struct gl_link queued; /* ... and these come after it: struct queued_event */
    uint64_t events_n;
    struct gl_flight_recorder flight; /* used if there is a port for it */
};

static struct feed *own(const struct gl_node *n)
{
    return n->parts[GL_PART_FEED];
}

/* ---- batches ---- */

static struct gl_batch *batch_new(struct gl_node *n)
{
    struct gl_link *l = gl_list_first(&own(n)->idle);
    struct gl_batch *b;

    if (l != NULL) {
        b = GL_CONTAINER(l, struct gl_batch, link);
        gl_list_remove(l);
        own(n)->idle_n--;
    } else {
        b = gl_mem_alloc(sizeof(*b));
        gl_list_init(&b->link);
    }
    b->refs = 1;
    b->effects = (struct gl_effects){.arena = &b->arena};
    gl_list_push(&own(n)->all, &b->link);
    GL_ASSERT(b->refs == 1);
    GL_ASSERT(b->effects.n == 0);
    return b;
}

static void batch_free(struct gl_batch *b)
{
    gl_list_remove(&b->link);
    gl_arena_done(&b->arena);
    gl_mem_free(b);
}

void gl_node_release(struct gl_node *n, struct gl_batch *b)
{
    GL_ASSERT(b->refs > 0);
    if (--b->refs > 0) {
        return;
    }
    if (own(n)->idle_n >= BATCHES_KEPT || b->arena.used_bytes > BATCH_BYTES_KEPT) {
        batch_free(b);
        return;
    }
    gl_arena_reset(&b->arena);
    gl_list_remove(&b->link);
    gl_list_push(&own(n)->idle, &b->link);
    own(n)->idle_n++;
    GL_ASSERT(own(n)->idle_n <= BATCHES_KEPT);
}

/* ---- executing effects ---- */

void gl_node_execute(struct gl_node *n, struct gl_batch *b, size_t number)
{
    const struct gl_effect *e = &b->effects.items[number];

    GL_ASSERT(number < b->effects.n);
    switch (e->type) {
    case GL_FX_COMMIT:
        gl_commits_begin(n, b, number);
        break;
    case GL_FX_LOAD:
        gl_loads_begin(n, e);
        break;
    case GL_FX_FIND:
        gl_loads_find(n, e);
        break;
    case GL_FX_RESOLVE:
        if (e->wants != 0) {
            gl_agent_input_resolve(n, e);
        } else {
            gl_lookup_resolve(n, e);
        }
        b->effects.items[number].spec = NULL; /* the callee has taken the reference */
        break;
    case GL_FX_START:
        gl_starts_begin(n, e);
        break;
    case GL_FX_ATTACH:
        gl_exec_events_attach(n, e);
        break;
    case GL_FX_STOP:
        gl_exec_events_stop(n, e);
        break;
    case GL_FX_ACK:
        gl_exec_events_ack(n, e);
        break;
    case GL_FX_LIST:
        gl_exec_events_list(n);
        break;
    case GL_FX_REPLY:
        gl_requests_reply(n, e);
        break;
    case GL_FX_TELL:
        gl_requests_notify(n, e->job, e->ended);
        break;
    case GL_FX_CALL:
        gl_component_calls_begin(n, b, number);
        break;
    case GL_FX_VALID:
        gl_sessions_set_valid_until(n, e);
        break;
    case GL_FX_LOST:
        gl_sessions_set_lost(n, e);
        break;
    case GL_FX_SAY:
        gl_sessions_log(n, "%.*s", GL_STR_ARG(e->why));
        break;
    case GL_FX_COUNT:
        GL_UNREACHABLE();
    }
}

/* An event is a value: encoding and decoding it must give the same event. The simulator checks this
 * for every event, so that recordings can be trusted. */
static void round_trip(struct gl_event *ev, struct gl_arena *a)
{
    struct gl_buf text = {0};
    int rc;

    GL_ASSERT(ev->type < GL_EV_COUNT);
    gl_event_encode(ev, &text);
    rc = gl_event_decode(gl_str_dup(a, gl_buf_view(&text)), a, ev, NULL);
    GL_ASSERT(rc == 0);
    gl_buf_done(&text);
}

/* An event that arrived while the core was handling another one. */
struct queued_event {
    struct gl_link link; /* in feed->queued */
    struct gl_arena arena;
    struct gl_event ev;
};

static void queue_event(struct gl_node *n, const struct gl_event *ev)
{
    struct queued_event *q = gl_mem_alloc(sizeof(*q));

    GL_ASSERT(ev->type < GL_EV_COUNT);
    GL_ASSERT(own(n)->is_on);
    q->ev = *ev;
    round_trip(&q->ev, &q->arena); /* the caller's strings do not outlive the call */
    gl_list_push(&own(n)->queued, &q->link);
}

static void queued_free(struct queued_event *q)
{
    GL_ASSERT(!gl_list_empty(&q->link));
    gl_list_remove(&q->link);
    gl_arena_done(&q->arena);
    gl_mem_free(q);
}

static void feed_one(struct gl_node *n, struct gl_event *ev)
{
    struct gl_batch *b = batch_new(n);
    uint64_t committing = 0;

    GL_ASSERT(!own(n)->is_on);
    own(n)->is_on = true;
    n->now = n->ports.clock->now(n->ports.clock);
    ev->now = n->now;
    if (n->config.round_trip_events) {
        round_trip(ev, &b->arena);
    }
    if (n->config.on_event != NULL) {
        n->config.on_event(n->config.owner, ev);
    }
    if (n->config.on_handling != NULL) {
        n->config.on_handling(n->config.owner, ev->job);
    }
    if (n->ports.record != NULL) {
        gl_flight_recorder_event(&own(n)->flight, n->core, ev);
    }
    own(n)->events_n++;
    gl_core_step(n->core, ev, &b->effects);
    if (n->ports.record != NULL) {
        gl_flight_recorder_decided(&own(n)->flight, &b->effects);
    }
    if (n->config.on_handling != NULL) {
        n->config.on_handling(n->config.owner, (gl_str){0});
    }
    for (size_t i = 0; i < b->effects.n; i++) {
        const struct gl_effect *e = &b->effects.items[i];

        if (e->after == 0) {
            gl_node_execute(n, b, i);
        } else {
            /* It waits for its transaction, which must come directly before its effects. */
            GL_ASSERT(e->after == committing);
        }
        committing = e->type == GL_FX_COMMIT ? e->op : committing;
    }
    gl_node_release(n, b);
    own(n)->is_on = false;
}

/* The core handles one event at a time. An effect that needs no transaction (`after` is 0) is
 * executed inside the step that decided it and may fail at once, for example the restart of an
 * attempt whose message cannot be composed. The event that reports this is queued until the step is
 * over. */
void gl_node_feed(struct gl_node *n, struct gl_event *ev)
{
    GL_ASSERT(ev->type < GL_EV_COUNT);
    if (own(n)->is_on) {
        GL_MARK(n->config.trace, "node.event_queued");
        queue_event(n, ev);
        return;
    }
    feed_one(n, ev);
    for (struct gl_link *l; (l = gl_list_first(&own(n)->queued)) != NULL;) {
        struct queued_event *q = GL_CONTAINER(l, struct queued_event, link);

        feed_one(n, &q->ev);
        queued_free(q);
    }
    GL_ASSERT(gl_list_empty(&own(n)->queued));
}

/* ---- the part ---- */

static void unref_specs(struct gl_batch *b)
{
    for (size_t i = 0; i < b->effects.n; i++) {
        if (b->effects.items[i].spec != NULL) {
            gl_spec_unref(b->effects.items[i].spec);
        }
    }
}

static void init(struct gl_node *n)
{
    struct feed *m = own(n);

    gl_list_init(&m->queued);
    gl_list_init(&m->all);
    gl_list_init(&m->idle);
    if (n->ports.record != NULL) {
        gl_flight_recorder_init(&m->flight, n->ports.record, n->config.trace, n->config.name);
    }
}

static void done(struct gl_node *n)
{
    struct feed *m = own(n);

    for (struct gl_link *l; (l = gl_list_first(&m->all)) != NULL;) {
        unref_specs(GL_CONTAINER(l, struct gl_batch, link));
        batch_free(GL_CONTAINER(l, struct gl_batch, link));
    }
    for (struct gl_link *l; (l = gl_list_first(&m->idle)) != NULL;) {
        batch_free(GL_CONTAINER(l, struct gl_batch, link));
    }
    gl_flight_recorder_done(&m->flight);
    GL_ASSERT(gl_list_empty(&m->all));
    GL_ASSERT(gl_list_empty(&m->idle));
}

static void measure(struct gl_node *n, struct gl_buf *out)
{
    gl_metrics_counter(out, "glia_core_events_total", "Events the core has handled.",
                       own(n)->events_n);
}

bool gl_feed_is_on(const struct gl_node *n)
{
    return own(n)->is_on;
}

struct gl_trace *gl_feed_trace(struct gl_node *n)
{
    return n->ports.record != NULL ? &own(n)->flight.digest.tap : n->config.trace;
}

const struct gl_node_part gl_feed_part = {
    .bytes = sizeof(struct feed), .init = init, .done = done, .measure = measure};
