/* sweep.h - no job is forgotten: timers of jobs in memory, and the index "wake" for all others.
 *
 * After the start the index is read from its beginning: first the jobs with running attempts, then
 * those that wait for slots, then those that are due. Later only its head is read, when the
 * earliest known timer comes, and every ten seconds a part of it in turn, in case something was
 * missed: somebody who was thought dead may have written. */
#ifndef GL_CORE_RECOVERY_SWEEP_H
#define GL_CORE_RECOVERY_SWEEP_H

#include "core/core_state.h"

void gl_sweep_begin(struct gl_core *c);
void gl_sweep_on_tick(struct gl_core *c);
void gl_sweep_on_found(struct gl_core *c, const struct gl_event *ev);
/* Ask for the next page if there is room for more jobs. */
void gl_sweep_continue(struct gl_core *c);

/* Where the job belongs in the index. */
int64_t gl_sweep_wake_of(const struct gl_job *j);
/* The job's timer follows the earliest of its steps'. */
void gl_sweep_set_due(struct gl_core *c, struct gl_job *j);
void gl_sweep_set_load_due(struct gl_core *c, struct gl_job *j, gl_ms due);

#endif
