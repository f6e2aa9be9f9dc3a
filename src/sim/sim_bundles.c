#include "sim/sim_bundles.h"

#include "base/check.h"
#include "sim/sim_patches.h"

enum { LARGE_BYTES = 3000 }; /* and more than a small body_bytes */

struct bundle_draft {
    struct gl_arena arena;
    struct gl_flow flow;
    struct gl_bundle_spec bundle;
    struct gl_step_spec steps[SIM_AGENTS_MAX + SIM_LEDGER_MAX];
    struct gl_agent_spec agents[SIM_AGENTS_MAX];
    struct gl_route routes[2 * SIM_AGENTS_MAX];
    struct gl_seed seeds[4];
    struct gl_region region;
    struct gl_template template;
    uint32_t agents_n, ledger_n;
    uint32_t relays; /* per million */
};

static bool has_process(const struct gl_agent_spec *a)
{
    return a->kind == GL_AGENT_EXECUTOR || a->kind == GL_AGENT_MODULE;
}

static struct gl_restart draw_restart(struct gl_rng *r)
{
    struct gl_restart p = {.attempts = (uint32_t)gl_rng_below(r, 4),
                           .interval_ms = gl_rng_range(r, 10000, 300000),
                           .delay_ms = gl_rng_range(r, 0, 5000),
                           .max_delay_ms = 20000,
                           .delay_function = (uint8_t)gl_rng_below(r, 3)};
    p.waits = p.attempts > 0 && gl_rng_chance(r, 200000);
    return p;
}

/* ---- agents ---- */

static void draw_unit(struct bundle_draft *d, uint32_t i, struct gl_rng *r,
                      const struct sim_options *o)
{
    static const gl_str argv[] = {GL_S("sim")};
    struct gl_step_spec *u = &d->steps[i];
    const struct gl_agent_spec *a = &d->agents[i];
    u->id = gl_str_fmt(&d->arena, "@%.*s", GL_STR_ARG(a->id));
    u->driver = a->kind == GL_AGENT_EXECUTOR ? GL_S("worker")
                : a->kind == GL_AGENT_MODULE ? GL_S("module")
                                             : GL_S("relay");
    u->pool = a->kind == GL_AGENT_EXECUTOR ? GL_S("executor.default") : GL_S("default");
    u->slots = 1;
    u->grace_ms = gl_rng_range(r, 100, 5000);
    u->retry = (struct gl_retry){
        .attempts = 1, .backoff_ms = 1000, .factor_pct = 200, .backoff_max_ms = 60000};
    u->safety = GL_SAFETY_IDEMPOTENT;
    if (a->kind == GL_AGENT_EXECUTOR) {
        u->argv = (struct gl_strs){.items = argv, .n = 1};
        u->safety = gl_rng_chance(r, o->steps_unsafe) ? GL_SAFETY_UNSAFE : GL_SAFETY_IDEMPOTENT;
        u->timeout_ms = gl_rng_chance(r, 300000) ? gl_rng_range(r, 500, 30000) : 0;
    }
}

static uint8_t draw_kind(const struct bundle_draft *d, struct gl_rng *r)
{
    static const uint8_t relays[] = {GL_AGENT_ROUTER, GL_AGENT_SENSOR, GL_AGENT_AGGREGATOR};
    if (gl_rng_chance(r, d->relays)) {
        return relays[gl_rng_below(r, GL_COUNT(relays))];
    }
    return gl_rng_chance(r, 500000) ? GL_AGENT_EXECUTOR
                                    : (uint8_t)gl_rng_below(r, GL_AGENT_KIND_COUNT);
}

static void draw_agent(struct bundle_draft *d, uint32_t i, struct gl_rng *r)
{
    struct gl_agent_spec *a = &d->agents[i];
    a->id = gl_str_fmt(&d->arena, "a%u", i);
    a->kind = draw_kind(d, r);
    a->module = a->kind == GL_AGENT_MODULE ? GL_S("sim.module") : (gl_str){0};
    if (gl_rng_chance(r, 300000)) {
        a->output = gl_rng_chance(r, 300000) ? GL_OUTPUT_NOTHING : GL_OUTPUT_TYPED;
        a->output_type = a->output == GL_OUTPUT_TYPED ? GL_S("made") : (gl_str){0};
    }
    if (a->kind == GL_AGENT_AGGREGATOR) {
        a->complete_after = (uint32_t)gl_rng_below(r, 5);
        a->complete_on_message = gl_rng_chance(r, 100000);
        a->output = GL_OUTPUT_TYPED;
        a->output_type = GL_S("made");
    }
    a->failure_type = gl_rng_chance(r, 100000) ? GL_S("broken") : (gl_str){0};
    a->leaves_step = gl_rng_chance(r, 100000);
    a->terminal_sink = i + 1 == d->agents_n && gl_rng_chance(r, 300000);
    a->complete_run = a->terminal_sink;
    a->has_restart = gl_rng_chance(r, 400000);
    a->restart = draw_restart(r);
    gl_agent_defaults(a);
    a->tries = 1 + (uint32_t)gl_rng_below(r, 3);
    if (a->has_restart) { /* else it would hardly ever wait for other messages */
        a->try_backoff_ms = 1 + 4 * a->restart.delay_ms;
    }
    if (gl_rng_chance(r, 300000)) {
        a->startup_delay_ms = gl_rng_range(r, 1, 3000);
        a->high_mark = 3;
        a->low_mark = 1;
        a->lease_timeout_ms = gl_rng_range(r, 1000, 60000);
    }
    if (a->kind == GL_AGENT_EXECUTOR && gl_rng_chance(r, 500000)) {
        a->beacons = true;
        a->beacon_required = gl_rng_chance(r, 500000);
        a->beacon_ms = gl_rng_range(r, 500, 3000);
        a->beacon_timeout_ms = gl_rng_range(r, 5000, 20000);
    }
}

static void draw_routes(struct bundle_draft *d, struct gl_rng *r)
{
    static const gl_str types[] = {GL_S("*"), GL_S("*"), GL_S("executor_result"), GL_S("made"),
                                   GL_S("hop")};
    static const gl_str conditions[] = {
        GL_S("{\"path\":\"state.n\",\"op\":\">=\",\"value\":2}"),
        GL_S("{\"not\":{\"path\":\"message.type\",\"op\":\"==\",\"value\":\"hop\"}}")};
    uint32_t n = 0;
    for (uint32_t i = 1; i < d->agents_n; i++) {
        for (uint64_t k = gl_rng_below(r, 3); k > 0; k--) {
            struct gl_route *e = &d->routes[n++];
            e->id = gl_str_fmt(&d->arena, "e%u", n);
            e->from_node = d->agents[gl_rng_below(r, i)].id;
            e->to_node = d->agents[i].id;
            e->type = types[gl_rng_below(r, GL_COUNT(types))];
            e->mode = (uint8_t)gl_rng_below(r, GL_ROUTE_MODE_COUNT);
            if (gl_rng_chance(r, 300000)) {
                e->conditions = conditions[gl_rng_below(r, GL_COUNT(conditions))];
            }
        }
    }
    d->bundle.routes = (struct gl_items){.items = d->routes, .n = n};
}

static void draw_seeds(struct bundle_draft *d, struct gl_rng *r)
{
    uint32_t n = 1 + (uint32_t)gl_rng_below(r, GL_COUNT(d->seeds));
    for (uint32_t i = 0; i < n; i++) {
        gl_str ttl = gl_rng_chance(r, 100000) ? GL_S(",\"ttl_ms\":500") : (gl_str){0};
        bool is_large = gl_rng_chance(r, 100000);
        d->seeds[i].agent = d->agents[gl_rng_below(r, d->agents_n)].id;
        d->seeds[i].message = gl_str_fmt(
            &d->arena, "{\"type\":\"seed\",\"body\":{\"agent_id\":\"s%u\",\"text\":\"%*s\"}%.*s}",
            (unsigned)gl_rng_below(r, 3), is_large ? LARGE_BYTES : 1, "x", GL_STR_ARG(ttl));
    }
    d->bundle.seeds = (struct gl_items){.items = d->seeds, .n = n};
}

/* ---- the ledger ---- */

static void draw_needs(struct bundle_draft *d, uint32_t i, struct gl_rng *r)
{
    struct gl_step_spec *st = &d->steps[d->agents_n + i];
    gl_str *ids = GL_NEW_ARRAY(&d->arena, gl_str, SIM_LEDGER_MAX);
    struct gl_step_edge *edges = GL_NEW_ARRAY(&d->arena, struct gl_step_edge, SIM_LEDGER_MAX);
    uint32_t n = 0;
    for (uint32_t k = 0; k < i; k++) {
        if (gl_rng_chance(r, k + 1 == i ? 600000 : 200000)) {
            ids[n] = d->steps[d->agents_n + k].id;
            edges[n] = (struct gl_step_edge){.id = gl_str_fmt(&d->arena, "%u-%u", k, i),
                                             .accepts = GL_ACCEPT_DONE | GL_ACCEPT_PARTIAL};
            edges[n].accepts |= (uint32_t)gl_rng_below(r, 4) * GL_ACCEPT_SKIPPED;
            st->needs[n++] = d->agents_n + k;
        }
    }
    st->needs_n = n;
    st->needs_ids = (struct gl_strs){.items = ids, .n = n};
    if (n > 0 && gl_rng_chance(r, 500000)) {
        st->edges = (struct gl_items){.items = edges, .n = n};
    }
    if (n > 0 && gl_rng_chance(r, 500000)) {
        st->rule = (uint8_t)gl_rng_below(r, GL_RULE_COUNT);
        st->quorum = st->rule == GL_RULE_QUORUM ? 1 + (uint32_t)gl_rng_below(r, n) : 0;
    }
}

static void draw_step(struct bundle_draft *d, uint32_t i, struct gl_rng *r)
{
    struct gl_step_spec *st = &d->steps[d->agents_n + i];
    gl_str *agents = GL_NEW_ARRAY(&d->arena, gl_str, 2);
    uint32_t first = (uint32_t)gl_rng_below(r, d->agents_n);
    st->id = gl_str_fmt(&d->arena, "t%u", i);
    st->needs = GL_NEW_ARRAY(&d->arena, uint32_t, SIM_LEDGER_MAX);
    st->driver = GL_S("agent");
    st->is_bound = true;
    st->pool = GL_S("default");
    st->slots = 1;
    for (uint32_t k = 0; k < d->agents_n && !has_process(&d->agents[first]); k++) {
        first = gl_rng_chance(r, 700000) ? (first + 1) % d->agents_n : first;
    }
    agents[0] = d->agents[first].id;
    agents[1] = d->agents[(first + 1) % d->agents_n].id;
    st->agent_ids =
        (struct gl_strs){.items = agents, .n = d->agents_n > 1 && gl_rng_chance(r, 100000) ? 2 : 1};
    if (gl_rng_chance(r, 500000)) {
        st->on_failure = (uint8_t)gl_rng_below(r, GL_ON_FAILURE_COUNT);
    }
    /* Some agents never report that a step is done: a deadline ends each. */
    st->timeout_ms = gl_rng_range(r, 5000, 60000);
    st->heartbeat_ms = gl_rng_chance(r, 100000) ? gl_rng_range(r, 5000, 60000) : 0;
    st->retry.attempts = 1 + (uint32_t)gl_rng_below(r, 3);
    st->retry.backoff_ms = gl_rng_range(r, 0, 5000);
    st->retry.factor_pct = 100 * (uint32_t)gl_rng_range(r, 1, 3);
    st->retry.backoff_max_ms = gl_rng_range(r, st->retry.backoff_ms, 60000);
    draw_needs(d, i, r);
}

/* ---- where a patch may change it ---- */

/* A step for which an executor works that works for no earlier one, so messages find it. -1: none.
 */
static int64_t draw_controller(const struct bundle_draft *d, struct gl_rng *r)
{
    uint32_t first = (uint32_t)gl_rng_below(r, d->ledger_n);
    for (uint32_t n = 0; n < d->ledger_n; n++) {
        uint32_t i = (first + n) % d->ledger_n;
        gl_str agent = d->steps[d->agents_n + i].agent_ids.items[0];
        bool is_first = true;
        uint32_t number = 0;
        while (number + 1 < d->agents_n && !gl_str_eq(d->agents[number].id, agent)) {
            number++;
        }
        for (uint32_t k = 0; k < i; k++) {
            const struct gl_strs *others = &d->steps[d->agents_n + k].agent_ids;
            for (size_t o = 0; o < others->n; o++) {
                is_first = is_first && !gl_str_eq(others->items[o], agent);
            }
        }
        if (is_first && d->agents[number].kind == GL_AGENT_EXECUTOR) {
            return i;
        }
    }
    return -1;
}

/* The exit waits for the controller, over an edge that can be named. */
static void join(struct bundle_draft *d, uint32_t from, uint32_t to)
{
    struct gl_step_spec *st = &d->steps[d->agents_n + to];
    gl_str *ids = (gl_str *)(uintptr_t)st->needs_ids.items;
    struct gl_step_edge *edges = GL_NEW_ARRAY(&d->arena, struct gl_step_edge, SIM_LEDGER_MAX);
    bool has = false;
    for (uint32_t i = 0; i < st->needs_n; i++) {
        has = has || st->needs[i] == d->agents_n + from;
    }
    if (!has) {
        ids[st->needs_n] = d->steps[d->agents_n + from].id;
        st->needs[st->needs_n++] = d->agents_n + from;
        st->needs_ids.n = st->needs_n;
    }
    for (uint32_t i = 0; i < st->needs_n; i++) {
        edges[i] = (struct gl_step_edge){
            .id = gl_str_fmt(&d->arena, "%.*s-%.*s", GL_STR_ARG(ids[i]), GL_STR_ARG(st->id)),
            .accepts = GL_ACCEPT_DONE | GL_ACCEPT_PARTIAL | GL_ACCEPT_SKIPPED};
    }
    st->edges = (struct gl_items){.items = edges, .n = st->needs_n};
}

/* An argument tells its worker: see sim_patches.h. */
static void draw_dynamic(struct bundle_draft *d, struct gl_rng *r)
{
    static const gl_str template[] = {GL_S("more")};
    int64_t controller = d->ledger_n > 0 && gl_rng_chance(r, 400000) ? draw_controller(d, r) : -1;
    if (controller < 0) {
        return;
    }
    const struct gl_step_spec *st = &d->steps[d->agents_n + controller];
    uint32_t behind = d->ledger_n - (uint32_t)controller - 1;
    bool is_fanout = behind == 0 || gl_rng_chance(r, 400000);
    uint32_t exit = is_fanout ? 0 : (uint32_t)controller + 1 + (uint32_t)gl_rng_below(r, behind);
    gl_str *argv = GL_NEW_ARRAY(&d->arena, gl_str, 2);
    d->region = (struct gl_region){.id = GL_S("r"),
                                   .is_fanout = is_fanout,
                                   .controller = st->id,
                                   .templates = {.items = template, .n = 1}};
    if (!is_fanout) {
        gl_str *edges = GL_NEW(&d->arena, gl_str);
        join(d, (uint32_t)controller, exit);
        d->region.exit = d->steps[d->agents_n + exit].id;
        *edges = gl_str_fmt(&d->arena, "%.*s-%.*s", GL_STR_ARG(st->id), GL_STR_ARG(d->region.exit));
        d->region.mutable_edges = (struct gl_strs){.items = edges, .n = 1};
    }
    d->template = (struct gl_template){
        .id = template[0],
        .agent = d->agents[gl_rng_below(r, d->agents_n)].id,
        .control = gl_str_fmt(
            &d->arena, "{\"timeout_ms\":%lld,\"max_attempts\":%u,\"failure_policy\":\"%s\"}",
            (long long)gl_rng_range(r, 5000, 60000), 1 + (unsigned)gl_rng_below(r, 2),
            gl_rng_chance(r, 500000) ? "skip" : "continue_partial")};
    d->bundle.dynamic = (struct gl_dynamic){.enabled = true,
                                            .regions = {.items = &d->region, .n = 1},
                                            .templates = {.items = &d->template, .n = 1},
                                            .patches_max = 1 + (uint32_t)gl_rng_below(r, 8)};
    argv[0] = GL_S("sim");
    argv[1] = gl_str_fmt(&d->arena, SIM_PATCHES_ARG "%.*s:%.*s", GL_STR_ARG(st->id),
                         GL_STR_ARG(d->region.exit));
    for (uint32_t i = 0; i < d->agents_n; i++) {
        if (gl_str_eq(d->agents[i].id, st->agent_ids.items[0])) {
            d->steps[i].argv = (struct gl_strs){.items = argv, .n = 2};
        }
    }
}

void sim_bundles_make(const struct sim_world *w, struct gl_rng *r, struct gl_buf *out)
{
    struct bundle_draft *d = &(struct bundle_draft){.relays = w->bundles.relays};
    const struct sim_options *o = &w->options;
    d->agents_n = 1 + (uint32_t)gl_rng_below(r, SIM_AGENTS_MAX);
    d->ledger_n = (uint32_t)gl_rng_below(r, SIM_LEDGER_MAX + 1);
    d->flow.name = GL_S("simulated");
    d->flow.bundle = &d->bundle;
    d->bundle.graph_id = GL_S("simulated");
    d->bundle.policies.restart = draw_restart(r);
    d->bundle.policies.job_type = gl_rng_chance(r, 200000) ? GL_TYPE_SERVICE : GL_TYPE_BATCH;
    d->bundle.policies.recovery_mode =
        gl_rng_chance(r, 100000) ? GL_RECOVERY_MANUAL_RECOVER : GL_RECOVERY_AUTO;
    for (uint32_t i = 0; i < d->agents_n; i++) {
        draw_agent(d, i, r);
        draw_unit(d, i, r, o);
    }
    for (uint32_t i = 0; i < d->ledger_n; i++) {
        draw_step(d, i, r);
    }
    draw_routes(d, r);
    draw_seeds(d, r);
    draw_dynamic(d, r);
    d->bundle.agents = (struct gl_items){.items = d->agents, .n = d->agents_n};
    d->flow.steps = (struct gl_items){.items = d->steps, .n = d->agents_n + d->ledger_n};
    gl_flow_encode(&d->flow, out);
    gl_arena_done(&d->arena);
}
