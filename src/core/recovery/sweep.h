/* sweep.h - makes sure that no job is forgotten: fires the timers of jobs in memory, and scans the
 * index "wake" for all others.
 *
 * The first sweep after the start reads the whole index: first the jobs with running attempts, then
 * those that wait for slots, then those with a timer. After that:
 *   - the head of the index is read whenever the earliest known timer is due;
 *   - every ten seconds one part of it is read in turn, in case something was missed, since a node
 *     that was declared dead may have committed something later than we thought;
 *   - on a shared store, the parts named in c->sweep.orphan_parts are read soon after a node has
 *     died or returned jobs (an orphan scan).
 *
 * Called: gl_sweep_begin() once, with the session; gl_sweep_on_tick(), gl_sweep_on_found() and, at
 * the end of every step of the core, gl_sweep_continue(). */
#ifndef GL_CORE_RECOVERY_SWEEP_H
#define GL_CORE_RECOVERY_SWEEP_H

#include "core/core_state.h"

void gl_sweep_begin(struct gl_core *c);
void gl_sweep_on_tick(struct gl_core *c);
void gl_sweep_on_found(struct gl_core *c, const struct gl_event *ev);
/* Ask for the next page if there is room for more jobs. */
void gl_sweep_continue(struct gl_core *c);

/* The job's place in the index: see model/job.h. */
int64_t gl_sweep_wake_of(const struct gl_job *j);
/* Set the job's timer to the earliest of its steps'. */
void gl_sweep_set_due(struct gl_core *c, struct gl_job *j);
/* Load the job at this time. */
void gl_sweep_set_load_due(struct gl_core *c, struct gl_job *j, gl_ms due);

#endif
