/* body_chunks.h - large bodies of messages, out of the store (core/agents/bodies.c puts them
 * there). */
#ifndef GL_NODE_BODY_CHUNKS_H
#define GL_NODE_BODY_CHUNKS_H

#include "model/bundle/message.h"

struct gl_node;

/* GL_E_UNAVAILABLE: ask again; GL_E_DAMAGED: it is not what its message says. */
typedef void gl_body_chunks_done(void *owner, int code, const char *why, gl_str body);

/* Where it goes: into the context's blobs, piece by piece, and `body` is "" then; or into memory,
 * for `done` only. `done` runs once, not from inside the call; never if the node is freed before.
 * `ref` is borrowed until then. */
void gl_body_chunks_to_blob(struct gl_node *n, gl_str context, gl_str job,
                            const struct gl_body_ref *ref, gl_body_chunks_done *done, void *owner);
void gl_body_chunks_read(struct gl_node *n, gl_str context, gl_str job,
                         const struct gl_body_ref *ref, gl_body_chunks_done *done, void *owner);

#endif
