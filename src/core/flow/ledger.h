/* ledger.h - the job's table of steps: what is ready, what runs, what has become impossible, when
 * is it over?
 *
 * gl_ledger_reconcile() compares what should be with what is, and is idempotent: run twice, the
 * second time changes nothing. Its cost follows what has changed, not the size of the job: ended
 * steps tell their children through counters, and at most GL_SPREAD_MAX steps are touched per
 * transaction; what remains goes into the next. */
#ifndef GL_CORE_FLOW_LEDGER_H
#define GL_CORE_FLOW_LEDGER_H

#include "core/core_state.h"

/* The only writer of a step's status. */
void gl_ledger_move(struct gl_core *c, struct gl_step *st, enum gl_step_status next);
/* The only writer of a job's status. */
void gl_ledger_move_job(struct gl_core *c, struct gl_job *j, enum gl_job_status next);

/* Reconcile every touched job, give out slots, and flush. The end of each step of the core. */
void gl_ledger_reconcile_all(struct gl_core *c);
void gl_ledger_reconcile(struct gl_core *c, struct gl_job *j);

/* The step has its slots: decide its next attempt. */
void gl_ledger_start(struct gl_core *c, struct gl_step *st);
/* Emit the START of its current attempt (again, if it is known never to have started). */
void gl_ledger_emit_start(struct gl_core *c, struct gl_step *st);

/* The current attempt is over, and its slots are free. */
void gl_ledger_succeed(struct gl_core *c, struct gl_step *st, gl_str output);
void gl_ledger_fail(struct gl_core *c, struct gl_step *st, gl_str why, bool may_retry);
/* Run again without counting: it was stopped by a pause, or lost. */
/* The same, but not before some time has passed. */
void gl_ledger_rerun_after(struct gl_core *c, struct gl_step *st, gl_ms wait, gl_str why);
void gl_ledger_rerun(struct gl_core *c, struct gl_step *st, gl_str why);
void gl_ledger_skip(struct gl_core *c, struct gl_step *st, gl_str why);
void gl_ledger_block(struct gl_core *c, struct gl_step *st, enum gl_block kind, gl_str why);

/* May it run, given its parents? */
void gl_ledger_evaluate(struct gl_core *c, struct gl_step *st);
/* A step of a bundle's ledger ends because an agent says so. */
void gl_ledger_end(struct gl_core *c, struct gl_step *st, enum gl_step_status status,
                   enum gl_outcome outcome, gl_str output);

/* From now on the job only winds down. */
void gl_ledger_set_verdict(struct gl_core *c, struct gl_job *j, enum gl_verdict verdict,
                           gl_str why);
/* Ask the current attempt to stop, for a recorded reason. */
void gl_ledger_stop(struct gl_core *c, struct gl_step *st, enum gl_stop why);

#endif
