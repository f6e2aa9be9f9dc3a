/* step_wait.c - steps that run no program, and wait for a time, a signal or a person. */
#include "base/check.h"
#include "model/flow/flow_check.h"
#include "model/flow/step_read.h"

#define AT(s, name) GL_STEP_AT(s, name)

/* A single reference: its value is read when the step can start. */
static bool is_reference(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n,
                         struct gl_flow_path at, gl_str text)
{
    return gl_ref_is_one(text) && gl_step_refs_text(r, s, n, at, text);
}

void gl_step_wait_sleep(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    gl_str text = gl_json_is(n, GL_JSON_NUMBER) ? gl_json_raw(r->j, n)
                                                : gl_str_trim(gl_json_str(r->j, n, r->a));
    gl_ms span;
    s->spec->driver = GL_S("sleep");
    if (gl_ref_is_one(text) ? is_reference(r, s, n, AT(s, "sleep"), text)
                            : gl_flow_read_span(r, n, AT(s, "sleep"), 0, &span)) {
        s->spec->sleep = text;
    }
}

void gl_step_wait_until(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    gl_str text = gl_str_trim(gl_json_str(r->j, n, r->a));
    gl_ms when;
    s->spec->driver = GL_S("until");
    if (gl_ref_is_one(text)) {
        s->spec->until = is_reference(r, s, n, AT(s, "until"), text) ? text : s->spec->until;
    } else if (!gl_times_parse(text, &when)) {
        gl_flow_read_error(r, n, AT(s, "until"), GL_REASON_NOT_A_TIME,
                           "expected a time with a UTC offset, like 2026-12-01T06:00:00Z or "
                           "2026-12-01T06:00:00+01:00, or one reference");
    } else {
        s->spec->until = text;
    }
}

void gl_step_wait_signal(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    gl_str name;
    s->spec->driver = GL_S("signal");
    if (!gl_flow_read_scalar(r, n, AT(s, "signal"), &name)) {
        return;
    }
    if (!gl_str_is_id(name)) {
        gl_flow_read_error(r, n, AT(s, "signal"), GL_REASON_NAME_INVALID,
                           "expected the name of a signal: letters, digits, _ . and -");
        return;
    }
    s->spec->signal = name;
}

static void read_message(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n,
                         struct gl_flow_path at)
{
    gl_str text;
    if (!gl_flow_read_text(r, n, at, &text)) {
        return;
    }
    if (text.n > GL_FLOW_MESSAGE_BYTES_MAX) {
        gl_flow_read_error(r, n, at, GL_REASON_TOO_LARGE, "a message can have at most %d bytes",
                           GL_FLOW_MESSAGE_BYTES_MAX);
    } else if (gl_step_refs_text(r, s, n, at, text)) {
        s->spec->approval = text;
    }
}

static void read_decisions(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n,
                           struct gl_flow_path at)
{
    if (!gl_json_is(n, GL_JSON_ARRAY) || n->count < 1 || n->count > GL_FLOW_DECISIONS_MAX) {
        gl_flow_read_error(r, n, at, GL_REASON_WRONG_TYPE,
                           "expected a list of 1 to %d words, like [approve, reject]; the first "
                           "means yes",
                           GL_FLOW_DECISIONS_MAX);
        return;
    }
    gl_str *words = GL_NEW_ARRAY(r->a, gl_str, n->count);
    size_t i = 0;
    for (gl_jnode e = gl_json_first(r->j, n); e; e = gl_json_after(r->j, n, e)) {
        bool twice = false;
        if (!gl_flow_read_scalar(r, e, at, &words[i])) {
            continue;
        }
        for (size_t k = 0; k < i; k++) {
            twice = twice || gl_str_eq(words[k], words[i]);
        }
        if (!gl_str_is_id(words[i]) || twice) {
            gl_flow_read_error(r, e, at, twice ? GL_REASON_REPEATED : GL_REASON_NAME_INVALID, "%s",
                               twice ? "this decision is listed twice"
                                     : "a decision is a word of letters, digits, _ . and -");
        } else {
            i++;
        }
    }
    s->spec->decisions = (struct gl_strs){.items = words, .n = i};
}

static void check_on_timeout(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n,
                             struct gl_flow_path at)
{
    struct gl_suggest near;
    gl_suggest_init(&near, s->spec->on_timeout);
    for (size_t i = 0; i < s->spec->decisions.n; i++) {
        if (gl_str_eq(s->spec->decisions.items[i], s->spec->on_timeout)) {
            return;
        }
        gl_suggest_offer(&near, s->spec->decisions.items[i]);
    }
    gl_flow_read_error(r, n, at, GL_REASON_NOT_A_DECISION, "`%.*s` is not one of the decisions%s",
                       GL_STR_ARG(gl_flow_read_clip(s->spec->on_timeout)),
                       gl_flow_read_suggestion(r, &near));
}

static void read_approval_table(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n,
                                struct gl_flow_path where)
{
    gl_jnode on_timeout = NULL, message = NULL;
    for (gl_jnode key = gl_json_first(r->j, n); key; key = gl_json_after(r->j, n, key)) {
        gl_str name = gl_json_str(r->j, key, r->a);
        gl_jnode value = gl_json_value(key);
        if (gl_str_is(name, "message")) {
            message = value;
            read_message(r, s, value, GL_STEP_AT_KEY(where, "message"));
        } else if (gl_str_is(name, "decisions")) {
            read_decisions(r, s, value, GL_STEP_AT_KEY(where, "decisions"));
        } else if (gl_str_is(name, "on_timeout")) {
            on_timeout = gl_flow_read_scalar(r, value, GL_STEP_AT_KEY(where, "on_timeout"),
                                             &s->spec->on_timeout)
                             ? value
                             : NULL;
        } else if (gl_str_is(name, "timeout")) {
            gl_flow_read_error(r, key, GL_STEP_AT_KEY(where, "timeout"), GL_REASON_MISPLACED,
                               "`timeout` belongs next to `approval`, not inside it");
        } else {
            gl_flow_read_unknown(r, key, "approval", where);
        }
    }
    if (!message) {
        gl_flow_read_error(r, n, where, GL_REASON_MISSING,
                           "`message` is missing: the question for the person");
    }
    if (on_timeout) {
        check_on_timeout(r, s, on_timeout, GL_STEP_AT_KEY(where, "on_timeout"));
    }
}

void gl_step_wait_approval(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    static const gl_str usual[] = {{"approve", 7}, {"reject", 6}};
    s->spec->driver = GL_S("approval");
    s->spec->decisions = (struct gl_strs){usual, GL_COUNT(usual)};
    if (gl_json_is(n, GL_JSON_OBJECT)) {
        read_approval_table(r, s, n, AT(s, "approval"));
    } else if (gl_json_is(n, GL_JSON_STRING)) {
        read_message(r, s, n, AT(s, "approval"));
    } else {
        gl_flow_read_error(r, n, AT(s, "approval"), GL_REASON_WRONG_TYPE,
                           "expected the question for the person, or a table {message: ..., "
                           "decisions: [approve, reject]}");
    }
}

/* The other fields that a waiting step can have. */
static bool is_for_waiting(const char *driver, gl_str field)
{
    static const char *const allowed[] = {"id",   "needs",      "trigger_rule",
                                          "when", "on_failure", NULL};
    bool has_end = strcmp(driver, "signal") == 0 || strcmp(driver, "approval") == 0;
    return gl_schema_word(allowed, field) >= 0 || gl_str_is(field, driver) ||
           (has_end && gl_str_is(field, "timeout"));
}

static bool is_kind(gl_str field)
{
    static const char *const kinds[] = {"sh",    "run",   "python", "script",   "noop",
                                        "sleep", "until", "signal", "approval", NULL};
    return gl_schema_word(kinds, field) >= 0;
}

void gl_step_wait_finish(struct gl_flow_reader *r, struct gl_step_reading *s)
{
    const char *driver = gl_str_c(r->a, s->spec->driver);
    if (gl_str_is(s->spec->driver, "process") || gl_str_is(s->spec->driver, "noop")) {
        return;
    }
    for (gl_jnode key = gl_json_first(r->j, s->node); key;
         key = gl_json_after(r->j, s->node, key)) {
        struct gl_flow_path at = AT(s, NULL);
        at.key = gl_json_str(r->j, key, r->a);
        if (is_for_waiting(driver, at.key) || is_kind(at.key) ||
            !gl_flow_read_is_field("step", at.key)) {
            continue; /* unknown fields and a second kind are already reported */
        }
        if (gl_str_is(at.key, "timeout")) {
            gl_flow_read_error(r, key, at, GL_REASON_TIMEOUT_MISPLACED,
                               "a step with `%s` ends by itself; remove `timeout`", driver);
            continue;
        }
        gl_flow_read_error(r, key, at, GL_REASON_NO_PROCESS,
                           "`%.*s` applies to a process; a step with `%s` runs none",
                           GL_STR_ARG(at.key), driver);
    }
    if (s->spec->on_timeout.n && s->spec->timeout_ms == 0) {
        gl_flow_read_error(r, s->node, AT(s, "approval"), GL_REASON_MISSING,
                           "`on_timeout` needs a `timeout` next to `approval`");
    }
}
