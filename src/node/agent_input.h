/* agent_input.h - what agents need when they handle a message. */
#ifndef GL_NODE_AGENT_INPUT_H
#define GL_NODE_AGENT_INPUT_H

#include "core/effect.h"

struct gl_node;

/* RESOLVE of a unit. */
void gl_agent_input_resolve(struct gl_node *n, const struct gl_effect *e);
/* The text of a message, and its body if that is a large one (body_chunks.h): with `to_blob` and if
 * workers read it as it is, it is a blob now and `body` is "". `done` runs once, not from inside
 * the call; never if the node is freed before. GL_E_UNAVAILABLE: ask again. */
typedef void gl_agent_input_done(void *owner, int code, const char *why, gl_str message,
                                 gl_str body);

void gl_agent_input_read(struct gl_node *n, gl_str context, gl_str job, uint64_t letter,
                         bool to_blob, gl_agent_input_done *done, void *owner);
struct gl_turn *gl_agent_input_copy(struct gl_arena *a, const struct gl_turn *t);
/* The message as this attempt is given it; "" : it cannot be read. */
gl_str gl_agent_input_message(const struct gl_turn *t, gl_str text, struct gl_arena *a,
                              struct gl_why *reterr_why);

#endif
