/* node_pools.h - which pools the nodes of a shared store offer, and where a job may run.
 *
 * A set of pools is text, "default:4,gpu:1": each pool with its slots. A job's needs have the same
 * form: every pool that a step of its flow names, with the largest number of slots that one step
 * wants. They are part of the job's record (`pools`), so a node that scans the index "wake" can
 * decide without loading the job.
 *
 * Rules:
 *   - A node takes a job if it offers everything the job needs, or if no other live node does.
 *   - A step whose pool this node does not have waits: its status is queued, but it is in no queue,
 *     and its job *lacks* a pool. On a shared store that is not an error, because a node with that
 *     pool may join.
 *   - A node returns a job that lacks a pool to the store once none of its attempts runs here and
 *     another live node offers the pool. In case no single node offers everything, `pools_next` in
 *     the record then names what the job needs first; the next owner clears it. Every such move
 *     lets a step run that could not run before, so a job does not bounce between nodes.
 *   - While no node offers the pool, the job stays where it is.
 *
 * Called: gl_node_pools_on_listed() with every listing of the sessions; gl_node_pools_lack() when a
 * step cannot be queued here; gl_node_pools_move() once per step of the core. */
#ifndef GL_CORE_CLUSTER_NODE_POOLS_H
#define GL_CORE_CLUSTER_NODE_POOLS_H

#include "core/core_state.h"

void gl_node_pools_on_listed(struct gl_core *c, const struct gl_event *ev);

/* What the steps of this flow need altogether, in the arena. */
gl_str gl_node_pools_needs(struct gl_arena *a, const struct gl_flow *flow);
/* Does this node offer all of it? */
bool gl_node_pools_here(const struct gl_core *c, gl_str needs);
/* Does a single other live node offer all of it? */
bool gl_node_pools_elsewhere(const struct gl_core *c, gl_str needs);
/* May this node take over a job with these needs? Not meant for a job it owns already. */
bool gl_node_pools_may_take(const struct gl_core *c, gl_str needs);
/* May a job with this flow be created here? If not, `why` says the reason. */
int gl_node_pools_may_submit(const struct gl_core *c, const struct gl_flow *flow,
                             struct gl_why *why);

/* The queued step cannot get slots on this node; on a shared store it waits for a node that has
 * them. */
void gl_node_pools_lack(struct gl_core *c, struct gl_step *st);
/* Return the jobs that lack a pool which another node offers. */
void gl_node_pools_move(struct gl_core *c);
/* When gl_node_pools_move() has something to do next. */
gl_ms gl_node_pools_next_due(const struct gl_core *c);

#endif
