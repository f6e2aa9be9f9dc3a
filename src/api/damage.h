/* damage.h - the sentences about a job with a damaged record: which record it is and how to
 * recover.
 *
 * A node that reads such a record pauses the job. The job then accepts no command except cancel
 * until the record is repaired and a person resumes it, so a sentence must not suggest any other
 * command.
 *
 * Order of calls: gl_damage_is_step() and gl_damage_matters() decide which sentence applies, the
 * other functions write it. */
#ifndef GL_API_DAMAGE_H
#define GL_API_DAMAGE_H

#include "api/view.h"

/* Is this a step with a damaged record, as gl_view_read() presents it? */
bool gl_damage_is_step(const struct gl_step_record *r);

/* Does the job have a damaged record, and does that still matter? Not if the job has ended or is
 * ending. */
bool gl_damage_matters(const struct gl_view *v);

/* The predicate (see reason.h) for a step whose record is damaged. */
gl_str gl_damage_step(struct gl_arena *a, const struct gl_view *v, const struct gl_step_record *r);
/* The predicate for another step of that job, which waits for a decision. */
gl_str gl_damage_answer(struct gl_arena *a, const struct gl_view *v);
/* The sentence about the job, if the damage matters. */
gl_str gl_damage_job(struct gl_arena *a, const struct gl_view *v);

#endif
