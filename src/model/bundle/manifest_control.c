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

static const char *near_rule(struct gl_manifest *m, gl_str word)
{
    struct gl_suggest near;

    gl_suggest_init(&near, word);
    for (size_t i = 0; i < GL_RULE_COUNT; i++) {
        gl_suggest_offer(&near, gl_str_of(gl_rule_words[i]));
    }
    return gl_flow_read_suggestion(&m->r, &near);
}

static gl_jnode first_of(struct gl_manifest *m, gl_jnode obj, const char *a, const char *b,
                         const char *c)
{
    gl_jnode n = gl_manifest_either(m, obj, a, b);

    return n != NULL ? n : gl_manifest_get(m, obj, c);
}

/* Where the rule stands, and where its quorum does; each is a text or a table. */
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
                          GL_STR_ARG(gl_flow_read_clip(text)), near_rule(m, text));
    } else if (ret->rule == GL_RULE_QUORUM) {
        read_quorum(m, step, rule, parents_n, ret);
    }
}

/* Failure. */

static void read_failure(struct gl_manifest *m, gl_jnode control, struct gl_step_spec *ret)
{
    static const char *const words[] = {"fail_workflow", "continue_partial", "continue", "skip",
                                        NULL};
    static const uint8_t policies[] = {GL_ON_FAILURE_FAIL, GL_ON_FAILURE_CONTINUE,
                                       GL_ON_FAILURE_CONTINUE, GL_ON_FAILURE_SKIP};
    uint8_t word = 0;
    bool is_required = true;

    (void)gl_manifest_word(m, control, "failure_policy", words, &word);
    (void)gl_manifest_bool(m, control, "required", &is_required);
    ret->on_failure = is_required ? policies[word] : GL_ON_FAILURE_CONTINUE;
}

/* Times. */

static void read_times(struct gl_manifest *m, gl_jnode control, const struct gl_manifest_node *node,
                       struct gl_step_spec *ret)
{
    ret->timeout_ms = node != NULL && node->timeout_ms > 0 ? node->timeout_ms : TIMEOUT_MS;
    (void)gl_manifest_seconds(m, control, "timeout_seconds", 1, &ret->timeout_ms);
    ret->heartbeat_ms =
        node != NULL && node->beacon_timeout_ms > 0 ? node->beacon_timeout_ms : ret->timeout_ms;
    (void)gl_manifest_ms(m, control, "beacon_timeout_ms", 1, &ret->heartbeat_ms);
}

/* 1, 1.5 or 2.25, in percent. */
static void read_multiplier(struct gl_manifest *m, gl_jnode retry, uint32_t *ret)
{
    gl_jnode n = gl_manifest_get(m, retry, "backoff_multiplier");
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
    *ret = pct;
}

static void read_retry(struct gl_manifest *m, gl_jnode control, const struct gl_manifest_node *node,
                       struct gl_step_spec *ret)
{
    gl_jnode retry = gl_manifest_object(m, control, "retry");
    struct gl_retry *r = &ret->retry;

    *r = GL_FLOW_RETRY_DEFAULT;
    r->attempts = node != NULL && node->max_attempts > 0 ? node->max_attempts : 1;
    (void)gl_manifest_u32(m, control, "max_attempts", 1, GL_ATTEMPTS_MAX, &r->attempts);
    (void)gl_manifest_u32(m, retry, "max_attempts", 1, GL_ATTEMPTS_MAX, &r->attempts);
    /* The least specific first. That the node comes before retry.backoff_seconds is the contract's.
     */
    (void)gl_manifest_seconds(m, retry, "backoff_seconds", 0, &r->backoff_ms);
    r->backoff_ms =
        node != NULL && node->retry_backoff_ms >= 0 ? node->retry_backoff_ms : r->backoff_ms;
    (void)gl_manifest_ms(m, control, "retry_backoff_ms", 0, &r->backoff_ms);
    read_multiplier(m, retry, &r->factor_pct);
    if (r->attempts > 1 || r->backoff_ms > r->backoff_max_ms) {
        r->backoff_max_ms = GL_MANIFEST_SPAN_MS_MAX;
    }
}

void gl_manifest_control(struct gl_manifest *m, gl_jnode step, const struct gl_manifest_node *node,
                         struct gl_step_spec *ret)
{
    gl_jnode control = gl_manifest_object(m, step, "control");

    read_failure(m, control, ret);
    read_times(m, control, node, ret);
    read_retry(m, control, node, ret);
    (void)gl_manifest_text(m, step, "label", &ret->label);
}
