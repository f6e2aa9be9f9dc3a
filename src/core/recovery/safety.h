/* safety.h - an attempt is lost: nobody knows whether it did its work, but it does not run any
 * more. May it run again? */
#ifndef GL_CORE_RECOVERY_SAFETY_H
#define GL_CORE_RECOVERY_SAFETY_H

#include "core/core_state.h"

void gl_safety_lost(struct gl_core *c, struct gl_step *st);

/* Has another node's executor the step's attempt? Nobody can ask it. */
bool gl_safety_is_foreign(const struct gl_core *c, const struct gl_step *st);
/* Its node is dead. What is idempotent and holds no seat runs again at once, what is unmarked or
 * holds a seat when that node's keeper has surely ended it, what is unsafe when a person says so.
 * The seat stays taken for as long. */
void gl_safety_inherit(struct gl_core *c, struct gl_step *st);
/* Must its attempt end when its node has lost its session? A node that is cut off cannot know
 * whether others have taken its jobs over, so its keeper ends what they will rely on being dead. */
bool gl_safety_needs_session(const struct gl_core *c, const struct gl_step *st);
/* Its attempt may still run on a machine that nobody can ask: its seat is not free. */
bool gl_safety_keeps_seat(const struct gl_core *c, const struct gl_step *st,
                          enum gl_step_status next);
/* Such a step keeps its ending job from ending, until it is certain, or a person has decided. */
bool gl_safety_holds_job(const struct gl_job *j, const struct gl_step *st);
/* The grace of the lost attempt is over: it runs again, or ends. */
void gl_safety_on_timer(struct gl_core *c, struct gl_step *st);
/* How long a lost attempt may still run with its node's keeper, whoever wants it run again. */
gl_ms gl_safety_rest(const struct gl_core *c, const struct gl_step *st);
/* The owner that waited for the end of such an attempt is dead, too: its clock was another one, so
 * the wait begins anew. */
void gl_safety_wait_on(struct gl_core *c, struct gl_step *st);

/* To go on by itself would be wrong: what runs may end, nothing else starts, and the job is paused
 * until a person resumes it. `why` says what the matter is. */
void gl_safety_pause(struct gl_core *c, struct gl_job *j, gl_str why);

#endif
