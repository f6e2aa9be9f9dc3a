/* workers_env.h - the environment of a bundle's worker, while it is put together. */
#ifndef GL_NODE_WORKERS_ENV_H
#define GL_NODE_WORKERS_ENV_H

#include "node/workers.h"

/* The files a worker finds in its workspace. */
#define GL_WORKER_INPUT "mirror_neuron_input.json"     /* the message's body */
#define GL_WORKER_MESSAGE "mirror_neuron_message.json" /* all of it */
#define GL_WORKER_BODY "mirror_neuron_body.bin"        /* the body, encoded as the message says */
#define GL_WORKER_CONTEXT "mirror_neuron_context.json" /* whose turn it is */

/* What several parts of a start are made from. */
struct gl_worker_facts {
    const struct gl_worker_place *place;
    const struct gl_worker_turn *turn;
    const struct gl_agent_spec *agent;
    const struct gl_step_spec *unit;
    struct gl_message message;
    struct gl_message_ledger ledger; /* run_id and attempt are always known */
    gl_str workdir;
};

int gl_worker_env(const struct gl_worker_facts *f, struct gl_arena *a, struct gl_exec_start *x,
                  struct gl_why *reterr_why);

/* May a worker get this variable from the node? Not those of Glia itself, those that say something
 * of another turn, and those whose value the executor would misunderstand. */
bool gl_worker_is_inherited(gl_str name, gl_str value);

/* RFC 3339; "" for 0. */
gl_str gl_worker_time(gl_ms t, struct gl_arena *a);

#endif
