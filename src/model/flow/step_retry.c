/* step_retry.c - how often and when a step is retried. */
#include "base/check.h"
#include "model/flow/flow_check.h"
#include "model/flow/step_read.h"

/* A factor like 2 or 1.5, in percent. */
static void read_factor(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at, uint32_t *ret)
{
    uint32_t v = 0;
    if (!gl_flow_read_percent(r, n, &v) || v < 100 || v > GL_FLOW_FACTOR_PCT_MAX) {
        gl_flow_read_error(r, n, at, GL_REASON_OUT_OF_RANGE,
                           "expected a number from 1 to 100 with at most two decimals");
        return;
    }
    *ret = v;
}

static void read_jitter(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at, uint32_t *ret)
{
    uint32_t v = 0;
    if (!gl_flow_read_percent(r, n, &v) || v > 100) {
        gl_flow_read_error(r, n, at, GL_REASON_OUT_OF_RANGE,
                           "expected a number from 0 to 1 with at most two decimals: 0.2 lets "
                           "the wait vary by a fifth");
        return;
    }
    *ret = v;
}

static void read_attempts(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at,
                          struct gl_retry *ret)
{
    int64_t v;
    if (gl_json_i64(r->j, n, &v) && v == 0) {
        gl_flow_read_error(r, n, at, GL_REASON_FIRST_TRY_COUNTS,
                           "the first attempt counts too: 1 means no retry");
    } else if (gl_flow_read_int(r, n, at, 1, GL_ATTEMPTS_MAX, &v)) {
        ret->attempts = (uint32_t)v;
    }
}

static void read_on(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at,
                    struct gl_strs *ret)
{
    bool is_list = gl_json_is(n, GL_JSON_ARRAY);
    uint32_t count = is_list ? n->count : 1;
    if (count == 0 || count > GL_FLOW_RETRY_ON_MAX) {
        gl_flow_read_error(r, n, at, GL_REASON_EXIT_CODE_INVALID, "expected 1 to %d exit codes",
                           GL_FLOW_RETRY_ON_MAX);
        return;
    }
    gl_str *words = GL_NEW_ARRAY(r->a, gl_str, count);
    size_t i = 0;
    for (gl_jnode e = is_list ? gl_json_first(r->j, n) : n; e;
         e = is_list ? gl_json_after(r->j, n, e) : NULL) {
        gl_str word =
            gl_json_is(e, GL_JSON_NUMBER) ? gl_json_raw(r->j, e) : gl_json_str(r->j, e, r->a);
        if (gl_flow_check_retry_on(word)) {
            words[i++] = word;
        } else {
            gl_flow_read_error(r, e, at, GL_REASON_EXIT_CODE_INVALID,
                               "expected an exit code from 1 to 255, `timeout` or `signal`");
        }
    }
    *ret = (struct gl_strs){.items = words, .n = i};
}

static void read_table_field(struct gl_flow_reader *r, gl_jnode key, struct gl_flow_path where,
                             struct gl_retry *retry)
{
    gl_str name = gl_json_str(r->j, key, r->a);
    gl_jnode value = gl_json_value(key);
    if (gl_str_is(name, "attempts")) {
        read_attempts(r, value, GL_STEP_AT_KEY(where, "attempts"), retry);
    } else if (gl_str_is(name, "backoff")) {
        (void)gl_flow_read_span(r, value, GL_STEP_AT_KEY(where, "backoff"), 0, &retry->backoff_ms);
    } else if (gl_str_is(name, "factor")) {
        read_factor(r, value, GL_STEP_AT_KEY(where, "factor"), &retry->factor_pct);
    } else if (gl_str_is(name, "max_backoff")) {
        (void)gl_flow_read_span(r, value, GL_STEP_AT_KEY(where, "max_backoff"), 0,
                                &retry->backoff_max_ms);
    } else if (gl_str_is(name, "jitter")) {
        read_jitter(r, value, GL_STEP_AT_KEY(where, "jitter"), &retry->jitter_pct);
    } else if (gl_str_is(name, "on")) {
        read_on(r, value, GL_STEP_AT_KEY(where, "on"), &retry->on);
    } else {
        gl_flow_read_unknown(r, key, "retry", where);
    }
}

static void read_table(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n,
                       struct gl_flow_path where)
{
    struct gl_retry retry = GL_FLOW_RETRY_DEFAULT;
    for (gl_jnode key = gl_json_first(r->j, n); key; key = gl_json_after(r->j, n, key)) {
        read_table_field(r, key, where, &retry);
    }
    if (!gl_json_get(r->j, n, "attempts")) {
        gl_flow_read_error(r, n, where, GL_REASON_MISSING,
                           "`attempts` is missing: the total number of attempts");
    }
    if (retry.backoff_ms > retry.backoff_max_ms) {
        if (gl_json_get(r->j, n, "max_backoff")) {
            gl_flow_read_error(r, n, where, GL_REASON_BACKOFF_TOO_LONG,
                               "`backoff` is longer than `max_backoff`");
        }
        retry.backoff_max_ms = retry.backoff_ms;
    }
    s->spec->retry = retry;
}

void gl_step_retry_read(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    struct gl_flow_path where = GL_STEP_AT(s, "retry");
    if (gl_json_is(n, GL_JSON_OBJECT)) {
        read_table(r, s, n, where);
    } else if (gl_json_is(n, GL_JSON_NUMBER)) {
        read_attempts(r, n, where, &s->spec->retry);
    } else {
        gl_flow_read_error(
            r, n, where, GL_REASON_WRONG_TYPE,
            "expected the total number of attempts, like 3, or a table {attempts: 3, backoff: 1s}");
    }
}
