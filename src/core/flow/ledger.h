/* ledger.h - the steps of a job: which are ready, which run, which have become impossible, and when
 * the job has ended.
 *
 * Rules:
 *   - gl_ledger_move() is the only writer of a step's status, gl_ledger_move_job() of a job's. They
 *     assert the move against the table of allowed moves and keep counters, lists and timers in
 *     step with the status.
 *   - gl_ledger_reconcile() compares what should be with what is. It is idempotent: a second call
 *     changes nothing.
 *   - Its cost follows what has changed, not the size of the job. An ended step updates counters of
 *     its children, and one transaction touches at most GL_SPREAD_MAX steps; the rest is left to
 *     the next transaction.
 *   - Nothing here acts: a START or STOP is an effect that waits for the transaction of the move.
 *
 * Order of calls: a handler changes steps with the verbs below; at the end of the core's step
 * gl_ledger_reconcile_all() does the rest. */
#ifndef GL_CORE_FLOW_LEDGER_H
#define GL_CORE_FLOW_LEDGER_H

#include "core/core_state.h"
#include "core/scheduling/placement.h"

/* The only writer of a step's status. */
void gl_ledger_move(struct gl_core *c, struct gl_step *st, enum gl_step_status next);
/* The only writer of a job's status. */
void gl_ledger_move_job(struct gl_core *c, struct gl_job *j, enum gl_job_status next);

/* Reconciles every touched job, grants free slots, and flushes the transactions. Ends each step of
 * the core. */
void gl_ledger_reconcile_all(struct gl_core *c);
void gl_ledger_reconcile(struct gl_core *c, struct gl_job *j);

/* The step has its slots: decides its next attempt and emits the START; or offers it to `node`,
 * which is NULL if it runs here. */
void gl_ledger_start(struct gl_core *c, struct gl_step *st, const struct gl_place_node *node);
/* Emits the START of its current attempt. Again only if the attempt is known never to have
 * started. */
void gl_ledger_emit_start(struct gl_core *c, struct gl_step *st);

/* The current attempt has ended; its slots are returned. A failure leads to a retry if `may_retry`
 * and attempts are left. `why` is for people. */
void gl_ledger_succeed(struct gl_core *c, struct gl_step *st, gl_str output);
void gl_ledger_fail(struct gl_core *c, struct gl_step *st, gl_str why, bool may_retry);
/* Runs the step again without counting the attempt, which was lost or stopped by a pause; at once,
 * or after `wait`. */
void gl_ledger_rerun_after(struct gl_core *c, struct gl_step *st, gl_ms wait, gl_str why);
void gl_ledger_rerun(struct gl_core *c, struct gl_step *st, gl_str why);
/* Ends the step without an attempt. */
void gl_ledger_skip(struct gl_core *c, struct gl_step *st, gl_str why);
/* The step waits for something that is not a slot: a person, a signal, a time, its parents. */
void gl_ledger_block(struct gl_core *c, struct gl_step *st, enum gl_block kind, gl_str why);

/* Applies the trigger rule to what is known of its parents: the step becomes ready, is skipped, or
 * waits on. */
void gl_ledger_evaluate(struct gl_core *c, struct gl_step *st);
/* A ledger step of a bundle ends because an agent reports that it has. */
void gl_ledger_end(struct gl_core *c, struct gl_step *st, enum gl_step_status status,
                   enum gl_outcome outcome, gl_str output);

/* Decides how the job ends. From here on it only winds down: running attempts are stopped, except
 * unsafe ones of a failed job, and nothing else starts. */
void gl_ledger_set_verdict(struct gl_core *c, struct gl_job *j, enum gl_verdict verdict,
                           gl_str why);
/* Asks the current attempt to stop and records why. */
void gl_ledger_stop(struct gl_core *c, struct gl_step *st, enum gl_stop why);

#endif
