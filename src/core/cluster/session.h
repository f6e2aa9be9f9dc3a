/* session.h - this node's identity: the session by which it owns jobs, and the scope (stack and env
 * scope) of the jobs it looks after on a shared store.
 *
 * Called: gl_session_init() before anything else of the core; gl_session_on_open() once, when the
 * node has opened its session. A node that loses its session ends; it never gets a second one. */
#ifndef GL_CORE_CLUSTER_SESSION_H
#define GL_CORE_CLUSTER_SESSION_H

#include "core/core_state.h"

void gl_session_init(struct gl_core *c, const struct gl_core_config *config);
void gl_session_on_open(struct gl_core *c, const struct gl_event *ev);

/* Does this node look after jobs of this stack and env scope? */
bool gl_session_in_scope(const struct gl_core *c, gl_str stack, gl_str env_scope);

#endif
