/* gate.h - what is decided about a step before it runs for the first time.
 *
 * In this order: has an earlier job done it already (`retry`)? Shall it run at all (`when`)? Once,
 * or once for each item (`foreach`)? Under which limit? And if it only waits: until when, or for
 * whom? Most steps have no gate: they pass at once.
 *
 * What a gate must know (outputs of other steps, inputs of the job) is not in memory: RESOLVE asks
 * for it once all that is needed is committed, and the step stays `ready` meanwhile. The facts
 * never change, so asking again after a crash gives the same answer. */
#ifndef GL_CORE_FLOW_GATE_H
#define GL_CORE_FLOW_GATE_H

#include "core/core_state.h"

/* A ready step, taken from job->ready: may it be queued now? Else it has moved on, or asks. */
bool gl_gate_pass(struct gl_core *c, struct gl_step *st);
void gl_gate_on_resolved(struct gl_core *c, const struct gl_event *ev);

/* The time of a blocked or asking step has come. */
void gl_gate_on_timer(struct gl_core *c, struct gl_step *st);
/* A step is about to be skipped: was it, for the same reason, in the job that is retried? */
bool gl_gate_skip_is_same(const struct gl_step *st);
/* A person has decided about a step that asked for approval. */
void gl_gate_decide(struct gl_core *c, struct gl_step *st, gl_str decision, gl_str why,
                    gl_str output);
/* "approve,reject" */
gl_str gl_gate_choices(struct gl_core *c, const struct gl_step_spec *spec);
bool gl_gate_accepts_decision(const struct gl_step_spec *spec, gl_str decision);

#endif
