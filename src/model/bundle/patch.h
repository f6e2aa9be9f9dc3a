/* patch.h - changes the graph of a flow while its job runs, within limits and inside declared
 * regions.
 *
 * A patch makes a new flow from the old one. Existing steps keep their numbers (a removed one
 * stays, with `is_removed`), new ones are added at the end. The job's record holds the number of
 * patches; each patch has its own record, and loading a job applies them again in order. */
#ifndef GL_MODEL_BUNDLE_PATCH_H
#define GL_MODEL_BUNDLE_PATCH_H

#include "model/bundle/agent.h"

/* The state of the job, which is not part of the flow. */
struct gl_patch_job {
    void *owner;
    bool (*has_started)(void *owner, uint32_t step); /* or ended */
    bool (*is_ready)(void *owner, uint32_t step);    /* or later: it waits for no other step */
    uint32_t controller; /* the step whose agent sends it, with a running attempt */
    uint64_t revision;   /* of the graph */
    uint32_t patches_n, active_n;
};

struct gl_patch_report {
    gl_str patch_id, region_id;
    bool is_fanout;
    uint32_t added_n;    /* steps, after the old ones */
    gl_str delta;        /* JSON: topology_delta, without `with` */
    struct gl_strs with; /* for each added step: its `with`, JSON; "" : none */
};

/* Apply the whole patch, or nothing; `reterr_why` gives the reason of a refusal. */
int gl_patch_apply(const struct gl_flow *f, const struct gl_patch_job *job, gl_str patch,
                   struct gl_arena *a, struct gl_flow **ret, struct gl_patch_report *ret_report,
                   struct gl_why *reterr_why);

/* model/bundle/manifest.h reads `dynamic` of a manifest. */

#endif
