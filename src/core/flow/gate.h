/* gate.h - decides about a ready step before it is queued for the first time.
 *
 * A gate answers these questions in this order: Has the job that this one retries completed the
 * step? Is its condition true (`when`)? Does it run once, or once for each item (`foreach`)? Which
 * concurrency key applies? And for a step that only waits: until when, or for what? Most steps have
 * no gate and pass at once.
 *
 * A gate depends on outputs of other steps and on the job's inputs, which are not in memory. The
 * effect RESOLVE asks for them after the transaction that made the step ready, and the step stays
 * READY until RESOLVED brings them. Only ended steps can be referenced and their records never
 * change, so asking again after a crash gives the same answer. No gate is decided twice:
 * GL_GATE_OPEN in the step's record says that it has been passed.
 *
 * Order of calls: gl_gate_pass(), then perhaps gl_gate_on_resolved(); a step that waits ends
 * through gl_gate_on_timer() or gl_gate_decide(). */
#ifndef GL_CORE_FLOW_GATE_H
#define GL_CORE_FLOW_GATE_H

#include "core/core_state.h"

/* May this ready step, an entry of job->ready, be queued now? If not, it has left READY or waits
 * for its facts, and is no longer in the list. */
bool gl_gate_pass(struct gl_core *c, struct gl_step *st);
void gl_gate_on_resolved(struct gl_core *c, const struct gl_event *ev);

/* A blocked step's time has come, or it is time to ask for facts again. */
void gl_gate_on_timer(struct gl_core *c, struct gl_step *st);
/* The step is about to be skipped. Was it skipped for the same reason in the job that this one
 * retries? Then steps after it may still reuse what that job completed. */
bool gl_gate_skip_is_same(const struct gl_step *st);
/* Applies a decision about a step that waits for approval: the first of its choices lets it
 * succeed, every other one fails it. */
void gl_gate_decide(struct gl_core *c, struct gl_step *st, gl_str decision, gl_str why,
                    gl_str output);
/* The decisions it offers, as "approve,reject". */
gl_str gl_gate_choices(struct gl_core *c, const struct gl_step_spec *spec);
/* Is `decision` one of them? */
bool gl_gate_accepts_decision(const struct gl_step_spec *spec, gl_str decision);

#endif
