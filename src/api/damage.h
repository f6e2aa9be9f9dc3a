/* damage.h - what is said about a job with a damaged record: which record it is, and what can be
 * done.
 *
 * A node that reads such a record pauses the job. From then on the job accepts no command except
 * cancel, until the record is repaired and a person resumes it; so no other command may be
 * suggested. */
#ifndef GL_API_DAMAGE_H
#define GL_API_DAMAGE_H

#include "api/view.h"

/* Is this a step with a damaged record, as gl_view_read() presents it? */
bool gl_damage_is_step(const struct gl_step_record *r);

/* Does the job have a damaged record, and does that still matter? Not if the job has ended or is
 * ending. */
bool gl_damage_matters(const struct gl_view *v);

/* The predicate for a step whose record is damaged. */
gl_str gl_damage_step(struct gl_arena *a, const struct gl_view *v, const struct gl_step_record *r);
/* The predicate for another step of that job, which waits for a decision. */
gl_str gl_damage_answer(struct gl_arena *a, const struct gl_view *v);
/* The sentence about the job, if the damage matters. */
gl_str gl_damage_job(struct gl_arena *a, const struct gl_view *v);

#endif
