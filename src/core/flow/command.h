/* command.h - commands about a job: pause, resume, cancel, respond, signal, send, redrive.
 *
 * A command loads its job first, if necessary, and is answered once its transaction has committed.
 * One that came through the inbox of a shared store removes its inbox entry in that same
 * transaction, so it is executed once, however often it is found. */
#ifndef GL_CORE_FLOW_COMMAND_H
#define GL_CORE_FLOW_COMMAND_H

#include "core/core_state.h"

/* The event COMMAND. */
void gl_command_on_request(struct gl_core *c, const struct gl_event *ev);

#endif
