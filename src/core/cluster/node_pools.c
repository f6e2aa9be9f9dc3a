/* node_pools.c - compares sets of pools: what jobs need, what this node offers, what others offer.
 */
#include "core/cluster/node_pools.h"

#include "base/check.h"
#include "core/cluster/membership.h"
#include "core/cluster/other_nodes.h"
#include "core/cluster/rebalance.h"
#include "core/cluster/session.h"
#include "core/flow/txn.h"
#include "core/scheduling/slots.h"

enum {
    MOVES_MAX = 16,   /* jobs returned to the store in one step of the core */
    RETRY_MS = 250,   /* until a job that could not be returned yet is considered again */
    OFFERS_MAX = 256, /* different sets of pools remembered; the rest counts as not offered */
};

/* ---- sets of pools ---- */

/* "gpu:2,default:1" -> "gpu", 2; the rest stays in *text. The text may come from another node: a
 * number that makes no sense counts as the maximum, a need that hardly any node satisfies. */
static bool next_pool(gl_str *text, gl_str *ret_name, uint32_t *ret_slots)
{
    gl_str one, slots;
    uint64_t n = 0;

    if (text->n == 0) {
        return false;
    }
    one = gl_str_cut(*text, ',', text);
    *ret_name = gl_str_cut(one, ':', &slots);
    *ret_slots = gl_str_u64(slots, &n) && n <= GL_SLOTS_MAX ? (uint32_t)n : GL_SLOTS_MAX;
    GL_ASSERT(*ret_slots <= GL_SLOTS_MAX);
    return true;
}

/* How many slots the set has of that pool; 0: none. */
static uint32_t slots_in(gl_str set, gl_str pool)
{
    gl_str name;
    uint32_t slots;

    while (next_pool(&set, &name, &slots)) {
        if (gl_str_eq(name, pool)) {
            return slots;
        }
    }
    return 0;
}

static bool covers(gl_str offer, gl_str needs)
{
    gl_str name;
    uint32_t slots;

    while (next_pool(&needs, &name, &slots)) {
        if (slots_in(offer, name) < slots) {
            return false;
        }
    }
    return true;
}

static uint32_t slots_here(const struct gl_core *c, gl_str pool)
{
    GL_ASSERT(c->pools_n <= GL_POOLS_MAX);
    for (size_t i = 0; i < c->pools_n; i++) {
        if (gl_str_eq(c->pools[i].name, pool)) {
            return c->pools[i].slots;
        }
    }
    return 0;
}

bool gl_node_pools_here(const struct gl_core *c, gl_str needs)
{
    gl_str name;
    uint32_t slots;

    while (next_pool(&needs, &name, &slots)) {
        if (slots_here(c, name) < slots) {
            return false;
        }
    }
    return true;
}

bool gl_node_pools_elsewhere(const struct gl_core *c, gl_str needs)
{
    gl_str all = c->offers;

    while (all.n > 0) {
        if (covers(gl_str_cut(all, '\n', &all), needs)) {
            return true;
        }
    }
    return false;
}

static gl_str need_of(struct gl_arena *a, const struct gl_step_spec *spec)
{
    return gl_str_fmt(a, "%.*s:%u", GL_STR_ARG(spec->pool), spec->slots);
}

/* The ledger's steps of a bundle have no process of their own, and relays run inside the core. */
static bool runs_something(const struct gl_step_spec *spec)
{
    return !spec->is_bound && !gl_str_is(spec->driver, "relay");
}

gl_str gl_node_pools_needs(struct gl_arena *a, const struct gl_flow *flow)
{
    gl_str names[GL_POOLS_MAX];
    uint32_t slots[GL_POOLS_MAX];
    size_t n = 0;
    struct gl_buf out = {0};
    gl_str text;

    for (uint32_t i = 0; i < flow->steps.n; i++) {
        const struct gl_step_spec *spec = gl_flow_step(flow, i);
        size_t k = 0;

        while (k < n && !gl_str_eq(names[k], spec->pool)) {
            k++;
        }
        /* More pools than one node can have: a missing one is noticed when its step is queued. */
        if (!runs_something(spec) || gl_other_nodes_may_run_spec(spec) || k == GL_POOLS_MAX) {
            continue;
        }
        GL_ASSERT(k <= n);
        names[k] = spec->pool;
        slots[k] = k == n || spec->slots > slots[k] ? spec->slots : slots[k];
        n += k == n;
    }
    for (size_t k = 0; k < n; k++) {
        gl_buf_fmt(&out, "%s%.*s:%u", k > 0 ? "," : "", GL_STR_ARG(names[k]), slots[k]);
    }
    GL_ASSERT(n <= GL_POOLS_MAX);
    text = gl_str_dup(a, gl_buf_view(&out));
    gl_buf_done(&out);
    return text;
}

/* ---- what other nodes offer ---- */

/* Only a node that will start work for others counts: not one that is stopping, and not a guest. */
static bool is_offering(const struct gl_core *c, const struct gl_event_peer *s)
{
    return gl_session_in_scope(c, s->stack, s->env_scope) &&
           (gl_str_is(s->state, "ready") || gl_str_is(s->state, "starting") ||
            gl_str_is(s->state, GL_STATE_NO_ROOM));
}

static gl_str pools_of(struct gl_arena *a, const struct gl_event_peer *s)
{
    const struct gl_event_pool *pools = s->pools.items;
    struct gl_buf out = {0};
    gl_str set;

    GL_ASSERT(s->has_pools);
    for (size_t i = 0; i < s->pools.n; i++) {
        gl_buf_fmt(&out, "%s%.*s:%llu", i > 0 ? "," : "", GL_STR_ARG(pools[i].name),
                   (unsigned long long)pools[i].slots);
    }
    set = gl_str_dup(a, gl_buf_view(&out));
    gl_buf_done(&out);
    return set;
}

/* Sorted and without duplicates, so that an unchanged cluster compares equal. */
static size_t insert_set(gl_str *sets, size_t n, gl_str set)
{
    size_t at = 0;

    while (at < n && gl_str_cmp(sets[at], set) < 0) {
        at++;
    }
    if (at < n && gl_str_eq(sets[at], set)) {
        return n;
    }
    memmove(&sets[at + 1], &sets[at], (n - at) * sizeof(*sets));
    sets[at] = set;
    GL_ASSERT(at <= n);
    GL_ASSERT(at == 0 || gl_str_cmp(sets[at - 1], set) < 0);
    GL_ASSERT(at == n || gl_str_cmp(set, sets[at + 1]) < 0);
    return n + 1;
}

static void set_offers(struct gl_core *c, gl_str all)
{
    if (!c->offers_heard || !gl_str_eq(all, c->offers)) {
        GL_MARK(c->trace, "offers.changed");
        gl_core_set(c, &c->offers, all);
        c->lacks_due = c->now;
        if (c->sweep.passed_over) { /* jobs we left to other nodes may be ours to take now */
            c->sweep.passed_over = false;
            c->sweep.orphan_parts |=
                GL_ORPHAN_SCAN_RUNNING | GL_ORPHAN_SCAN_READY | GL_ORPHAN_SCAN_DUE;
            c->sweep.orphans_due = c->now;
        }
    }
    c->offers_heard = true;
    GL_ASSERT(gl_str_eq(c->offers, all));
    GL_ASSERT(c->shared);
}

void gl_node_pools_on_listed(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_peer *s = ev->answer.sessions.items;
    gl_str *sets = GL_NEW_ARRAY(c->out->arena, gl_str, ev->answer.sessions.n + 1);
    struct gl_buf all = {0};
    size_t n = 0;

    GL_ASSERT(ev->type == GL_EV_ANSWER);
    c->offers_unknown = false;
    for (size_t i = 0; i < ev->answer.sessions.n; i++) {
        if (!gl_membership_lives(c, s[i].id) || s[i].left_ms < 0) {
            continue;
        }
        c->offers_unknown |= !s[i].is_told || (is_offering(c, &s[i]) && !s[i].has_pools);
        if (is_offering(c, &s[i]) && s[i].has_pools) {
            n = insert_set(sets, n, pools_of(c->out->arena, &s[i]));
        }
    }
    for (size_t i = 0; i < n && i < OFFERS_MAX; i++) {
        gl_buf_fmt(&all, "%s%.*s", i > 0 ? "\n" : "", GL_STR_ARG(sets[i]));
    }
    GL_ASSERT(n <= ev->answer.sessions.n);
    set_offers(c, gl_buf_view(&all));
    gl_buf_done(&all);
}

bool gl_node_pools_may_take(const struct gl_core *c, gl_str needs)
{
    if (!c->shared || needs.n == 0 || gl_node_pools_here(c, needs)) {
        return true;
    }
    return c->offers_heard && !gl_node_pools_elsewhere(c, needs);
}

/* ---- submission ---- */

int gl_node_pools_may_submit(const struct gl_core *c, const struct gl_flow *flow,
                             struct gl_why *why)
{
    struct gl_arena a = {0};
    int rc = 0;

    /* A bundle is always accepted: an agent without its pool fails only when it gets a message. */
    for (uint32_t i = 0; i < flow->steps.n && flow->bundle == NULL && rc == 0; i++) {
        const struct gl_step_spec *spec = gl_flow_step(flow, i);

        if (gl_slots_possible(c, spec, why) || (c->shared && gl_slots_has_pool(c, spec))) {
            continue; /* a label can be added to a node at any time: the step waits for it */
        }
        gl_arena_reset(&a);
        if (!c->shared) {
            rc = GL_E_INVALID;
        } else if (!c->offers_heard) {
            rc = gl_why(
                why, GL_R_POOLS_UNKNOWN,
                "this node has not yet learned which pools the other nodes offer: try again");
        } else if (!c->offers_unknown && !gl_node_pools_elsewhere(c, need_of(&a, spec))) {
            rc =
                gl_why(why, GL_R_POOL_NOT_OFFERED,
                       "step '%.*s' needs %u slot%s of pool '%.*s', which no live node offers: add "
                       "the pool to GLIA_POOLS of a node, or make it larger",
                       GL_STR_ARG(spec->id), spec->slots, spec->slots == 1 ? "" : "s",
                       GL_STR_ARG(spec->pool));
        }
    }
    gl_arena_done(&a);
    return rc;
}

/* ---- jobs that lack a pool ---- */

void gl_node_pools_lack(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(st->r.status == GL_STEP_QUEUED);
    GL_ASSERT(c->shared && st->wait == NULL);
    GL_ASSERT(!gl_step_is_bound(st));
    GL_ASSERT(!gl_slots_possible(c, gl_step_spec_of(st), NULL));
    GL_MARK(c->trace, "offers.lacking");
    st->r.queued_at = 0;
    st->job->lacks = true;
    c->lacks_due = c->now;
}

static bool is_lacking(const struct gl_core *c, const struct gl_step *st)
{
    return st->r.status == GL_STEP_QUEUED && st->wait == NULL && !gl_step_is_bound(st) &&
           !gl_slots_possible(c, gl_step_spec_of(st), NULL);
}

/* Its time in the queue starts on the node that has the slots. */
static void reset_queue_times(struct gl_core *c, struct gl_job *j)
{
    GL_ASSERT(j->memory == GL_MEM_HOT);
    GL_ASSERT(gl_job_is_mine(c, j));
    GL_ASSERT(gl_job_running(j) == 0);
    for (struct gl_link *l = j->live.next; l != &j->live; l = l->next) {
        struct gl_step *st = GL_CONTAINER(l, struct gl_step, live);

        if (is_lacking(c, st)) {
            st->r.queued_at = 0;
            gl_txn_dirty(c, st);
        }
    }
}

/* What the job's next owner must offer; "" means everything its flow needs. False: the job does not
 * have to move, or cannot. Clears `lacks` if no step lacks a pool any more. */
static bool find_next_needs(struct gl_core *c, struct gl_job *j, gl_str *ret)
{
    bool waits_here = false, is_offered = false, lacks = false;

    GL_ASSERT(j->memory == GL_MEM_HOT);
    GL_ASSERT(j->lacks);
    GL_ASSERT(gl_job_is_mine(c, j));
    for (struct gl_link *l = j->live.next; l != &j->live; l = l->next) {
        const struct gl_step *st = GL_CONTAINER(l, const struct gl_step, live);

        waits_here |= st->wait != NULL;
        if (!is_lacking(c, st)) {
            continue;
        }
        lacks = true;
        if (!is_offered) {
            *ret = need_of(c->out->arena, gl_step_spec_of(st));
            is_offered = gl_node_pools_elsewhere(c, *ret);
        }
    }
    j->lacks = lacks;
    GL_ASSERT(GL_IMPLIES(is_offered, lacks));
    if (!is_offered) {
        return false;
    }
    if (gl_node_pools_elsewhere(c, j->r.pools)) {
        *ret = (gl_str){0};
        return true;
    }
    if (waits_here) { /* a step that the other node cannot run goes first */
        c->lacks_due = c->now + RETRY_MS;
    }
    return !waits_here;
}

void gl_node_pools_move(struct gl_core *c)
{
    unsigned moved = 0;
    struct gl_job *j;

    if (!c->shared || c->passive || c->session.n == 0 || c->lacks_due > c->now) {
        return;
    }
    c->lacks_due = INT64_MAX;
    for (size_t i = 0; (j = gl_map_next(&c->jobs, &i)) != NULL;) {
        gl_str next;

        if (!j->lacks || GL_PLANT(70)) { /* planted: jobs never move */
            continue;
        }
        if (j->memory != GL_MEM_HOT || !gl_job_is_mine(c, j)) {
            c->lacks_due = c->now + RETRY_MS; /* our takeover may not have committed yet */
            continue;
        }
        if (!find_next_needs(c, j, &next)) {
            continue;
        }
        if (moved == MOVES_MAX || !gl_rebalance_may_give(c, j)) {
            c->lacks_due = c->now + RETRY_MS;
            continue;
        }
        GL_MARK(c->trace, "offers.moved");
        reset_queue_times(c, j);
        gl_core_set(c, &j->r.pools_next, next);
        gl_rebalance_give(c, j, GL_S("another node offers the pool it needs"));
        moved++;
    }
    GL_ASSERT(moved <= MOVES_MAX);
    GL_ASSERT(GL_IMPLIES(moved > 0, !gl_list_empty(&c->touched)));
}

gl_ms gl_node_pools_next_due(const struct gl_core *c)
{
    return c->shared && !c->passive ? c->lacks_due : INT64_MAX;
}
