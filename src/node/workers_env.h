/* workers_env.h - builds the environment of a bundle's worker.
 *
 * Shared by workers.c, workers_env.c and workers_place.c; other code uses node/workers.h. */
#ifndef GL_NODE_WORKERS_ENV_H
#define GL_NODE_WORKERS_ENV_H

#include "node/workers.h"

/* The files a worker finds in its working folder. */
#define GL_WORKER_INPUT "mirror_neuron_input.json"     /* the message's body */
#define GL_WORKER_MESSAGE "mirror_neuron_message.json" /* the whole message */
#define GL_WORKER_BODY "mirror_neuron_body.bin"        /* the body, encoded as the message says */
#define GL_WORKER_CONTEXT \
    "mirror_neuron_context.json" /* job, agent, state and ledger of this turn */

/* The inputs that several parts of a start are composed from. */
struct gl_worker_facts {
    const struct gl_worker_place *place;
    const struct gl_worker_turn *turn;
    const struct gl_agent_spec *agent;
    const struct gl_step_spec *unit;
    struct gl_message message;
    struct gl_message_ledger ledger; /* run_id and attempt are always set */
    gl_str workdir;
};

int gl_worker_env(const struct gl_worker_facts *f, struct gl_arena *a, struct gl_exec_start *x,
                  struct gl_why *reterr_why);

/* May a worker inherit this variable from the node? Not Glia's own, not those that describe another
 * turn, and not values that the executor would misread. */
bool gl_worker_is_inherited(gl_str name, gl_str value);

/* RFC 3339; "" for 0. */
gl_str gl_worker_time(gl_ms t, struct gl_arena *a);

#endif
