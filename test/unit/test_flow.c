#include "support/cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/sha256.h"
#include "model/flow/flow.h"
#include "model/text/yaml.h"
#include "support/golden.h"

struct fixture {
    struct gl_arena a;
    struct gl_why why;
    struct gl_flow_errors errors;
    struct gl_buf compiled;
    struct gl_flow_loader loader;
    unsigned loads;
    bool without_loader;
};

/* Files: "tools/run" is executable, "gone.py" is not there, the others are plain. */
static int load(struct gl_flow_loader *l, gl_str source, gl_str text, char ret_hex[static 65],
                bool *ret_executable, struct gl_why *reterr_why)
{
    GL_CONTAINER(l, struct fixture, loader)->loads++;
    if (gl_str_is(source, "gone.py")) {
        return gl_why(reterr_why, GL_R_NO_SUCH_BLOB, "gone.py: there is no such file");
    }
    (void)gl_sha256_hex(source.n ? source : text, ret_hex);
    *ret_executable = gl_str_is(source, "tools/run");
    return 0;
}

static int set_up(void **state)
{
    static struct fixture f;
    f = (struct fixture){.loader = {.load = load}};
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    gl_arena_done(&f->a);
    gl_buf_done(&f->compiled);
    return 0;
}

static int parse(struct fixture *f, const char *text, struct gl_flow **ret)
{
    struct gl_json j;
    if (gl_yaml_parse(&j, gl_str_of(text), 1 << 20, &f->a, &f->why)) {
        fail_msg("%s: %s", text, f->why.text);
    }
    return gl_flow_parse(&j, gl_json_root(&j), f->without_loader ? NULL : &f->loader, &f->a, ret,
                         &f->errors);
}

static struct gl_flow *good(struct fixture *f, const char *text)
{
    struct gl_flow *flow = NULL;
    if (parse(f, text, &flow)) {
        fail_msg("%s\n%.*s: %.*s", text, GL_STR_ARG(f->errors.items[0].path),
                 GL_STR_ARG(f->errors.items[0].text));
    }
    return flow;
}

/* A step called "a" with these fields, beside two others. */
static const struct gl_step_spec *good_step(struct fixture *f, const char *fields)
{
    gl_str text = gl_str_fmt(&f->a,
                             "steps:\n  x: {noop: true, on_failure: skip}\n  y: {noop: true}\n"
                             "  a: {%s}",
                             fields);
    return gl_flow_step(good(f, text.p), 2);
}

static bool has_error(const struct fixture *f, const char *path, enum gl_reason reason)
{
    for (size_t i = 0; i < f->errors.n; i++) {
        const struct gl_flow_error *e = &f->errors.items[i];
        if (gl_str_is(e->path, path) && e->reason == reason) {
            golden_say(gl_reason_word(reason), e->text);
            return true;
        }
    }
    return false;
}

static void bad(struct fixture *f, const char *text, const char *path, enum gl_reason reason)
{
    struct gl_flow *flow = NULL;
    int rc = parse(f, text, &flow);
    if (rc != GL_E_INVALID || !has_error(f, path, reason)) {
        fail_msg("%s\ngives %d and %zu errors, the first %.*s: %.*s", text, rc, f->errors.n,
                 GL_STR_ARG(f->errors.items[0].path), GL_STR_ARG(f->errors.items[0].text));
    }
    assert_null(flow);
    assert_true(f->errors.items[0].line > 0);
}

static void bad_step(struct fixture *f, const char *fields, const char *path, enum gl_reason reason)
{
    gl_str text =
        gl_str_fmt(&f->a, "steps:\n  x: {noop: true}\n  y: {noop: true}\n  a: {%s}", fields);
    bad(f, text.p, path, reason);
    if (f->errors.total != 1) {
        fail_msg("%s\ngives %zu errors, the second %.*s: %.*s", text.p, f->errors.total,
                 GL_STR_ARG(f->errors.items[1].path), GL_STR_ARG(f->errors.items[1].text));
    }
}

static void check_argv(const struct gl_step_spec *s, const char *const *words, size_t n)
{
    assert_int_equal(s->argv.n, n);
    for (size_t i = 0; i < n; i++) {
        if (!gl_str_is(s->argv.items[i], words[i])) {
            fail_msg("got %.*s, expected %s", GL_STR_ARG(s->argv.items[i]), words[i]);
        }
    }
}

#define WORDS(...) \
    (const char *const[]){__VA_ARGS__}, GL_COUNT(((const char *const[]){__VA_ARGS__}))

/* What is accepted. */

static void a_step_without_wishes_has_the_defaults(void **state)
{
    struct fixture *f = *state;
    struct gl_flow *flow = good(f, "steps: {a: {sh: echo hello}}");
    const struct gl_step_spec *s = gl_flow_step(flow, 0);
    assert_true(gl_str_is(flow->name, "flow"));
    assert_true(gl_str_is(s->id, "a"));
    check_argv(s, WORDS("sh", "-ec", "echo hello"));
    assert_true(gl_str_is(s->driver, "process"));
    assert_true(gl_str_is(s->pool, "default"));
    assert_int_equal(s->slots, 1);
    assert_int_equal(s->rule, GL_RULE_ALL_SUCCESS);
    assert_int_equal(s->on_failure, GL_ON_FAILURE_FAIL);
    assert_int_equal(s->safety, GL_SAFETY_UNMARKED);
    assert_int_equal(s->timeout_ms, 0);
    assert_int_equal(s->heartbeat_ms, 0);
    assert_int_equal(s->grace_ms, GL_GRACE_MS);
    assert_int_equal(s->retry.attempts, 1);
    assert_int_equal(s->priority, 0);
    assert_int_equal(s->cwd.n + s->env.n + s->files.n + s->needs_n + s->children_n, 0);
    assert_int_equal(flow->roots_n, 1);
}

static void the_kinds_of_commands(void **state)
{
    struct fixture *f = *state;
    check_argv(good_step(f, "run: [ls, -l, '', 5, 1.50, true]"),
               WORDS("ls", "-l", "", "5", "1.50", "true"));
    const struct gl_step_spec *s = good_step(f, "noop: true");
    assert_true(gl_str_is(s->driver, "noop"));
    assert_int_equal(s->argv.n, 0);

    s = good_step(f, "python: print(1)");
    const struct gl_flow_file *file = s->files.items;
    check_argv(s, WORDS("python3", "step.py"));
    assert_int_equal(s->files.n, 1);
    assert_true(gl_str_is(file->name, "step.py"));
    char hex[65];
    assert_true(gl_str_eq(file->blob, gl_sha256_hex(GL_S("print(1)"), hex)));
    assert_false(file->executable);

    s = good_step(f, "script: tools/run");
    file = s->files.items;
    check_argv(s, WORDS("./run"));
    assert_true(gl_str_is(file->name, "run"));
    assert_true(file->executable);
    check_argv(good_step(f, "script: ../x/a.py"), WORDS("python3", "./a.py"));
    check_argv(good_step(f, "script: a.sh"), WORDS("sh", "./a.sh"));
}

static void long_shell_text_goes_through_a_file(void **state)
{
    struct fixture *f = *state;
    struct gl_buf text = {0};
    gl_buf_c(&text, "{\"steps\":{\"a\":{\"sh\":\"");
    for (int i = 0; i < 110 << 10; i++) {
        gl_buf_char(&text, ':');
    }
    gl_buf_c(&text, "\"}}}");
    gl_buf_char(&text, 0);
    const struct gl_step_spec *s = gl_flow_step(good(f, text.p), 0);
    check_argv(s, WORDS("sh", "-e", "./step.sh"));
    assert_int_equal(s->files.n, 1);
    assert_int_equal(f->loads, 1);
    gl_buf_done(&text);
}

static void a_file_used_twice_is_loaded_once(void **state)
{
    struct fixture *f = *state;
    (void)good(f, "steps: {a: {script: a.py}, b: {script: a.py}, c: {python: x}, d: {python: x}}");
    assert_int_equal(f->loads, 2);
}

static void every_field_arrives(void **state)
{
    struct fixture *f = *state;
    const struct gl_step_spec *s = good_step(
        f, "sh: make, needs: [x, y], env: {A: 1, B: x y, C: true, D: , E: '='}, timeout: 90s,"
           "retry: {attempts: 3, backoff: 500ms, factor: 1.5, max_backoff: 1h},"
           "trigger_rule: {rule: quorum_success, quorum: 2}, on_failure: continue,"
           "idempotent: true, pool: gpu, slots: 2, priority: -7, heartbeat: 45,"
           "grace: 250ms, cwd: /srv");
    assert_int_equal(s->needs_n, 2);
    assert_int_equal(s->needs[0], 0);
    assert_int_equal(s->needs[1], 1);
    static const char *const env[] = {"A=1", "B=x y", "C=true", "D=", "E=="};
    assert_int_equal(s->env.n, GL_COUNT(env));
    for (size_t i = 0; i < GL_COUNT(env); i++) {
        assert_true(gl_str_is(s->env.items[i], env[i]));
    }
    assert_int_equal(s->timeout_ms, 90000);
    assert_int_equal(s->retry.attempts, 3);
    assert_int_equal(s->retry.backoff_ms, 500);
    assert_int_equal(s->retry.factor_pct, 150);
    assert_int_equal(s->retry.backoff_max_ms, 3600000);
    assert_int_equal(s->rule, GL_RULE_QUORUM);
    assert_int_equal(s->quorum, 2);
    assert_int_equal(s->on_failure, GL_ON_FAILURE_CONTINUE);
    assert_int_equal(s->safety, GL_SAFETY_IDEMPOTENT);
    assert_true(gl_str_is(s->pool, "gpu"));
    assert_int_equal(s->slots, 2);
    assert_int_equal(s->priority, -7);
    assert_int_equal(s->heartbeat_ms, 45000);
    assert_int_equal(s->grace_ms, 250);
    assert_true(gl_str_is(s->cwd, "/srv"));
}

static void short_forms_mean_the_same(void **state)
{
    struct fixture *f = *state;
    const struct gl_step_spec *s =
        good_step(f, "noop: true, needs: x, retry: 4, trigger_rule: any_done, unsafe: true");
    assert_int_equal(s->needs_n, 1);
    assert_int_equal(s->retry.attempts, 4);
    assert_int_equal(s->retry.backoff_ms, 1000);
    assert_int_equal(s->retry.factor_pct, 200);
    assert_int_equal(s->retry.backoff_max_ms, 300000);
    assert_int_equal(s->rule, GL_RULE_ONE_DONE);
    assert_int_equal(s->safety, GL_SAFETY_UNSAFE);
    assert_int_equal(good_step(f, "noop: true, needs: []")->needs_n, 0);
    assert_int_equal(good_step(f, "noop: true, idempotent: false, unsafe: false")->safety, 0);
    assert_int_equal(
        good_step(f, "noop: true, retry: {attempts: 2, backoff: 10m}")->retry.backoff_max_ms,
        600000);
}

static void all_rules_are_known_by_both_names(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *word, *alias;
    } rules[] = {
#define X(name, word, alias) {word, alias},
        GL_RULES(X)
#undef X
    };
    for (uint8_t i = 0; i < GL_COUNT(rules); i++) {
        for (int k = 0; k < 2; k++) {
            const char *word = k ? rules[i].alias : rules[i].word;
            if (!word) {
                continue;
            }
            gl_str fields =
                gl_str_fmt(&f->a, "noop: true, needs: [x, y], trigger_rule: {rule: %s%s}", word,
                           i == GL_RULE_QUORUM ? ", quorum: 1" : "");
            assert_int_equal(good_step(f, fields.p)->rule, i);
        }
        assert_string_equal(gl_rule_words[i], rules[i].word);
    }
    assert_null(gl_rule_words[GL_RULE_COUNT]);
}

static void steps_may_come_as_a_list(void **state)
{
    struct fixture *f = *state;
    struct gl_flow *flow = good(f, "name: n\nsteps:\n- id: b\n  noop: true\n  needs: a\n"
                                   "- {id: a, noop: true}\n- {id: 7, noop: true}\n");
    assert_int_equal(flow->steps.n, 3);
    assert_true(gl_str_is(flow->name, "n"));
    assert_true(gl_str_is(gl_flow_step(flow, 0)->id, "b"));
    assert_int_equal(gl_flow_step(flow, 0)->needs[0], 1);
    assert_int_equal(gl_flow_find(flow, GL_S("7")), 2);
}

static void children_and_roots_follow_from_the_needs(void **state)
{
    struct fixture *f = *state;
    struct gl_flow *flow = good(f, "steps:\n"
                                   "  d: {noop: true, needs: [b, c]}\n"
                                   "  b: {noop: true, needs: a}\n"
                                   "  c: {noop: true, needs: a}\n"
                                   "  a: {noop: true}\n"
                                   "  e: {noop: true}\n");
    assert_int_equal(flow->roots_n, 2);
    assert_int_equal(flow->roots[0], 3);
    assert_int_equal(flow->roots[1], 4);
    const struct gl_step_spec *a = gl_flow_step(flow, 3);
    assert_int_equal(a->children_n, 2);
    assert_int_equal(a->children[0], 1);
    assert_int_equal(a->children[1], 2);
    assert_int_equal(gl_flow_step(flow, 0)->children_n, 0);
    assert_int_equal(gl_flow_find(flow, GL_S("e")), 4);
    assert_int_equal(gl_flow_find(flow, GL_S("f")), -1);
    assert_int_equal(gl_flow_find(flow, GL_S("")), -1);
}

/* What is refused. */

static void a_flow_that_is_none_is_refused(void **state)
{
    struct fixture *f = *state;
    bad(f, "[]", "", GL_REASON_WRONG_TYPE);
    bad(f, "name: x", "steps", GL_REASON_MISSING);
    bad(f, "steps: {}", "steps", GL_REASON_TOO_MANY_STEPS);
    bad(f, "steps: 5", "steps", GL_REASON_WRONG_TYPE);
    bad(f, "{name: '', steps: {a: {noop: true}}}", "name", GL_REASON_NAME_INVALID);
    bad(f, "{name: \"a\\nb\", steps: {a: {noop: true}}}", "name", GL_REASON_NAME_INVALID);
    bad(f, "{name: [x], steps: {a: {noop: true}}}", "name", GL_REASON_WRONG_TYPE);
    bad(f, "{nme: x, steps: {a: {noop: true}}}", "nme", GL_REASON_UNKNOWN_FIELD);
    bad(f, "{jobs: {a: {noop: true}}}", "jobs", GL_REASON_UNKNOWN_FIELD);
}

static void ids_are_checked(void **state)
{
    struct fixture *f = *state;
    bad(f, "steps: {'a b': {noop: true}}", "steps.a b", GL_REASON_NAME_INVALID);
    bad(f, "steps: {'': {noop: true}}", "steps", GL_REASON_NAME_INVALID);
    bad(f, "steps: [{noop: true}]", "steps[0]", GL_REASON_ID_MISSING);
    bad(f, "steps: [{id: -x, noop: true}]", "steps[0]", GL_REASON_NAME_INVALID);
    bad(f, "steps: [{id: a, noop: true}, {id: a, noop: true}]", "steps.a.id", GL_REASON_ID_TAKEN);
    bad(f, "steps: {a: {id: b, noop: true}}", "steps.a", GL_REASON_ID_REDUNDANT);
    (void)good(f, "steps: {a: {id: a, noop: true}}");
    bad(f, "steps: [{id: 007, noop: true}]", "steps[0]", GL_REASON_NUMBER_AS_TEXT);
    bad(f, "steps: [5]", "steps[0]", GL_REASON_WRONG_TYPE);
    bad(f, "steps: {a: echo}", "steps.a", GL_REASON_WRONG_TYPE);
    bad(f, "steps: {a: }", "steps.a", GL_REASON_WRONG_TYPE);
}

static void a_step_does_exactly_one_thing(void **state)
{
    struct fixture *f = *state;
    bad_step(f, "needs: x", "steps.a", GL_REASON_NO_COMMAND);
    bad_step(f, "sh: a, run: [b]", "steps.a.run", GL_REASON_COMMAND_TWICE);
    bad_step(f, "noop: false", "steps.a.noop", GL_REASON_ONLY_TRUE);
    bad_step(f, "sh: [a]", "steps.a.sh", GL_REASON_TEXT_NOT_LIST);
    bad_step(f, "sh: ' '", "steps.a.sh", GL_REASON_EMPTY_TEXT);
    bad_step(f, "sh: 5", "steps.a.sh", GL_REASON_WRONG_TYPE);
    bad_step(f, "run: ls -l", "steps.a.run", GL_REASON_LIST_NOT_TEXT);
    bad_step(f, "run: []", "steps.a.run", GL_REASON_WRONG_TYPE);
    bad_step(f, "run: [ls, [x]]", "steps.a.run[1]", GL_REASON_WRONG_TYPE);
}

static void commands_must_be_possible(void **state)
{
    struct fixture *f = *state;
    bad_step(f, "run: [ls, ~]", "steps.a.run[1]", GL_REASON_NULL_ARGUMENT);
    bad_step(f, "run: ['']", "steps.a.run[0]", GL_REASON_EMPTY_PROGRAM);
    bad_step(f, "run: [a, 0x10]", "steps.a.run[1]", GL_REASON_NUMBER_AS_TEXT);
    bad_step(f, "run: [a, \"b\\0c\"]", "steps.a.run[1]", GL_REASON_NUL_BYTE);
    bad_step(f, "sh: \"b\\0c\"", "steps.a.sh", GL_REASON_NUL_BYTE);
    bad_step(f, "script: gone.py", "steps.a.script", GL_REASON_NO_SUCH_BLOB);
    bad_step(f, "script: data.csv", "steps.a.script", GL_REASON_NOT_EXECUTABLE);
    bad_step(f, "script: a/..", "steps.a.script", GL_REASON_NOT_A_PATH);
    bad_step(f, "script: a/", "steps.a.script", GL_REASON_NOT_A_PATH);
    bad_step(f, "python: x, cwd: /tmp", "steps.a.cwd", GL_REASON_FILES_AND_CWD);
    bad_step(f, "script: a.py, cwd: /tmp", "steps.a.cwd", GL_REASON_FILES_AND_CWD);
    bad_step(f, "noop: true, cwd: tmp", "steps.a.cwd", GL_REASON_NOT_ABSOLUTE);
    f->without_loader = true;
    bad_step(f, "script: a.py", "steps.a.script", GL_REASON_NO_FILES);
    bad_step(f, "python: x", "steps.a.python", GL_REASON_NO_FILES);
}

static void sizes_of_commands_are_limited(void **state)
{
    struct fixture *f = *state;
    struct gl_buf text = {0};
    for (unsigned round = 0; round < 3; round++) {
        /* One argument too long; one that just fits; many that are too much together. */
        static const struct {
            unsigned bytes, count;
        } shapes[] = {{131072, 1}, {131071, 1}, {100000, 12}};
        gl_buf_reset(&text);
        gl_buf_c(&text, "{\"steps\":{\"a\":{\"run\":[\"x\"");
        for (unsigned i = 0; i < shapes[round].count; i++) {
            gl_buf_c(&text, ",\"");
            for (unsigned k = 0; k < shapes[round].bytes; k++) {
                gl_buf_char(&text, 'x');
            }
            gl_buf_char(&text, '"');
        }
        gl_buf_c(&text, "]}}}");
        struct gl_json j;
        struct gl_flow *flow;
        assert_int_equal(gl_json_parse(&j, gl_buf_view(&text), 4 << 20, &f->a, &f->why), 0);
        int rc = gl_flow_parse(&j, gl_json_root(&j), NULL, &f->a, &flow, &f->errors);
        assert_int_equal(rc, round == 1 ? 0 : GL_E_INVALID);
        assert_true(round != 0 || has_error(f, "steps.a.run[1]", GL_REASON_TOO_LARGE));
        assert_true(round != 2 || has_error(f, "steps.a", GL_REASON_TOO_LARGE));
    }
    gl_buf_done(&text);
}

static void fields_of_a_step_are_checked(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *fields, *path;
        enum gl_reason reason;
    } cases[] = {
        {"retires: 3", "retires", GL_REASON_UNKNOWN_FIELD},
        {"retyr: 3", "retyr", GL_REASON_UNKNOWN_FIELD},
        {"depends_on: x", "depends_on", GL_REASON_UNKNOWN_FIELD},
        {"environment: {}", "environment", GL_REASON_UNKNOWN_FIELD},
        {"timeout: soon", "timeout", GL_REASON_NOT_A_DURATION},
        {"timeout: 0", "timeout", GL_REASON_TOO_SHORT},
        {"timeout: -5s", "timeout", GL_REASON_NOT_A_DURATION},
        {"timeout: 11000d", "timeout", GL_REASON_NOT_A_DURATION},
        {"timeout: [5]", "timeout", GL_REASON_NOT_A_DURATION},
        {"timeout: ", "timeout", GL_REASON_NOT_A_DURATION},
        {"grace: 0", "grace", GL_REASON_TOO_SHORT},
        {"heartbeat: 0s", "heartbeat", GL_REASON_TOO_SHORT},
        {"retry: 0", "retry", GL_REASON_FIRST_TRY_COUNTS},
        {"retry: -1", "retry", GL_REASON_OUT_OF_RANGE},
        {"retry: 10001", "retry", GL_REASON_OUT_OF_RANGE},
        {"retry: 1.5", "retry", GL_REASON_OUT_OF_RANGE},
        {"retry: often", "retry", GL_REASON_WRONG_TYPE},
        {"retry: {backoff: 1s}", "retry", GL_REASON_MISSING},
        {"retry: {attempts: 2, backof: 1s}", "retry.backof", GL_REASON_UNKNOWN_FIELD},
        {"retry: {attempts: 2, factor: 0.5}", "retry.factor", GL_REASON_OUT_OF_RANGE},
        {"retry: {attempts: 2, factor: 101}", "retry.factor", GL_REASON_OUT_OF_RANGE},
        {"retry: {attempts: 2, factor: 1.234}", "retry.factor", GL_REASON_OUT_OF_RANGE},
        {"retry: {attempts: 2, factor: x}", "retry.factor", GL_REASON_OUT_OF_RANGE},
        {"retry: {attempts: 2, backoff: 2m, max_backoff: 1m}", "retry", GL_REASON_BACKOFF_TOO_LONG},
        {"on_failure: stop", "on_failure", GL_REASON_UNKNOWN_WORD},
        {"on_failure: contnue", "on_failure", GL_REASON_UNKNOWN_WORD},
        {"on_failure: 5", "on_failure", GL_REASON_UNKNOWN_WORD},
        {"idempotent: yes", "idempotent", GL_REASON_WRONG_TYPE},
        {"unsafe: 1", "unsafe", GL_REASON_WRONG_TYPE},
        {"idempotent: true, unsafe: true", NULL, GL_REASON_IDEMPOTENT_AND_UNSAFE},
        {"pool: a b", "pool", GL_REASON_NAME_INVALID},
        {"pool: 5", "pool", GL_REASON_NAME_INVALID},
        {"slots: 0", "slots", GL_REASON_OUT_OF_RANGE},
        {"slots: all", "slots", GL_REASON_OUT_OF_RANGE},
        {"priority: 1001", "priority", GL_REASON_OUT_OF_RANGE},
        {"priority: high", "priority", GL_REASON_OUT_OF_RANGE},
        {"env: [A]", "env", GL_REASON_WRONG_TYPE},
        {"env: {1A: x}", "env.1A", GL_REASON_NAME_INVALID},
        {"env: {'': x}", "env", GL_REASON_NAME_INVALID},
        {"env: {GLIA_HOME: x}", "env.GLIA_HOME", GL_REASON_RESERVED_NAME},
        {"env: {A: [x]}", "env.A", GL_REASON_WRONG_TYPE},
        {"env: {PIN: 0042}", "env.PIN", GL_REASON_NUMBER_AS_TEXT},
        {"env: {A: \"x\\0\"}", "env.A", GL_REASON_NUL_BYTE},
    };
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        gl_str fields = gl_str_fmt(&f->a, "noop: true, %s", cases[i].fields);
        gl_str path = gl_str_fmt(&f->a, "steps.a%s%s", cases[i].path ? "." : "",
                                 cases[i].path ? cases[i].path : "");
        bad_step(f, fields.p, path.p, cases[i].reason);
    }
}

static void rules_must_be_able_to_hold(void **state)
{
    struct fixture *f = *state;
    bad_step(f, "noop: true, trigger_rule: one_done", "steps.a.trigger_rule", GL_REASON_NO_NEEDS);
    bad_step(f, "noop: true, trigger_rule: one_sucess, needs: x", "steps.a.trigger_rule",
             GL_REASON_UNKNOWN_WORD);
    bad_step(f, "noop: true, needs: x, trigger_rule: quorum", "steps.a.trigger_rule",
             GL_REASON_MISSING);
    bad_step(f, "noop: true, needs: [x, y], trigger_rule: {rule: quorum, quorum: 3}",
             "steps.a.trigger_rule", GL_REASON_QUORUM_TOO_LARGE);
    bad_step(f, "noop: true, needs: x, trigger_rule: {rule: all_done, quorum: 1}",
             "steps.a.trigger_rule", GL_REASON_QUORUM_MISPLACED);
    bad_step(f, "noop: true, needs: x, trigger_rule: {quorum: 1}", "steps.a.trigger_rule",
             GL_REASON_MISSING);
    bad_step(f, "noop: true, needs: x, trigger_rule: {rule: all_done, quorm: 1}",
             "steps.a.trigger_rule.quorm", GL_REASON_UNKNOWN_FIELD);
    bad_step(f, "noop: true, needs: x, trigger_rule: {rule: quorum, quorum: 0}",
             "steps.a.trigger_rule.quorum", GL_REASON_OUT_OF_RANGE);
    assert_int_equal(good_step(f, "noop: true, trigger_rule: all_done")->rule, GL_RULE_ALL_DONE);
}

static void needs_must_name_other_steps(void **state)
{
    struct fixture *f = *state;
    bad_step(f, "noop: true, needs: b", "steps.a.needs", GL_REASON_UNKNOWN_STEP);
    bad_step(f, "noop: true, needs: a", "steps.a.needs", GL_REASON_SELF_DEPENDENCY);
    bad_step(f, "noop: true, needs: [x, x]", "steps.a.needs", GL_REASON_REPEATED);
    bad_step(f, "noop: true, needs: {x: y}", "steps.a.needs", GL_REASON_WRONG_TYPE);
    bad_step(f, "noop: true, needs: [x, ~]", "steps.a.needs[1]", GL_REASON_WRONG_TYPE);
    bad_step(f, "noop: true, needs: ['']", "steps.a.needs", GL_REASON_UNKNOWN_STEP);
    bad(f, "steps: {fetch: {noop: true}, b: {noop: true, needs: fethc}}", "steps.b.needs",
        GL_REASON_UNKNOWN_STEP);
}

static void a_circle_is_named(void **state)
{
    struct fixture *f = *state;
    bad(f, "steps: {a: {noop: true, needs: b}, b: {noop: true, needs: a}}", "steps.b.needs",
        GL_REASON_DEPENDENCY_CYCLE);
    bad(f,
        "steps: {z: {noop: true, needs: a}, a: {noop: true, needs: b}, b: {noop: true, needs: c},"
        "c: {noop: true, needs: [r, a]}, r: {noop: true}}",
        "steps.c.needs", GL_REASON_DEPENDENCY_CYCLE);
    assert_int_equal(f->errors.total, 1);
}

static void all_errors_come_at_once_in_the_order_of_the_file(void **state)
{
    struct fixture *f = *state;
    struct gl_flow *flow;
    assert_int_equal(parse(f,
                           "steps:\n"
                           "  a:\n"
                           "    sh: x\n"
                           "    needs: nobody\n"
                           "    timeout: soon\n"
                           "  b:\n"
                           "    run: ls\n"
                           "    slots: 0\n"
                           "nam: x\n",
                           &flow),
                     GL_E_INVALID);
    static const struct {
        unsigned line, column;
        const char *path;
    } expected[] = {
        {4, 12, "steps.a.needs"},
        {5, 14, "steps.a.timeout"},
        {7, 10, "steps.b.run"},
        {8, 12, "steps.b.slots"},
        {9, 1, "nam"},
    };
    assert_int_equal(f->errors.total, GL_COUNT(expected));
    for (size_t i = 0; i < GL_COUNT(expected); i++) {
        assert_int_equal(f->errors.items[i].line, expected[i].line);
        assert_int_equal(f->errors.items[i].column, expected[i].column);
        assert_true(gl_str_is(f->errors.items[i].path, expected[i].path));
    }
}

static void only_so_many_errors_are_kept_but_all_are_counted(void **state)
{
    struct fixture *f = *state;
    struct gl_buf text = {0};
    gl_buf_c(&text, "steps:\n");
    for (int i = 0; i < 500; i++) {
        gl_buf_fmt(&text, "  s%d: {noop: true, needs: t%d}\n", i, i);
    }
    gl_buf_char(&text, 0);
    struct gl_flow *flow;
    assert_int_equal(parse(f, text.p, &flow), GL_E_INVALID);
    assert_int_equal(f->errors.n, 64);
    assert_int_equal(f->errors.total, 500);
    gl_buf_done(&text);
}

/* The documentation table. */

static void every_documented_field_is_known_and_every_known_one_documented(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < gl_flow_fields_n; i++) {
        const struct gl_flow_field *field = &gl_flow_fields[i];
        bool in_flow = strcmp(field->of, "flow") == 0, in_step = strcmp(field->of, "step") == 0;
        bool in_input = strcmp(field->of, "input") == 0, in_env = strcmp(field->of, "secret") == 0;
        gl_str text = in_flow    ? gl_str_fmt(&f->a, "{%s: [], x: 1}", field->name)
                      : in_step  ? gl_str_fmt(&f->a, "steps: {a: {%s: []}}", field->name)
                      : in_input ? gl_str_fmt(&f->a, "inputs: {a: {%s: []}}", field->name)
                      : in_env
                          ? gl_str_fmt(&f->a, "steps: {a: {env: {X: {%s: []}}}}", field->name)
                          : gl_str_fmt(&f->a, "steps: {a: {%s: {%s: []}}}", field->of, field->name);
        struct gl_flow *flow;
        (void)parse(f, text.p, &flow); /* wrong on purpose, but never unknown */
        for (size_t k = 0; k < f->errors.n; k++) {
            gl_str says = f->errors.items[k].text;
            gl_str unknown = gl_str_fmt(&f->a, "there is no field `%s`", field->name);
            assert_false(gl_str_starts(says, unknown));
        }
        assert_true(strlen(field->doc) > 10);
    }
}

static const char *reference_page(void)
{
    static char page[200000];
    FILE *file = fopen(GL_SOURCE_ROOT "/docs/flow-format.md", "r");
    assert_non_null(file);
    size_t n = fread(page, 1, sizeof(page) - 1, file);
    (void)fclose(file);
    page[n] = 0;
    return page;
}

static void the_reference_page_speaks_of_every_field_and_rule(void **state)
{
    struct fixture *f = *state;
    const char *page = reference_page();
    for (size_t i = 0; i < gl_flow_fields_n; i++) {
        const struct gl_flow_field *field = &gl_flow_fields[i];
        gl_str row = gl_str_fmt(&f->a, "| `%s` | %s | %s | %s |", field->name, field->type,
                                field->fallback[0] ? field->fallback : "-", field->doc);
        if (!strstr(page, row.p)) {
            fail_msg("docs/flow-format.md has no row\n%s", row.p);
        }
    }
    for (size_t i = 0; i < GL_RULE_COUNT; i++) {
        assert_non_null(strstr(page, gl_rule_words[i]));
    }
}

static void every_example_on_the_reference_page_is_a_flow(void **state)
{
    struct fixture *f = *state;
    static const char fence[] = "```yaml\n";
    unsigned examples = 0;
    for (const char *at = reference_page(); (at = strstr(at, fence)) != NULL; examples++) {
        at += strlen(fence);
        const char *end = strstr(at, "```");
        assert_non_null(end);
        /* A part of a flow is indented. */
        gl_str text = gl_str_fmt(&f->a, "%s%.*s",
                                 at[0] == ' ' ? "inputs: {pause: 1s, customer: x}\nsteps:\n" : "",
                                 (int)(end - at), at);
        struct gl_flow *flow;
        (void)parse(f, text.p, &flow);
        for (size_t i = 0; i < f->errors.n; i++) {
            gl_str says = f->errors.items[i].text;
            if (!gl_str_starts(
                    says, GL_S("there is no step"))) { /* parts may need what they do not show */
                fail_msg("%s\n%.*s", text.p, GL_STR_ARG(says));
            }
        }
        at = end;
    }
    assert_true(examples > 10);
}

static void every_sentence_reads_as_it_should(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/flow.golden");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_step_without_wishes_has_the_defaults),
        T(the_kinds_of_commands),
        T(long_shell_text_goes_through_a_file),
        T(a_file_used_twice_is_loaded_once),
        T(every_field_arrives),
        T(short_forms_mean_the_same),
        T(all_rules_are_known_by_both_names),
        T(steps_may_come_as_a_list),
        T(children_and_roots_follow_from_the_needs),
        T(a_flow_that_is_none_is_refused),
        T(ids_are_checked),
        T(a_step_does_exactly_one_thing),
        T(commands_must_be_possible),
        T(sizes_of_commands_are_limited),
        T(fields_of_a_step_are_checked),
        T(rules_must_be_able_to_hold),
        T(needs_must_name_other_steps),
        T(a_circle_is_named),
        T(all_errors_come_at_once_in_the_order_of_the_file),
        T(only_so_many_errors_are_kept_but_all_are_counted),
        T(every_documented_field_is_known_and_every_known_one_documented),
        T(the_reference_page_speaks_of_every_field_and_rule),
        T(every_example_on_the_reference_page_is_a_flow),
        cmocka_unit_test(every_sentence_reads_as_it_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
