/* safety.h - decides whether a step whose attempt was lost may run again.
 *
 * An attempt is lost if it is not known whether it did its work. Two questions follow. Is it still
 * running somewhere? And does running it twice do harm? The marks `idempotent` and `unsafe` of a
 * step answer the second one:
 *
 *                lost with our executor         its node is dead
 *   idempotent   runs again                     runs again at once, unless it holds a seat
 *   unmarked     runs again                     runs again after the keeper's orphan grace
 *   unsafe       a person decides               a person decides
 *
 * In a bundle with recovery_mode manual_recover a person decides about all of them. A step that has
 * been lost too often in a short time fails. A concurrency seat stays taken for as long as the
 * attempt may still run.
 *
 * Order of calls: gl_safety_lost() or gl_safety_node_died() when an attempt is lost. If the step
 * then waits for the keeper to end the attempt: gl_safety_restart_wait() if another node takes over
 * the job, and gl_safety_on_timer() at the end of the wait. */
#ifndef GL_CORE_RECOVERY_SAFETY_H
#define GL_CORE_RECOVERY_SAFETY_H

#include "core/core_state.h"

/* The attempt is lost, and certainly does not run any more. */
void gl_safety_lost(struct gl_core *c, struct gl_step *st);

/* Does another node's executor have the step's attempt? Then this node cannot ask about it. */
bool gl_safety_is_foreign(const struct gl_core *c, const struct gl_step *st);
/* The attempt's node is dead. Its step runs again: at once if it is idempotent and holds no seat;
 * when that node's keeper has certainly ended the attempt if it is unmarked or holds a seat; when a
 * person says so if it is unsafe. */
void gl_safety_node_died(struct gl_core *c, struct gl_step *st);
/* Must the attempt end when its node loses its session? A node that is cut off cannot know whether
 * others have taken over its jobs, so its keeper ends the attempts that others assume to be dead.
 */
bool gl_safety_needs_session(const struct gl_core *c, const struct gl_step *st);
/* The same for a step of a flow file, of which only the flow is known. */
bool gl_safety_spec_needs_session(const struct gl_core *c, const struct gl_step_spec *spec,
                                  bool has_seat);
/* When the step moves to `next`, does it keep its seat, because its attempt may still run on a
 * machine that cannot be asked? */
bool gl_safety_keeps_seat(const struct gl_core *c, const struct gl_step *st,
                          enum gl_step_status next);
/* Does this step keep its ending job from ending, until its attempt has certainly ended or a person
 * has decided? */
bool gl_safety_delays_end(const struct gl_job *j, const struct gl_step *st);
/* The grace period of the lost attempt is over: the step runs again, or ends. */
void gl_safety_on_timer(struct gl_core *c, struct gl_step *st);
/* For how much longer the lost attempt may still run under its node's keeper, even if a person asks
 * for it to run again. */
gl_ms gl_safety_rest(const struct gl_core *c, const struct gl_step *st);
/* The job's previous owner was waiting for such an attempt to end when it died itself. Its clock
 * was not ours, so the wait starts over. */
void gl_safety_restart_wait(struct gl_core *c, struct gl_step *st);

/* Continuing automatically would be wrong: running attempts may end, nothing else starts, and the
 * job is paused until a person resumes it. `why` is the reason shown to that person. */
void gl_safety_pause(struct gl_core *c, struct gl_job *j, gl_str why);

#endif
