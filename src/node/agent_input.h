/* agent_input.h - reads what an agent needs to handle a message.
 *
 *    gl_agent_input_resolve()  executes RESOLVE of a unit: the facts for an agent that the core
 *                              runs itself
 *    gl_agent_input_read()     the message of a worker or module that is about to start
 *    gl_agent_input_message()  that message, as this attempt receives it */
#ifndef GL_NODE_AGENT_INPUT_H
#define GL_NODE_AGENT_INPUT_H

#include "core/effect.h"

struct gl_node;

/* The effect RESOLVE of a unit. */
void gl_agent_input_resolve(struct gl_node *n, const struct gl_effect *e);
/* Reads the text of message `number`, and its body if that is stored apart (body_chunks.h). With
 * `to_blob`, a body that workers read as it is becomes a blob, and `body` is "". `done` runs once,
 * never from inside the call, and not at all if the node is freed first. GL_E_UNAVAILABLE: retry
 * later. */
typedef void gl_agent_input_done(void *owner, int code, const char *why, gl_str message,
                                 gl_str body);

void gl_agent_input_read(struct gl_node *n, gl_str context, gl_str job, uint64_t number,
                         bool to_blob, gl_agent_input_done *done, void *owner);
struct gl_turn *gl_agent_input_copy(struct gl_arena *a, const struct gl_turn *t);
/* The message as this attempt receives it; "": it cannot be read. */
gl_str gl_agent_input_message(const struct gl_turn *t, gl_str text, struct gl_arena *a,
                              struct gl_why *reterr_why);

#endif
