/* sim_bundles.h - random bundles for the swarm: agents of every kind, routes between them, steps of
 * a ledger with every rule, in the compiled form that a submission carries.
 *
 * Routes lead from one agent to a later one, and what agents send by themselves ends with the
 * message's number (sim_workers.h), so that every job comes to its end. */
#ifndef GL_SIM_SIM_BUNDLES_H
#define GL_SIM_SIM_BUNDLES_H

#include "base/rng.h"
#include "model/agent.h"
#include "sim/sim_options.h"

enum { SIM_AGENTS_MAX = 8, SIM_LEDGER_MAX = 8 };

void sim_bundles_make(struct gl_rng *r, const struct sim_options *o, struct gl_buf *out);

#endif
