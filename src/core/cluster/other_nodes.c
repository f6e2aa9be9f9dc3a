/* other_nodes.c - keeps the list of nodes that placement.c chooses from. */
#include "core/cluster/other_nodes.h"

#include "base/check.h"
#include "base/limits.h"
#include "core/cluster/membership.h"
#include "core/cluster/session.h"
#include "core/snapshot.h"
#include "model/offer.h"

static void free_nodes(struct gl_core *c, struct gl_place_node *items, size_t n)
{
    GL_ASSERT(GL_IMPLIES(n > 0, items != NULL));
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < items[i].pools_n; k++) {
            gl_core_set(c, &items[i].pools[k].name, (gl_str){0});
        }
        if (items[i].pools_n > 0) {
            gl_pool_free(&c->mem, items[i].pools, items[i].pools_n * sizeof(*items[i].pools));
        }
        gl_core_set(c, &items[i].id, (gl_str){0});
        gl_core_set(c, &items[i].labels, (gl_str){0});
    }
    if (n > 0) {
        gl_pool_free(&c->mem, items, n * sizeof(*items));
    }
}

void gl_other_nodes_done(struct gl_core *c)
{
    free_nodes(c, c->others.items, c->others.n);
    c->others = (struct gl_other_nodes_state){0};
}

struct gl_place_node *gl_other_nodes_find(const struct gl_core *c, gl_str node)
{
    GL_ASSERT(node.n > 0);
    for (size_t i = 0; i < c->others.n; i++) {
        if (gl_str_eq(c->others.items[i].id, node)) {
            return &c->others.items[i];
        }
    }
    return NULL;
}

/* ---- after a listing ---- */

static bool is_ready(const struct gl_event_peer *s)
{
    return gl_str_is(s->state, "ready") || gl_str_is(s->state, GL_STATE_NO_ROOM);
}

/* Can this node own jobs of ours, now or after a takeover? */
static bool may_own(const struct gl_core *c, const struct gl_event_peer *s)
{
    return gl_session_in_scope(c, s->stack, s->env_scope) && !gl_str_is(s->state, "passive");
}

static void copy_pools(struct gl_core *c, struct gl_place_node *to, const struct gl_event_peer *s,
                       const struct gl_place_node *was)
{
    const struct gl_event_pool *from = s->pools.items;
    size_t n = s->pools.n < GL_POOLS_MAX ? s->pools.n : GL_POOLS_MAX;

    GL_ASSERT(to->pools_n == 0);
    GL_ASSERT(n <= GL_POOLS_MAX);
    if (n == 0) {
        return;
    }
    to->pools = gl_pool_alloc(&c->mem, n * sizeof(*to->pools));
    to->pools_n = n;
    for (size_t i = 0; i < n; i++) {
        const struct gl_place_pool *old =
            was != NULL && from[i].name.n > 0 ? gl_place_pool(was, from[i].name) : NULL;
        uint64_t slots = from[i].slots < GL_SLOTS_MAX ? from[i].slots : GL_SLOTS_MAX;
        uint64_t others = from[i].in_use > from[i].ours ? from[i].in_use - from[i].ours : 0;

        to->pools[i] = (struct gl_place_pool){.slots = (uint32_t)slots,
                                              .others = others < GL_SLOTS_MAX ? (uint32_t)others
                                                                              : GL_SLOTS_MAX,
                                              .ours = old != NULL ? old->ours : 0};
        gl_core_set(c, &to->pools[i].name, from[i].name);
    }
}

static bool is_used(const struct gl_place_node *n)
{
    for (size_t i = 0; i < n->pools_n; i++) {
        if (n->pools[i].ours > 0) {
            return true;
        }
    }
    return false;
}

/* A node that is gone, or between two sessions, but still has attempts of ours: what they use is
 * remembered until they are over. */
static void keep_used(struct gl_core *c, struct gl_place_node *to, const struct gl_place_node *was)
{
    GL_ASSERT(was->pools_n > 0);
    GL_ASSERT(to->pools_n == 0);
    gl_core_set(c, &to->id, was->id);
    to->grace_ms = was->grace_ms;
    to->pools = gl_pool_alloc(&c->mem, was->pools_n * sizeof(*to->pools));
    to->pools_n = was->pools_n;
    for (size_t i = 0; i < was->pools_n; i++) {
        to->pools[i] = was->pools[i];
        to->pools[i].name = (gl_str){0};
        gl_core_set(c, &to->pools[i].name, was->pools[i].name);
    }
    GL_ASSERT(!to->takes);
}

static const struct gl_place_node *find_in(const struct gl_place_node *items, size_t n, gl_str id)
{
    for (size_t i = 0; i < n; i++) {
        if (gl_str_eq(items[i].id, id)) {
            return &items[i];
        }
    }
    return NULL;
}

void gl_other_nodes_on_listed(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_peer *all = ev->answer.sessions.items;
    struct gl_other_nodes_state was = c->others;
    size_t cap = ev->answer.sessions.n + was.n;
    struct gl_place_node *items = cap > 0 ? gl_pool_alloc(&c->mem, cap * sizeof(*items)) : NULL;
    size_t n = 0;

    GL_ASSERT(ev->type == GL_EV_ANSWER);
    GL_ASSERT(ev->answer.code == 0);
    GL_ASSERT(c->shared);
    c->others.is_old = false;
    for (size_t i = 0; i < ev->answer.sessions.n; i++) {
        gl_str id = gl_offer_node_of(all[i].id);

        if (!gl_membership_lives(c, all[i].id) || id.n == 0 || gl_str_eq(id, c->node)) {
            continue;
        }
        c->others.is_old |= !all[i].is_told || (may_own(c, &all[i]) && !all[i].takes);
        if (!all[i].takes || !may_own(c, &all[i]) || gl_str_is(all[i].state, "guest") ||
            find_in(items, n, id) != NULL) {
            continue;
        }
        GL_ASSERT(n < cap);
        gl_core_set(c, &items[n].id, id);
        items[n].takes = is_ready(&all[i]) && all[i].left_ms >= 0;
        items[n].grace_ms = all[i].grace_ms;
        gl_core_set(c, &items[n].labels, all[i].labels);
        copy_pools(c, &items[n], &all[i], find_in(was.items, was.n, id));
        n++;
    }
    for (size_t i = 0; i < was.n; i++) {
        if (is_used(&was.items[i]) && find_in(items, n, was.items[i].id) == NULL) {
            GL_ASSERT(n < cap);
            keep_used(c, &items[n++], &was.items[i]);
        }
    }
    GL_ASSERT(n <= cap);
    c->others.items = items;
    c->others.n = n;
    c->others.is_heard = true;
    if (cap > n) { /* the pool frees by size */
        struct gl_place_node *exact = n > 0 ? gl_pool_alloc(&c->mem, n * sizeof(*exact)) : NULL;

        if (n > 0) {
            memcpy(exact, items, n * sizeof(*exact));
        }
        gl_pool_free(&c->mem, items, cap * sizeof(*items));
        c->others.items = exact;
    }
    free_nodes(c, was.items, was.n);
}

/* ---- choosing ---- */

bool gl_other_nodes_are_placing(const struct gl_core *c)
{
    return c->shared && !c->guest && !c->passive && c->others.is_heard && !c->others.is_old &&
           c->others.n > 0;
}

/* A folder that the user names, and the secrets that a step reads, are those of one machine. */
bool gl_other_nodes_may_run_spec(const struct gl_step_spec *spec)
{
    return spec->cwd.n == 0 && spec->secrets.n == 0 && !spec->is_bound &&
           (gl_str_is(spec->driver, "process") || gl_str_is(spec->driver, "noop"));
}

bool gl_other_nodes_may_run(const struct gl_core *c, const struct gl_step *st)
{
    return c->shared && !c->guest && !c->passive && !gl_step_is_unit(st) &&
           gl_other_nodes_may_run_spec(gl_step_spec_of(st));
}

bool gl_other_nodes_have_room(const struct gl_core *c, gl_str pool, uint32_t slots,
                              const struct gl_strs *labels, gl_str except)
{
    struct gl_place_request r = {.pool = pool, .slots = slots, .labels = labels, .except = except};
    enum gl_place_result result;

    GL_ASSERT(slots > 0);
    return gl_place(c->others.items, c->others.n, &r, &result) >= 0 && result == GL_PLACE_FITS;
}

/* May one more attempt queue there? At most as much as runs there at a time: the rest waits in our
 * queue, from where it can go to any node. */
static bool may_queue_at(const struct gl_place_node *node, const struct gl_place_request *r)
{
    const struct gl_place_pool *p = gl_place_pool(node, r->pool);

    GL_ASSERT(p != NULL);
    GL_ASSERT(p->slots >= r->slots);
    return (uint64_t)p->ours + r->slots <= p->slots ||
           (uint64_t)p->others + p->ours + r->slots <= 2 * (uint64_t)p->slots;
}

struct gl_place_node *gl_other_nodes_choose(struct gl_core *c, const struct gl_step *st,
                                            bool may_queue, enum gl_place_result *ret)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    struct gl_place_request r = {.pool = spec->pool,
                                 .slots = spec->slots,
                                 .labels = &spec->node_labels,
                                 .avoid = st->r.node};
    int64_t at;

    GL_ASSERT(gl_other_nodes_are_placing(c));
    GL_ASSERT(gl_other_nodes_may_run(c, st));
    at = gl_place(c->others.items, c->others.n, &r, ret);
    if (at < 0 ||
        (*ret != GL_PLACE_FITS && !(may_queue && may_queue_at(&c->others.items[at], &r)))) {
        return NULL;
    }
    GL_ASSERT((size_t)at < c->others.n);
    GL_ASSERT(*ret <= GL_PLACE_BUSY);
    GL_ASSERT(c->others.items[at].takes);
    return &c->others.items[at];
}

static struct gl_place_pool *pool_of(const struct gl_core *c, gl_str node, gl_str pool)
{
    struct gl_place_node *n = gl_other_nodes_find(c, node);

    return n != NULL ? gl_place_pool(n, pool) : NULL;
}

void gl_other_nodes_use(struct gl_core *c, gl_str node, gl_str pool, uint32_t slots)
{
    struct gl_place_pool *p = pool_of(c, node, pool);

    if (p != NULL) {
        p->ours += slots;
        GL_ASSERT(p->ours >= slots);
    }
}

/* The node, or its pool, may have been forgotten meanwhile, and its count with it. */
void gl_other_nodes_unuse(struct gl_core *c, gl_str node, gl_str pool, uint32_t slots)
{
    struct gl_place_pool *p = pool_of(c, node, pool);

    if (p != NULL) {
        p->ours -= p->ours < slots ? p->ours : slots;
    }
}

/* ---- in a snapshot of the core ---- */

#define F(member, type) GL_FIELD(gl_place_pool, member, type, 0, "")

static const struct gl_field pool_fields[] = {
    F(name, STR),
    F(slots, U32),
    F(others, U32),
    F(ours, U32),
};
#undef F

static const struct gl_schema pool_schema = {.name = "pool",
                                             .bytes = sizeof(struct gl_place_pool),
                                             .fields = pool_fields,
                                             .fields_n = GL_COUNT(pool_fields)};

struct saved_node {
    gl_str id, labels;
    bool takes;
    gl_ms grace_ms;
    struct gl_items pools; /* struct gl_place_pool */
};

#define F(member, type) GL_FIELD(saved_node, member, type, 0, "")

static const struct gl_field node_fields[] = {
    F(id, STR),
    F(labels, STR),
    F(takes, BOOL),
    F(grace_ms, I64),
    GL_FIELD_SUB(saved_node, pools, LIST, &pool_schema, 0, ""),
};
#undef F

static const struct gl_schema node_schema = {.name = "node",
                                             .bytes = sizeof(struct saved_node),
                                             .fields = node_fields,
                                             .fields_n = GL_COUNT(node_fields)};

struct saved_others {
    bool is_heard, is_old;
    struct gl_items nodes; /* struct saved_node */
};

static const struct gl_field others_fields[] = {
    GL_FIELD(saved_others, is_heard, BOOL, 0, ""),
    GL_FIELD(saved_others, is_old, BOOL, 0, ""),
    GL_FIELD_SUB(saved_others, nodes, LIST, &node_schema, 0, ""),
};

GL_SNAPSHOT_SCHEMA(others);

void gl_other_nodes_save(const struct gl_core *c, struct gl_buf *out)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct saved_node *all = GL_NEW_ARRAY(&a, struct saved_node, c->others.n + 1);
    struct saved_others s = {.is_heard = c->others.is_heard,
                             .is_old = c->others.is_old,
                             .nodes = {.items = all, .n = c->others.n}};

    if (!c->shared) {
        return;
    }
    for (size_t i = 0; i < c->others.n; i++) {
        const struct gl_place_node *n = &c->others.items[i];

        all[i] = (struct saved_node){.id = n->id,
                                     .labels = n->labels,
                                     .takes = n->takes,
                                     .grace_ms = n->grace_ms,
                                     .pools = {.items = n->pools, .n = n->pools_n}};
    }
    gl_snapshot_put(out, "others", &others_schema, &s);
}

int gl_other_nodes_restore(struct gl_core *c, struct gl_snapshot_line *l)
{
    const struct saved_node *all;
    struct saved_others s;
    int rc = gl_snapshot_get(l, &others_schema, &s);

    if (rc != 0) {
        return rc;
    }
    if (c->others.n > 0) {
        return gl_snapshot_bad(l, "the other nodes appear twice");
    }
    all = s.nodes.items;
    c->others.is_heard = s.is_heard;
    c->others.is_old = s.is_old;
    c->others.n = s.nodes.n;
    if (s.nodes.n > 0) {
        c->others.items = gl_pool_alloc(&c->mem, s.nodes.n * sizeof(*c->others.items));
    }
    for (size_t i = 0; i < s.nodes.n; i++) {
        struct gl_place_node *n = &c->others.items[i];
        const struct gl_place_pool *pools = all[i].pools.items;

        gl_core_set(c, &n->id, all[i].id);
        gl_core_set(c, &n->labels, all[i].labels);
        n->takes = all[i].takes;
        n->grace_ms = all[i].grace_ms;
        n->pools_n = all[i].pools.n;
        if (n->pools_n > 0) {
            n->pools = gl_pool_alloc(&c->mem, n->pools_n * sizeof(*n->pools));
        }
        for (size_t k = 0; k < n->pools_n; k++) {
            n->pools[k] = pools[k];
            n->pools[k].name = (gl_str){0};
            gl_core_set(c, &n->pools[k].name, pools[k].name);
        }
    }
    return 0;
}
