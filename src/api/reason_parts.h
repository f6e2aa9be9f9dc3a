/* reason_parts.h - what reason.c and reason_nodes.c share.
 *
 * Other code uses api/reason.h. */
#ifndef GL_API_REASON_PARTS_H
#define GL_API_REASON_PARTS_H

#include "api/reason.h"

void gl_reason_add_code(struct gl_because *b, enum gl_why_code code);

bool gl_reason_is_elsewhere(const struct gl_view *v); /* another node owns the job, or none does */

/* Clauses appended to any sentence about a job, with their codes; "": nothing to add. */
gl_str gl_reason_where(struct gl_arena *a, const struct gl_view *v, struct gl_because *b);
gl_str gl_reason_inbox(struct gl_arena *a, const struct gl_view *v, struct gl_because *b);

#endif
