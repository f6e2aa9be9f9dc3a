/* patch_parts.h - a flow while a patch changes it. Shared by the files that implement
 * model/bundle/patch.h. */
#ifndef GL_MODEL_BUNDLE_PATCH_PARTS_H
#define GL_MODEL_BUNDLE_PATCH_PARTS_H

#include "base/map.h"
#include "model/bundle/patch.h"

enum {
    GL_PATCH_PATCHES = 64, /* of one job, unless the manifest says otherwise */
    GL_PATCH_PATCHES_FANOUT = 10000,
    GL_PATCH_ACTIVE = 128,
    GL_PATCH_OPERATIONS = 64,
    GL_PATCH_WITH_BYTES_MAX = 32 << 10,
};

struct gl_patch {
    const struct gl_patch_job *job;
    struct gl_arena *a;
    struct gl_why *why;
    struct gl_json j;
    gl_str id;
    const struct gl_region *region;
    uint32_t controller, exit; /* exit: UINT32_MAX if none */

    struct gl_flow *f;    /* the new one */
    uint32_t old_n, room; /* steps: number in the old flow, and the maximum */
    uint32_t operations_n;
    bool *is_owned;             /* by step: whether its needs are a copy with room for more */
    struct gl_map steps, edges; /* by id: number of the step, or of the step it leads to, + 1 */
    gl_str *with;               /* of added steps */
    uint32_t removed_n;
};

static inline struct gl_step_spec *gl_patch_step(struct gl_patch *p, uint32_t number)
{
    return &((struct gl_step_spec *)p->f->steps.items)[number];
}

/* A step that a patch added to this region and that still exists. */
bool gl_patch_is_instance(struct gl_patch *p, uint32_t number);

/* The operations, each checked before it changes anything. `at`: the path of the operation, for
 * errors. */
int gl_patch_add_step(struct gl_patch *p, gl_jnode op, const char *at);
int gl_patch_remove_step(struct gl_patch *p, gl_jnode op, const char *at);
int gl_patch_add_edge(struct gl_patch *p, gl_jnode op, const char *at);
int gl_patch_remove_edge(struct gl_patch *p, gl_jnode op, const char *at);

/* After all operations: link the flow, and check that it can be finished. */
int gl_patch_finish(struct gl_patch *p);

#endif
