#include "sim/sim_flows.h"

#include "base/check.h"

enum { NEEDS_MAX = 40 };

struct flow_draft { /* a flow being built */
    struct gl_arena arena;
    struct gl_flow flow;
    struct gl_step_spec *steps;
    uint32_t n;
};

/* ---- shapes ---- */

/* `from` must end before `to` starts. */
static void need(struct flow_draft *d, uint32_t to, uint32_t from)
{
    GL_ASSERT(from < to); /* in ascending order: cycles are impossible */
    struct gl_step_spec *st = &d->steps[to];
    for (uint32_t i = 0; i < st->needs_n; i++) {
        if (st->needs[i] == from) {
            return;
        }
    }
    if (st->needs_n < NEEDS_MAX) {
        st->needs[st->needs_n++] = from;
    }
}

static void shape_chain(struct flow_draft *d)
{
    for (uint32_t i = 1; i < d->n; i++) {
        need(d, i, i - 1);
    }
}

static void shape_fan(struct flow_draft *d)
{
    for (uint32_t i = 1; i < d->n; i++) {
        if (i + 1 < d->n || d->n < 3) {
            need(d, i, 0);
        }
    }
    for (uint32_t i = 1; d->n >= 3 && i + 1 < d->n; i++) {
        need(d, d->n - 1, i);
    }
}

static void shape_diamonds(struct flow_draft *d)
{
    for (uint32_t i = 1; i < d->n; i++) {
        uint32_t top = (i - 1) / 3 * 3;
        if (i % 3 == 0) {
            need(d, i, i - 1);
            need(d, i, i - 2);
        } else {
            need(d, i, top);
        }
    }
}

static void shape_tangle(struct flow_draft *d, struct gl_rng *r)
{
    for (uint32_t i = 1; i < d->n; i++) {
        uint64_t parents = gl_rng_below(r, i < 4 ? i + 1 : 4);
        for (uint64_t k = 0; k < parents; k++) {
            need(d, i, (uint32_t)gl_rng_below(r, i));
        }
    }
}

/* ---- from a draft to text ---- */

static void derive(struct flow_draft *d)
{
    struct gl_flow *f = &d->flow;
    f->roots = GL_NEW_ARRAY(&d->arena, uint32_t, d->n + 1);
    for (uint32_t i = 0; i < d->n; i++) {
        struct gl_step_spec *st = &d->steps[i];
        gl_str *ids = GL_NEW_ARRAY(&d->arena, gl_str, st->needs_n + 1);
        for (uint32_t k = 0; k < st->needs_n; k++) {
            ids[k] = d->steps[st->needs[k]].id;
            d->steps[st->needs[k]].children_n++;
        }
        st->needs_ids = (struct gl_strs){.items = ids, .n = st->needs_n};
        if (st->needs_n == 0) {
            f->roots[f->roots_n++] = i;
        }
    }
    for (uint32_t i = 0; i < d->n; i++) {
        d->steps[i].children = GL_NEW_ARRAY(&d->arena, uint32_t, d->steps[i].children_n + 1);
        d->steps[i].children_n = 0;
    }
    for (uint32_t i = 0; i < d->n; i++) {
        for (uint32_t k = 0; k < d->steps[i].needs_n; k++) {
            struct gl_step_spec *parent = &d->steps[d->steps[i].needs[k]];
            parent->children[parent->children_n++] = i;
        }
    }
    f->steps = (struct gl_items){.items = d->steps, .n = d->n};
}

static void give_command(struct gl_step_spec *st)
{
    static const gl_str argv[] = {GL_S("sim")};
    if (gl_str_is(st->driver, "process") && st->argv.n == 0) {
        st->argv = (struct gl_strs){.items = argv, .n = 1};
    }
}

static void draft_init(struct flow_draft *d, uint32_t n)
{
    *d = (struct flow_draft){.n = n};
    d->flow.name = GL_S("simulated");
    d->steps = GL_NEW_ARRAY(&d->arena, struct gl_step_spec, n);
    for (uint32_t i = 0; i < n; i++) {
        struct gl_step_spec *st = &d->steps[i];
        st->id = gl_str_fmt(&d->arena, "s%u", i);
        st->needs = GL_NEW_ARRAY(&d->arena, uint32_t, NEEDS_MAX);
        st->driver = GL_S("process");
        st->pool = GL_S("default");
        st->slots = 1;
        st->grace_ms = 2000;
        st->retry = (struct gl_retry){
            .attempts = 1, .backoff_ms = 1000, .factor_pct = 200, .backoff_max_ms = 60000};
    }
}

static void draft_finish(struct flow_draft *d, struct gl_buf *out)
{
    for (uint32_t i = 0; i < d->n; i++) {
        give_command(&d->steps[i]);
    }
    derive(d);
    gl_flow_encode(&d->flow, out);
    gl_arena_done(&d->arena);
}

/* ---- random choices ---- */

static void draw_rule(struct gl_step_spec *st, struct gl_rng *r)
{
    if (st->needs_n == 0 || gl_rng_chance(r, 600000)) {
        return; /* the default: all_success */
    }
    st->rule = (uint8_t)gl_rng_below(r, GL_RULE_COUNT);
    if (st->rule == GL_RULE_QUORUM) {
        st->quorum = 1 + (uint32_t)gl_rng_below(r, st->needs_n);
    }
}

static void draw_step(struct gl_step_spec *st, struct gl_rng *r, const struct sim_options *o,
                      const struct sim_pools *pools)
{
    if (gl_rng_chance(r, o->steps_unsafe)) {
        st->safety = GL_SAFETY_UNSAFE;
    } else if (gl_rng_chance(r, o->steps_idempotent)) {
        st->safety = GL_SAFETY_IDEMPOTENT;
    }
    if (gl_rng_chance(r, o->process_noop)) {
        st->driver = GL_S("noop");
    }
    if (gl_rng_chance(r, 500000)) {
        st->on_failure = (uint8_t)gl_rng_below(r, GL_ON_FAILURE_COUNT);
    }
    uint32_t most = pools->default_slots;
    if (gl_rng_chance(r, 150000)) {
        st->pool = GL_S("gpu");
        most = pools->gpu_slots;
    }
    if (gl_rng_chance(r, 100000)) {
        st->slots = 1 + (uint32_t)gl_rng_below(r, most);
    }
    if (gl_rng_chance(r, 200000)) {
        st->timeout_ms = gl_rng_range(r, 500, 30000);
    }
    if (gl_rng_chance(r, 100000)) {
        st->heartbeat_ms = gl_rng_range(r, 5000, 60000);
    }
    st->grace_ms = gl_rng_range(r, 100, 5000);
    st->priority = gl_rng_range(r, -2, 2);
    st->retry.attempts = 1 + (uint32_t)gl_rng_below(r, 4);
    st->retry.backoff_ms = gl_rng_range(r, 0, 5000);
    st->retry.factor_pct = 100 * (uint32_t)gl_rng_range(r, 1, 3);
    st->retry.backoff_max_ms = gl_rng_range(r, st->retry.backoff_ms, 60000);
}

/* Few keys, so that jobs share them; each always with the same numbers. */
static void draw_limits(struct gl_step_spec *st, struct gl_rng *r, const struct sim_options *o)
{
    static const gl_str keys[] = {GL_S("k0"), GL_S("k1"), GL_S("k2")};
    static const gl_str rates[] = {GL_S("r0"), GL_S("r1")};
    if (gl_rng_chance(r, o->steps_limited)) {
        uint64_t i = gl_rng_below(r, GL_COUNT(keys));
        st->limit_key = keys[i];
        st->limit_max = 1 + (uint32_t)i;
    }
    if (gl_rng_chance(r, o->steps_rated)) {
        uint64_t i = gl_rng_below(r, GL_COUNT(rates));
        st->rate_key = rates[i];
        st->rate_ms = i == 0 ? 300 : 4000;
    }
}

void sim_flows_make(struct gl_rng *r, const struct sim_options *o, const struct sim_pools *pools,
                    struct gl_buf *out, struct sim_given *given)
{
    uint32_t most = o->steps_max == 0 ? 1 : o->steps_max;
    struct flow_draft d;
    draft_init(&d, 1 + (uint32_t)gl_rng_below(r, 1 + (most >> gl_rng_below(r, 4))));
    switch (gl_rng_below(r, 5)) {
    case 0:
        shape_chain(&d);
        break;
    case 1:
        shape_fan(&d);
        break;
    case 2:
        shape_diamonds(&d);
        break;
    default:
        shape_tangle(&d, r);
        break;
    }
    sim_wishes_inputs(r, o, &d.arena, &d.flow, given);
    for (uint32_t i = 0; i < d.n; i++) {
        draw_step(&d.steps[i], r, o, pools);
        draw_limits(&d.steps[i], r, o);
        draw_rule(&d.steps[i], r);
        sim_wishes_step(r, o, &d.arena, &d.flow, d.steps, i);
    }
    draft_finish(&d, out);
}

static gl_str numbers(struct gl_arena *a, uint32_t n)
{
    struct gl_buf text = {0};
    for (uint32_t i = 0; i < n; i++) {
        gl_buf_fmt(&text, "%c%u", i == 0 ? '[' : ',', i);
    }
    gl_buf_char(&text, ']');
    gl_str list = gl_str_dup(a, gl_buf_view(&text));
    gl_buf_done(&text);
    return list;
}

void sim_flows_wide(uint32_t n, bool as_items, struct gl_buf *out)
{
    struct flow_draft d;
    draft_init(&d, as_items ? 2 : n);
    for (uint32_t i = 0; i < d.n; i++) {
        d.steps[i].driver = GL_S("noop");
        if (i > 0) {
            need(&d, i, 0);
        }
    }
    if (as_items) {
        d.steps[1].foreach = numbers(&d.arena, n - 1);
        d.steps[1].items_max = GL_ITEMS_DEFAULT;
    }
    draft_finish(&d, out);
}

/* ---- plain flows ---- */

static void plain_needs(struct flow_draft *d, uint32_t number, gl_str needs)
{
    while (needs.n > 0) {
        gl_str rest;
        gl_str name = gl_str_cut(needs, ',', &rest);
        for (uint32_t i = 0; i < number; i++) {
            if (gl_str_eq(d->steps[i].id, name)) {
                need(d, number, i);
            }
        }
        needs = rest;
    }
}

void sim_flows_plain(const char *text, uint32_t attempts, struct gl_buf *out)
{
    uint32_t n = 1;
    for (const char *p = text; *p != 0; p++) {
        n += *p == ' ' ? 1 : 0;
    }
    struct flow_draft d;
    draft_init(&d, n);
    gl_str rest = gl_str_of(text);
    for (uint32_t i = 0; i < n; i++) {
        gl_str needs;
        gl_str word = gl_str_cut(rest, ' ', &rest);
        gl_str id = gl_str_cut(word, ':', &needs);
        struct gl_step_spec *st = &d.steps[i];
        if (gl_str_ends(id, GL_S("!"))) {
            st->safety = GL_SAFETY_UNSAFE;
            id.n--;
        } else if (gl_str_ends(id, GL_S("?"))) {
            st->safety = GL_SAFETY_IDEMPOTENT;
            id.n--;
        }
        st->id = gl_str_dup(&d.arena, id);
        st->retry.attempts = attempts;
        plain_needs(&d, i, needs);
    }
    draft_finish(&d, out);
}
