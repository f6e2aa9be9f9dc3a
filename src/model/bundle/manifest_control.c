/* Compiles the control of a step: trigger rule, timeout, retries and failure policy. */
#include "base/check.h"
#include "model/bundle/manifest_read.h"

enum { TIMEOUT_MS = 300000 };

/* The trigger rule. */

static bool find_rule(gl_str word, uint8_t *ret)
{
    static const char *const aliases[] = {
#define X(name, word, alias) alias,
        GL_RULES(X)
#undef X
    };

    for (uint8_t i = 0; i < GL_RULE_COUNT; i++) {
        if (gl_str_is(word, gl_rule_words[i]) ||
            (aliases[i] != NULL && gl_str_is(word, aliases[i]))) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static gl_jnode first_of(struct gl_manifest *m, gl_jnode obj, const char *a, const char *b,
                         const char *c)
{
    gl_jnode n = gl_manifest_either(m, obj, a, b);

    return n != NULL ? n : gl_manifest_get(m, obj, c);
}

/* The fields that hold the rule and its quorum; each is a text or a table. */
static gl_jnode rule_of(struct gl_manifest *m, gl_jnode step, bool has_parents)
{
    gl_jnode control = gl_manifest_object(m, step, "control");
    gl_jnode join = gl_manifest_get(m, step, "join");
    gl_jnode n = gl_manifest_get(m, step, "trigger_rule");

    n = n != NULL ? n : gl_manifest_get(m, control, "trigger_rule");
    if (n == NULL && gl_json_is(join, GL_JSON_STRING)) {
        n = join;
    }
    n = n != NULL ? n : first_of(m, join, "trigger_rule", "rule", "mode");
    if (n == NULL && has_parents) {
        n = gl_manifest_get(m, gl_manifest_object(m, m->graph, "graph"), "join_default");
    }
    return n;
}

static gl_jnode quorum_of(struct gl_manifest *m, gl_jnode step, gl_jnode rule)
{
    const gl_jnode places[] = {rule, gl_manifest_get(m, step, "join"),
                               gl_manifest_get(m, step, "control"), step};
    gl_jnode n = NULL;

    for (size_t i = 0; i < GL_COUNT(places) && n == NULL; i++) {
        n = first_of(m, places[i], "quorum", "count", "minimum");
    }
    return n;
}

static void read_quorum(struct gl_manifest *m, gl_jnode step, gl_jnode rule, size_t parents_n,
                        struct gl_step_spec *ret)
{
    gl_jnode n = quorum_of(m, step, rule);
    int64_t quorum = 0;

    if (n == NULL) {
        gl_manifest_error(m, rule, NULL, GL_REASON_MISSING,
                          "a quorum needs a number: {\"rule\": \"quorum_success\", \"quorum\": n}");
    } else if (!gl_json_i64(m->r.j, n, &quorum) || quorum < 1) {
        gl_manifest_error(m, n, NULL, GL_REASON_OUT_OF_RANGE,
                          "a quorum must be a whole number of at least 1");
    } else if ((uint64_t)quorum > parents_n) {
        gl_manifest_error(m, n, NULL, GL_REASON_QUORUM_TOO_LARGE,
                          "the quorum is %lld, but only %zu edge%s to this step", (long long)quorum,
                          parents_n, parents_n == 1 ? " leads" : "s lead");
    } else {
        ret->quorum = (uint32_t)quorum;
    }
}

void gl_manifest_rule(struct gl_manifest *m, gl_jnode step, size_t parents_n,
                      struct gl_step_spec *ret)
{
    gl_jnode rule = rule_of(m, step, parents_n > 0), word = rule;
    gl_str text;

    if (rule == NULL) {
        return;
    }
    if (gl_json_is(rule, GL_JSON_OBJECT)) {
        word = first_of(m, rule, "rule", "type", "mode");
        if (word == NULL) {
            gl_manifest_error(m, rule, "rule", GL_REASON_MISSING,
                              "it is missing: the name of the trigger rule");
            return;
        }
    }
    text = gl_json_str(m->r.j, word, m->r.a);
    if (!gl_json_is(word, GL_JSON_STRING) || !find_rule(text, &ret->rule)) {
        gl_manifest_error(m, word, NULL, GL_REASON_UNKNOWN_RULE,
                          "there is no trigger rule `%.*s`: it is all_success, all_done, "
                          "one_success, one_done, one_failed, none_failed_min_one_success or "
                          "quorum_success%s",
                          GL_STR_ARG(gl_flow_read_clip(text)),
                          gl_manifest_near(m, gl_rule_words, text));
    } else if (ret->rule == GL_RULE_QUORUM) {
        read_quorum(m, step, rule, parents_n, ret);
    }
}

/* 1, 1.5 or 2.25, in percent. */
void gl_manifest_multiplier(struct gl_manifest *m, gl_jnode obj, const char *key, void *into)
{
    struct gl_retry *r = into;
    gl_jnode n = gl_manifest_get(m, obj, key);
    uint32_t pct = 0;

    if (n == NULL) {
        return;
    }
    if (!gl_flow_read_percent(&m->r, n, &pct) || pct < 100 || pct > GL_FLOW_FACTOR_PCT_MAX) {
        gl_manifest_error(m, n, NULL, GL_REASON_OUT_OF_RANGE,
                          "expected a number from 1 to %d with at most two decimals: how much the "
                          "wait grows",
                          GL_FLOW_FACTOR_PCT_MAX / 100);
        return;
    }
    r->factor_pct = pct;
}

/* The first of them that is present. */
static gl_ms first_time(gl_ms a, gl_ms b, gl_ms otherwise)
{
    return a > 0 ? a : b > 0 ? b : otherwise;
}

void gl_manifest_control(struct gl_manifest *m, gl_jnode step, const struct gl_manifest_node *node,
                         struct gl_step_spec *ret)
{
    static const uint8_t policies[] = {GL_ON_FAILURE_FAIL, GL_ON_FAILURE_CONTINUE,
                                       GL_ON_FAILURE_CONTINUE, GL_ON_FAILURE_SKIP};
    static const struct gl_manifest_node nothing = {.retry_backoff_ms = -1};
    gl_jnode control = gl_manifest_object(m, step, "control");
    struct gl_manifest_control_fields c = {.backoff_ms = -1};
    struct gl_retry *r = &ret->retry;

    node = node != NULL ? node : &nothing;
    gl_manifest_read(m, GL_TABLE_CONTROL, control, &c);
    ret->on_failure = c.is_optional ? GL_ON_FAILURE_CONTINUE : policies[c.failure_policy];
    ret->timeout_ms = first_time(c.timeout_ms, node->timeout_ms, TIMEOUT_MS);
    ret->heartbeat_ms = first_time(c.beacon_timeout_ms, node->beacon_timeout_ms, ret->timeout_ms);
    *r = GL_FLOW_RETRY_DEFAULT;
    r->attempts = c.max_attempts > 0       ? c.max_attempts
                  : node->max_attempts > 0 ? node->max_attempts
                                           : 1;
    gl_manifest_read(m, GL_TABLE_RETRY, gl_manifest_object(m, control, "retry"), r);
    /* The contract requires that the node takes precedence over retry.backoff_seconds. */
    r->backoff_ms = c.backoff_ms >= 0             ? c.backoff_ms
                    : node->retry_backoff_ms >= 0 ? node->retry_backoff_ms
                                                  : r->backoff_ms;
    if (r->attempts > 1 || r->backoff_ms > r->backoff_max_ms) {
        r->backoff_max_ms = GL_MANIFEST_SPAN_MS_MAX;
    }
}
