/* workers.h - composes the start of a bundle's worker: what it is given to handle one message.
 *
 * A pure function of the node (place), the flow and the message (turn): command, environment, files
 * and working folder. It reads and creates nothing; the executor does what the start says
 * (port/exec.h).
 *
 * The environment, in order of increasing precedence: the node's own; the names of the runtime
 * (MN_*); the agent's `environment` and what the job adds to it; `pass_env`; and last, so that
 * nothing can override them, MN_WORKFLOW_STEP_ID and the core's own GLIA_*. docs/bundles.md lists
 * them all. */
#ifndef GL_NODE_WORKERS_H
#define GL_NODE_WORKERS_H

#include "model/bundle/agent.h"
#include "model/bundle/message.h"
#include "port/exec.h"

/* What the node gives to all workers. */
struct gl_worker_place {
    gl_str runs_root;    /* MN_RUNS_ROOT: absolute */
    gl_str node_name;    /* of this node */
    gl_str grpc_target;  /* MN_GRPC_TARGET; "": none */
    gl_str pyenv_folder; /* where Python environments are cached; "": nowhere */
    gl_str glia_path;    /* the program `glia`, which prepares them */
    const gl_str *env;   /* "NAME=value": the node's environment; see gl_worker_is_private() */
    size_t env_n;
};

/* One message for one agent. */
struct gl_worker_turn {
    const struct gl_flow *flow;
    uint32_t agent; /* its number, which is also that of its unit */
    gl_str job_id, run_id;
    gl_str message;                         /* JSON; without a large body, ... */
    gl_str body;                            /* ... which is here; "": it is a blob */
    gl_str state;                           /* the agent's, JSON; "" : {} */
    const struct gl_message_ledger *ledger; /* of the step it works for; NULL: none */
    uint32_t attempt_number;                /* of the unit: GLIA_ATTEMPT */
    uint32_t attempt_of_message;            /* 1, 2, ... without a pause, at most max_attempts */
    gl_str attempt_id;                      /* of the unit: GLIA_ATTEMPT_ID */
    gl_str idempotency_key; /* GLIA_IDEMPOTENCY_KEY; "" : that of the ledger, else attempt_id */
    uint32_t submission_attempt; /* of the whole job: MN_ATTEMPT_ID is "run:attempt"; 0: 1 */
    gl_ms now;
    gl_ms deadline_at; /* GLIA_DEADLINE_AT; 0: none */
    gl_str lease_id;
    gl_ms queue_wait_ms;
};

/* Fills in what depends on the driver: argv, env, cwd, files, input, is_worker, stdout_max,
 * timeout_ms, grace_ms, beacon_ms, driver. The caller sets key, token, epoch and start_by.
 * Everything lives in `a` or is borrowed from place and turn. For "module" the start is argv =
 * [module] and an input. GL_E_LIMIT, GL_E_INVALID: it can never be started like this. */
int gl_worker_compose(const struct gl_worker_place *p, const struct gl_worker_turn *t,
                      struct gl_arena *a, struct gl_exec_start *x, struct gl_why *reterr_why);

/* MN_RUNS_ROOT/<run id>, the folder that all workers of a job share; and MN_JOB_DATA_DIR inside it.
 */
gl_str gl_worker_run_folder(const struct gl_worker_place *p, gl_str run_id, struct gl_arena *a);
gl_str gl_worker_data_folder(const struct gl_worker_place *p, gl_str run_id, struct gl_arena *a);

/* Selects from the environment of this process (NULL-terminated) what workers may see. Lives in
 * `a`. */
const gl_str *gl_worker_inherited(const char *const *environment, struct gl_arena *a,
                                  size_t *ret_n);
struct gl_worker_place gl_worker_place_copy(const struct gl_worker_place *p, struct gl_arena *a);

/* Is this variable Glia's own, and so hidden from workers? All GLIA_* are: they configure the node,
 * and some are secrets (tokens, a store's password). So are NOTIFY_SOCKET and others that belong to
 * this process alone. */
bool gl_worker_is_private(gl_str name);

#endif
