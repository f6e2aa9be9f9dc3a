/* sim_flows.h - random flows for the swarm: chains, fans with a join, diamonds and arbitrary
 * graphs, with every rule, policy and safety mark, in the compiled form that a submission contains.
 */
#ifndef GL_SIM_SIM_FLOWS_H
#define GL_SIM_SIM_FLOWS_H

#include "model/flow/flow.h"
#include "sim/sim_options.h"
#include "sim/sim_wishes.h"

/* The pools of a simulated node, and the most slots that steps of random flows want. 0: no such
 * pool. "executor.default" exists only if there are agents. */
struct sim_pools {
    uint32_t default_slots, gpu_slots;
    uint32_t executor_slots; /* of "executor.default" */
};

/* And the inputs of its job. */
void sim_flows_make(struct gl_rng *r, const struct sim_options *o, const struct sim_pools *pools,
                    struct gl_buf *out, struct sim_given *given);

/* One root followed by `n` - 1 steps, or a step with `n` - 1 items, which do nothing: more than one
 * transaction can hold. */
void sim_flows_wide(uint32_t n, bool as_items, struct gl_buf *out);

/* A flow of plain steps for scenarios: "a b:a c:a,b" is a, then b after a, then c after both. A
 * step's name may have a mark: "x!" is unsafe, "x?" is idempotent. Each step has up to `attempts`
 * attempts, one second apart. */
void sim_flows_plain(const char *text, uint32_t attempts, struct gl_buf *out);

#endif
