/* mask_claims.h - redacts the names in claims of a recording, so that the core still decides the
 * same.
 *
 * Decisions about a claim depend on times, fences and states, and on whether two keys, owners or
 * nonces are equal. So keys, owners and nonces become tokens: a keyed hash, the same for the same
 * text in one dump. Other texts are hidden. */
#ifndef GL_CLI_MASK_CLAIMS_H
#define GL_CLI_MASK_CLAIMS_H

#include "base/json.h"
#include "cli/mask_data.h"

/* Redact an object about claims: an event, a line of a snapshot, or a part of one. */
void gl_mask_claims(const uint8_t key[static GL_MASK_KEY_BYTES], const struct gl_json *j,
                    gl_jnode object, struct gl_arena *a, struct gl_jw *w);

#endif
