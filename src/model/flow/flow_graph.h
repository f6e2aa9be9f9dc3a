/* flow_graph.h - the dependency graph of a flow. Used while a flow is parsed or decoded.
 *
 *   gl_flow_graph_index()   the table by id; of two steps with the same id it has the first
 *   gl_flow_graph_link()    children and roots, from the `needs` of every step
 *   gl_flow_graph_cycle()   a cycle of steps, if there is one
 *
 * All are linear in steps and edges, and none is recursive: a chain of 200,000 steps is fine. */
#ifndef GL_MODEL_FLOW_FLOW_GRAPH_H
#define GL_MODEL_FLOW_FLOW_GRAPH_H

#include "model/flow/flow.h"

void gl_flow_graph_index(struct gl_flow *f, struct gl_arena *a);
void gl_flow_graph_link(struct gl_flow *f, struct gl_arena *a);

/* A cycle as the numbers of its steps; each needs the one before it, and the first needs the
 * last. False if there is none. Requires a linked flow. */
bool gl_flow_graph_cycle(const struct gl_flow *f, struct gl_arena *a, uint32_t **ret,
                         uint32_t *ret_n);

static inline struct gl_step_spec *gl_flow_graph_step(struct gl_flow *f, size_t number)
{
    return &((struct gl_step_spec *)f->steps.items)[number];
}

#endif
