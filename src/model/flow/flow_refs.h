/* flow_refs.h - the references of a compiled step, and the steps they name.
 *
 *   gl_flow_refs_each()             every reference of one step
 *   gl_flow_refs_link()             `reads`, `has_gate` and `waits` of every step, from its texts
 *   gl_flow_refs_find_unordered()   references to steps that may not have ended before */
#ifndef GL_MODEL_FLOW_FLOW_REFS_H
#define GL_MODEL_FLOW_FLOW_REFS_H

#include "model/flow/flow.h"
#include "model/text/ref.h"

/* GL_E_INVALID: gl_flow_parse() would not produce this text. */
int gl_flow_refs_each(const struct gl_step_spec *s, struct gl_arena *a,
                      void (*each)(void *owner, const struct gl_ref *ref), void *owner,
                      struct gl_why *reterr_why);

/* Requires the table by id. GL_E_INVALID: a bad reference, or one to a step or input that does not
 * exist. */
int gl_flow_refs_link(struct gl_flow *f, struct gl_arena *a, struct gl_why *reterr_why);

/* A step, and one whose output it uses. */
struct gl_flow_read {
    uint32_t reader, read;
    bool is_unordered; /* set: `read` is not an ancestor of `reader` */
};

/* Requires a linked flow without cycles. Linear in steps and edges for every 64 different steps
 * that are read. */
void gl_flow_refs_find_unordered(const struct gl_flow *f, struct gl_arena *a,
                                 struct gl_flow_read *reads, size_t reads_n);

#endif
