/* refusals.h - starts that could not be made: no space on a disk, a file that cannot be put in its
 * place. They are tried again (core/recovery/attempts.c); meanwhile the log and `why` say what is
 * in the way. The latest few are remembered. */
#ifndef GL_NODE_REFUSALS_H
#define GL_NODE_REFUSALS_H

#include "base/str.h"

struct gl_node;

/* This step could not be started; `why` "" : it could. */
void gl_refusals_note(struct gl_node *n, gl_str job, gl_str step, gl_str why);

/* Why it could not be the last time; "" : it could, or it is too long ago. */
gl_str gl_refusals_find(const struct gl_node *n, gl_str job, gl_str step);

#endif
