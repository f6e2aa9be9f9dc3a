/* Compiles an agent's process: its command, environment and folder, and whether it may run
 * twice. */
#include "base/check.h"
#include "model/bundle/manifest_read.h"

static const char workspace_default[] = "/sandbox/job";

/* The runner. */

static gl_str last_part(gl_str s)
{
    gl_str part = s;

    while (memchr(part.p, '.', part.n) != NULL) {
        (void)gl_str_cut(part, '.', &part);
        if (part.n == 0) {
            break;
        }
    }
    return part;
}

static void refuse_runner(struct gl_manifest *m, gl_jnode config, gl_str name, const char *what)
{
    gl_manifest_error(m, config, "runner_module", GL_REASON_UNSUPPORTED,
                      "this release does not support %s (%.*s); "
                      "use MirrorNeuron.Runner.HostLocal, a process of the node",
                      what, GL_STR_ARG(gl_flow_read_clip(name)));
}

static void read_runner(struct gl_manifest *m, const struct gl_manifest_node *node,
                        struct gl_agent_spec *a)
{
    gl_str name = {0}, part;

    if (!gl_manifest_text(m, node->config, "runner_module", &name)) {
        if (gl_manifest_get(m, node->config, "runner_module") == NULL) {
            m->unnamed_runner = m->unnamed_runners_n++ == 0 ? node->id : m->unnamed_runner;
        }
        return;
    }
    part = last_part(name);
    if (gl_str_is(part, "HostLocal") || gl_str_is(part, "host_local")) {
        a->runner = GL_S("host_local");
    } else if (gl_str_is(part, "DockerWorker") || gl_str_is(part, "docker_worker")) {
        refuse_runner(m, node->config, name, "a container");
    } else if (gl_str_is(part, "OpenShell") || gl_str_is(part, "openshell")) {
        refuse_runner(m, node->config, name, "a sandbox");
    } else {
        gl_manifest_error(m, node->config, "runner_module", GL_REASON_UNKNOWN_RUNNER,
                          "unknown runner `%.*s`; use MirrorNeuron.Runner.HostLocal",
                          GL_STR_ARG(gl_flow_read_clip(name)));
    }
}

/* The command. */

static bool read_argument(struct gl_manifest *m, gl_jnode n, gl_str *ret)
{
    if (gl_json_is(n, GL_JSON_OBJECT) || gl_json_is(n, GL_JSON_ARRAY) ||
        gl_json_is(n, GL_JSON_NULL)) {
        gl_manifest_error(m, n, NULL, GL_REASON_WRONG_TYPE, "expected text, not %s",
                          gl_json_type_name(n));
        return false;
    }
    *ret = gl_json_is(n, GL_JSON_STRING) ? gl_json_str(m->r.j, n, m->r.a) : gl_json_raw(m->r.j, n);
    if (!gl_manifest_is_program_text(*ret) || ret->n > GL_ARG_BYTES_MAX) {
        gl_manifest_error(
            m, n, NULL, ret->n > GL_ARG_BYTES_MAX ? GL_REASON_TOO_LARGE : GL_REASON_NUL_BYTE,
            ret->n > GL_ARG_BYTES_MAX ? "it is longer than an argument of a program may be"
                                      : "the bytes 0 and 1 cannot be passed to a worker");
        return false;
    }
    return true;
}

static void read_command(struct gl_manifest *m, const struct gl_manifest_node *node,
                         struct gl_step_spec *u)
{
    gl_jnode n = gl_manifest_get(m, node->config, "command");
    gl_str *argv = GL_NEW_ARRAY(m->r.a, gl_str, gl_json_is(n, GL_JSON_ARRAY) ? n->count + 1 : 3);
    size_t i = 0;

    u->argv.items = argv;
    if (n == NULL) {
        argv[0] = GL_S("sh");
        argv[1] = GL_S("-c");
        argv[2] = GL_S("echo this agent has no command");
        u->argv.n = 3;
    } else if (gl_json_is(n, GL_JSON_STRING)) {
        argv[0] = GL_S("bash");
        argv[1] = GL_S("-lc");
        u->argv.n = read_argument(m, n, &argv[2]) ? 3 : 2;
    } else if (!gl_json_is(n, GL_JSON_ARRAY) || n->count == 0 || n->count > GL_ARGS_MAX) {
        gl_manifest_error(m, n, NULL, GL_REASON_WRONG_TYPE,
                          "expected a program and its arguments as a list of 1 to %d texts, or "
                          "shell text",
                          GL_ARGS_MAX);
    } else {
        for (gl_jnode e = gl_json_first(m->r.j, n); e; e = gl_json_after(m->r.j, n, e), i++) {
            (void)read_argument(m, e, &argv[i]);
        }
        u->argv.n = n->count;
        if (argv[0].n == 0) {
            gl_manifest_error(m, n, NULL, GL_REASON_EMPTY_PROGRAM, "the program's name is empty");
        }
    }
}

/* The environment. */

static void read_variable(struct gl_manifest *m, gl_jnode key, gl_str *ret)
{
    gl_str name = gl_json_str(m->r.j, key, m->r.a), value = {0};
    gl_jnode n = gl_json_value(key);

    if (gl_json_is(n, GL_JSON_STRING)) {
        value = gl_json_str(m->r.j, n, m->r.a);
    } else if (!gl_json_is(n, GL_JSON_NULL)) {
        value = gl_manifest_compact(m, n);
    }
    if (name.n == 0 || memchr(name.p, '=', name.n) != NULL || !gl_manifest_is_program_text(name)) {
        gl_manifest_error(m, key, NULL, GL_REASON_NAME_INVALID,
                          "that is not a valid name of an environment variable");
    } else if (gl_str_starts(name, GL_S("GLIA_"))) {
        gl_manifest_error(m, key, NULL, GL_REASON_RESERVED_NAME,
                          "names that begin with GLIA_ are reserved");
    } else if (!gl_manifest_is_program_text(value)) {
        gl_manifest_error(m, n, NULL, GL_REASON_NUL_BYTE,
                          "the bytes 0 and 1 cannot be passed to a worker");
    } else if (name.n + value.n + 1 > GL_ARG_BYTES_MAX) {
        gl_manifest_error(m, n, NULL, GL_REASON_TOO_LARGE,
                          "it is longer than %d bytes: put it into a file in payloads/",
                          GL_ARG_BYTES_MAX);
    } else {
        *ret = gl_str_fmt(m->r.a, "%.*s=%.*s", GL_STR_ARG(name), GL_STR_ARG(value));
    }
}

/* Skills come before what the node itself says. */
static bool add_skills(struct gl_manifest *m, gl_str *entry)
{
    gl_str prefix = GL_S("PYTHONPATH=");
    gl_str rest;

    if (m->skills_path.n == 0 || !gl_str_starts(*entry, prefix)) {
        return false;
    }
    rest = (gl_str){entry->p + prefix.n, entry->n - prefix.n};
    *entry = gl_str_fmt(m->r.a, "PYTHONPATH=%.*s%s%.*s", GL_STR_ARG(m->skills_path),
                        rest.n > 0 ? ":" : "", GL_STR_ARG(rest));
    return true;
}

static void read_env(struct gl_manifest *m, const struct gl_manifest_node *node,
                     struct gl_step_spec *u)
{
    gl_jnode n = gl_manifest_object(m, node->config, "environment");
    gl_str *env = GL_NEW_ARRAY(m->r.a, gl_str, (n != NULL ? n->count : 0) + 1);
    bool has_skills = m->skills_path.n == 0;
    size_t i = 0;

    if (n != NULL && n->count >= GL_ENVS_MAX) {
        gl_manifest_error(m, n, NULL, GL_REASON_TOO_MANY, "a worker has at most %d variables",
                          GL_ENVS_MAX - 1);
        return;
    }
    for (gl_jnode e = gl_json_first(m->r.j, n); e; e = gl_json_after(m->r.j, n, e)) {
        env[i].n = 0;
        read_variable(m, e, &env[i]);
        if (env[i].n > 0) {
            has_skills = add_skills(m, &env[i]) || has_skills;
            i++;
        }
    }
    if (!has_skills && gl_manifest_add_expansion(m, node->n, m->skills_path.n)) {
        env[i++] = gl_str_fmt(m->r.a, "PYTHONPATH=%.*s", GL_STR_ARG(m->skills_path));
    }
    u->env = (struct gl_strs){.items = env, .n = i};
    if (gl_flow_check_command_bytes(u) > GL_COMMAND_BYTES_MAX) {
        gl_manifest_error(m, node->n, "config", GL_REASON_TOO_LARGE,
                          "the command and its environment have more than %d bytes",
                          GL_COMMAND_BYTES_MAX);
    }
}

/* The folder. */

static gl_str without_slash(gl_str path)
{
    while (path.n > 1 && path.p[path.n - 1] == '/') {
        path.n--;
    }
    return path;
}

/* What follows `root` in `path`: "" for itself, "/…" below it. */
static bool is_below(gl_str path, gl_str root, gl_str *ret)
{
    if (!gl_str_starts(path, root)) {
        return false;
    }
    *ret = (gl_str){path.p + root.n, path.n - root.n};
    return ret->n == 0 || ret->p[0] == '/';
}

static void read_workdir(struct gl_manifest *m, const struct gl_manifest_node *node,
                         struct gl_step_spec *u)
{
    gl_str root = GL_S(workspace_default), path = {0}, below;

    u->cwd = GL_S(GL_MANIFEST_WORK);
    (void)gl_manifest_text(m, node->config, "sandbox_upload_path", &root);
    if (!gl_manifest_text(m, node->config, "workdir", &path)) {
        return;
    }
    path = without_slash(path);
    if (path.p[0] != '/' || path.n >= 4000 || !gl_manifest_is_program_text(path)) {
        gl_manifest_error(m, node->config, "workdir", GL_REASON_NOT_ABSOLUTE,
                          "expected an absolute path: %.*s and what is below it are the workspace",
                          GL_STR_ARG(gl_flow_read_clip(root)));
    } else if (!is_below(path, without_slash(root), &below)) {
        u->cwd = path;
    } else if (below.n > 0 &&
               !gl_flow_check_file_path((gl_str){.p = below.p + 1, .n = below.n - 1})) {
        gl_manifest_error(m, node->config, "workdir", GL_REASON_LEADS_OUT,
                          "it is outside the workspace");
    } else {
        u->cwd = gl_str_fmt(m->r.a, GL_MANIFEST_WORK "%.*s", GL_STR_ARG(below));
    }
}

/* May it run twice? An unsafe mark wins; without any mark nobody has said that it may. */

static bool is_external_word(gl_str word)
{
    static const char *const words[] = {"write", "writes", "irreversible", "unsafe", "true", NULL};

    return gl_schema_word(words, word) >= 0 || (word.n > 0 && !gl_str_starts(word, GL_S("no")) &&
                                                memmem(word.p, word.n, "external", 8) != NULL);
}

/* side_effect(s): true, a word, a list of words, or a table of them. */
static bool is_external(struct gl_manifest *m, gl_jnode n)
{
    bool found = gl_json_is(n, GL_JSON_TRUE);

    if (gl_json_is(n, GL_JSON_STRING)) {
        return is_external_word(gl_json_str(m->r.j, n, m->r.a));
    }
    if (!gl_json_is(n, GL_JSON_ARRAY) && !gl_json_is(n, GL_JSON_OBJECT)) {
        return found;
    }
    for (gl_jnode e = gl_json_first(m->r.j, n); e && !found; e = gl_json_after(m->r.j, n, e)) {
        gl_jnode value = e->is_key ? gl_json_value(e) : e;

        found = gl_json_is(value, GL_JSON_TRUE)
                    ? !e->is_key || is_external_word(gl_json_str(m->r.j, e, m->r.a))
                    : is_external(m, value);
    }
    return found;
}

static uint8_t read_safety(struct gl_manifest *m, const struct gl_manifest_node *node)
{
    static const char *const unsafe[] = {"manual_review_on_recovery", "requires_approval",
                                         "unsafe"};
    static const char *const safe[] = {"safe_to_retry", "idempotent"};
    static const char *const keys[] = {"idempotency_key", "recovery_idempotency_key"};
    gl_jnode c = node->config;
    bool is_safe = false, is_unsafe = is_external(m, gl_manifest_get(m, c, "side_effect")) ||
                                      is_external(m, gl_manifest_get(m, c, "side_effects"));

    for (size_t i = 0; i < GL_COUNT(unsafe); i++) {
        bool mark = false;

        (void)gl_manifest_bool(m, c, unsafe[i], &mark);
        is_unsafe = is_unsafe || mark;
    }
    for (size_t i = 0; i < GL_COUNT(safe); i++) {
        bool mark = false;

        if (gl_manifest_bool(m, c, safe[i], &mark)) {
            is_safe = is_safe || mark;
            is_unsafe = is_unsafe || !mark;
        }
    }
    for (size_t i = 0; i < GL_COUNT(keys); i++) {
        gl_str key;

        is_safe = gl_manifest_text(m, c, keys[i], &key) || is_safe;
    }
    return is_safe && !is_unsafe ? GL_SAFETY_IDEMPOTENT : GL_SAFETY_UNSAFE;
}

static void read_pool(struct gl_manifest *m, const struct gl_manifest_node *node,
                      struct gl_step_spec *u)
{
    gl_str pool = GL_S("default");

    (void)gl_manifest_text(m, node->config, "pool", &pool);
    u->pool = gl_str_fmt(m->r.a, "executor.%.*s", GL_STR_ARG(pool));
    if (!gl_str_is_id(u->pool)) {
        gl_manifest_error(m, node->config, "pool", GL_REASON_NAME_INVALID,
                          "a pool's name has letters, digits, _ . and -, not more than %d",
                          GL_ID_BYTES_MAX - 9);
    }
    (void)gl_manifest_u32(m, node->config, "pool_slots", 1, GL_SLOTS_MAX, &u->slots);
}

void gl_manifest_process(struct gl_manifest *m, const struct gl_manifest_node *node,
                         struct gl_agent_spec *agent, struct gl_step_spec *ret)
{
    bool is_worker = node->kind == GL_AGENT_EXECUTOR;

    ret->id = gl_str_fmt(m->r.a, "@%.*s", GL_STR_ARG(node->id));
    ret->driver = is_worker                       ? GL_S("worker")
                  : node->kind == GL_AGENT_MODULE ? GL_S("module")
                                                  : GL_S("relay");
    ret->pool = GL_S("default");
    ret->slots = 1;
    ret->grace_ms = GL_GRACE_MS;
    ret->retry = GL_FLOW_RETRY_DEFAULT;
    ret->safety = GL_SAFETY_IDEMPOTENT;
    agent->pass_env = gl_manifest_texts(m, node->config, "pass_env");
    if (is_worker) {
        read_runner(m, node, agent);
        read_command(m, node, ret);
        read_env(m, node, ret);
        read_workdir(m, node, ret);
        read_pool(m, node, ret);
        gl_manifest_uploads(m, node, agent);
        ret->safety = read_safety(m, node);
        ret->timeout_ms = node->timeout_ms;
    }
}
