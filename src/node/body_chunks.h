/* body_chunks.h - reads large message bodies from the store, where core/agents/bodies.c put them.
 *
 * Bodies are stored in chunks. gl_body_chunks_to_blob() writes a worker's body straight into a
 * blob, one chunk at a time; gl_body_chunks_read() assembles a body in memory. */
#ifndef GL_NODE_BODY_CHUNKS_H
#define GL_NODE_BODY_CHUNKS_H

#include "model/bundle/message.h"

struct gl_node;

/* GL_E_UNAVAILABLE: retry later. GL_E_DAMAGED: the body does not match its message. */
typedef void gl_body_chunks_done(void *owner, int code, const char *why, gl_str body);

/* Reads a body into the context's blobs, piece by piece (`body` is "" then), or into memory, valid
 * inside `done` only. `done` runs once, never from inside the call, and not at all if the node is
 * freed first. `ref` is borrowed until then. */
void gl_body_chunks_to_blob(struct gl_node *n, gl_str context, gl_str job,
                            const struct gl_body_ref *ref, gl_body_chunks_done *done, void *owner);
void gl_body_chunks_read(struct gl_node *n, gl_str context, gl_str job,
                         const struct gl_body_ref *ref, gl_body_chunks_done *done, void *owner);

#endif
