/* node.c - the life cycle of a node, its timer, and the table of its parts.
 *
 * There is one alarm. gl_node_rearm() sets it to the earliest time at which the core or any part is
 * due, and must run at the end of every callback that may have changed that. */
#include "node/node.h"

#include "core/snapshot.h"
#include "node/blobs.h"
#include "node/node_state.h"

/* ---- its parts ---- */

/* on_time and due run in this order. */
const struct gl_node_part *const gl_node_parts[GL_PARTS] = {
    [GL_PART_SESSIONS] = &gl_sessions_part,       [GL_PART_COMMITS] = &gl_commits_part,
    [GL_PART_REQUESTS] = &gl_requests_part,       [GL_PART_STARTS] = &gl_starts_part,
    [GL_PART_SUBMIT_WAIT] = &gl_submit_wait_part, [GL_PART_BLOBS] = &gl_blobs_part,
    [GL_PART_EXEC_EVENTS] = &gl_exec_events_part, [GL_PART_REFUSALS] = &gl_refusals_part,
    [GL_PART_LOG_COPIES] = &gl_log_copies_part,   [GL_PART_LIVE] = &gl_live_part,
    [GL_PART_AGENT_INPUT] = &gl_agent_input_part, [GL_PART_FEED] = &gl_feed_part,
};

static void init_parts(struct gl_node *n)
{
    for (size_t i = 0; i < GL_PARTS; i++) {
        const struct gl_node_part *p = gl_node_parts[i];

        GL_ASSERT(p != NULL);
        n->parts[i] = p->bytes > 0 ? gl_mem_alloc(p->bytes) : NULL;
        if (p->init != NULL) {
            p->init(n);
        }
    }
}

static bool is_busy(const struct gl_node *n)
{
    for (size_t i = 0; i < GL_PARTS; i++) {
        if (gl_node_parts[i]->is_busy != NULL && gl_node_parts[i]->is_busy(n)) {
            return true;
        }
    }
    return n->outstanding > 0;
}

/* ---- time ---- */

static gl_ms earliest(const struct gl_node *n)
{
    gl_ms due = gl_core_next_due(n->core), at;

    for (size_t i = 0; i < GL_PARTS; i++) {
        if (gl_node_parts[i]->due != NULL) {
            at = gl_node_parts[i]->due(n);
            due = at < due ? at : due;
        }
    }
    return due;
}

/* Nothing is in flight any more. Whatever still waits is waiting for something that will not happen
 * on this node. */
static void check_stopped(struct gl_node *n)
{
    GL_ASSERT(n->stopping);
    void (*stopped)(void *) = n->stopped;

    if (stopped == NULL || is_busy(n)) {
        return;
    }
    gl_requests_refuse_commands(n);
    gl_requests_drain(n);
    if (gl_requests_are_answered(n) && !gl_sessions_close(n)) {
        n->stopped = NULL;
        stopped(n->stopped_owner);
    }
}

static void check_ready(struct gl_node *n)
{
    if (!n->ready && n->session.n > 0 && n->exec_up) {
        n->ready = true;
        if (n->config.on_ready != NULL) {
            n->config.on_ready(n->config.owner);
        }
    }
}

void gl_node_rearm(struct gl_node *n)
{
    gl_ms at;

    if (gl_requests_is_inside(n)) {
        return; /* it rearms the node when it returns */
    }
    check_ready(n);
    gl_requests_drain(n);
    at = earliest(n);
    if (n->stopping) {
        check_stopped(n);
        if (n->stopped == NULL) {
            at = INT64_MAX; /* the ports are not called any more and may be closed */
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
        gl_requests_drain(n); /* a request came after the end; the ports may be closed */
        return;
    }
    for (size_t i = 0; i < GL_PARTS; i++) {
        if (gl_node_parts[i]->on_time != NULL) {
            gl_node_parts[i]->on_time(n);
        }
    }
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
    n->config.labels = gl_labels_copy(&config->labels, &n->strings);
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
    n->config.orphan_grace_ms =
        config->orphan_grace_ms > 0 ? config->orphan_grace_ms : GL_ORPHAN_GRACE_MS;
}

static struct gl_core *make_core(struct gl_node *n)
{
    struct gl_core_pool pools[GL_POOLS_MAX];
    struct gl_core_config config = {.context = n->config.context,
                                    .pools = pools,
                                    .pools_n = n->config.pools_n,
                                    .hot_jobs_max = n->config.hot_jobs_max,
                                    .passive = n->config.passive,
                                    .shared = n->ports.store->ops->shared,
                                    .guest = n->config.guest,
                                    .node = n->config.name,
                                    .labels = gl_labels_text(&n->config.labels, &n->strings),
                                    .stack = n->config.stack,
                                    .env_scope = n->config.env_scope,
                                    .ttl_ms = gl_sessions_ttl(n),
                                    .orphan_grace_ms = n->config.orphan_grace_ms,
                                    .body_bytes = n->config.body_bytes,
                                    .quarantined = n->config.quarantined,
                                    .quarantined_n = n->config.quarantined_n,
                                    .keep = n->config.keep,
                                    .has_files = n->ports.tidy != NULL,
                                    .has_logs = n->ports.logs != NULL,
                                    .may_be_half = n->config.may_be_half,
                                    .trace = gl_feed_trace(n)};

    GL_ASSERT(n->core == NULL);
    GL_ASSERT(n->config.pools_n <= GL_POOLS_MAX);
    for (size_t i = 0; i < n->config.pools_n; i++) {
        pools[i] = (struct gl_core_pool){.name = n->config.pools[i].name,
                                         .slots = n->config.pools[i].slots};
    }
    return gl_core_new(&config);
}

struct gl_node *gl_node_new(const struct gl_node_config *config, const struct gl_node_ports *ports)
{
    struct gl_node *n = gl_mem_alloc(sizeof(*n));

    GL_ASSERT(config->trace != NULL);
    GL_ASSERT(ports->store != NULL && ports->clock != NULL && ports->entropy != NULL);
    copy_config(n, config);
    n->ports = *ports;
    n->alarm_at = INT64_MAX;
    gl_list_init(&n->chains);
    gl_query_init(&n->queries, ports->store);
    n->queries.asks = ports->asks;
    n->queries.work = ports->work;
    init_parts(n);
    n->core = make_core(n);
    return n;
}

bool gl_node_is_quarantined(const struct gl_node *n, gl_str job)
{
    return gl_core_is_quarantined(n->core, job);
}

struct gl_exec_events gl_node_exec_events(struct gl_node *n)
{
    return gl_exec_events_callbacks(n);
}

void gl_node_set_exec(struct gl_node *n, struct gl_exec *exec)
{
    GL_ASSERT(n->ports.exec == NULL);
    n->ports.exec = exec;
}

/* "offers/<node>" (core/cluster/offers.h). */
static bool is_for_another(const struct gl_node *n, gl_str word)
{
    gl_str node;

    (void)gl_str_cut(word, '/', &node);
    return node.n > 0 && !gl_str_eq(node, n->config.name);
}

static void on_woken(void *owner, gl_str context, gl_str word)
{
    struct gl_node *n = owner;
    struct gl_event given = {.type = GL_EV_GIVEN, .context = n->config.context};
    struct gl_event woken = {
        .type = GL_EV_WOKEN, .context = n->config.context, .woken = {.word = word}};

    if (n->session.n == 0 || n->stopping || n->lost || !gl_str_eq(context, n->config.context) ||
        is_for_another(n, word)) {
        return;
    }
    n->now = n->ports.clock->now(n->ports.clock);
    gl_node_feed(n, gl_str_is(word, "ready") ? &given : &woken);
    gl_node_rearm(n);
}

bool gl_node_on_asked(struct gl_node *n, gl_str job, gl_ms due)
{
    struct gl_event ev = {
        .type = GL_EV_ASKED, .context = n->config.context, .job = job, .asked = {.due = due}};

    GL_ASSERT(job.n == GL_ULID_BYTES);
    if (n->session.n == 0 || n->stopping || n->lost) {
        return false;
    }
    n->now = n->ports.clock->now(n->ports.clock);
    gl_node_feed(n, &ev);
    gl_node_rearm(n);
    return true;
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
    n->ports.clock->fire = on_alarm;
    n->ports.clock->owner = n;
    gl_sessions_start(n);
    gl_node_rearm(n);
}

bool gl_node_idle(const struct gl_node *n)
{
    return gl_core_idle(n->core) && !is_busy(n) && gl_requests_are_answered(n);
}

uint64_t gl_node_drain(struct gl_node *n)
{
    struct gl_event ev = {.type = GL_EV_STOP};
    struct gl_core_metrics f;

    if (!n->draining) {
        n->draining = true;
        gl_node_feed(n, &ev);
        gl_node_rearm(n);
    }
    gl_core_metrics(n->core, &f);
    return f.attempts_running;
}

void gl_node_stop(struct gl_node *n, void (*stopped)(void *owner), void *owner)
{
    struct gl_event ev = {.type = GL_EV_END};

    GL_ASSERT(!n->stopping);
    n->stopping = true;
    n->stopped = stopped;
    n->stopped_owner = owner;
    gl_node_feed(n, &ev);
    for (size_t i = 0; i < GL_PARTS; i++) {
        if (gl_node_parts[i]->stop != NULL) {
            gl_node_parts[i]->stop(n);
        }
    }
    /* `stopped` must not run from inside this call, so the alarm checks whether anything is left.
     */
    n->alarm_at = n->now;
    n->ports.clock->alarm(n->ports.clock, n->now);
}

void gl_node_restore_core(struct gl_node *n)
{
    struct gl_buf before = {0}, after = {0};
    struct gl_core *renewed = NULL;
    struct gl_why why;
    bool saved = gl_core_save(n->core, SIZE_MAX, &before);
    int rc = gl_core_restore(gl_buf_view(&before), gl_feed_trace(n), n->core, &renewed, &why);

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

void gl_node_free(struct gl_node *n)
{
    gl_chain_free_all(n); /* calls in flight go before the memory they borrow */
    gl_query_done(&n->queries);
    for (size_t i = 0; i < GL_PARTS; i++) {
        if (gl_node_parts[i]->done != NULL) {
            gl_node_parts[i]->done(n);
        }
        gl_mem_free(n->parts[i]);
    }
    gl_core_free(n->core);
    gl_arena_done(&n->strings);
    gl_mem_free(n);
}
