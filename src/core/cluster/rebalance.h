/* rebalance.h - the other nodes of a shared store, as far as this one decides by them.
 *
 * Work goes where room is: a node without a free slot gives jobs that only wait for one back to the
 * store (their owner is then nobody), if others have told that they have room. Who has room takes
 * them, as it takes what a dead node has left: through the index "wake". */
#ifndef GL_CORE_CLUSTER_REBALANCE_H
#define GL_CORE_CLUSTER_REBALANCE_H

#include "core/core_state.h"

void gl_rebalance_on_listed(struct gl_core *c, const struct gl_event *ev);
/* Before slots are given out: what waits here and could run elsewhere is given away. */
void gl_rebalance_out(struct gl_core *c);

/* It only waits for slots, or for a node that has them, and everything about it is in the store. */
bool gl_rebalance_may_give(const struct gl_core *c, const struct gl_job *j);
/* Its owner is nobody from now on. */
void gl_rebalance_give(struct gl_core *c, struct gl_job *j, gl_str why);

/* How many more jobs may be taken from the store: as many as could start at once. */
size_t gl_rebalance_room(const struct gl_core *c);

#endif
