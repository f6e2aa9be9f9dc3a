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

static void refuse_runner(struct gl_manifest *m, const struct gl_manifest_config *c,
                          const char *what)
{
    gl_manifest_error(m, c->node->config, "runner_module", GL_REASON_UNSUPPORTED,
                      "this release does not support %s (%.*s); "
                      "use MirrorNeuron.Runner.HostLocal, a process of the node",
                      what, GL_STR_ARG(gl_flow_read_clip(c->runner)));
}

static void pick_runner(struct gl_manifest *m, struct gl_manifest_config *c)
{
    gl_str part;

    if (c->runner.n == 0) {
        m->unnamed_runner = m->unnamed_runners_n++ == 0 ? c->node->id : m->unnamed_runner;
        return;
    }
    part = last_part(c->runner);
    if (gl_str_is(part, "HostLocal") || gl_str_is(part, "host_local")) {
        c->agent.runner = GL_S("host_local");
    } else if (gl_str_is(part, "DockerWorker") || gl_str_is(part, "docker_worker")) {
        refuse_runner(m, c, "a container");
    } else if (gl_str_is(part, "OpenShell") || gl_str_is(part, "openshell")) {
        refuse_runner(m, c, "a sandbox");
    } else {
        gl_manifest_error(m, c->node->config, "runner_module", GL_REASON_UNKNOWN_RUNNER,
                          "unknown runner `%.*s`; use MirrorNeuron.Runner.HostLocal",
                          GL_STR_ARG(gl_flow_read_clip(c->runner)));
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

void gl_manifest_command(struct gl_manifest *m, gl_jnode obj, const char *key, void *into)
{
    struct gl_step_spec *u = ((struct gl_manifest_config *)into)->unit;
    gl_jnode n = gl_manifest_get(m, obj, key);
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

/* The folders of skills come before the node's own PYTHONPATH. */
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

/* Read after the command, because both share a limit. */
void gl_manifest_environment(struct gl_manifest *m, gl_jnode obj, const char *key, void *into)
{
    const struct gl_manifest_node *node = ((struct gl_manifest_config *)into)->node;
    struct gl_step_spec *u = ((struct gl_manifest_config *)into)->unit;
    gl_jnode n = gl_manifest_object(m, obj, key);
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

/* The rest of `path` after `root`: "" for `root` itself, "/…" below it. */
static bool is_below(gl_str path, gl_str root, gl_str *ret)
{
    if (!gl_str_starts(path, root)) {
        return false;
    }
    *ret = (gl_str){path.p + root.n, path.n - root.n};
    return ret->n == 0 || ret->p[0] == '/';
}

static void place_workdir(struct gl_manifest *m, const struct gl_manifest_config *c)
{
    gl_str root = c->workspace, path = without_slash(c->workdir), below;
    struct gl_step_spec *u = c->unit;

    u->cwd = GL_S(GL_MANIFEST_WORK);
    if (path.n == 0) {
        return;
    }
    if (path.p[0] != '/' || path.n >= 4000 || !gl_manifest_is_program_text(path)) {
        gl_manifest_error(m, c->node->config, "workdir", GL_REASON_NOT_ABSOLUTE,
                          "expected an absolute path: %.*s and paths below it are in the workspace",
                          GL_STR_ARG(gl_flow_read_clip(root)));
    } else if (!is_below(path, without_slash(root), &below)) {
        u->cwd = path;
    } else if (below.n > 0 &&
               !gl_flow_check_file_path((gl_str){.p = below.p + 1, .n = below.n - 1})) {
        gl_manifest_error(m, c->node->config, "workdir", GL_REASON_LEADS_OUT,
                          "it is outside the workspace");
    } else {
        u->cwd = gl_str_fmt(m->r.a, GL_MANIFEST_WORK "%.*s", GL_STR_ARG(below));
    }
}

/* Whether it may run twice. An unsafe mark wins; without a mark it may not. */

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

void gl_manifest_side_effects(struct gl_manifest *m, gl_jnode obj, const char *key, void *into)
{
    struct gl_manifest_config *c = into;

    if (is_external(m, gl_manifest_get(m, obj, key))) {
        c->marks |= GL_MARKED_UNSAFE;
    }
}

static void name_pool(struct gl_manifest *m, const struct gl_manifest_config *c)
{
    c->unit->pool = gl_str_fmt(m->r.a, "executor.%.*s", GL_STR_ARG(c->pool));
    if (!gl_str_is_id(c->unit->pool)) {
        gl_manifest_error(m, c->node->config, "pool", GL_REASON_NAME_INVALID,
                          "a pool's name has letters, digits, _ . and -, not more than %d",
                          GL_ID_BYTES_MAX - 9);
    }
}

static void compile_worker(struct gl_manifest *m, struct gl_manifest_config *c)
{
    c->workspace = GL_S(workspace_default);
    c->pool = GL_S("default");
    c->slots = 1;
    gl_manifest_read(m, GL_TABLE_EXECUTOR, c->node->config, c);
    pick_runner(m, c);
    place_workdir(m, c);
    name_pool(m, c);
    gl_manifest_uploads(m, c->node, &c->agent);
    c->marks |= c->idempotency_key.n > 0 ? GL_MARKED_SAFE : 0;
    c->unit->safety = c->marks == GL_MARKED_SAFE ? GL_SAFETY_IDEMPOTENT : GL_SAFETY_UNSAFE;
    c->unit->timeout_ms = c->timeout_ms;
    c->unit->slots = c->slots;
}

void gl_manifest_process(struct gl_manifest *m, struct gl_manifest_config *c)
{
    struct gl_step_spec *unit = c->unit;
    uint8_t kind = c->node->kind;

    unit->id = gl_str_fmt(m->r.a, "@%.*s", GL_STR_ARG(c->node->id));
    unit->driver = kind == GL_AGENT_EXECUTOR ? GL_S("worker")
                   : kind == GL_AGENT_MODULE ? GL_S("module")
                                             : GL_S("relay");
    unit->pool = GL_S("default");
    unit->slots = 1;
    unit->grace_ms = GL_GRACE_MS;
    unit->retry = GL_FLOW_RETRY_DEFAULT;
    unit->safety = GL_SAFETY_IDEMPOTENT;
    if (kind == GL_AGENT_EXECUTOR) {
        compile_worker(m, c);
    }
}
