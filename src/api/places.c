/* places.c - judges each node, with the same function that chooses the node of an attempt. */
#include "api/places.h"

#include "base/check.h"
#include "base/limits.h"
#include "core/scheduling/placement.h"
#include "model/bundle/agent.h"

static bool waits_for_slots(enum gl_why_code code)
{
    return code == GL_BECAUSE_WAITS_FOR_SLOTS || code == GL_BECAUSE_WAITS_FOR_SLOTS_ELSEWHERE ||
           code == GL_BECAUSE_WAITS_FOR_NODE || code == GL_BECAUSE_POOL_ON_OTHER_NODES ||
           code == GL_BECAUSE_POOL_NOT_OFFERED || code == GL_BECAUSE_POOL_ELSEWHERE ||
           code == GL_BECAUSE_POOL_MOVES || code == GL_BECAUSE_EXECUTOR_DOWN ||
           code == GL_BECAUSE_NODE_STARTS_NOTHING;
}

/* The owner, if it can still run steps of the job. */
static gl_str owner_of(const struct gl_view *v)
{
    return v->owner != NULL && v->owner->session.n > 0 && v->owner->status != GL_NODE_DEAD
               ? v->owner->node
               : (gl_str){0};
}

/* Steps of agents and bundles, and those with a `cwd` or `secrets`, stay on the owner's node. */
static enum gl_place_result judge(const struct gl_view *v, const struct gl_places *p,
                                  const struct gl_place_node *node, uint32_t number)
{
    const struct gl_step_spec *spec = gl_flow_step(v->flow, number);
    struct gl_place_request request = {
        .pool = spec->pool, .slots = spec->slots, .labels = &spec->node_labels};
    bool is_owner = gl_str_eq(node->id, p->owner);

    if (!is_owner && p->owner.n > 0 &&
        (gl_flow_is_unit(v->flow, number) || !gl_core_may_run_elsewhere(spec))) {
        return GL_PLACE_STEP_STAYS;
    }
    if (!is_owner && p->owner.n > 0 && !p->at.is_placing && node->takes) {
        return GL_PLACE_NOT_OFFERED;
    }
    return gl_place_judge(node, &request);
}

static bool has_queued(const struct gl_view *v)
{
    for (size_t i = 0; i < v->picks_n; i++) {
        struct gl_view_pick p = v->picks[i];
        const struct gl_step_record *r =
            p.item < 0 ? v->steps[p.number] : v->items[p.number].records[p.item];

        if (r != NULL && r->status == GL_STEP_QUEUED) {
            return true;
        }
    }
    for (uint32_t i = 0; i < gl_flow_agents_n(v->flow) && i < GL_PAGE_MAX; i++) {
        if (v->steps[i] != NULL && v->steps[i]->status == GL_STEP_QUEUED) {
            return true;
        }
    }
    return false;
}

void gl_places_begin(struct gl_places *p, struct gl_arena *a, struct gl_view *v,
                     const struct gl_reason_live *live)
{
    *p = (struct gl_places){.left = GL_PLACES_STEPS_MAX};
    v->places = has_queued(v) ? p : NULL;
    if (v->places != NULL && v->owner->is_own && live != NULL && live->places != NULL) {
        live->places(live->owner, a, &p->at);
        p->is_read = true;
    }
}

void gl_places_write(struct gl_arena *a, const struct gl_view *v, uint32_t number,
                     enum gl_why_code code, struct gl_jw *w)
{
    struct gl_places *p = v->places;

    if (p == NULL || p->left == 0 || v->nodes == NULL || !waits_for_slots(code)) {
        return;
    }
    GL_ASSERT(number < v->flow->steps.n);
    p->left--;
    p->owner = owner_of(v);
    if (!p->is_read) {
        gl_nodes_read_places(a, v->nodes, &v->job, p->owner, &p->at);
        p->is_read = true;
    }
    gl_jw_put_array(w, "nodes");
    for (size_t i = 0; i < p->at.nodes_n && i < GL_PLACES_NODES_MAX; i++) {
        enum gl_place_result result = judge(v, p, &p->at.nodes[i], number);

        gl_jw_object(w);
        gl_jw_put_str(w, "node", p->at.nodes[i].id);
        gl_jw_put_c(w, "result", gl_place_word(result));
        gl_jw_put_c(w, "why", gl_place_doc(result));
        gl_jw_end(w);
    }
    gl_jw_end(w);
}
