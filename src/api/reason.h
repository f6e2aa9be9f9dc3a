/* reason.h - why is it so? One sentence for every state a job or a step can be in.
 *
 * It names what is waited for: the steps, the pool and who holds it, the limit, the due time, the
 * person. What only a running node knows (queues, who holds what) comes from `live`; without a node
 * the sentence says that there is none. A stable code (reasons.def) goes with it, for programs. */
#ifndef GL_API_REASON_H
#define GL_API_REASON_H

#include "api/view.h"

struct gl_because {
    gl_str text; /* no full stop */
    enum gl_why_code code;
    enum gl_why_code also[6]; /* what the rest of the sentence says */
    size_t also_n;
};

struct gl_reason_live {
    void *owner;
    /* What does this step wait for here? Begins with the verb; "" is fine, and then the code does
     * not matter. `number`: of an instance, behind the flow's steps. */
    enum gl_why_code (*step)(void *owner, gl_str job, uint32_t number, struct gl_buf *out);
    /* Why this step could not be started the last time; "" : it could. May be NULL. */
    gl_str (*refused)(void *owner, gl_str job, gl_str step_id);
    /* When it was last heard of, and by when it must be; false: not known here. May be NULL. */
    bool (*beacon)(void *owner, gl_str job, uint32_t number, gl_ms *ret_beacon_at,
                   gl_ms *ret_heartbeat_at);
    bool (*is_quarantined)(void *owner, gl_str job);
    /* Does this node own the job and hold it in memory? Then the job continues whatever became of
     * its record, which the next transaction writes anew. May be NULL. */
    bool (*owns)(void *owner, gl_str job);
    gl_str (*session)(void *owner); /* of the node; may be NULL */
    /* A flow that is in the node's memory, until it is given back; NULL: it is not. It does not
     * change, so other threads may read it. May be NULL. */
    const struct gl_flow *(*flow)(void *owner, gl_str hash, void **ret_hold);
    void (*flow_done)(void *owner, void *hold);
    /* Why nothing of what it decides is written down; "" : it is. May be NULL. */
    gl_str (*store)(void *owner, struct gl_arena *a);
};

/* `live` NULL: no node is running. */
struct gl_because gl_reason_job(struct gl_arena *a, const struct gl_view *v,
                                const struct gl_reason_live *live);
/* Step `number` of the flow; its instance for `item`, or -1. Begins with the verb, as in
 * "waits for ...". */
struct gl_because gl_reason_step(struct gl_arena *a, const struct gl_view *v, uint32_t number,
                                 int64_t item, const struct gl_reason_live *live);
/* Nobody has it, and nobody who is there may take it over: no node of its stack and env scope. */
bool gl_reason_is_stranded(const struct gl_view *v);
gl_str gl_reason_stranded(struct gl_arena *a, const struct gl_view *v);
/* An agent of a bundle (model/bundle/agent.h) that has nothing to do. */
bool gl_reason_is_idle(const struct gl_view *v, uint32_t number);

#endif
