#include "sim/sim_bundles.h"

#include "base/check.h"

struct draft {
    struct gl_arena arena;
    struct gl_flow flow;
    struct gl_bundle_spec bundle;
    struct gl_step_spec steps[SIM_AGENTS_MAX + SIM_LEDGER_MAX];
    struct gl_agent_spec agents[SIM_AGENTS_MAX];
    struct gl_route routes[2 * SIM_AGENTS_MAX];
    struct gl_seed seeds[4];
    uint32_t agents_n, ledger_n;
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

static void draw_unit(struct draft *d, uint32_t i, struct gl_rng *r, const struct sim_options *o)
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

static void draw_agent(struct draft *d, uint32_t i, struct gl_rng *r)
{
    struct gl_agent_spec *a = &d->agents[i];
    a->id = gl_str_fmt(&d->arena, "a%u", i);
    a->kind = gl_rng_chance(r, 500000) ? GL_AGENT_EXECUTOR
                                       : (uint8_t)gl_rng_below(r, GL_AGENT_KIND_COUNT);
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

static void draw_routes(struct draft *d, struct gl_rng *r)
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

static void draw_seeds(struct draft *d, struct gl_rng *r)
{
    uint32_t n = 1 + (uint32_t)gl_rng_below(r, GL_COUNT(d->seeds));
    for (uint32_t i = 0; i < n; i++) {
        gl_str ttl = gl_rng_chance(r, 100000) ? GL_S(",\"ttl_ms\":500") : (gl_str){0};
        bool is_large = gl_rng_chance(r, 100000);
        d->seeds[i].agent = d->agents[gl_rng_below(r, d->agents_n)].id;
        d->seeds[i].message = gl_str_fmt(
            &d->arena, "{\"type\":\"seed\",\"body\":{\"agent_id\":\"s%u\",\"text\":\"%*s\"}%.*s}",
            (unsigned)gl_rng_below(r, 3), is_large ? 3000 : 1, "x", GL_STR_ARG(ttl));
    }
    d->bundle.seeds = (struct gl_items){.items = d->seeds, .n = n};
}

/* ---- the ledger ---- */

static void draw_needs(struct draft *d, uint32_t i, struct gl_rng *r)
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

static void draw_step(struct draft *d, uint32_t i, struct gl_rng *r)
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
    /* Some agents never say that a step is done: each ends in time. */
    st->timeout_ms = gl_rng_range(r, 5000, 60000);
    st->heartbeat_ms = gl_rng_chance(r, 100000) ? gl_rng_range(r, 5000, 60000) : 0;
    st->retry.attempts = 1 + (uint32_t)gl_rng_below(r, 3);
    st->retry.backoff_ms = gl_rng_range(r, 0, 5000);
    st->retry.factor_pct = 100 * (uint32_t)gl_rng_range(r, 1, 3);
    st->retry.backoff_max_ms = gl_rng_range(r, st->retry.backoff_ms, 60000);
    draw_needs(d, i, r);
}

void sim_bundles_make(struct gl_rng *r, const struct sim_options *o, struct gl_buf *out)
{
    struct draft *d = &(struct draft){0};
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
    d->bundle.agents = (struct gl_items){.items = d->agents, .n = d->agents_n};
    d->flow.steps = (struct gl_items){.items = d->steps, .n = d->agents_n + d->ledger_n};
    gl_flow_encode(&d->flow, out);
    gl_arena_done(&d->arena);
}
