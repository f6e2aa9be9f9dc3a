/* leader.h - one node of a shared store leads it: see leader.c. c->leader.leads says whether we do;
 * on a store that is not shared we always do. */
#ifndef GL_CORE_CLUSTER_LEADER_H
#define GL_CORE_CLUSTER_LEADER_H

#include "core/core_state.h"

void gl_leader_on_changed(struct gl_core *c);

#endif
