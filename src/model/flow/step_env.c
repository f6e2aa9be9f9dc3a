/* step_env.c - the environment and the folder of a step. */
#include "base/check.h"
#include "model/flow/flow_check.h"
#include "model/flow/step_read.h"

#define AT(s, name) GL_STEP_AT(s, name)

static bool is_good_name(struct gl_flow_reader *r, gl_jnode key, struct gl_flow_path at)
{
    if (!gl_flow_check_env_name(at.key)) {
        gl_flow_read_error(r, key, at, GL_REASON_NAME_INVALID,
                           "a name has letters, digits and _, and does not start with a digit");
        return false;
    }
    if (gl_str_starts(at.key, GL_S("GLIA_"))) {
        gl_flow_read_error(r, key, at, GL_REASON_RESERVED_NAME,
                           "names that start with GLIA_ are reserved");
        return false;
    }
    return true;
}

/* {secret: "env:VARIABLE"} */
static void read_secret(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at, gl_str *ret)
{
    gl_jnode value = NULL;
    gl_str source = {0};
    bool has_unknown = false;
    for (gl_jnode key = gl_json_first(r->j, n); key; key = gl_json_after(r->j, n, key)) {
        if (gl_str_is(gl_json_str(r->j, key, r->a), "secret")) {
            value = gl_json_value(key);
        } else {
            struct gl_flow_path inner = {
                .of = gl_str_fmt(r->a, "%.*s.env.%.*s", GL_STR_ARG(at.of), GL_STR_ARG(at.key))};
            gl_flow_read_unknown(r, key, "secret", inner);
            has_unknown = true;
        }
    }
    if (!value && has_unknown) {
        return;
    }
    if (!value) {
        gl_flow_read_error(r, n, at, GL_REASON_WRONG_TYPE,
                           "expected text, or a table {secret: \"env:VARIABLE\"} or {secret: "
                           "\"file:/path\"}");
    } else if (gl_flow_read_text(r, value, at, &source) && !gl_flow_check_secret(source)) {
        gl_flow_read_error(r, value, at, GL_REASON_SECRET_INVALID,
                           "a secret comes from \"env:VARIABLE\" or \"file:/absolute/path\"");
    } else if (source.n) {
        *ret = gl_str_fmt(r->a, "%.*s=%.*s", GL_STR_ARG(at.key), GL_STR_ARG(source));
    }
}

static void read_plain(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n,
                       struct gl_flow_path at, gl_str *ret)
{
    gl_str value;
    if (!gl_flow_read_scalar(r, n, at, &value)) {
        return;
    }
    if (at.key.n + value.n + 1 > GL_ARG_BYTES_MAX) {
        gl_flow_read_error(r, n, at, GL_REASON_TOO_LARGE, "one entry can have at most %d bytes",
                           GL_ARG_BYTES_MAX);
        return;
    }
    if (gl_step_refs_text(r, s, n, at, value)) {
        s->spec->expand |= gl_ref_has(value) ? GL_EXPAND_ENV : 0u;
        *ret = gl_str_fmt(r->a, "%.*s=%.*s", GL_STR_ARG(at.key), GL_STR_ARG(value));
    }
}

void gl_step_env_read(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    if (!gl_json_is(n, GL_JSON_OBJECT) || n->count > GL_ENVS_MAX) {
        gl_flow_read_error(r, n, AT(s, "env"), GL_REASON_WRONG_TYPE,
                           "expected a map like {NAME: value} with at most %d entries",
                           GL_ENVS_MAX);
        return;
    }
    gl_str *entries = GL_NEW_ARRAY(r->a, gl_str, n->count);
    gl_str *secrets = GL_NEW_ARRAY(r->a, gl_str, n->count);
    size_t entries_n = 0, secrets_n = 0;
    for (gl_jnode key = gl_json_first(r->j, n); key; key = gl_json_after(r->j, n, key)) {
        struct gl_flow_path at = AT(s, "env");
        gl_jnode value = gl_json_value(key);
        at.key = gl_json_str(r->j, key, r->a);
        if (!is_good_name(r, key, at)) {
            continue;
        }
        if (gl_json_is(value, GL_JSON_OBJECT)) {
            read_secret(r, value, at, &secrets[secrets_n]);
            secrets_n += secrets[secrets_n].n > 0;
        } else {
            read_plain(r, s, value, at, &entries[entries_n]);
            entries_n += entries[entries_n].n > 0;
        }
    }
    s->env = (struct gl_strs){.items = entries, .n = entries_n};
    s->spec->secrets = (struct gl_strs){.items = secrets, .n = secrets_n};
    if (secrets_n > GL_SECRETS_MAX) {
        gl_flow_read_error(r, n, AT(s, "env"), GL_REASON_TOO_MANY,
                           "a step can have at most %d secrets", GL_SECRETS_MAX);
    }
}

void gl_step_env_cwd(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    gl_str path;
    if (!gl_flow_read_text(r, n, AT(s, "cwd"), &path) ||
        !gl_step_refs_text(r, s, n, AT(s, "cwd"), path)) {
        return;
    }
    bool has_refs = gl_ref_has(path);
    bool is_absolute = path.p[0] == '/' || (has_refs && gl_str_starts(path, GL_S("${")));
    if (!is_absolute || path.n >= 4096) {
        gl_flow_read_error(r, n, AT(s, "cwd"), GL_REASON_NOT_ABSOLUTE,
                           "expected an absolute path; leave `cwd` out for a private folder");
        return;
    }
    s->spec->expand |= has_refs ? GL_EXPAND_CWD : 0u;
    s->spec->cwd = has_refs ? path : gl_ref_literal(path, r->a);
    s->cwd = n;
}

/* Only now is it known whether the list is marked, because `sh` may have added references. */
void gl_step_env_finish(struct gl_flow_reader *r, struct gl_step_reading *s)
{
    size_t n = s->env.n + s->code_env.n;
    gl_str *all = GL_NEW_ARRAY(r->a, gl_str, n);
    s->spec->expand |= s->code_env.n ? GL_EXPAND_ENV : 0u;
    for (size_t i = 0; i < n; i++) {
        gl_str text = i < s->env.n ? s->env.items[i] : s->code_env.items[i - s->env.n];
        all[i] = s->spec->expand & GL_EXPAND_ENV ? text : gl_ref_literal(text, r->a);
    }
    s->spec->env = (struct gl_strs){.items = all, .n = n};
    if (n > GL_ENVS_MAX) {
        gl_flow_read_error(r, s->node, AT(s, "env"), GL_REASON_TOO_MANY,
                           "a step can have at most %d environment entries and references",
                           GL_ENVS_MAX);
    }
}
