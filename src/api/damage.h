/* damage.h - what is said of a job of which a record cannot be used: which one that is, and what
 * can be done about it.
 *
 * Such a job is held as soon as a node has read it. Then it takes no command but a cancel, until
 * the record is mended and a person resumes it: nothing else may be offered. */
#ifndef GL_API_DAMAGE_H
#define GL_API_DAMAGE_H

#include "api/view.h"

/* A step whose record is damaged, as gl_view_read() shows it. */
bool gl_damage_is_step(const struct gl_step_record *r);

/* Is a record of the job damaged, and does that still matter? Not if it has ended, or is about to.
 */
bool gl_damage_matters(const struct gl_view *v);

/* The predicate of a step whose record is damaged. */
gl_str gl_damage_step(struct gl_arena *a, const struct gl_view *v, const struct gl_step_record *r);
/* That of another one, which waits for somebody's word. */
gl_str gl_damage_answer(struct gl_arena *a, const struct gl_view *v);
/* The sentence about the job, if that matters. */
gl_str gl_damage_job(struct gl_arena *a, const struct gl_view *v);

#endif
