/* reason_parts.h - what the files that explain states share (reason.h). */
#ifndef GL_API_REASON_PARTS_H
#define GL_API_REASON_PARTS_H

#include "api/reason.h"

void gl_reason_add_code(struct gl_because *b, enum gl_why_code code);

bool gl_reason_is_elsewhere(const struct gl_view *v); /* another node has the job, or none */

/* What comes after any sentence about a job, with its code; "" : nothing. */
gl_str gl_reason_where(struct gl_arena *a, const struct gl_view *v, struct gl_because *b);
gl_str gl_reason_inbox(struct gl_arena *a, const struct gl_view *v, struct gl_because *b);

#endif
