/* sim_bundles.h - random bundles for the swarm: agents of every kind, routes between them, steps of
 * a ledger with every rule, in the compiled form that a submission carries.
 *
 * Routes lead from one agent to a later one, and what agents send by themselves ends with the
 * message's number (sim_workers.h), so that every job comes to its end. */
#ifndef GL_SIM_SIM_BUNDLES_H
#define GL_SIM_SIM_BUNDLES_H

#include "base/rng.h"
#include "model/bundle/agent.h"
#include "sim/world.h"

enum { SIM_AGENTS_MAX = 8, SIM_LEDGER_MAX = 8 };

void sim_bundles_make(const struct sim_world *w, struct gl_rng *r, struct gl_buf *out);

#endif
