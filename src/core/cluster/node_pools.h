/* node_pools.h - which pools the nodes of a shared store offer, and which job may run where.
 *
 * A set of pools is text: "default:4,gpu:1", each with its slots. What a job needs is the same:
 * every pool that a step of its flow names, with the most slots that one step wants. It is part of
 * the job's record (`pools`), so a node that looks through the index "wake" can decide without
 * loading the job.
 *
 * The rules:
 *   - A node takes a job if it offers all that the job needs, or if no other live node does.
 *   - A step whose pool is not here waits, queued but in no queue: its job *lacks* a pool. Nothing
 *     fails for that on a shared store, because a node that offers the pool may join.
 *   - A node whose job lacks a pool gives the job up once nothing of it runs here and another live
 *     node offers that pool. `pools_next` in the record then names what the job needs first, in
 *     case no single node offers everything; the next owner clears it. Every such move lets a step
 *     run that could not run before, so a job does not go round and round.
 *   - While nobody offers the pool the job stays where it is.
 *
 * Called: gl_node_pools_on_listed() with every listing of the sessions; gl_node_pools_lack() when a
 * step cannot be queued here; gl_node_pools_move() once per step of the core. */
#ifndef GL_CORE_CLUSTER_NODE_POOLS_H
#define GL_CORE_CLUSTER_NODE_POOLS_H

#include "core/core_state.h"

void gl_node_pools_on_listed(struct gl_core *c, const struct gl_event *ev);

/* What all steps of this flow need, in the arena. */
gl_str gl_node_pools_needs(struct gl_arena *a, const struct gl_flow *flow);
bool gl_node_pools_here(const struct gl_core *c, gl_str needs);
/* One other live node offers all of it. */
bool gl_node_pools_elsewhere(const struct gl_core *c, gl_str needs);
/* Is a job that needs this ours to take? Never of a job we own already. */
bool gl_node_pools_may_take(const struct gl_core *c, gl_str needs);
/* May a job with this flow be created here? Else the reason goes into `why`. */
int gl_node_pools_may_submit(const struct gl_core *c, const struct gl_flow *flow,
                             struct gl_why *why);

/* The queued step cannot have its slots here; on a shared store it waits for a node that has them.
 */
void gl_node_pools_lack(struct gl_core *c, struct gl_step *st);
/* Give up jobs that lack a pool which another node offers. */
void gl_node_pools_move(struct gl_core *c);
/* When that must be looked at again. */
gl_ms gl_node_pools_next_due(const struct gl_core *c);

#endif
