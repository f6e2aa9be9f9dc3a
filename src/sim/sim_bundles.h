/* sim_bundles.h - random bundles for the swarm: agents of every kind, routes between them, and
 * ledger steps with every rule, in the compiled form that a submission contains.
 *
 * Routes lead from one agent to a later one, and messages with high numbers cause no others
 * (sim_workers.h), so every job ends. */
#ifndef GL_SIM_SIM_BUNDLES_H
#define GL_SIM_SIM_BUNDLES_H

#include "base/rng.h"
#include "model/bundle/agent.h"
#include "sim/world.h"

enum { SIM_AGENTS_MAX = 8, SIM_LEDGER_MAX = 8 };

void sim_bundles_make(const struct sim_world *w, struct gl_rng *r, struct gl_buf *out);

#endif
