/* mask_claims.h - claims in a recording, without the names in them, but so that the core decides
 * the same.
 *
 * What is decided about a claim depends on times, fences and states, and on whether two keys,
 * owners or nonces are the same. So those become tokens: a keyed hash, the same for the same text
 * in one dump. Texts that decide nothing are hidden. */
#ifndef GL_CLI_MASK_CLAIMS_H
#define GL_CLI_MASK_CLAIMS_H

#include "base/json.h"
#include "cli/mask_data.h"

/* An object that is about claims: an event, a line of a snapshot, or something in them. */
void gl_mask_claims(const uint8_t key[static GL_MASK_KEY_BYTES], const struct gl_json *j,
                    gl_jnode object, struct gl_arena *a, struct gl_jw *w);

#endif
