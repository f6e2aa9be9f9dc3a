/* The fields of steps beyond the plain command: what they become, what is refused, and that all of
 * it survives compiling. */
#include "support/cmocka_all.h"

#include <string.h>

#include "base/check.h"
#include "base/sha256.h"
#include "model/flow/flow.h"
#include "model/text/yaml.h"
#include "support/golden.h"

static struct gl_arena arena;
static struct gl_why why;
static struct gl_flow_errors errors;

static int tear_down(void **state)
{
    (void)state;
    gl_arena_done(&arena);
    return 0;
}

static int load(struct gl_flow_loader *l, gl_str source, gl_str text, char ret_hex[static 65],
                bool *ret_executable, struct gl_why *reterr_why)
{
    (void)l, (void)reterr_why;
    (void)gl_sha256_hex(source.n ? source : text, ret_hex);
    *ret_executable = false;
    return 0;
}

static int parse(gl_str text, struct gl_flow **ret)
{
    struct gl_json j;
    struct gl_flow_loader loader = {.load = load};
    if (gl_yaml_parse(&j, text, 1 << 20, &arena, &why)) {
        fail_msg("%s: %s", text.p, why.text);
    }
    return gl_flow_parse(&j, gl_json_root(&j), &loader, &arena, ret, &errors);
}

/* Compiled, read back, compiled again: the same bytes, and every field as it was. */
static const struct gl_flow *through_the_store(const struct gl_flow *f)
{
    struct gl_buf one = {0}, two = {0};
    struct gl_flow *back;
    gl_flow_encode(f, &one);
    if (gl_flow_decode(gl_buf_view(&one), &arena, &back, &why)) {
        fail_msg("%.*s: %s", GL_STR_ARG(gl_buf_view(&one)), why.text);
    }
    gl_flow_encode(back, &two);
    assert_true(gl_str_eq(gl_buf_view(&one), gl_buf_view(&two)));
    gl_buf_done(&one);
    gl_buf_done(&two);
    return back;
}

static const struct gl_flow *good_flow(const char *text)
{
    struct gl_flow *f;
    if (parse(gl_str_of(text), &f)) {
        fail_msg("%s\n%.*s: %.*s", text, GL_STR_ARG(errors.items[0].path),
                 GL_STR_ARG(errors.items[0].text));
    }
    return through_the_store(f);
}

static gl_str around(const char *fields)
{
    return gl_str_fmt(&arena,
                      "name: fl\ninputs: {n: 3, list: [1], pause: 10s}\n"
                      "steps:\n  x: {noop: true}\n  y: {noop: true, needs: x}\n"
                      "  a: {%s, needs: y}",
                      fields);
}

/* Step "a", behind "y" behind "x". */
static const struct gl_step_spec *good(const char *fields)
{
    return gl_flow_step(good_flow(around(fields).p), 2);
}

static void bad(const char *fields, const char *path, enum gl_reason reason)
{
    struct gl_flow *f;
    if (!parse(around(fields), &f)) {
        fail_msg("%s: accepted", fields);
    }
    for (size_t i = 0; i < errors.n; i++) {
        if (gl_str_is(errors.items[i].path, path) && errors.items[i].reason == reason) {
            assert_true(errors.items[i].line > 0);
            golden_say(gl_reason_word(reason), errors.items[i].text);
            return;
        }
    }
    fail_msg("%s: %.*s: %.*s", fields, GL_STR_ARG(errors.items[0].path),
             GL_STR_ARG(errors.items[0].text));
}

static void is(gl_str got, const char *wanted)
{
    assert_string_equal(gl_str_c(&arena, got), wanted);
}

/* Steps that wait. */

static void steps_can_wait_for_a_time(void **state)
{
    (void)state;
    const struct gl_step_spec *s = good("sleep: 10m");
    is(s->driver, "sleep");
    is(s->sleep, "10m");
    assert_true(s->waits);
    assert_false(s->has_gate);
    s = good("sleep: 90");
    is(s->sleep, "90");
    s = good("sleep: '${inputs.pause}'");
    is(s->sleep, "${inputs.pause}");
    assert_true(s->has_gate);
    s = good("until: 2026-12-01T06:00:00Z");
    is(s->driver, "until");
    is(s->until, "2026-12-01T06:00:00Z");
    s = good("until: '${steps.x.output.at}'");
    assert_int_equal(s->reads_n, 1);
    bad("sleep: soon", "steps.a.sleep", GL_REASON_NOT_A_DURATION);
    bad("sleep: 'x${inputs.pause}'", "steps.a.sleep", GL_REASON_NOT_A_DURATION);
    bad("sleep: []", "steps.a.sleep", GL_REASON_NOT_A_DURATION);
    bad("until: tomorrow", "steps.a.until", GL_REASON_NOT_A_TIME);
    bad("until: 2026-12-01", "steps.a.until", GL_REASON_NOT_A_TIME);
    bad("until: 7", "steps.a.until", GL_REASON_NOT_A_TIME);
}

static void steps_can_wait_for_a_signal(void **state)
{
    (void)state;
    const struct gl_step_spec *s = good("signal: go-on, timeout: 1h, on_failure: skip");
    is(s->driver, "signal");
    is(s->signal, "go-on");
    assert_int_equal(s->timeout_ms, 3600000);
    assert_true(s->waits);
    bad("signal: 'a b'", "steps.a.signal", GL_REASON_NAME_INVALID);
    bad("signal: []", "steps.a.signal", GL_REASON_WRONG_TYPE);
    bad("signal: '${inputs.n}'", "steps.a.signal", GL_REASON_NAME_INVALID);
}

static void steps_can_wait_for_a_person(void **state)
{
    (void)state;
    const struct gl_step_spec *s = good("approval: 'Ship ${steps.x.output.v}?'");
    is(s->driver, "approval");
    is(s->approval, "Ship ${steps.x.output.v}?");
    assert_int_equal(s->decisions.n, 2);
    is(s->decisions.items[0], "approve");
    assert_true(s->has_gate);
    s = good("approval: {message: Now?, decisions: [now, later, never], on_timeout: later}, "
             "timeout: 1d");
    is(s->approval, "Now?");
    assert_int_equal(s->decisions.n, 3);
    is(s->on_timeout, "later");
    assert_int_equal(s->timeout_ms, 86400000);
    bad("approval: {}", "steps.a.approval", GL_REASON_MISSING);
    bad("approval: {message: x, timeout: 1h}", "steps.a.approval.timeout", GL_REASON_MISPLACED);
    bad("approval: {message: x, on_timeout: reject}", "steps.a.approval", GL_REASON_MISSING);
    bad("approval: {message: x, on_timeout: rejct}, timeout: 1h", "steps.a.approval.on_timeout",
        GL_REASON_NOT_A_DECISION);
    bad("approval: {message: x, decisions: []}", "steps.a.approval.decisions",
        GL_REASON_WRONG_TYPE);
    bad("approval: {message: x, decisions: [a, a]}", "steps.a.approval.decisions",
        GL_REASON_REPEATED);
    bad("approval: {message: x, decisions: ['a b']}", "steps.a.approval.decisions",
        GL_REASON_NAME_INVALID);
    bad("approval: {message: x, choices: [a]}", "steps.a.approval.choices",
        GL_REASON_UNKNOWN_FIELD);
    bad("approval: 7", "steps.a.approval", GL_REASON_WRONG_TYPE);
}

static void a_step_that_waits_has_no_process(void **state)
{
    (void)state;
    static const char *const fields[] = {
        "env: {A: 1}",  "cwd: /tmp",      "files: [a]", "grace: 1s",    "heartbeat: 1s",
        "retry: 2",     "pool: x",        "slots: 2",   "priority: 1",  "idempotent: true",
        "unsafe: true", "concurrency: 1", "rate: 1/1m", "foreach: [1]",
    };
    for (size_t i = 0; i < GL_COUNT(fields); i++) {
        gl_str rest, name = gl_str_cut(gl_str_of(fields[i]), ':', &rest);
        gl_str path = gl_str_fmt(&arena, "steps.a.%.*s", GL_STR_ARG(name));
        bad(gl_str_fmt(&arena, "signal: x, %s", fields[i]).p, path.p, GL_REASON_NO_PROCESS);
    }
    bad("sleep: 1s, timeout: 1m", "steps.a.timeout", GL_REASON_TIMEOUT_MISPLACED);
    (void)good("approval: x, when: '${inputs.n} > 2', trigger_rule: all_done, timeout: 1m");
}

static void a_step_is_of_one_kind(void **state)
{
    (void)state;
    bad("sh: x, sleep: 1s", "steps.a.sleep", GL_REASON_COMMAND_TWICE);
    bad("signal: x, approval: y", "steps.a.approval", GL_REASON_COMMAND_TWICE);
    bad("timeout: 1s", "steps.a", GL_REASON_NO_COMMAND);
}

/* Conditions and lists. */

static void a_condition_is_kept_as_written(void **state)
{
    (void)state;
    const struct gl_step_spec *s = good("noop: true, when: '${steps.x.output.n} > 3'");
    is(s->when, "${steps.x.output.n} > 3");
    assert_true(s->has_gate);
    assert_int_equal(s->reads_n, 1);
    assert_int_equal(s->reads[0], 0);
    is(good("noop: true, when: false")->when, "false");
    bad("noop: true, when: '${steps.x.output.n} = 3'", "steps.a.when", GL_REASON_FOREIGN_SIGN);
    bad("noop: true, when: ''", "steps.a.when", GL_REASON_CONDITION_ENDS);
    bad("noop: true, when: [1]", "steps.a.when", GL_REASON_WRONG_TYPE);
    bad("noop: true, when: '${steps.z.output}'", "steps.a.when", GL_REASON_UNKNOWN_STEP);
    bad("noop: true, when: '${inputs.m}'", "steps.a.when", GL_REASON_UNKNOWN_INPUT);
}

static void a_step_can_run_for_each_element(void **state)
{
    (void)state;
    const struct gl_step_spec *s = good("run: [x, '${job.item.name}', '${job.index}'], "
                                        "foreach: '${steps.x.output.files}', max_parallel: 4");
    is(s->foreach, "${steps.x.output.files}");
    assert_int_equal(s->items_max, 1000);
    assert_int_equal(s->parallel, 4);
    assert_int_equal(s->expand, GL_EXPAND_ARGV);
    assert_true(s->has_gate);
    s = good("noop: true, foreach: [1, {a: b}, '$${x}'], max_items: 5");
    is(s->foreach, "[1,{\"a\":\"b\"},\"${x}\"]");
    assert_int_equal(s->items_max, 5);
    assert_int_equal(good("noop: true, foreach: []")->items_max, 1000);
    assert_int_equal(good("noop: true")->items_max, 0);
    bad("noop: true, foreach: [1, 2], max_items: 1", "steps.a.foreach", GL_REASON_LIST_TOO_LONG);
    bad("noop: true, foreach: 3", "steps.a.foreach", GL_REASON_WRONG_TYPE);
    bad("noop: true, foreach: 'a ${inputs.list}'", "steps.a.foreach", GL_REASON_WRONG_TYPE);
    bad("noop: true, foreach: ['${inputs.n}']", "steps.a.foreach", GL_REASON_LITERAL_ONLY);
    bad("noop: true, foreach: '${job.item}', max_items: 0", "steps.a.max_items",
        GL_REASON_OUT_OF_RANGE);
    bad("noop: true, max_parallel: 2", "steps.a.max_parallel", GL_REASON_FOREACH_MISSING);
    bad("noop: true, max_items: 2", "steps.a.max_items", GL_REASON_FOREACH_MISSING);
    bad("run: [x, '${job.item}']", "steps.a.run[1]", GL_REASON_FOREACH_MISSING);
}

/* Limits. */

static void steps_can_share_a_limit(void **state)
{
    (void)state;
    const struct gl_step_spec *s = good("sh: x, concurrency: 2");
    is(s->limit_key, "fl/a");
    assert_int_equal(s->limit_max, 2);
    assert_false(s->has_gate);
    s = good("sh: x, concurrency: {key: 'c-${inputs.n}', max: 3}");
    is(s->limit_key, "c-${inputs.n}");
    assert_int_equal(s->limit_max, 3);
    assert_true(s->has_gate);
    assert_int_equal(good("sh: x, concurrency: {key: k}")->limit_max, 1);
    bad("sh: x, concurrency: 0", "steps.a.concurrency", GL_REASON_OUT_OF_RANGE);
    bad("sh: x, concurrency: one", "steps.a.concurrency", GL_REASON_WRONG_TYPE);
    bad("sh: x, concurrency: {key: ''}", "steps.a.concurrency.key", GL_REASON_OUT_OF_RANGE);
    bad("sh: x, concurrency: {kye: x}", "steps.a.concurrency.kye", GL_REASON_UNKNOWN_FIELD);
    bad("sh: x, concurrency: {key: '${inputs.m}'}", "steps.a.concurrency.key",
        GL_REASON_UNKNOWN_INPUT);
}

static void steps_can_have_a_rate(void **state)
{
    (void)state;
    static const struct {
        const char *rate;
        gl_ms ms;
    } cases[] = {
        {"10/1m", 6000},
        {"10/m", 6000},
        {"'10 per minute'", 6000},
        {"1/s", 1000},
        {"'5 / 2s'", 400},
        {"'3 per hour'", 1200000},
        {"7/s", 143},
        {"'2 per day'", 43200000},
        {"'1000 per second'", 1},
        {"{limit: 4, per: 1s}", 250},
    };
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        const struct gl_step_spec *s = good(gl_str_fmt(&arena, "sh: x, rate: %s", cases[i].rate).p);
        assert_int_equal(s->rate_ms, cases[i].ms);
        is(s->rate_key, "fl/a");
    }
    is(good("sh: x, rate: {limit: 1, per: 1s, key: api}")->rate_key, "api");
    bad("sh: x, rate: 10", "steps.a.rate", GL_REASON_NOT_A_RATE);
    bad("sh: x, rate: x/m", "steps.a.rate", GL_REASON_NOT_A_RATE);
    bad("sh: x, rate: 1/x", "steps.a.rate", GL_REASON_NOT_A_RATE);
    bad("sh: x, rate: 0/m", "steps.a.rate", GL_REASON_OUT_OF_RANGE);
    bad("sh: x, rate: 1001/s", "steps.a.rate", GL_REASON_OUT_OF_RANGE);
    bad("sh: x, rate: {limit: 1}", "steps.a.rate", GL_REASON_MISSING);
    bad("sh: x, rate: {per: 1s}", "steps.a.rate", GL_REASON_MISSING);
    bad("sh: x, rate: {limit: 1, per: 1s, key: '${inputs.n}'}", "steps.a.rate.key",
        GL_REASON_LITERAL_ONLY);
    bad("sh: x, rate: {limit: 1, pre: 1s}", "steps.a.rate.pre", GL_REASON_UNKNOWN_FIELD);
}

static void retry_can_be_choosy(void **state)
{
    (void)state;
    const struct gl_step_spec *s =
        good("sh: x, retry: {attempts: 3, jitter: 0.25, on: [75, timeout, signal]}");
    assert_int_equal(s->retry.jitter_pct, 25);
    assert_int_equal(s->retry.on.n, 3);
    is(s->retry.on.items[0], "75");
    is(s->retry.on.items[2], "signal");
    assert_int_equal(good("sh: x, retry: {attempts: 1, on: 75}")->retry.on.n, 1);
    assert_int_equal(good("sh: x, retry: {attempts: 1, jitter: 1}")->retry.jitter_pct, 100);
    bad("sh: x, retry: {attempts: 2, jitter: 1.5}", "steps.a.retry.jitter", GL_REASON_OUT_OF_RANGE);
    bad("sh: x, retry: {attempts: 2, jitter: 0.123}", "steps.a.retry.jitter",
        GL_REASON_OUT_OF_RANGE);
    bad("sh: x, retry: {attempts: 2, on: [0]}", "steps.a.retry.on", GL_REASON_EXIT_CODE_INVALID);
    bad("sh: x, retry: {attempts: 2, on: [256]}", "steps.a.retry.on", GL_REASON_EXIT_CODE_INVALID);
    bad("sh: x, retry: {attempts: 2, on: [crash]}", "steps.a.retry.on",
        GL_REASON_EXIT_CODE_INVALID);
    bad("sh: x, retry: {attempts: 2, on: []}", "steps.a.retry.on", GL_REASON_EXIT_CODE_INVALID);
}

/* Files, environment, texts. */

static void files_stand_under_their_paths(void **state)
{
    (void)state;
    const struct gl_step_spec *s = good("python: x, files: [./data/a.csv, b.txt]");
    const struct gl_flow_file *files = s->files.items;
    assert_int_equal(s->files.n, 3);
    is(files[0].name, "step.py");
    is(files[1].name, "data/a.csv");
    is(files[2].name, "b.txt");
    s = good("sh: x, files: {conf/x: templates/y}");
    is(((const struct gl_flow_file *)s->files.items)[0].name, "conf/x");
    bad("sh: x, files: [../a]", "steps.a.files[0]", GL_REASON_LEADS_OUT);
    bad("sh: x, files: [/etc/passwd]", "steps.a.files[0]", GL_REASON_LEADS_OUT);
    bad("sh: x, files: {../x: a}", "steps.a.files.../x", GL_REASON_LEADS_OUT);
    bad("sh: x, files: [a/]", "steps.a.files[0]", GL_REASON_LEADS_OUT);
    bad("sh: x, files: a", "steps.a.files", GL_REASON_WRONG_TYPE);
    bad("sh: x, files: [a, a]", "steps.a.files", GL_REASON_SAME_FILE);
    bad("sh: x, files: [a, a/b]", "steps.a.files", GL_REASON_SAME_FILE);
    bad("python: x, files: [step.py]", "steps.a.files", GL_REASON_SAME_FILE);
    bad("sh: x, files: [a], cwd: /tmp", "steps.a.cwd", GL_REASON_FILES_AND_CWD);
}

static void secrets_are_names_of_places(void **state)
{
    (void)state;
    const struct gl_step_spec *s =
        good("sh: x, env: {A: 1, T: {secret: 'env:TOKEN'}, K: {secret: 'file:/run/key'}}");
    assert_int_equal(s->env.n, 1);
    assert_int_equal(s->secrets.n, 2);
    is(s->secrets.items[0], "T=env:TOKEN");
    is(s->secrets.items[1], "K=file:/run/key");
    bad("sh: x, env: {A: {}}", "steps.a.env.A", GL_REASON_WRONG_TYPE);
    bad("sh: x, env: {A: {secret: TOKEN}}", "steps.a.env.A", GL_REASON_SECRET_INVALID);
    bad("sh: x, env: {A: {secret: 'env:a b'}}", "steps.a.env.A", GL_REASON_SECRET_INVALID);
    bad("sh: x, env: {A: {secret: 'file:key'}}", "steps.a.env.A", GL_REASON_SECRET_INVALID);
    bad("sh: x, env: {A: {secert: 'env:X'}}", "steps.a.env.A.secert", GL_REASON_UNKNOWN_FIELD);
    bad("sh: x, env: {GLIA_REF_1: x}", "steps.a.env.GLIA_REF_1", GL_REASON_RESERVED_NAME);
}

static void texts_without_references_are_literal(void **state)
{
    (void)state;
    const struct gl_step_spec *s = good("run: [a, '$${x}'], env: {E: '$${y}'}, cwd: '/$${z}'");
    is(s->argv.items[1], "${x}");
    is(s->env.items[0], "E=${y}");
    is(s->cwd, "/${z}");
    assert_int_equal(s->expand, 0);
}

static void texts_with_references_are_kept_as_written(void **state)
{
    (void)state;
    const struct gl_step_spec *s = good("run: ['$${x}', '${inputs.n}'], cwd: '${inputs.pause}/b',"
                                        " env: {E: '$${y}', F: 'a ${job.id}'}");
    is(s->argv.items[0], "$${x}");
    is(s->env.items[0], "E=$${y}");
    assert_int_equal(s->expand, GL_EXPAND_ARGV | GL_EXPAND_ENV | GL_EXPAND_CWD);
    /* References of the shell text mark the environment, so what is in it stays escaped. */
    s = good("sh: 'echo ${job.id}', env: {E: '$${y}'}");
    is(s->env.items[0], "E=$${y}");
    is(s->env.items[1], "GLIA_REF_1=${job.id}");
    bad("run: [x, '${HOME}']", "steps.a.run[1]", GL_REASON_REFERENCE_INVALID);
    bad("sh: x, env: {E: '${HOME}'}", "steps.a.env.E", GL_REASON_REFERENCE_INVALID);
    bad("sh: x, cwd: '${HOME}/x'", "steps.a.cwd", GL_REASON_REFERENCE_INVALID);
    bad("sh: x, cwd: 'b/${inputs.n}'", "steps.a.cwd", GL_REASON_NOT_ABSOLUTE);
}

static void only_what_has_ended_can_be_referred_to(void **state)
{
    (void)state;
    (void)good("sh: 'echo ${steps.x.output} ${steps.y.output}'");
    struct gl_flow *f;
    assert_int_equal(parse(GL_S("steps:\n  a: {sh: x}\n  b: {run: [x, '${steps.a.output}']}"), &f),
                     GL_E_INVALID);
    assert_int_equal(errors.total, 1);
    assert_int_equal(errors.items[0].reason, GL_REASON_NOT_A_DEPENDENCY);
    golden_say("not_a_dependency", errors.items[0].text);
    assert_int_equal(errors.items[0].line, 3);
    assert_int_equal(errors.items[0].column, 17);
}

/* Many steps that all read a distant one, and many distant ones: more than one pass. */
static void ancestors_are_found_however_far(void **state)
{
    (void)state;
    struct gl_buf text = {0};
    struct gl_flow *f;
    gl_buf_c(&text, "steps:\n  s0: {noop: true}\n");
    for (int i = 1; i < 200; i++) {
        gl_buf_fmt(&text, "  s%d: {run: [x, '${steps.s%d.output}'], needs: s%d}\n", i, i / 2,
                   i - 1);
    }
    gl_buf_c(&text, "  side: {noop: true}\n");
    assert_int_equal(parse(gl_str_dup(&arena, gl_buf_view(&text)), &f), 0);
    gl_buf_c(&text, "  last: {run: [x, '${steps.s3.output}', '${steps.side.output}'], "
                    "needs: s199}\n");
    assert_int_equal(parse(gl_str_dup(&arena, gl_buf_view(&text)), &f), GL_E_INVALID);
    assert_int_equal(errors.total, 1);
    assert_true(gl_str_is(errors.items[0].path, "steps.last.run[2]"));
    gl_buf_done(&text);
}

static void a_rule_that_waits_for_a_failure_needs_one_that_is_survived(void **state)
{
    (void)state;
    bad("sh: x, trigger_rule: one_failed", "steps.a.trigger_rule", GL_REASON_NEVER_RUNS);
}

static void every_sentence_reads_as_it_should(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/flow_steps.golden");
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, tear_down)
    const struct CMUnitTest tests[] = {
        T(steps_can_wait_for_a_time),
        T(steps_can_wait_for_a_signal),
        T(steps_can_wait_for_a_person),
        T(a_step_that_waits_has_no_process),
        T(a_step_is_of_one_kind),
        T(a_condition_is_kept_as_written),
        T(a_step_can_run_for_each_element),
        T(steps_can_share_a_limit),
        T(steps_can_have_a_rate),
        T(retry_can_be_choosy),
        T(files_stand_under_their_paths),
        T(secrets_are_names_of_places),
        T(texts_without_references_are_literal),
        T(texts_with_references_are_kept_as_written),
        T(only_what_has_ended_can_be_referred_to),
        T(ancestors_are_found_however_far),
        T(a_rule_that_waits_for_a_failure_needs_one_that_is_survived),
        cmocka_unit_test(every_sentence_reads_as_it_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
