/* leader.h - elects one node of a shared store to do the work that only one node should do.
 *
 * c->leader.leads is the result. On a store that is not shared it is always true. Leadership only
 * saves duplicate work: there may be no leader for a while, and for a moment there may be two, so
 * whatever a leader writes must carry its own guards.
 *
 * Called: gl_leader_on_changed(). The election runs by itself, as a component (core/component.h).
 */
#ifndef GL_CORE_CLUSTER_LEADER_H
#define GL_CORE_CLUSTER_LEADER_H

#include "core/core_state.h"

/* The connection to the store has changed: find out again who leads. */
void gl_leader_on_changed(struct gl_core *c);

#endif
