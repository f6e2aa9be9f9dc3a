/* workers_place.c - what workers inherit from the node: its environment, filtered, and its folders.
 */
#include "base/check.h"
#include "node/workers_env.h"

bool gl_worker_is_private(gl_str name)
{
    return gl_str_starts(name, GL_S("GLIA_")) || gl_str_is(name, "NOTIFY_SOCKET") ||
           gl_str_is(name, "WATCHDOG_PID") || gl_str_is(name, "WATCHDOG_USEC") ||
           gl_str_is(name, "LISTEN_FDS") || gl_str_is(name, "LISTEN_PID") ||
           gl_str_is(name, "LISTEN_FDNAMES");
}

gl_str gl_worker_run_folder(const struct gl_worker_place *p, gl_str run_id, struct gl_arena *a)
{
    GL_ASSERT(run_id.n > 0);
    return gl_str_fmt(a, "%.*s/%.*s", GL_STR_ARG(p->runs_root), GL_STR_ARG(run_id));
}

gl_str gl_worker_data_folder(const struct gl_worker_place *p, gl_str run_id, struct gl_arena *a)
{
    GL_ASSERT(run_id.n > 0);
    return gl_str_fmt(a, "%.*s/%.*s/data", GL_STR_ARG(p->runs_root), GL_STR_ARG(run_id));
}

/* Names that describe one job, agent or attempt. A node that was itself started by a worker has
 * them in its environment, where they would be wrong for its own workers. */
static bool is_per_turn(gl_str name)
{
    static const char *const names[] = {
        "MN_INPUT_FILE",   "MN_CONTEXT_FILE",      "MN_MESSAGE_FILE",
        "MN_BODY_FILE",    "MN_BODY_CONTENT_TYPE", "MN_BODY_CONTENT_ENCODING",
        "MN_AGENT_TYPE",   "MN_AGENT_TEMPLATE",    "MN_JOB_ID",
        "MN_AGENT_ID",     "MN_WORKDIR",           "MN_ARTIFACTS_JSON",
        "MN_RUN_ID",       "MN_ATTEMPT_ID",        "MN_BLUEPRINT_CONFIG_JSON",
        "MN_PYTHON_ENV",   "MN_ALLOCATION_JSON",   "MN_BLUEPRINT_SCENARIO_JSON",
        "MN_JOB_DATA_DIR", "MN_JOB_DATA_ACCESS",   "MN_JOB_DATA_GENERATION"};

    for (size_t i = 0; i < GL_COUNT(names); i++) {
        if (gl_str_is(name, names[i])) {
            return true;
        }
    }
    return gl_str_starts(name, GL_S("MN_WORKFLOW_")) ||
           gl_str_starts(name, GL_S("MN_AGENT_BEACON_"));
}

/* A value with the byte that stands for the working folder would be expanded by the executor. */
bool gl_worker_is_inherited(gl_str name, gl_str value)
{
    return name.n > 0 && !is_per_turn(name) && !gl_worker_is_private(name) &&
           (value.n == 0 || memchr(value.p, GL_EXEC_WORK[0], value.n) == NULL);
}

const gl_str *gl_worker_inherited(const char *const *environment, struct gl_arena *a, size_t *ret_n)
{
    size_t n = 0, kept = 0;
    gl_str *env;

    while (environment[n] != NULL) {
        n++;
    }
    env = GL_NEW_ARRAY(a, gl_str, n + 1);
    for (size_t i = 0; i < n; i++) {
        gl_str value;
        gl_str name = gl_str_cut(gl_str_of(environment[i]), '=', &value);

        if (gl_worker_is_inherited(name, value)) {
            env[kept++] = gl_str_dup(a, gl_str_of(environment[i]));
        }
    }
    *ret_n = kept;
    GL_ASSERT(kept <= n);
    return env;
}

struct gl_worker_place gl_worker_place_copy(const struct gl_worker_place *p, struct gl_arena *a)
{
    struct gl_worker_place to = {.runs_root = gl_str_dup(a, p->runs_root),
                                 .node_name = gl_str_dup(a, p->node_name),
                                 .grpc_target = gl_str_dup(a, p->grpc_target),
                                 .pyenv_folder = gl_str_dup(a, p->pyenv_folder),
                                 .glia_path = gl_str_dup(a, p->glia_path),
                                 .env_n = p->env_n};
    gl_str *env = GL_NEW_ARRAY(a, gl_str, p->env_n + 1);

    for (size_t i = 0; i < p->env_n; i++) {
        env[i] = gl_str_dup(a, p->env[i]);
    }
    to.env = env;
    return to;
}
