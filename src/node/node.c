#include "node/node.h"
#include "node/pieces.h"
#include "node/spill.h"
#include "node/turns.h"

#include "core/snapshot.h"
#include "node/blobs.h"
#include "node/node_state.h"
#include "node/refusals.h"

enum { BATCHES_KEPT = 64, BATCH_BYTES_KEPT = 256 << 10, LONE_TTL_MS = 15000 };

/* ---- batches ---- */

static struct gl_batch *batch_new(struct gl_node *n)
{
    struct gl_link *l = gl_list_first(&n->batches_free);
    struct gl_batch *b;

    if (l != NULL) {
        b = GL_CONTAINER(l, struct gl_batch, link);
        gl_list_remove(l);
        n->batches_free_n--;
    } else {
        b = gl_mem_alloc(sizeof(*b));
        gl_list_init(&b->link);
    }
    b->refs = 1;
    b->effects = (struct gl_effects){.arena = &b->arena};
    gl_list_push(&n->batches, &b->link);
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
    if (n->batches_free_n >= BATCHES_KEPT || b->arena.used_bytes > BATCH_BYTES_KEPT) {
        batch_free(b);
        return;
    }
    gl_arena_reset(&b->arena);
    gl_list_remove(&b->link);
    gl_list_push(&n->batches_free, &b->link);
    n->batches_free_n++;
}

/* ---- the heart ---- */

void gl_node_execute(struct gl_node *n, struct gl_batch *b, size_t number)
{
    const struct gl_effect *e = &b->effects.items[number];

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
            gl_turns_resolve(n, e);
        } else {
            gl_lookup_resolve(n, e);
        }
        b->effects.items[number].spec = NULL; /* its reference has been used up */
        break;
    case GL_FX_START:
        gl_starts_begin(n, e);
        break;
    case GL_FX_ATTACH:
        gl_probes_attach(n, e);
        break;
    case GL_FX_STOP:
        gl_probes_stop(n, e);
        break;
    case GL_FX_ACK:
        gl_probes_ack(n, e);
        break;
    case GL_FX_LIST:
        gl_probes_list(n);
        break;
    case GL_FX_REPLY:
        gl_requests_reply(n, e);
        break;
    case GL_FX_FORWARD:
        gl_inbox_forward(n, e);
        break;
    case GL_FX_TELL:
        gl_requests_tell(n, e->job, e->ended);
        break;
    case GL_FX_CALL:
        gl_calls_begin(n, b, number);
        break;
    case GL_FX_VALID:
        gl_sessions_hold(n, e);
        break;
    case GL_FX_LOST:
        gl_sessions_lose(n, e);
        break;
    case GL_FX_SAY:
        gl_sessions_say(n, "%.*s", GL_STR_ARG(e->why));
        break;
    case GL_FX_COUNT:
        GL_UNREACHABLE();
    }
}

/* An event is a value: what goes through its text and back is the same event. The simulator checks
 * that on every one of them, so that a recording can be trusted. */
static void round_trip(struct gl_event *ev, struct gl_arena *a)
{
    struct gl_buf text = {0};
    int rc;

    gl_event_encode(ev, &text);
    rc = gl_event_decode(gl_str_dup(a, gl_buf_view(&text)), a, ev, NULL);
    GL_ASSERT(rc == 0);
    gl_buf_done(&text);
}

/* An event that came up while the core was busy with another one. */
struct queued_event {
    struct gl_link link; /* in node->queued */
    struct gl_arena arena;
    struct gl_event ev;
};

static void queue_event(struct gl_node *n, const struct gl_event *ev)
{
    struct queued_event *q = gl_mem_alloc(sizeof(*q));

    q->ev = *ev;
    round_trip(&q->ev, &q->arena); /* the caller's strings do not outlive the call */
    gl_list_push(&n->queued, &q->link);
}

static void queued_free(struct queued_event *q)
{
    gl_list_remove(&q->link);
    gl_arena_done(&q->arena);
    gl_mem_free(q);
}

static void feed_one(struct gl_node *n, struct gl_event *ev)
{
    struct gl_batch *b = batch_new(n);
    uint64_t committing = 0;

    n->feeding = true;
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
        gl_flight_event(&n->flight, n->core, ev);
    }
    n->events_n++;
    gl_core_step(n->core, ev, &b->effects);
    if (n->ports.record != NULL) {
        gl_flight_decided(&n->flight, &b->effects);
    }
    if (n->config.on_handling != NULL) {
        n->config.on_handling(n->config.owner, (gl_str){0});
    }
    for (size_t i = 0; i < b->effects.n; i++) {
        const struct gl_effect *e = &b->effects.items[i];

        if (e->after == 0) {
            gl_node_execute(n, b, i);
        } else {
            /* It waits for its transaction, which must stand directly before the effects of that
             * transaction. */
            GL_ASSERT(e->after == committing);
        }
        committing = e->type == GL_FX_COMMIT ? e->op : committing;
    }
    gl_node_release(n, b);
    n->feeding = false;
}

/* The core handles one event at a time. An effect that needs no transaction (`after` is 0) is
 * executed inside the step that decided it, and may fail at once, e.g. a restart of an attempt
 * whose message cannot be composed. What it reports is handled after that step. */
void gl_node_feed(struct gl_node *n, struct gl_event *ev)
{
    if (n->feeding) {
        GL_MARK(n->config.trace, "node.event_queued");
        queue_event(n, ev);
        return;
    }
    feed_one(n, ev);
    for (struct gl_link *l; (l = gl_list_first(&n->queued)) != NULL;) {
        struct queued_event *q = GL_CONTAINER(l, struct queued_event, link);

        feed_one(n, &q->ev);
        queued_free(q);
    }
}

/* ---- time ---- */

static gl_ms earliest(const struct gl_node *n)
{
    gl_ms due = gl_core_next_due(n->core);
    gl_ms others[] = {n->session_due,  n->resolve_due, n->watch_due, gl_trim_due(n->trim),
                      gl_inbox_due(n), n->starts_due,  n->holds_due};

    for (size_t i = 0; i < GL_COUNT(others); i++) {
        due = others[i] < due ? others[i] : due;
    }
    if (!gl_list_empty(&n->answers)) {
        due = n->now;
    }
    return due;
}

/* Nothing is under way any more. What still waits, waits for something that will not happen here.
 */
static void check_stopped(struct gl_node *n)
{
    void (*stopped)(void *) = n->stopped;

    if (stopped == NULL || n->outstanding > 0 || !gl_list_empty(&n->unknown) ||
        n->queries.under_way_n > 0 || n->claims.under_way_n > 0) {
        return;
    }
    gl_requests_refuse_commands(n);
    gl_requests_drain(n);
    if (gl_list_empty(&n->answers) && !gl_sessions_end(n)) {
        n->stopped = NULL;
        stopped(n->stopped_owner);
    }
}

static void check_ready(struct gl_node *n)
{
    if (!n->ready && n->session.n > 0 && n->exec_up) {
        n->ready = true;
        gl_trim_on_ready(n->trim);
        if (n->config.on_ready != NULL) {
            n->config.on_ready(n->config.owner);
        }
    }
}

void gl_node_rearm(struct gl_node *n)
{
    gl_ms at;

    check_ready(n);
    gl_requests_drain(n);
    at = earliest(n);
    if (n->stopping) {
        check_stopped(n);
        if (n->stopped == NULL) {
            at = INT64_MAX; /* nothing is asked of the ports any more: they may be closed now */
        }
    }
    if (at != n->alarm_at) {
        n->alarm_at = at;
        n->ports.clock->alarm(n->ports.clock, at);
    }
}

static void on_alarm(void *owner)
{
    struct gl_node *n = owner;
    struct gl_event tick = {.type = GL_EV_TICK};

    n->alarm_at = INT64_MAX;
    n->now = n->ports.clock->now(n->ports.clock);
    if (n->stopping && n->stopped == NULL) {
        gl_requests_drain(n); /* somebody has asked after the end; the ports may be closed */
        return;
    }
    gl_sessions_on_time(n);
    gl_commits_on_time(n);
    gl_inbox_on_time(n);
    gl_requests_on_time(n);
    gl_starts_on_time(n);
    gl_holds_on_time(n);
    gl_trim_on_time(n->trim);
    if (gl_core_next_due(n->core) <= n->now) {
        gl_node_feed(n, &tick);
    }
    gl_node_rearm(n);
}

/* ---- lifecycle ---- */

static void copy_config(struct gl_node *n, const struct gl_node_config *config)
{
    struct gl_pool_config *pools;

    n->config = *config;
    n->config.name = gl_str_dup(&n->strings, config->name);
    n->config.context = gl_str_dup(&n->strings, config->context);
    n->config.stack = gl_str_dup(&n->strings, config->stack);
    n->config.store =
        gl_str_dup(&n->strings, config->store.n > 0 ? config->store : GL_S("sqlite:"));
    n->config.env_scope = gl_str_dup(&n->strings, config->env_scope);
    n->config.host = gl_str_dup(&n->strings, config->host);
    n->config.version = gl_str_dup(&n->strings, config->version);
    n->config.worker = gl_worker_place_copy(&config->worker, &n->strings);
    n->config.pools_n = config->pools_n > 0 ? config->pools_n : 1;
    pools = GL_NEW_ARRAY(&n->strings, struct gl_pool_config, n->config.pools_n);
    if (config->pools_n == 0) {
        pools[0] = (struct gl_pool_config){.name = GL_S("default"), .slots = 8};
    }
    for (size_t i = 0; i < config->pools_n; i++) {
        pools[i] = config->pools[i];
        pools[i].name = gl_str_dup(&n->strings, pools[i].name);
    }
    n->config.pools = pools;
}

static struct gl_trace *core_trace(struct gl_node *n)
{
    return n->ports.record != NULL ? &n->flight.digest.tap : n->config.trace;
}

static struct gl_core *make_core(struct gl_node *n)
{
    struct gl_core_pool pools[GL_POOLS_MAX];

    if (n->config.orphan_grace_ms <= 0) {
        n->config.orphan_grace_ms = GL_ORPHAN_GRACE_MS;
    }
    struct gl_core_config config = {.context = n->config.context,
                                    .pools = pools,
                                    .pools_n = n->config.pools_n,
                                    .hot_jobs_max = n->config.hot_jobs_max,
                                    .passive = n->config.passive,
                                    .shared = n->ports.store->ops->shared,
                                    .guest = n->config.guest,
                                    .node = n->config.name,
                                    .stack = n->config.stack,
                                    .env_scope = n->config.env_scope,
                                    .ttl_ms = n->ttl,
                                    .orphan_grace_ms = n->config.orphan_grace_ms,
                                    .body_bytes = n->config.body_bytes,
                                    .quarantined = n->config.quarantined,
                                    .quarantined_n = n->config.quarantined_n,
                                    .trace = core_trace(n)};

    GL_ASSERT(n->config.pools_n <= GL_POOLS_MAX);
    for (size_t i = 0; i < n->config.pools_n; i++) {
        pools[i] = (struct gl_core_pool){.name = n->config.pools[i].name,
                                         .slots = n->config.pools[i].slots};
    }
    return gl_core_new(&config);
}

/* ---- what only a running node knows ---- */

static enum gl_why_code explain_step(void *owner, gl_str job, uint32_t number, struct gl_buf *out)
{
    struct gl_node *n = owner;

    return gl_core_explain(n->core, job, number, out); /* nothing to say is fine */
}

bool gl_node_is_quarantined(const struct gl_node *n, gl_str job)
{
    return gl_core_is_quarantined(n->core, job);
}

static gl_str refused(void *owner, gl_str job, gl_str step)
{
    return gl_refusals_find(owner, job, step);
}

static bool owns(void *owner, gl_str job)
{
    const struct gl_node *n = owner;

    return gl_core_owns(n->core, job);
}

static bool is_quarantined(void *owner, gl_str job)
{
    struct gl_node *n = owner;

    return gl_core_is_quarantined(n->core, job);
}

static bool heard(void *owner, gl_str job, uint32_t number, gl_ms *ret_beacon_at,
                  gl_ms *ret_heartbeat_at)
{
    struct gl_node *n = owner;

    return gl_core_heard(n->core, job, number, ret_beacon_at, ret_heartbeat_at);
}

static gl_str session_of(void *owner)
{
    struct gl_node *n = owner;

    return n->session;
}

static gl_str store_of(void *owner, struct gl_arena *a)
{
    return gl_figures_shut(owner, a);
}

static const struct gl_flow *hold_flow(void *owner, gl_str hash, void **ret_hold)
{
    struct gl_node *n = owner;
    struct gl_spec *spec = NULL;
    const struct gl_flow *flow = gl_core_hold_flow(n->core, hash, &spec);

    *ret_hold = spec;
    return flow;
}

static void drop_flow(void *owner, void *hold)
{
    (void)owner;
    gl_spec_unref(hold);
}

static void claim_failed(void *owner, const struct gl_store_req *req)
{
    struct gl_node *n = owner;

    n->now = n->ports.clock->now(n->ports.clock);
    gl_sessions_note_refused(n, req);
    gl_node_rearm(n);
}

struct gl_node *gl_node_new(const struct gl_node_config *config, const struct gl_node_ports *ports)
{
    struct gl_node *n = gl_mem_alloc(sizeof(*n));

    GL_ASSERT(config->trace != NULL);
    GL_ASSERT(ports->store != NULL && ports->clock != NULL && ports->entropy != NULL);
    copy_config(n, config);
    n->ports = *ports;
    n->ttl = config->session_ttl_ms > 0 ? config->session_ttl_ms : GL_SESSION_TTL_MS;
    if (!ports->store->ops->shared) {
        n->ttl = LONE_TTL_MS; /* nobody counts it */
    }
    if (ports->record != NULL) {
        gl_flight_init(&n->flight, ports->record, n->config.trace, n->config.name);
    }
    n->core = make_core(n);
    gl_list_init(&n->queued);
    gl_list_init(&n->batches);
    gl_list_init(&n->batches_free);
    gl_list_init(&n->unknown);
    gl_list_init(&n->starts);
    gl_list_init(&n->chains);
    gl_list_init(&n->readings);
    gl_list_init(&n->bodies);
    gl_list_init(&n->holds);
    gl_list_init(&n->answers);
    gl_list_init(&n->watchers);
    gl_list_init(&n->unfiled);
    gl_map_init(&n->watched);
    gl_map_init(&n->starts_by_key);
    gl_map_init(&n->requests);
    gl_query_init(&n->queries, ports->store);
    n->live = (struct gl_reason_live){.owner = n,
                                      .step = explain_step,
                                      .heard = heard,
                                      .refused = refused,
                                      .is_quarantined = is_quarantined,
                                      .owns = owns,
                                      .session = session_of,
                                      .store = store_of,
                                      .flow = hold_flow,
                                      .flow_done = drop_flow};
    n->queries.live = &n->live;
    n->queries.asks = ports->asks;
    n->queries.work = ports->work;
    gl_claims_init(&n->claims, ports->store, ports->clock, ports->entropy);
    n->claims.on_failed = claim_failed;
    n->claims.owner = n;
    n->trim = gl_trim_new(n, &config->keep, ports->tidy);
    gl_inbox_init(n);
    n->blobs = gl_blobs_new(n);
    n->starts_due = n->holds_due = INT64_MAX;
    n->valid_until = INT64_MAX;
    n->session_due = n->resolve_due = n->watch_due = n->alarm_at = INT64_MAX;
    return n;
}

struct gl_exec_events gl_node_exec_events(struct gl_node *n)
{
    return gl_probes_events(n);
}

void gl_node_set_exec(struct gl_node *n, struct gl_exec *exec)
{
    GL_ASSERT(n->ports.exec == NULL);
    n->ports.exec = exec;
}

static void on_woken(void *owner, gl_str context, gl_str word)
{
    struct gl_node *n = owner;
    struct gl_event given = {.type = GL_EV_GIVEN, .context = n->config.context};

    if (n->session.n == 0 || n->stopping || n->lost || !gl_str_eq(context, n->config.context)) {
        return;
    }
    n->now = n->ports.clock->now(n->ports.clock);
    if (gl_str_is(word, "ready")) {
        gl_node_feed(n, &given);
    } else {
        gl_inbox_on_woken(n, word);
    }
    gl_node_rearm(n);
}

static void on_changed(void *owner, const char *why)
{
    struct gl_node *n = owner;

    (void)why;
    n->now = n->ports.clock->now(n->ports.clock);
    gl_sessions_on_changed(n);
    gl_node_rearm(n);
}

struct gl_store_events gl_node_store_events(struct gl_node *n)
{
    return (struct gl_store_events){.owner = n, .woken = on_woken, .changed = on_changed};
}

void gl_node_start(struct gl_node *n)
{
    GL_ASSERT(!n->started);
    n->started = true;
    n->now = n->ports.clock->now(n->ports.clock);
    n->started_at = n->now;
    n->ports.clock->fire = on_alarm;
    n->ports.clock->owner = n;
    n->session_due = n->now;
    gl_node_rearm(n);
}

bool gl_node_idle(const struct gl_node *n)
{
    return gl_core_idle(n->core) && n->outstanding == 0 && n->queries.under_way_n == 0 &&
           n->claims.under_way_n == 0 && gl_list_empty(&n->answers);
}

uint64_t gl_node_drain(struct gl_node *n)
{
    struct gl_event ev = {.type = GL_EV_STOP};
    struct gl_core_figures f;

    if (!n->draining) {
        n->draining = true;
        gl_node_feed(n, &ev);
        gl_node_rearm(n);
    }
    gl_core_figures(n->core, &f);
    return f.attempts_running;
}

void gl_node_stop(struct gl_node *n, void (*stopped)(void *owner), void *owner)
{
    struct gl_event ev = {.type = GL_EV_END};

    GL_ASSERT(!n->stopping);
    n->stopping = true;
    n->stopped = stopped;
    n->stopped_owner = owner;
    n->session_due = INT64_MAX;
    gl_node_feed(n, &ev);
    gl_requests_refuse_watchers(n);
    gl_inbox_stop(n);
    gl_trim_stop(n->trim);
    /* Not from inside the call: the alarm finds out that nothing is left. */
    n->alarm_at = n->now;
    n->ports.clock->alarm(n->ports.clock, n->now);
}

void gl_node_renew_core(struct gl_node *n)
{
    struct gl_buf before = {0}, after = {0};
    struct gl_core *renewed = NULL;
    struct gl_why why;
    bool saved = gl_core_save(n->core, SIZE_MAX, &before);
    int rc = gl_core_restore(gl_buf_view(&before), core_trace(n), n->core, &renewed, &why);

    GL_ASSERT(saved);
    GL_ASSERT(rc == 0);
    saved = gl_core_save(renewed, SIZE_MAX, &after);
    GL_ASSERT(saved);
    GL_ASSERT(gl_str_eq(gl_buf_view(&before), gl_buf_view(&after)));
    gl_core_free(n->core);
    n->core = renewed;
    gl_buf_done(&before);
    gl_buf_done(&after);
}

static void unref_specs(struct gl_batch *b)
{
    for (size_t i = 0; i < b->effects.n; i++) {
        if (b->effects.items[i].spec != NULL) {
            gl_spec_unref(b->effects.items[i].spec);
        }
    }
}

void gl_node_free(struct gl_node *n)
{
    for (struct gl_link *l; (l = gl_list_first(&n->batches)) != NULL;) {
        unref_specs(GL_CONTAINER(l, struct gl_batch, link));
        batch_free(GL_CONTAINER(l, struct gl_batch, link));
    }
    for (struct gl_link *l; (l = gl_list_first(&n->batches_free)) != NULL;) {
        batch_free(GL_CONTAINER(l, struct gl_batch, link));
    }
    gl_chain_free_all(n);
    gl_requests_free_all(n);
    gl_inbox_done(n);
    gl_buf_done(&n->about);
    gl_blobs_free(n->blobs);
    gl_trim_free(n->trim);
    gl_refusals_free(n->refusals);
    gl_query_done(&n->queries);
    gl_claims_done(&n->claims);
    gl_map_done(&n->starts_by_key);
    gl_map_done(&n->requests);
    gl_core_free(n->core);
    gl_flight_done(&n->flight);
    gl_arena_done(&n->strings);
    gl_mem_free(n);
}
