/* sim_wishes.h - what random steps want beyond a command: conditions, lists to go through, sleeps,
 * signals, approvals, references; and what random jobs are given.
 *
 * Most of it can be had, and some of it cannot: a condition compares what has no order, a list is
 * longer than it may be, a reference leads nowhere. What then must happen is for the checkers to
 * say. */
#ifndef GL_SIM_SIM_WISHES_H
#define GL_SIM_SIM_WISHES_H

#include "model/flow/flow.h"
#include "sim/sim_options.h"

/* The names under which signals are sent; no step waits for the last. */
enum { SIM_SIGNALS = 3 };
extern const gl_str sim_wishes_signals[SIM_SIGNALS];

/* What a job is given. */
struct sim_given {
    struct gl_buf inputs; /* a JSON object; "" : nothing */
    struct gl_buf stored; /* what must be stored of it; "" : nothing */
    bool is_short;        /* something required is missing: it must be refused */
};

/* Declares inputs in the flow, and gives some of them. */
void sim_wishes_inputs(struct gl_rng *r, const struct sim_options *o, struct gl_arena *a,
                       struct gl_flow *flow, struct sim_given *given);
/* Step number `i`; its needs are known, and those of all before it. */
void sim_wishes_step(struct gl_rng *r, const struct sim_options *o, struct gl_arena *a,
                     const struct gl_flow *flow, struct gl_step_spec *steps, uint32_t i);
void sim_given_done(struct sim_given *given);

#endif
