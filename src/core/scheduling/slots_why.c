/* slots_why.c - the sentence that explains why a step waits for slots, and which steps hold them.
 */
#include "base/check.h"
#include "core/agents/agents.h"
#include "core/cluster/other_nodes.h"
#include "core/scheduling/placement.h"
#include "core/scheduling/quotas.h"
#include "core/scheduling/slots_parts.h"

enum { HOLDERS_LISTED_MAX = 3 };

static void write_holder(struct gl_job *j, const struct gl_slot_hold *h, struct gl_buf *out)
{
    const struct gl_step *st = j->spec != NULL ? gl_step_at(j, h->step_number) : NULL;

    gl_buf_fmt(out, "job %.*s", GL_STR_ARG(j->id));
    if (st != NULL) {
        gl_buf_fmt(out, " step '%.*s'%s", GL_STR_ARG(st->r.step_id),
                   st->r.keeps_slots ? " between two attempts" : "");
    }
}

/* Walks the jobs in the order in which they came into memory, so that a replay prints the same. */
void gl_slots_write_holders(struct gl_core *c, int pool, const struct gl_quota *limit,
                            struct gl_buf *out)
{
    unsigned listed = 0;
    struct gl_job *j;

    GL_ASSERT(pool < (int)c->pools_n);
    GL_ASSERT(pool >= -1);
    for (size_t i = 0; listed < HOLDERS_LISTED_MAX && (j = gl_map_next(&c->jobs, &i)) != NULL;) {
        for (struct gl_link *l = j->holds.next; l != &j->holds && listed < HOLDERS_LISTED_MAX;
             l = l->next) {
            const struct gl_slot_hold *h = GL_CONTAINER(l, struct gl_slot_hold, link);

            if ((pool >= 0 && h->pool != pool) || (limit != NULL && h->limit != limit)) {
                continue;
            }
            gl_buf_c(out, listed++ == 0 ? ", held by " : ", ");
            write_holder(j, h, out);
        }
    }
    GL_ASSERT(listed <= HOLDERS_LISTED_MAX);
}

/* How many entries go before it, in the queues that it competes with; at most GL_AHEAD_MAX. */
static size_t ahead_of(struct gl_core *c, const struct gl_wait *w)
{
    size_t n = gl_heap_ahead(gl_slots_queue_of(c, w), &w->place, GL_AHEAD_MAX);
    enum gl_slots_where other = w->where == GL_WHERE_ANY ? GL_WHERE_HERE : GL_WHERE_ANY;

    GL_ASSERT(w->where < GL_WHERE_COUNT);
    GL_ASSERT(w->state != GL_WAIT_HELD);
    GL_ASSERT(other != w->where);
    n += gl_heap_ahead_in_other(&c->pools[w->pool].queues[other], &w->place, GL_AHEAD_MAX);
    return n < GL_AHEAD_MAX ? n : GL_AHEAD_MAX;
}

static void explain_pool(struct gl_core *c, const struct gl_wait *w, gl_str job, uint32_t number,
                         struct gl_buf *out)
{
    const struct gl_core_pool_state *p = &c->pools[w->pool];
    size_t ahead = ahead_of(c, w);
    struct gl_job *j = gl_job_find(c, job);
    const struct gl_step *st = j != NULL && j->memory == GL_MEM_HOT ? gl_step_at(j, number) : NULL;
    gl_str name = st != NULL && gl_step_is_unit(st) ? gl_agent_unit_pool(st) : p->name;

    GL_ASSERT(w->pool < c->pools_n);
    GL_ASSERT(!w->offered);
    GL_ASSERT(w->state != GL_WAIT_GRANTED);
    gl_buf_fmt(out, "waits for %u %s of pool '%.*s' (", w->slots, w->slots == 1 ? "slot" : "slots",
               GL_STR_ARG(name));
    if (w->where == GL_WHERE_AWAY) {
        gl_buf_c(out, "which only other nodes have");
    } else {
        gl_buf_fmt(out, "%u of %u in use", p->in_use, p->slots);
        gl_slots_write_holders(c, w->pool, NULL, out);
    }
    if (ahead < GL_AHEAD_MAX) {
        gl_buf_fmt(out, "), number %zu in the queue", ahead + 1);
    } else {
        gl_buf_fmt(out, "), with %d or more ahead of it in the queue", GL_AHEAD_MAX);
    }
}

/* From the most general reason to the most specific: what stops the whole node comes first. */
enum gl_why_code gl_slots_explain(struct gl_core *c, gl_str job, uint32_t number,
                                  struct gl_buf *out)
{
    const struct gl_wait *w;
    enum gl_why_code code;

    if (job.n != GL_ULID_BYTES) {
        return GL_BECAUSE_NONE;
    }
    w = gl_slots_find(c, job, number);
    if (w == NULL) {
        return GL_BECAUSE_NONE;
    }
    if (w->state == GL_WAIT_GRANTED) {
        gl_buf_c(out, "has its slots; starts once its job is loaded");
        return GL_BECAUSE_HAS_SLOTS;
    }
    if (c->stopping || c->passive) {
        gl_buf_c(
            out,
            "waits for a node that starts steps; this one is stopping or only executes commands");
        return GL_BECAUSE_NODE_STARTS_NOTHING;
    }
    if (!c->exec_up) {
        gl_buf_c(out, "waits for the executor, which is not responding");
        return GL_BECAUSE_EXECUTOR_DOWN;
    }
    if (!c->adoption_over) {
        gl_buf_c(out,
                 "waits until the node knows which attempts of its previous run are still alive");
        return GL_BECAUSE_ADOPTION;
    }
    code = gl_quotas_explain(c, w, out);
    if (code == GL_BECAUSE_NONE) {
        code =
            w->where == GL_WHERE_AWAY ? GL_BECAUSE_POOL_ON_OTHER_NODES : GL_BECAUSE_WAITS_FOR_SLOTS;
        explain_pool(c, w, job, number, out);
    }
    GL_ASSERT(code != GL_BECAUSE_NONE);
    GL_ASSERT(code < GL_BECAUSE_COUNT);
    return code;
}

/* ---- where it could run ---- */

static struct gl_place_pool *copy_pools(struct gl_arena *a, const struct gl_place_pool *from,
                                        size_t n)
{
    struct gl_place_pool *pools = GL_NEW_ARRAY(a, struct gl_place_pool, n + 1);

    for (size_t i = 0; i < n; i++) {
        pools[i] = from[i];
        pools[i].name = gl_str_dup(a, from[i].name);
    }
    return pools;
}

static struct gl_place_node this_node(const struct gl_core *c, struct gl_arena *a)
{
    struct gl_place_pool pools[GL_POOLS_MAX];

    GL_ASSERT(c->pools_n <= GL_POOLS_MAX);
    for (size_t i = 0; i < c->pools_n; i++) {
        pools[i] = (struct gl_place_pool){
            .name = c->pools[i].name, .slots = c->pools[i].slots, .others = c->pools[i].in_use};
    }
    return (struct gl_place_node){.id = gl_str_dup(a, c->node),
                                  .takes = !c->stopping && !c->passive && c->exec_up,
                                  .pools = copy_pools(a, pools, c->pools_n),
                                  .pools_n = c->pools_n};
}

void gl_slots_places(const struct gl_core *c, struct gl_arena *a, struct gl_core_places *ret)
{
    struct gl_place_node *nodes = GL_NEW_ARRAY(a, struct gl_place_node, c->others.n + 1);

    nodes[0] = this_node(c, a);
    for (size_t i = 0; i < c->others.n; i++) {
        const struct gl_place_node *n = &c->others.items[i];

        nodes[i + 1] = *n;
        nodes[i + 1].id = gl_str_dup(a, n->id);
        nodes[i + 1].pools = copy_pools(a, n->pools, n->pools_n);
    }
    *ret = (struct gl_core_places){
        .nodes = nodes, .nodes_n = c->others.n + 1, .is_placing = gl_other_nodes_are_placing(c)};
    GL_ASSERT(GL_IMPLIES(ret->is_placing, ret->nodes_n > 1));
}

bool gl_slots_longest_waiting(const struct gl_core *c, struct gl_core_waiting *ret)
{
    const struct gl_wait *first = NULL;

    for (size_t i = 0; i < c->pools_n; i++) {
        for (size_t k = 0; k < GL_WHERE_COUNT; k++) {
            struct gl_heap_item *top = gl_heap_top(&c->pools[i].queues[k]);
            const struct gl_wait *w = top != NULL ? GL_CONTAINER(top, struct gl_wait, place) : NULL;

            if (w != NULL && !w->offered && w->slots > 0 &&
                (first == NULL || gl_slots_before(&w->place, &first->place))) {
                first = w;
            }
        }
    }
    if (first == NULL) {
        return false;
    }
    GL_ASSERT(first->pool < c->pools_n);
    GL_ASSERT(!first->offered);
    GL_ASSERT(first->slots > 0);
    GL_ASSERT(first->state != GL_WAIT_GRANTED);
    GL_ASSERT(GL_IMPLIES(first->step != NULL, first->step->r.status == GL_STEP_QUEUED));
    *ret = (struct gl_core_waiting){.job = {.p = first->key, .n = GL_ULID_BYTES},
                                    .pool = c->pools[first->pool].name};
    if (first->step != NULL) {
        ret->step = first->step->r.step_id;
        ret->since = first->step->r.queued_at;
    }
    return true;
}
