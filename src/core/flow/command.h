/* command.h - what people ask of a job: pause, resume, cancel, and their decisions about steps that
 * wait for one. */
#ifndef GL_CORE_FLOW_COMMAND_H
#define GL_CORE_FLOW_COMMAND_H

#include "core/core_state.h"

void gl_command_on_request(struct gl_core *c, const struct gl_event *ev);

#endif
