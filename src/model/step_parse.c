#include "model/step_parse.h"

#include <stdio.h>

#include "base/check.h"
#include "model/flow_check.h"

/* The step being read, and what must wait for its last field. */
struct step {
    struct gl_step_spec *spec;
    gl_str where;
    gl_jnode node;
    gl_jnode needs, rule, cwd;
    const char *command; /* the first of sh, run, python, script, noop; NULL: none yet */
    bool idempotent, unsafe;
};

#define AT(s, name) ((struct gl_flow_path){.of = (s)->where, .field = (name)})
#define AT_KEY(at, name) \
    ((struct gl_flow_path){.of = (at).of, .field = (at).field, .key = GL_S(name)})

/* Commands. */

/* Note that this step has a command; false (with an error) if it has one already. */
static bool take_command(struct gl_flow_reader *r, struct step *s, gl_jnode n, const char *name)
{
    if (s->command) {
        gl_flow_read_error(
            r, n, AT(s, name),
            "the step has `%s` already; a step has exactly one of sh, run, python, script, noop",
            s->command);
        return false;
    }
    s->command = name;
    return true;
}

static void set_argv(struct gl_flow_reader *r, struct step *s, const gl_str *words, size_t n)
{
    s->spec->argv =
        (struct gl_strs){.items = gl_arena_copy(r->a, words, n * sizeof(words[0])), .n = n};
}

static void set_file(struct gl_flow_reader *r, struct step *s, struct gl_flow_file file)
{
    s->spec->files = (struct gl_items){.items = gl_arena_copy(r->a, &file, sizeof(file)), .n = 1};
}

static void read_sh(struct gl_flow_reader *r, struct step *s, gl_jnode n)
{
    gl_str text;
    if (gl_json_is(n, GL_JSON_ARRAY)) {
        gl_flow_read_error(r, n, AT(s, "sh"), "`sh` takes text; for a list of arguments use `run`");
        return;
    }
    if (!gl_flow_read_text(r, n, AT(s, "sh"), &text)) {
        return;
    }
    if (text.n <= GL_FLOW_SH_BYTES_MAX) {
        set_argv(r, s, (gl_str[]){GL_S("sh"), GL_S("-ec"), text}, 3);
        return;
    }
    /* Too long for one argument of a command (128 KiB on Linux). */
    const struct gl_flow_file *file = gl_flow_read_file(r, n, AT(s, "sh"), (gl_str){0}, text);
    if (file) {
        set_file(r, s, (struct gl_flow_file){.name = GL_S("step.sh"), .blob = file->blob});
        set_argv(r, s, (gl_str[]){GL_S("sh"), GL_S("-e"), GL_S("./step.sh")}, 3);
    }
}

static void read_run(struct gl_flow_reader *r, struct step *s, gl_jnode n)
{
    if (!gl_json_is(n, GL_JSON_ARRAY)) {
        gl_flow_read_error(
            r, n, AT(s, "run"),
            "`run` takes a list: the program and its arguments, like [ls, -l]; for shell "
            "text use `sh`");
        return;
    }
    if (n->count == 0 || n->count > GL_ARGS_MAX) {
        gl_flow_read_error(r, n, AT(s, "run"), "expected 1 to %d words, not %u", GL_ARGS_MAX,
                           n->count);
        return;
    }
    gl_str *words = GL_NEW_ARRAY(r->a, gl_str, n->count);
    size_t i = 0;
    for (gl_jnode e = gl_json_first(r->j, n); e; e = gl_json_after(r->j, n, e), i++) {
        struct gl_flow_path at = AT(s, "run");
        at.item = (uint32_t)i + 1;
        if (gl_json_is(e, GL_JSON_NULL)) {
            gl_flow_read_error(r, e, at,
                               "expected text, not null; write \"\" for an empty argument");
        } else if (gl_flow_read_scalar(r, e, at, &words[i]) && words[i].n > GL_FLOW_ARG_BYTES_MAX) {
            gl_flow_read_error(r, e, at, "one argument can have at most %d bytes",
                               GL_FLOW_ARG_BYTES_MAX);
        } else if (i == 0 && words[i].n == 0) {
            gl_flow_read_error(r, e, at, "the program's name is empty");
        }
    }
    s->spec->argv = (struct gl_strs){.items = words, .n = i};
}

static void read_python(struct gl_flow_reader *r, struct step *s, gl_jnode n)
{
    gl_str text;
    if (!gl_flow_read_text(r, n, AT(s, "python"), &text)) {
        return;
    }
    const struct gl_flow_file *file = gl_flow_read_file(r, n, AT(s, "python"), (gl_str){0}, text);
    if (file) {
        set_file(r, s, (struct gl_flow_file){.name = GL_S("step.py"), .blob = file->blob});
        set_argv(r, s, (gl_str[]){GL_S("python3"), GL_S("step.py")}, 2);
    }
}

static gl_str base_name(gl_str path)
{
    for (size_t i = path.n; i > 0; i--) {
        if (path.p[i - 1] == '/') {
            return (gl_str){path.p + i, path.n - i};
        }
    }
    return path;
}

static void read_script(struct gl_flow_reader *r, struct step *s, gl_jnode n)
{
    gl_str path;
    if (!gl_flow_read_text(r, n, AT(s, "script"), &path)) {
        return;
    }
    gl_str name = base_name(path);
    if (!gl_flow_check_file_name(name)) {
        gl_flow_read_error(r, n, AT(s, "script"), "expected the path of a file");
        return;
    }
    const struct gl_flow_file *file = gl_flow_read_file(r, n, AT(s, "script"), path, (gl_str){0});
    if (!file) {
        return;
    }
    set_file(r, s, (struct gl_flow_file){name, file->blob, file->executable});
    gl_str here = gl_str_fmt(r->a, "./%.*s", GL_STR_ARG(name));
    if (file->executable) {
        set_argv(r, s, &here, 1);
    } else if (gl_str_ends(name, GL_S(".py"))) {
        set_argv(r, s, (gl_str[]){GL_S("python3"), here}, 2);
    } else if (gl_str_ends(name, GL_S(".sh"))) {
        set_argv(r, s, (gl_str[]){GL_S("sh"), here}, 2);
    } else {
        gl_flow_read_error(
            r, n, AT(s, "script"),
            "the file is not executable and does not end in .py or .sh: make it executable "
            "(chmod +x) or name its program with `run`");
    }
}

static void read_noop(struct gl_flow_reader *r, struct step *s, gl_jnode n)
{
    if (!gl_json_is(n, GL_JSON_TRUE)) {
        gl_flow_read_error(r, n, AT(s, "noop"), "`noop` can only be true");
    }
    s->spec->driver = GL_S("noop");
}

/* The other fields of a step. */

static void read_id(struct gl_flow_reader *r, struct step *s, gl_jnode n)
{
    (void)r, (void)s, (void)n; /* read before the others: their errors carry it */
}

/* A step may be called 1, and YAML makes a number of that. */
static bool is_id_like(gl_jnode n)
{
    return gl_json_is(n, GL_JSON_STRING) || gl_json_is(n, GL_JSON_NUMBER);
}

static void read_needs(struct gl_flow_reader *r, struct step *s, gl_jnode n)
{
    bool is_list = gl_json_is(n, GL_JSON_ARRAY);
    if (!is_list && !is_id_like(n)) {
        gl_flow_read_error(r, n, AT(s, "needs"),
                           "expected the id of a step or a list of ids, not %s",
                           gl_json_type_name(n));
        return;
    }
    uint32_t count = is_list ? n->count : 1;
    if (count > GL_NEEDS_MAX) {
        gl_flow_read_error(r, n, AT(s, "needs"), "a step can need at most %d others", GL_NEEDS_MAX);
        return;
    }
    gl_str *ids = GL_NEW_ARRAY(r->a, gl_str, count);
    size_t i = 0;
    for (gl_jnode e = is_list ? gl_json_first(r->j, n) : n; e;
         e = is_list ? gl_json_after(r->j, n, e) : NULL, i++) {
        struct gl_flow_path at = AT(s, "needs");
        at.item = is_list ? (uint32_t)i + 1 : 0;
        if (!is_id_like(e)) {
            gl_flow_read_error(r, e, at, "expected the id of a step, not %s", gl_json_type_name(e));
        } else {
            (void)gl_flow_read_scalar(r, e, at, &ids[i]);
        }
    }
    s->spec->needs_ids = (struct gl_strs){.items = ids, .n = i};
    s->needs = n;
}

static void read_env(struct gl_flow_reader *r, struct step *s, gl_jnode n)
{
    if (!gl_json_is(n, GL_JSON_OBJECT) || n->count > GL_ENVS_MAX) {
        gl_flow_read_error(r, n, AT(s, "env"),
                           "expected a map like {NAME: value} with at most %d entries",
                           GL_ENVS_MAX);
        return;
    }
    gl_str *entries = GL_NEW_ARRAY(r->a, gl_str, n->count);
    size_t i = 0;
    for (gl_jnode key = gl_json_first(r->j, n); key; key = gl_json_after(r->j, n, key)) {
        gl_str name = gl_json_str(r->j, key, r->a), value;
        struct gl_flow_path at = {.of = s->where, .field = "env", .key = name};
        if (!gl_flow_check_env_name(name)) {
            gl_flow_read_error(r, key, at,
                               "a name has letters, digits and _, and does not start with a digit");
        } else if (gl_str_starts(name, GL_S("GLIA_"))) {
            gl_flow_read_error(r, key, at, "names that start with GLIA_ are set by Glia itself");
        } else if (gl_flow_read_scalar(r, gl_json_value(key), at, &value)) {
            if (name.n + value.n + 1 > GL_FLOW_ARG_BYTES_MAX) {
                gl_flow_read_error(r, key, at, "one entry can have at most %d bytes",
                                   GL_FLOW_ARG_BYTES_MAX);
                continue;
            }
            entries[i++] = gl_str_fmt(r->a, "%.*s=%.*s", GL_STR_ARG(name), GL_STR_ARG(value));
        }
    }
    s->spec->env = (struct gl_strs){.items = entries, .n = i};
}

static void read_cwd(struct gl_flow_reader *r, struct step *s, gl_jnode n)
{
    gl_str path;
    if (!gl_flow_read_text(r, n, AT(s, "cwd"), &path)) {
        return;
    }
    if (path.p[0] != '/' || path.n >= 4096) {
        gl_flow_read_error(r, n, AT(s, "cwd"),
                           "expected an absolute path; leave `cwd` out for a private folder");
        return;
    }
    s->spec->cwd = path;
    s->cwd = n;
}

static void read_timeout(struct gl_flow_reader *r, struct step *s, gl_jnode n)
{
    (void)gl_flow_read_span(r, n, AT(s, "timeout"), 1, &s->spec->timeout_ms);
}

static void read_grace(struct gl_flow_reader *r, struct step *s, gl_jnode n)
{
    (void)gl_flow_read_span(r, n, AT(s, "grace"), 1, &s->spec->grace_ms);
}

static void read_heartbeat(struct gl_flow_reader *r, struct step *s, gl_jnode n)
{
    (void)gl_flow_read_span(r, n, AT(s, "heartbeat"), 1, &s->spec->heartbeat_ms);
}

/* A factor like 2 or 1.5, in percent. */
static bool read_factor(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at, uint32_t *ret)
{
    gl_str rest, whole = gl_str_cut(gl_json_raw(r->j, n), '.', &rest);
    uint64_t v = 0, cents = 0;
    bool ok = gl_json_is(n, GL_JSON_NUMBER) && gl_str_u64(whole, &v) && v <= 100 && rest.n <= 2 &&
              (rest.n == 0 || gl_str_u64(rest, &cents));
    v = v * 100 + (rest.n == 1 ? cents * 10 : cents);
    if (!ok || v < 100 || v > GL_FLOW_FACTOR_PCT_MAX) {
        gl_flow_read_error(r, n, at, "expected a number from 1 to 100 with at most two decimals");
        return false;
    }
    *ret = (uint32_t)v;
    return true;
}

static bool read_attempts(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at,
                          struct gl_retry *ret)
{
    int64_t v;
    if (gl_json_i64(r->j, n, &v) && v == 0) {
        gl_flow_read_error(r, n, at, "the first try counts too: 1 means no retry");
        return false;
    }
    if (!gl_flow_read_int(r, n, at, 1, GL_ATTEMPTS_MAX, &v)) {
        return false;
    }
    ret->attempts = (uint32_t)v;
    return true;
}

static void read_retry_table(struct gl_flow_reader *r, struct step *s, gl_jnode n,
                             struct gl_flow_path where)
{
    struct gl_retry retry = GL_FLOW_RETRY_DEFAULT;
    bool has_attempts = false, has_max = false;
    for (gl_jnode key = gl_json_first(r->j, n); key; key = gl_json_after(r->j, n, key)) {
        gl_str name = gl_json_str(r->j, key, r->a);
        gl_jnode value = gl_json_value(key);
        if (gl_str_is(name, "attempts")) {
            has_attempts = true;
            (void)read_attempts(r, value, AT_KEY(where, "attempts"), &retry);
        } else if (gl_str_is(name, "backoff")) {
            (void)gl_flow_read_span(r, value, AT_KEY(where, "backoff"), 0, &retry.backoff_ms);
        } else if (gl_str_is(name, "factor")) {
            (void)read_factor(r, value, AT_KEY(where, "factor"), &retry.factor_pct);
        } else if (gl_str_is(name, "max_backoff")) {
            has_max = true;
            (void)gl_flow_read_span(r, value, AT_KEY(where, "max_backoff"), 0,
                                    &retry.backoff_max_ms);
        } else {
            gl_flow_read_unknown(r, key, "retry", where);
        }
    }
    if (!has_attempts) {
        gl_flow_read_error(r, n, where, "`attempts` is missing: how often to try altogether");
    }
    if (retry.backoff_ms > retry.backoff_max_ms) {
        if (has_max) {
            gl_flow_read_error(r, n, where, "`backoff` is longer than `max_backoff`");
        }
        retry.backoff_max_ms = retry.backoff_ms;
    }
    s->spec->retry = retry;
}

static void read_retry(struct gl_flow_reader *r, struct step *s, gl_jnode n)
{
    struct gl_flow_path where = AT(s, "retry");
    if (gl_json_is(n, GL_JSON_OBJECT)) {
        read_retry_table(r, s, n, where);
    } else if (gl_json_is(n, GL_JSON_NUMBER)) {
        (void)read_attempts(r, n, where, &s->spec->retry);
    } else {
        gl_flow_read_error(
            r, n, where,
            "expected how often to try altogether, like 3, or a table {attempts: 3, backoff: 1s}");
    }
}

static bool read_rule_word(struct gl_flow_reader *r, struct step *s, gl_jnode n,
                           struct gl_flow_path at)
{
    static const char *const aliases[] = {
#define X(name, word, alias) alias,
        GL_RULES(X)
#undef X
    };
    return gl_flow_read_word(r, n, at, gl_rule_words, aliases, &s->spec->rule);
}

static void read_trigger_rule(struct gl_flow_reader *r, struct step *s, gl_jnode n)
{
    struct gl_flow_path where = AT(s, "trigger_rule");
    if (!gl_json_is(n, GL_JSON_OBJECT)) {
        s->rule = read_rule_word(r, s, n, where) ? n : NULL;
        return;
    }
    bool has_rule = false, ok = true;
    for (gl_jnode key = gl_json_first(r->j, n); key; key = gl_json_after(r->j, n, key)) {
        gl_str name = gl_json_str(r->j, key, r->a);
        gl_jnode value = gl_json_value(key);
        int64_t quorum;
        if (gl_str_is(name, "rule")) {
            has_rule = true;
            ok = read_rule_word(r, s, value, AT_KEY(where, "rule")) && ok;
        } else if (gl_str_is(name, "quorum")) {
            quorum = 0;
            ok =
                gl_flow_read_int(r, value, AT_KEY(where, "quorum"), 1, GL_NEEDS_MAX, &quorum) && ok;
            s->spec->quorum = (uint32_t)quorum;
        } else {
            gl_flow_read_unknown(r, key, "trigger_rule", where);
        }
    }
    if (!has_rule) {
        gl_flow_read_error(r, n, where, "`rule` is missing");
    }
    s->rule = has_rule && ok ? n : NULL;
}

static void read_on_failure(struct gl_flow_reader *r, struct step *s, gl_jnode n)
{
    (void)gl_flow_read_word(r, n, AT(s, "on_failure"), gl_failure_policy_words, NULL,
                            &s->spec->on_failure);
}

static void read_idempotent(struct gl_flow_reader *r, struct step *s, gl_jnode n)
{
    (void)gl_flow_read_bool(r, n, AT(s, "idempotent"), &s->idempotent);
}

static void read_unsafe(struct gl_flow_reader *r, struct step *s, gl_jnode n)
{
    (void)gl_flow_read_bool(r, n, AT(s, "unsafe"), &s->unsafe);
}

static void read_pool(struct gl_flow_reader *r, struct step *s, gl_jnode n)
{
    gl_str pool = gl_json_str(r->j, n, r->a);
    if (!gl_str_is_id(pool)) {
        gl_flow_read_error(r, n, AT(s, "pool"),
                           "expected the name of a pool: letters, digits, _ . and -");
        return;
    }
    s->spec->pool = pool;
}

static void read_slots(struct gl_flow_reader *r, struct step *s, gl_jnode n)
{
    int64_t v;
    if (gl_flow_read_int(r, n, AT(s, "slots"), 1, GL_SLOTS_MAX, &v)) {
        s->spec->slots = (uint32_t)v;
    }
}

static void read_priority(struct gl_flow_reader *r, struct step *s, gl_jnode n)
{
    (void)gl_flow_read_int(r, n, AT(s, "priority"), -GL_FLOW_PRIORITY_MAX, GL_FLOW_PRIORITY_MAX,
                           &s->spec->priority);
}

static const struct step_field {
    const char *name;
    void (*read)(struct gl_flow_reader *r, struct step *s, gl_jnode n);
    bool is_command;
} step_fields[] = {
    {"sh", read_sh, true},
    {"run", read_run, true},
    {"python", read_python, true},
    {"script", read_script, true},
    {"noop", read_noop, true},
    {"needs", read_needs, false},
    {"id", read_id, false},
    {"env", read_env, false},
    {"cwd", read_cwd, false},
    {"timeout", read_timeout, false},
    {"grace", read_grace, false},
    {"heartbeat", read_heartbeat, false},
    {"retry", read_retry, false},
    {"trigger_rule", read_trigger_rule, false},
    {"on_failure", read_on_failure, false},
    {"idempotent", read_idempotent, false},
    {"unsafe", read_unsafe, false},
    {"pool", read_pool, false},
    {"slots", read_slots, false},
    {"priority", read_priority, false},
};

/* What depends on several fields of one step. */

static void check_rule(struct gl_flow_reader *r, struct step *s)
{
    const struct gl_step_spec *spec = s->spec;
    if (!s->rule) {
        return;
    }
    struct gl_flow_path where = AT(s, "trigger_rule");
    const char *word = gl_rule_words[spec->rule];
    if (spec->rule != GL_RULE_QUORUM) {
        if (spec->quorum) {
            gl_flow_read_error(r, s->rule, where,
                               "`quorum` goes with the rule quorum_success, not with %s", word);
        }
    } else if (spec->quorum == 0) {
        gl_flow_read_error(
            r, s->rule, where,
            "the rule quorum_success needs a number: {rule: quorum_success, quorum: 2}");
    } else if (spec->needs_ids.n && spec->quorum > spec->needs_ids.n) {
        gl_flow_read_error(r, s->rule, where,
                           "the quorum is %u, but the step needs only %zu other%s", spec->quorum,
                           spec->needs_ids.n, spec->needs_ids.n == 1 ? "" : "s");
    }
    if (spec->needs_ids.n == 0 && gl_flow_check_rule_needs_parents(spec->rule)) {
        gl_flow_read_error(r, s->rule, where,
                           "with the rule %s this step could never run: it has no `needs`", word);
    }
}

static void check_step(struct gl_flow_reader *r, struct step *s)
{
    if (!s->command) {
        gl_flow_read_error(
            r, s->node, AT(s, NULL),
            "the step does nothing: it must have exactly one of sh, run, python, script, noop");
    }
    if (s->idempotent && s->unsafe) {
        gl_flow_read_error(r, s->node, AT(s, NULL),
                           "a step cannot be both `idempotent` and `unsafe`");
    }
    s->spec->safety = s->idempotent ? GL_SAFETY_IDEMPOTENT
                      : s->unsafe   ? GL_SAFETY_UNSAFE
                                    : GL_SAFETY_UNMARKED;
    if (s->cwd && s->spec->files.n) {
        gl_flow_read_error(
            r, s->cwd, AT(s, "cwd"),
            "`%s` puts a file into a private folder, so it cannot be combined with `cwd`",
            s->command);
    }
    if (gl_flow_check_command_bytes(s->spec) > GL_COMMAND_BYTES_MAX) {
        gl_flow_read_error(r, s->node, AT(s, NULL),
                           "the command and its environment have more than %d bytes together",
                           GL_COMMAND_BYTES_MAX);
    }
    check_rule(r, s);
}

static void read_step_field(struct gl_flow_reader *r, struct step *s, gl_jnode key)
{
    gl_str name = gl_json_str(r->j, key, r->a);
    for (size_t i = 0; i < GL_COUNT(step_fields); i++) {
        const struct step_field *f = &step_fields[i];
        if (gl_str_is(name, f->name)) {
            if (!f->is_command || take_command(r, s, key, f->name)) {
                f->read(r, s, gl_json_value(key));
            }
            return;
        }
    }
    gl_flow_read_unknown(r, key, "step", AT(s, NULL));
}

void gl_step_parse(struct gl_flow_reader *r, struct gl_step_source *source,
                   struct gl_step_spec *ret)
{
    *ret = (struct gl_step_spec){
        .id = ret->id,
        .driver = GL_S("process"),
        .grace_ms = GL_GRACE_MS,
        .retry = GL_FLOW_RETRY_DEFAULT,
        .pool = GL_S("default"),
        .slots = 1,
    };
    struct step s = {.spec = ret, .where = source->where, .node = source->node};
    if (!gl_json_is(s.node, GL_JSON_OBJECT)) {
        gl_flow_read_error(
            r, s.node, AT(&s, NULL),
            "expected a step: a map with exactly one of sh, run, python, script, noop%s",
            gl_json_is(s.node, GL_JSON_STRING) ? "; for shell text write `sh: ...` here" : "");
        return;
    }
    for (gl_jnode key = gl_json_first(r->j, s.node); key; key = gl_json_after(r->j, s.node, key)) {
        read_step_field(r, &s, key);
    }
    check_step(r, &s);
    source->needs = s.needs;
}
