/* reason.h - explains the state of a job or step in one sentence, with a stable code for programs
 * (reasons.def).
 *
 * The sentence names what is waited for: steps, a pool and the holders of its slots, a limit, a due
 * time, a person. What only a running node knows (queues, holders of slots) comes from `live`;
 * without a node the sentence says that none is running.
 *
 * Order of calls: read the job into a view (view.h, scan.h), then gl_reason_job() for the job or
 * gl_reason_step() for one step. */
#ifndef GL_API_REASON_H
#define GL_API_REASON_H

#include "api/view.h"

struct gl_core_places;

struct gl_because {
    gl_str text; /* without a full stop */
    enum gl_why_code code;
    enum gl_why_code also[6]; /* codes for the rest of the sentence */
    size_t also_n;
};

struct gl_reason_live {
    void *owner;
    /* Writes what this step waits for on this node, beginning with a verb. If nothing is written,
     * the code is meaningless. `number`: of the step or, after the flow's steps, of an instance. */
    enum gl_why_code (*step)(void *owner, gl_str job, uint32_t number, struct gl_buf *out);
    /* Why this step could not be started the last time; "": it could. May be NULL. */
    gl_str (*refused)(void *owner, gl_str job, gl_str step_id);
    /* When the attempt last gave a sign of life, and when the next one is due; false: not known
     * here. May be NULL. */
    bool (*beacon)(void *owner, gl_str job, uint32_t number, gl_ms *ret_beacon_at,
                   gl_ms *ret_heartbeat_at);
    bool (*is_quarantined)(void *owner, gl_str job);
    /* Does this node own the job and have it in memory? Then a damaged job record does no harm: the
     * next transaction writes it again. May be NULL. */
    bool (*owns)(void *owner, gl_str job);
    /* The nodes on which steps of this node's jobs may run, copied into `a`. May be NULL. */
    void (*places)(void *owner, struct gl_arena *a, struct gl_core_places *ret);
    gl_str (*session)(void *owner); /* the node's session; may be NULL */
    /* A flow in the node's memory, valid until flow_done(); NULL: not in memory. It is immutable,
     * so other threads may read it. May be NULL. */
    const struct gl_flow *(*flow)(void *owner, gl_str hash, void **ret_ref);
    void (*flow_done)(void *owner, void *ref);
    /* Why the store accepts no commits; "": it does. May be NULL. */
    gl_str (*store)(void *owner, struct gl_arena *a);
};

/* `live` NULL: no node is running. */
struct gl_because gl_reason_job(struct gl_arena *a, const struct gl_view *v,
                                const struct gl_reason_live *live);
/* Step `number` of the flow, or its instance `item` (-1: the step itself). Begins with a verb, as
 * in "waits for ...". */
struct gl_because gl_reason_step(struct gl_arena *a, const struct gl_view *v, uint32_t number,
                                 int64_t item, const struct gl_reason_live *live);
/* Is the job without an owner, and without a running node of its stack and env scope that could
 * take it over? */
bool gl_reason_is_stranded(const struct gl_view *v);
gl_str gl_reason_stranded(struct gl_arena *a, const struct gl_view *v);
/* Is this an agent of a bundle (model/bundle/agent.h) with nothing to do? */
bool gl_reason_is_idle(const struct gl_view *v, uint32_t number);

#endif
