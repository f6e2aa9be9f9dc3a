/* live.c - answers, from the memory of this node, the questions of api/reason.h: why is a job or
 * step in its state? */
#include "node/node_state.h"
#include "node/refusals.h"

static enum gl_why_code explain_step(void *owner, gl_str job, uint32_t number, struct gl_buf *out)
{
    struct gl_node *n = owner;

    return gl_core_explain(n->core, job, number, out); /* an empty answer is fine */
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

static bool beacon(void *owner, gl_str job, uint32_t number, gl_ms *ret_beacon_at,
                   gl_ms *ret_heartbeat_at)
{
    struct gl_node *n = owner;

    return gl_core_heard(n->core, job, number, ret_beacon_at, ret_heartbeat_at);
}

static void places(void *owner, struct gl_arena *a, struct gl_core_places *ret)
{
    const struct gl_node *n = owner;

    gl_core_places(n->core, a, ret);
}

static gl_str session_of(void *owner)
{
    struct gl_node *n = owner;

    return n->session;
}

static gl_str store_of(void *owner, struct gl_arena *a)
{
    return gl_metrics_store_read_only(owner, a);
}

static const struct gl_flow *ref_flow(void *owner, gl_str hash, void **ret_ref)
{
    struct gl_node *n = owner;
    struct gl_spec *spec = NULL;
    const struct gl_flow *flow = gl_core_ref_flow(n->core, hash, &spec);

    *ret_ref = spec;
    return flow;
}

static void unref_flow(void *owner, void *ref)
{
    (void)owner;
    gl_spec_unref(ref);
}

static void init(struct gl_node *n)
{
    struct gl_reason_live *live = n->parts[GL_PART_LIVE];

    *live = (struct gl_reason_live){.owner = n,
                                    .step = explain_step,
                                    .beacon = beacon,
                                    .refused = refused,
                                    .owns = owns,
                                    .is_quarantined = is_quarantined,
                                    .places = places,
                                    .session = session_of,
                                    .store = store_of,
                                    .flow = ref_flow,
                                    .flow_done = unref_flow};
    n->queries.live = live;
}

const struct gl_node_part gl_live_part = {.bytes = sizeof(struct gl_reason_live), .init = init};
