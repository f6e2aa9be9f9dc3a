/* mask.h - redacts a recording, so that it can be shared.
 *
 * Commands, scripts, environments, inputs, outputs, signal data, questions to people and their
 * names, and all sentences become *** (or 0, false, [], {}). What the core needs to make the same
 * decisions stays: ids, names, attempt numbers, exit codes, times, keys of limits, conditions.
 *
 * Facts, the outputs and inputs that `when`, `foreach` and others have read, are the hard case: see
 * mask_facts.h. gl_mask_kept() lists the steps in which texts had to stay.
 *
 * What agents of bundles send and receive decides much more: see mask_data.h. */
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
