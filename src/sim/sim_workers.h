/* sim_workers.h - the output of agents' processes and modules: a document that depends only on the
 * seed, the message and the agent's state.
 *
 *   next_state     {"n": messages that have changed it, "sent": messages it has sent by itself,
 *                  "last": the id of the message that changed it last,
 *                  "grown": how it has last requested its flow to grow (sim_patches.h)}
 *   emit_messages  of type "hop", to agents by name, and of type "made", to wherever the routes
 * lead; some of them large; not from messages with high numbers events         partial, failed,
 * skipped, branch, scatter
 *
 * While they run, workers print lines for the runtime: beacons, and numbered events "progress". The
 * checkers compare the records with all of this. */
#ifndef GL_SIM_SIM_WORKERS_H
#define GL_SIM_SIM_WORKERS_H

#include "sim/sim_keeper.h"

/* Replaces what was drawn for an ordinary process, if it succeeds. The text belongs to `keep`. */
void sim_workers_speak(const struct sim_world *w, const struct sim_command *cmd,
                       struct sim_behaviour *b, struct gl_buf *keep);
/* The approximate size of a message's body. */
size_t sim_workers_size(const struct sim_world *w, struct gl_rng *r);
/* A message's priority: mostly near the usual one, sometimes not even an allowed one. */
int64_t sim_workers_priority(struct gl_rng *r);
enum { SIM_WORKERS_LINE = 160 };
/* The line with this number of a worker; true: a beacon. */
bool sim_workers_line(const struct sim_world *w, const struct sim_process *p, uint32_t number,
                      char ret[static SIM_WORKERS_LINE]);
/* {"n":..,"sent":..,"last":".."}; zeros for anything else. `last` and `grown` are allocated in `a`.
 */
struct sim_worker_state {
    uint64_t n, sent;
    gl_str last, grown;
};
struct sim_worker_state sim_workers_state(gl_str text, struct gl_arena *a);

#endif
