/* session.h - who we are: from its session on a node may own jobs. */
#ifndef GL_CORE_CLUSTER_SESSION_H
#define GL_CORE_CLUSTER_SESSION_H

#include "core/core_state.h"

void gl_session_on_open(struct gl_core *c, const struct gl_event *ev);

#endif
