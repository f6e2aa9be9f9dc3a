/* mask.h - a recording without the values in it, so that it can be shown to somebody.
 *
 * Commands, scripts, environments, inputs, outputs, data of signals, questions to people and their
 * names, and all sentences become *** (of other types: 0, false, [], {}). What the recording needs
 * to be decided the same stays: ids, names, numbers of attempts, exit codes, times, keys of limits,
 * conditions.
 *
 * Facts are the one hard case: what `when`, `foreach` and others have read of outputs and inputs.
 * See mask_facts.h. Where texts had to stay as they are, gl_mask_kept() tells in which steps.
 *
 * What agents of bundles say and are sent decides much more: see mask_data.h. */
#ifndef GL_CLI_MASK_H
#define GL_CLI_MASK_H

#include <stdint.h>

#include "base/err.h"
#include "base/map.h"
#include "base/str.h"

struct gl_mask;

/* `key`: random, of this dump. */
struct gl_mask *gl_mask_new(const uint8_t key[static 32]);
void gl_mask_free(struct gl_mask *m);

/* One line of a recording, without its newline; appended with one. GL_E_DAMAGED: it is none. */
int gl_mask_line(struct gl_mask *m, gl_str line, struct gl_buf *out, struct gl_why *reterr_why);

/* "flow/step", by number; false: there are no more whose facts were left as they are. */
bool gl_mask_kept(const struct gl_mask *m, size_t number, gl_str *ret);

#endif
