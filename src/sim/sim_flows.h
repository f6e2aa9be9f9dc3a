/* sim_flows.h - random flows for the swarm: chains, fans with a join, diamonds, and tangles, with
 * every rule, policy and kind of safety, in the compiled form that a submission carries. */
#ifndef GL_SIM_SIM_FLOWS_H
#define GL_SIM_SIM_FLOWS_H

#include "model/flow/flow.h"
#include "sim/sim_options.h"
#include "sim/sim_wishes.h"

/* The pools of a simulated node, and what the steps of random flows want at most. 0: no such pool.
 * "executor.default" exists only where there are agents. */
struct sim_pools {
    uint32_t default_slots, gpu_slots;
    uint32_t executor_slots; /* of "executor.default" */
};

/* And what its job is given. */
void sim_flows_make(struct gl_rng *r, const struct sim_options *o, const struct sim_pools *pools,
                    struct gl_buf *out, struct sim_given *given);

/* One root and `n` - 1 steps behind it, or one with `n` - 1 items, that do nothing: more than one
 * transaction can carry. */
void sim_flows_wide(uint32_t n, bool as_items, struct gl_buf *out);

/* A flow of plain steps for scenarios: "a b:a c:a,b" is a, then b behind a, then c behind both. The
 * step's name may carry a mark: "x!" is unsafe, "x?" is idempotent. Each step may try `attempts`
 * times, a second apart. */
void sim_flows_plain(const char *text, uint32_t attempts, struct gl_buf *out);

#endif
