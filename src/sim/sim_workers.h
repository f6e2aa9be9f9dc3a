/* sim_workers.h - what the processes and modules of agents say: a document that hangs on the seed,
 * the message and the agent's state alone.
 *
 *   next_state     {"n": messages that have changed it, "sent": messages it has sent by itself,
 *                  "last": the id of the message that changed it last,
 *                  "grown": what it has wanted its flow to grow by (sim_patches.h)}
 *   emit_messages  of type "hop", to agents by name, and of type "made", to whoever the routes say;
 *                  some of them large; not from messages with high numbers
 *   events         partial, failed, skipped, branch, scatter
 *
 * On their way workers say lines for the runtime: signs of life, and events "progress" with a
 * number of their own. The checkers hold the records against all of it. */
#ifndef GL_SIM_SIM_WORKERS_H
#define GL_SIM_SIM_WORKERS_H

#include "sim/sim_keeper.h"

/* Instead of what was drawn for an ordinary process, if it ends well. The text belongs to `keep`.
 */
void sim_workers_speak(const struct sim_world *w, const struct sim_letter *l,
                       struct sim_behaviour *b, struct gl_buf *keep);
/* How large the body of a message is, roughly. */
size_t sim_workers_size(const struct sim_world *w, struct gl_rng *r);
enum { SIM_WORKERS_LINE = 160 };
/* The line with this number of a worker; true: a sign of life. */
bool sim_workers_line(const struct sim_world *w, const struct sim_process *p, uint32_t number,
                      char ret[static SIM_WORKERS_LINE]);
/* {"n":..,"sent":..,"last":".."}; zeros for anything else. `last` and `grown` live in `a`. */
struct sim_worker_state {
    uint64_t n, sent;
    gl_str last, grown;
};
struct sim_worker_state sim_workers_state(gl_str text, struct gl_arena *a);

#endif
