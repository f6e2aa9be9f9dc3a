/* session.h - who we are: the session by which this node owns jobs, and the part of a shared store
 * it looks after. */
#ifndef GL_CORE_CLUSTER_SESSION_H
#define GL_CORE_CLUSTER_SESSION_H

#include "core/core_state.h"

void gl_session_init(struct gl_core *c, const struct gl_core_config *config);
void gl_session_on_open(struct gl_core *c, const struct gl_event *ev);

/* May this job be looked after by us at all? */
bool gl_session_in_scope(const struct gl_core *c, gl_str stack, gl_str env_scope);

#endif
