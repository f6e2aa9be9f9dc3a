/* mask.h - redacts a recording, so that it can be shared.
 *
 * Commands, scripts, environments, inputs, outputs, signal data, questions to people and their
 * names, and all sentences become *** (or 0, false, [], {}). What the core needs to make the same
 * decisions stays: ids, names, attempt numbers, exit codes, times, keys of limits, conditions.
 *
 * Facts, the outputs and inputs that `when`, `foreach` and others have read, are the hard case: see
 * mask_facts.h. gl_mask_kept() lists the steps in which texts had to stay.
 *
 * Much more depends on the data that agents of bundles send and receive: see mask_data.h. */
#ifndef GL_CLI_MASK_H
#define GL_CLI_MASK_H

#include <stdint.h>

#include "base/err.h"
#include "base/map.h"
#include "base/str.h"

struct gl_mask;

/* `key`: random, used for this dump only. */
struct gl_mask *gl_mask_new(const uint8_t key[static 32]);
void gl_mask_free(struct gl_mask *m);

/* Redact one line of a recording, without its newline, and append it with one. GL_E_DAMAGED: not a
 * line of a recording. */
int gl_mask_line(struct gl_mask *m, gl_str line, struct gl_buf *out, struct gl_why *reterr_why);

/* Entry `number` of the steps whose facts were kept, "flow/step"; false: there are no more. */
bool gl_mask_kept(const struct gl_mask *m, size_t number, gl_str *ret);

#endif
