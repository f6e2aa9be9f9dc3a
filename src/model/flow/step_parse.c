#include "model/flow/step_parse.h"

#include <stdio.h>

#include "base/check.h"
#include "model/flow/flow_check.h"
#include "model/flow/step_read.h"
#include "model/labels.h"

#define AT(s, name) GL_STEP_AT(s, name)
#define AT_KEY(at, name) GL_STEP_AT_KEY(at, name)
#define KINDS "sh, run, python, script, noop, sleep, until, signal, approval"

/* Record that this step has a kind; false (with an error) if it already has one. */
static bool take_command(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n,
                         const char *name)
{
    if (s->command) {
        gl_flow_read_error(r, n, AT(s, name), GL_REASON_COMMAND_TWICE,
                           "the step has `%s` already; a step has exactly one of " KINDS,
                           s->command);
        return false;
    }
    s->command = name;
    return true;
}

static void read_id(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    (void)r, (void)s, (void)n; /* read before the others, whose errors include it */
}

/* A step may be called 1, which YAML reads as a number. */
static bool is_id_like(gl_jnode n)
{
    return gl_json_is(n, GL_JSON_STRING) || gl_json_is(n, GL_JSON_NUMBER);
}

static void read_needs(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    bool is_list = gl_json_is(n, GL_JSON_ARRAY);
    if (!is_list && !is_id_like(n)) {
        gl_flow_read_error(r, n, AT(s, "needs"), GL_REASON_WRONG_TYPE,
                           "expected the id of a step or a list of ids, not %s",
                           gl_json_type_name(n));
        return;
    }
    uint32_t count = is_list ? n->count : 1;
    if (count > GL_NEEDS_MAX) {
        gl_flow_read_error(r, n, AT(s, "needs"), GL_REASON_TOO_MANY,
                           "a step can need at most %d others", GL_NEEDS_MAX);
        return;
    }
    gl_str *ids = GL_NEW_ARRAY(r->a, gl_str, count);
    size_t i = 0;
    for (gl_jnode e = is_list ? gl_json_first(r->j, n) : n; e;
         e = is_list ? gl_json_after(r->j, n, e) : NULL, i++) {
        struct gl_flow_path at = AT(s, "needs");
        at.item = is_list ? (uint32_t)i + 1 : 0;
        if (!is_id_like(e)) {
            gl_flow_read_error(r, e, at, GL_REASON_WRONG_TYPE, "expected the id of a step, not %s",
                               gl_json_type_name(e));
        } else {
            (void)gl_flow_read_scalar(r, e, at, &ids[i]);
        }
    }
    s->spec->needs_ids = (struct gl_strs){.items = ids, .n = i};
    s->needs = n;
}

static void read_timeout(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    (void)gl_flow_read_span(r, n, AT(s, "timeout"), 1, &s->spec->timeout_ms);
}

static void read_grace(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    (void)gl_flow_read_span(r, n, AT(s, "grace"), 1, &s->spec->grace_ms);
}

static void read_heartbeat(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    (void)gl_flow_read_span(r, n, AT(s, "heartbeat"), 1, &s->spec->heartbeat_ms);
}

static bool read_rule_word(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n,
                           struct gl_flow_path at)
{
    static const char *const aliases[] = {
#define X(name, word, alias) alias,
        GL_RULES(X)
#undef X
    };
    return gl_flow_read_word(r, n, at, gl_rule_words, aliases, &s->spec->rule);
}

static void read_trigger_rule(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
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
        gl_flow_read_error(r, n, where, GL_REASON_MISSING, "`rule` is missing");
    }
    s->rule = has_rule && ok ? n : NULL;
}

static void read_on_failure(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    (void)gl_flow_read_word(r, n, AT(s, "on_failure"), gl_failure_policy_words, NULL,
                            &s->spec->on_failure);
}

static void read_idempotent(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    (void)gl_flow_read_bool(r, n, AT(s, "idempotent"), &s->idempotent);
}

static void read_unsafe(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    (void)gl_flow_read_bool(r, n, AT(s, "unsafe"), &s->unsafe);
}

static void read_pool(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    gl_str pool = gl_json_str(r->j, n, r->a);
    if (!gl_str_is_id(pool)) {
        gl_flow_read_error(r, n, AT(s, "pool"), GL_REASON_NAME_INVALID,
                           "expected the name of a pool: letters, digits, _ . and -");
        return;
    }
    s->spec->pool = pool;
}

static void read_slots(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    int64_t v;
    if (gl_flow_read_int(r, n, AT(s, "slots"), 1, GL_SLOTS_MAX, &v)) {
        s->spec->slots = (uint32_t)v;
    }
}

static void read_priority(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    (void)gl_flow_read_int(r, n, AT(s, "priority"), -GL_FLOW_PRIORITY_MAX, GL_FLOW_PRIORITY_MAX,
                           &s->spec->priority);
}

/* A value may be written as a number. */
static gl_str label_value(struct gl_flow_reader *r, gl_jnode v)
{
    return gl_json_is(v, GL_JSON_NUMBER) ? gl_json_raw(r->j, v) : gl_json_str(r->j, v, r->a);
}

/* The text of one rule; "": its value is of the wrong kind. */
static gl_str label_rule(struct gl_flow_reader *r, gl_str name, gl_jnode v)
{
    bool wanted;
    gl_str rule;

    if (gl_json_bool(v, &wanted)) {
        return wanted ? name : gl_str_fmt(r->a, "!%.*s", GL_STR_ARG(name));
    }
    if (gl_json_is(v, GL_JSON_STRING) || gl_json_is(v, GL_JSON_NUMBER)) {
        return gl_str_fmt(r->a, "%.*s=%.*s", GL_STR_ARG(name), GL_STR_ARG(label_value(r, v)));
    }
    if (!gl_json_is(v, GL_JSON_ARRAY) || v->count == 0) {
        return (gl_str){0};
    }
    rule = gl_str_fmt(r->a, "%.*s=", GL_STR_ARG(name));
    for (gl_jnode e = gl_json_first(r->j, v); e != NULL; e = gl_json_after(r->j, v, e)) {
        rule = gl_str_fmt(r->a, "%.*s%s%.*s", GL_STR_ARG(rule),
                          rule.p[rule.n - 1] == '=' ? "" : "|", GL_STR_ARG(label_value(r, e)));
    }
    return rule;
}

static void read_node_labels(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    gl_str *rules;

    if (!gl_json_is(n, GL_JSON_OBJECT) || n->count > GL_LABELS_MAX) {
        gl_flow_read_error(r, n, AT(s, "node_labels"), GL_REASON_WRONG_TYPE,
                           "expected a table of at most %d labels, like {zone: a, disk: [ssd, "
                           "nvme], gpu: true}",
                           GL_LABELS_MAX);
        return;
    }
    rules = GL_NEW_ARRAY(r->a, gl_str, n->count + 1);
    for (gl_jnode k = gl_json_first(r->j, n); k != NULL; k = gl_json_after(r->j, n, k)) {
        gl_str rule = label_rule(r, gl_json_str(r->j, k, r->a), gl_json_value(k));

        if (!gl_labels_is_rule(rule)) {
            gl_flow_read_error(r, k, AT(s, "node_labels"), GL_REASON_NAME_INVALID,
                               "expected a value, a list of values, true or false; names and "
                               "values are 1 to 64 letters, digits, '_', '.', '-' or '/'");
            return;
        }
        rules[s->spec->node_labels.n++] = rule;
    }
    s->spec->node_labels.items = rules;
}

static const struct step_field {
    const char *name;
    gl_step_read_fn *read;
    bool is_command;
} step_fields[] = {
    {"sh", gl_step_command_sh, true},
    {"run", gl_step_command_run, true},
    {"python", gl_step_command_python, true},
    {"script", gl_step_command_script, true},
    {"noop", gl_step_command_noop, true},
    {"sleep", gl_step_wait_sleep, true},
    {"until", gl_step_wait_until, true},
    {"signal", gl_step_wait_signal, true},
    {"approval", gl_step_wait_approval, true},
    {"needs", read_needs, false},
    {"id", read_id, false},
    {"when", gl_step_limit_when, false},
    {"foreach", gl_step_limit_foreach, false},
    {"max_items", gl_step_limit_items, false},
    {"max_parallel", gl_step_limit_parallel, false},
    {"concurrency", gl_step_limit_concurrency, false},
    {"rate", gl_step_limit_rate, false},
    {"env", gl_step_env_read, false},
    {"cwd", gl_step_env_cwd, false},
    {"files", gl_step_command_files, false},
    {"timeout", read_timeout, false},
    {"grace", read_grace, false},
    {"heartbeat", read_heartbeat, false},
    {"retry", gl_step_retry_read, false},
    {"trigger_rule", read_trigger_rule, false},
    {"on_failure", read_on_failure, false},
    {"idempotent", read_idempotent, false},
    {"unsafe", read_unsafe, false},
    {"pool", read_pool, false},
    {"slots", read_slots, false},
    {"priority", read_priority, false},
    {"node_labels", read_node_labels, false},
};

/* Rules that involve several fields of one step. */

static void check_rule(struct gl_flow_reader *r, struct gl_step_reading *s)
{
    const struct gl_step_spec *spec = s->spec;
    if (!s->rule) {
        return;
    }
    struct gl_flow_path where = AT(s, "trigger_rule");
    const char *word = gl_rule_words[spec->rule];
    if (spec->rule != GL_RULE_QUORUM) {
        if (spec->quorum) {
            gl_flow_read_error(r, s->rule, where, GL_REASON_QUORUM_MISPLACED,
                               "`quorum` is only allowed with the rule quorum_success, not with %s",
                               word);
        }
    } else if (spec->quorum == 0) {
        gl_flow_read_error(
            r, s->rule, where, GL_REASON_MISSING,
            "the rule quorum_success needs a number: {rule: quorum_success, quorum: 2}");
    } else if (spec->needs_ids.n && spec->quorum > spec->needs_ids.n) {
        gl_flow_read_error(r, s->rule, where, GL_REASON_QUORUM_TOO_LARGE,
                           "the quorum is %u, but `needs` names only %zu step%s", spec->quorum,
                           spec->needs_ids.n, spec->needs_ids.n == 1 ? "" : "s");
    }
    if (spec->needs_ids.n == 0 && gl_flow_check_rule_needs_parents(spec->rule)) {
        gl_flow_read_error(r, s->rule, where, GL_REASON_NO_NEEDS,
                           "with the rule %s this step could never run: it has no `needs`", word);
    }
}

static void check_step(struct gl_flow_reader *r, struct gl_step_reading *s)
{
    if (!s->command) {
        gl_flow_read_error(r, s->node, AT(s, NULL), GL_REASON_NO_COMMAND,
                           "the step does nothing: it must have exactly one of " KINDS);
    }
    if (s->idempotent && s->unsafe) {
        gl_flow_read_error(r, s->node, AT(s, NULL), GL_REASON_IDEMPOTENT_AND_UNSAFE,
                           "a step cannot be both `idempotent` and `unsafe`");
    }
    s->spec->safety = s->idempotent ? GL_SAFETY_IDEMPOTENT
                      : s->unsafe   ? GL_SAFETY_UNSAFE
                                    : GL_SAFETY_UNMARKED;
    gl_step_command_finish(r, s);
    gl_step_env_finish(r, s);
    gl_step_wait_finish(r, s);
    gl_step_limit_finish(r, s);
    if (gl_flow_check_command_bytes(s->spec) > GL_COMMAND_BYTES_MAX) {
        gl_flow_read_error(r, s->node, AT(s, NULL), GL_REASON_TOO_LARGE,
                           "the command and its environment have more than %d bytes together",
                           GL_COMMAND_BYTES_MAX);
    }
    check_rule(r, s);
}

static void read_step_field(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode key)
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
    struct gl_step_reading s = {
        .spec = ret,
        .where = source->where,
        .number = source->number,
        .node = source->node,
        .has_foreach = gl_json_get(r->j, source->node, "foreach") != NULL,
    };
    if (!gl_json_is(s.node, GL_JSON_OBJECT)) {
        gl_flow_read_error(
            r, s.node, AT(&s, NULL), GL_REASON_WRONG_TYPE,
            "expected a step: a map with exactly one of " KINDS "%s",
            gl_json_is(s.node, GL_JSON_STRING) ? "; for shell text write `sh: ...` here" : "");
        return;
    }
    for (gl_jnode key = gl_json_first(r->j, s.node); key; key = gl_json_after(r->j, s.node, key)) {
        read_step_field(r, &s, key);
    }
    check_step(r, &s);
    source->needs = s.needs;
}
