/* refusals.h - remembers why steps could not be started.
 *
 * For example, the disk is full or a file could not be put in place. Such starts are retried
 * (core/recovery/attempts.c); meanwhile the log and `why` report the cause. Only the most recent
 * failures are remembered, and only for a while.
 *
 * Order of calls: gl_refusals_note() after every start, then gl_refusals_find(). */
#ifndef GL_NODE_REFUSALS_H
#define GL_NODE_REFUSALS_H

#include "base/str.h"

struct gl_node;

/* This step could not be started; `why` "": it could. */
void gl_refusals_note(struct gl_node *n, gl_str job, gl_str step, gl_str why);

/* Why the last start failed; "": it did not, or that is too long ago. */
gl_str gl_refusals_find(const struct gl_node *n, gl_str job, gl_str step);

#endif
