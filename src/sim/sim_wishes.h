/* sim_wishes.h - the wishes of random steps beyond a command: conditions, lists, sleeps, signals,
 * approvals, references; and the inputs of random jobs.
 *
 * Most of it is valid, and some of it fails by design: a condition compares values without an
 * order, a list is too long, a reference does not resolve. The checkers know what must happen then.
 */
#ifndef GL_SIM_SIM_WISHES_H
#define GL_SIM_SIM_WISHES_H

#include "model/flow/flow.h"
#include "sim/sim_options.h"

/* The names under which signals are sent; no step waits for the last one. */
enum { SIM_SIGNALS = 3 };
extern const gl_str sim_wishes_signals[SIM_SIGNALS];

/* The inputs of a job. */
struct sim_given {
    struct gl_buf inputs; /* a JSON object; "" : none */
    struct gl_buf stored; /* what must be stored of it; "" : nothing */
    bool is_short;        /* a required input is missing: the submission must be refused */
};

/* Declares inputs in the flow, and gives values for some of them. */
void sim_wishes_inputs(struct gl_rng *r, const struct sim_options *o, struct gl_arena *a,
                       struct gl_flow *flow, struct sim_given *given);
/* Step number `i`; its needs, and all steps before it, are known. */
void sim_wishes_step(struct gl_rng *r, const struct sim_options *o, struct gl_arena *a,
                     const struct gl_flow *flow, struct gl_step_spec *steps, uint32_t i);
void sim_given_done(struct sim_given *given);

#endif
