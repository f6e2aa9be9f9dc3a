/* rebalance.h - moves waiting jobs from nodes without free slots to nodes that have some.
 *
 * A node never pushes a job to another node. It returns jobs that only wait for a slot to the store
 * (their owner is then empty) if other nodes have reported free slots. A node with free slots takes
 * such jobs exactly as it takes those of a dead node: by scanning the index "wake".
 *
 * Called: gl_rebalance_on_listed() with every listing of the sessions; gl_rebalance_return_jobs()
 * once per step of the core, before slots are granted. */
#ifndef GL_CORE_CLUSTER_REBALANCE_H
#define GL_CORE_CLUSTER_REBALANCE_H

#include "core/core_state.h"

void gl_rebalance_on_listed(struct gl_core *c, const struct gl_event *ev);
/* Return jobs that wait here and could run elsewhere. */
void gl_rebalance_return_jobs(struct gl_core *c);

/* May this job be returned? It must wait for nothing but slots, or a node that has them, and
 * everything about it must be committed. */
bool gl_rebalance_may_give(const struct gl_core *c, const struct gl_job *j);
/* The job's next transaction leaves it without an owner. */
void gl_rebalance_give(struct gl_core *c, struct gl_job *j, gl_str why);

/* How many more jobs may be taken from the store: as many as could start at once. */
size_t gl_rebalance_room(const struct gl_core *c);

#endif
