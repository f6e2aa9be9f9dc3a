#include "support/cmocka_all.h"

#include <string.h>

#include "base/check.h"
#include "base/sha256.h"
#include "model/flow/flow.h"
#include "model/flow/flow_graph.h"
#include "model/text/yaml.h"
#include "support/golden.h"

static struct gl_arena arena;
static struct gl_why why;
static struct gl_buf compiled;
static struct gl_flow_errors errors;

static int tear_down(void **state)
{
    (void)state;
    gl_arena_done(&arena);
    gl_buf_done(&compiled);
    return 0;
}

static int load(struct gl_flow_loader *l, gl_str source, gl_str text, char ret_hex[static 65],
                bool *ret_executable, struct gl_why *reterr_why)
{
    (void)l, (void)reterr_why;
    (void)gl_sha256_hex(source.n ? source : text, ret_hex);
    *ret_executable = gl_str_is(source, "run");
    return 0;
}

/* Parse, compile into `compiled`. */
static struct gl_flow *compile(gl_str text)
{
    struct gl_json j;
    struct gl_flow *f;
    struct gl_flow_loader loader = {.load = load};
    assert_int_equal(gl_yaml_parse(&j, text, GL_FLOW_BYTES_MAX, &arena, &why), 0);
    assert_int_equal(gl_flow_parse(&j, gl_json_root(&j), &loader, &arena, &f, &errors), 0);
    gl_buf_reset(&compiled);
    gl_flow_encode(f, &compiled);
    return f;
}

static const char everything[] =
    "name: all of it\n"
    "steps:\n"
    "  a: {sh: 'echo \"x\"'}\n"
    "  b: {run: [x, '', y z], needs: a, env: {A: 1}, timeout: 90s,\n"
    "      retry: {attempts: 3, backoff: 0}}\n"
    "  c: {python: print(1), needs: [a, b], unsafe: true,\n"
    "      trigger_rule: {rule: quorum, quorum: 2}}\n"
    "  d: {script: run, on_failure: skip, idempotent: true, pool: gpu, slots: 3, priority: -5}\n"
    "  e: {noop: true, heartbeat: 5s, grace: 1ms, needs: d, trigger_rule: one_failed}\n"
    "  f: {sh: x, cwd: /tmp, needs: [e, c], trigger_rule: all_done, on_failure: continue}\n"
    "  g: {noop: true, retry: {attempts: 1, backoff: 2s}}\n";

static void the_compiled_form_is_small_and_plain(void **state)
{
    (void)state;
    (void)compile(GL_S("steps: {a: {sh: x}, b: {noop: true, needs: a, retry: 2}}"));
    gl_buf_char(&compiled, 0);
    assert_string_equal(
        compiled.p,
        "{\"format\":2,\"name\":\"flow\",\"steps\":[{\"id\":\"a\",\"argv\":[\"sh\",\"-ec\",\"x\"]},"
        "{\"id\":\"b\",\"needs\":[\"a\"],\"driver\":\"noop\",\"retry\":{\"attempts\":2,"
        "\"backoff_ms\":1000,\"factor_pct\":200,\"backoff_max_ms\":300000}}]}");
}

static void a_compiled_flow_is_read_back_whole(void **state)
{
    (void)state;
    const struct gl_flow *f = compile(GL_S(everything));
    char *copy = gl_arena_copy(&arena, compiled.p, compiled.n);
    struct gl_flow *back;
    assert_int_equal(gl_flow_decode((gl_str){copy, compiled.n}, &arena, &back, &why), 0);
    memset(copy, 'x', compiled.n); /* nothing borrows from what was given */
    assert_int_equal(back->steps.n, f->steps.n);
    assert_int_equal(back->roots_n, f->roots_n);
    for (uint32_t i = 0; i < f->steps.n; i++) {
        const struct gl_step_spec *s = gl_flow_step(f, i), *t = gl_flow_step(back, i);
        assert_int_equal(gl_flow_find(back, s->id), i);
        assert_int_equal(t->rule, s->rule);
        assert_int_equal(t->quorum, s->quorum);
        assert_int_equal(t->on_failure, s->on_failure);
        assert_int_equal(t->safety, s->safety);
        assert_true(gl_str_eq(t->driver, s->driver));
        assert_true(gl_str_eq(t->pool, s->pool));
        assert_int_equal(t->slots, s->slots);
        assert_true(t->priority == s->priority);
        assert_true(t->grace_ms == s->grace_ms);
        assert_true(t->timeout_ms == s->timeout_ms);
        assert_true(t->heartbeat_ms == s->heartbeat_ms);
        assert_int_equal(t->retry.attempts, s->retry.attempts);
        assert_int_equal(t->retry.factor_pct, s->retry.factor_pct);
        assert_true(t->retry.backoff_ms == s->retry.backoff_ms);
        assert_true(t->retry.backoff_max_ms == s->retry.backoff_max_ms);
        assert_int_equal(t->needs_n, s->needs_n);
        assert_int_equal(t->children_n, s->children_n);
        assert_memory_equal(t->needs, s->needs, s->needs_n * sizeof(s->needs[0]));
        assert_memory_equal(t->children, s->children, s->children_n * sizeof(s->children[0]));
        assert_int_equal(t->argv.n, s->argv.n);
        assert_int_equal(t->env.n, s->env.n);
        assert_int_equal(t->files.n, s->files.n);
        assert_true(gl_str_eq(t->cwd, s->cwd));
    }
    assert_memory_equal(back->roots, f->roots, f->roots_n * sizeof(f->roots[0]));
    struct gl_buf again = {0};
    gl_flow_encode(back, &again);
    assert_true(gl_str_eq(gl_buf_view(&again), gl_buf_view(&compiled)));
    gl_buf_done(&again);
}

static void the_same_flow_written_differently_compiles_to_the_same_bytes(void **state)
{
    (void)state;
    char one[65], two[65];
    (void)compile(GL_S("steps: {a: {sh: x, timeout: 90s}, b: {needs: [a], run: [x, 5]}}"));
    (void)gl_sha256_hex(gl_buf_view(&compiled), one);
    (void)compile(
        GL_S("{\"name\":\"flow\",\"steps\":[{\"timeout\":\"1m30s\",\"sh\":\"x\",\"id\":\"a\"},"
             "{\"id\":\"b\",\"run\":[\"x\",\"5\"],\"needs\":\"a\",\"slots\":1,\"retry\":1}]}"));
    (void)gl_sha256_hex(gl_buf_view(&compiled), two);
    assert_string_equal(one, two);
}

static void a_later_format_is_refused_as_such(void **state)
{
    (void)state;
    struct gl_flow *f;
    assert_int_equal(gl_flow_decode(GL_S("{\"format\":4,\"new\":[]}"), &arena, &f, &why),
                     GL_E_VERSION);
    assert_int_equal(gl_flow_decode(GL_S("{\"name\":\"x\"}"), &arena, &f, &why), GL_E_INVALID);
    assert_int_equal(gl_flow_decode(GL_S("{\"format\":0}"), &arena, &f, &why), GL_E_INVALID);
    assert_int_equal(gl_flow_decode(GL_S("{\"format\":1"), &arena, &f, &why), GL_E_INVALID);
    assert_int_equal(gl_flow_decode(GL_S("[]"), &arena, &f, NULL), GL_E_INVALID);
}

static void a_foreign_compiled_flow_is_checked(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "{\"argv\":[\"x\"]}",
        "{\"id\":\"-\",\"argv\":[\"x\"]}",
        "{\"id\":\"a\"}",
        "{\"id\":\"a\",\"argv\":[\"\"]}",
        "{\"id\":\"a\",\"argv\":[\"x\\u0000\"]}",
        "{\"id\":\"a\",\"driver\":\"noop\",\"argv\":[\"x\"]}",
        "{\"id\":\"a\",\"driver\":\"magic\"}",
        "{\"id\":\"a\",\"argv\":[\"x\"]},{\"id\":\"a\",\"argv\":[\"x\"]}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"needs\":[\"b\"]}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"needs\":[\"a\"]}",
        "{\"id\":\"a\",\"argv\":[\"x\"]},{\"id\":\"b\",\"argv\":[\"x\"],\"needs\":[\"a\",\"a\"]}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"needs\":[\"b\"]},"
        "{\"id\":\"b\",\"argv\":[\"x\"],\"needs\":"
        "[\"a\"]}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"rule\":\"one_done\"}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"quorum\":1}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"rule\":\"some\"}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"env\":[\"A\"]}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"env\":[\"=x\"]}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"env\":[\"GLIA_A=x\"]}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"cwd\":\"tmp\"}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"files\":[{\"name\":\"../x\",\"blob\":\"\"}]}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"files\":[{\"name\":\"x\",\"blob\":\"12\"}]}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"retry\":{\"attempts\":10001,\"factor_pct\":100}}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"retry\":{\"attempts\":2}}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"timeout_ms\":-1}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"priority\":5000}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"slots\":100001}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"pool\":\"a b\"}",
    };
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct gl_flow *f = NULL;
        gl_str text = gl_str_fmt(&arena, "{\"format\":1,\"name\":\"x\",\"steps\":[%s]}", cases[i]);
        int rc = gl_flow_decode(text, &arena, &f, &why);
        if (rc != GL_E_INVALID) {
            fail_msg("%s gives %d, %s", cases[i], rc, rc ? why.text : "no error");
        }
        golden_say(cases[i], gl_str_of(why.text));
        assert_null(f);
    }
    struct gl_flow *f;
    gl_str odd = GL_S("{\"format\":1,\"name\":\"x\",\"steps\":[{\"id\":\"a\",\"argv\":[\"x\"],"
                      "\"env\":[\"BASH_FUNC_x%%=() { :; }\"],\"since\":\"later\"}]}");
    assert_int_equal(gl_flow_decode(odd, &arena, &f, &why), 0);
}

static void an_earlier_format_means_what_it_meant(void **state)
{
    (void)state;
    struct gl_flow *f;
    gl_str old = GL_S("{\"format\":1,\"name\":\"x\",\"steps\":[{\"id\":\"a\",\"argv\":"
                      "[\"echo\",\"${HOME} ${steps.b.output}\"],\"env\":[\"A=$${x}\"]}]}");
    assert_int_equal(gl_flow_decode(old, &arena, &f, &why), 0);
    const struct gl_step_spec *s = gl_flow_step(f, 0);
    assert_int_equal(s->expand, 0); /* literal: it knew no references */
    assert_int_equal(s->reads_n, 0);
    assert_true(gl_str_is(s->argv.items[1], "${HOME} ${steps.b.output}"));
    assert_true(gl_str_is(s->env.items[0], "A=$${x}"));
}

static void new_fields_of_a_foreign_flow_are_checked(void **state)
{
    (void)state;
    static const char *const steps[] = {
        "{\"id\":\"a\",\"driver\":\"sleep\"}",
        "{\"id\":\"a\",\"driver\":\"sleep\",\"sleep\":\"soon\"}",
        "{\"id\":\"a\",\"driver\":\"sleep\",\"sleep\":\"1s\",\"argv\":[\"x\"]}",
        "{\"id\":\"a\",\"driver\":\"until\",\"until\":\"1s\"}",
        "{\"id\":\"a\",\"driver\":\"noop\",\"sleep\":\"1s\"}",
        "{\"id\":\"a\",\"driver\":\"signal\",\"signal\":\"a b\"}",
        "{\"id\":\"a\",\"driver\":\"approval\",\"approval\":\"x\",\"on_timeout\":\"y\"}",
        "{\"id\":\"a\",\"driver\":\"approval\",\"approval\":\"x\",\"decisions\":[\"\"]}",
        "{\"id\":\"a\",\"driver\":\"noop\",\"decisions\":[\"x\"]}",
        "{\"id\":\"a\",\"driver\":\"noop\",\"when\":\"1 =\"}",
        "{\"id\":\"a\",\"driver\":\"noop\",\"when\":\"${steps.b.output}\"}",
        "{\"id\":\"a\",\"driver\":\"noop\",\"when\":\"${steps.a.output}\"}",
        "{\"id\":\"a\",\"driver\":\"noop\",\"when\":\"${inputs.b}\"}",
        "{\"id\":\"a\",\"driver\":\"noop\",\"foreach\":\"{}\"}",
        "{\"id\":\"a\",\"driver\":\"noop\",\"foreach\":\"[]\",\"items_max\":10001}",
        "{\"id\":\"a\",\"driver\":\"noop\",\"items_max\":3}",
        "{\"id\":\"a\",\"driver\":\"noop\",\"limit_key\":\"x\"}",
        "{\"id\":\"a\",\"driver\":\"noop\",\"limit_max\":1}",
        "{\"id\":\"a\",\"driver\":\"noop\",\"rate_ms\":1}",
        "{\"id\":\"a\",\"driver\":\"noop\",\"rate_key\":\"x\",\"rate_ms\":-1}",
        "{\"id\":\"a\",\"argv\":[\"${x}\"],\"expand\":1}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"expand\":8}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"refs\":[\"x\"]}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"secrets\":[\"A=x\"]}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"secrets\":[\"GLIA_X=env:X\"]}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"env\":[\"GLIA_REF_x=1\"]}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"retry\":{\"attempts\":1,\"factor_pct\":100,"
        "\"on\":[\"0\"]}}",
        "{\"id\":\"a\",\"argv\":[\"x\"],\"retry\":{\"attempts\":1,\"factor_pct\":100,"
        "\"jitter_pct\":101}}",
    };
    static const char *const inputs[] = {
        "[{\"name\":\"a b\"}]",
        "[{\"name\":\"a\"},{\"name\":\"a\"}]",
        "[{\"name\":\"a\",\"type\":\"string\",\"default\":1}]",
        "[{\"name\":\"a\",\"required\":true,\"default\":1}]",
    };
    struct gl_flow *f;
    for (size_t i = 0; i < GL_COUNT(steps); i++) {
        gl_str text = gl_str_fmt(&arena, "{\"format\":2,\"name\":\"x\",\"steps\":[%s]}", steps[i]);
        if (gl_flow_decode(text, &arena, &f, &why) != GL_E_INVALID) {
            fail_msg("%s is accepted", steps[i]);
        }
    }
    for (size_t i = 0; i < GL_COUNT(inputs); i++) {
        gl_str text = gl_str_fmt(&arena,
                                 "{\"format\":2,\"name\":\"x\",\"inputs\":%s,\"steps\":"
                                 "[{\"id\":\"a\",\"driver\":\"noop\"}]}",
                                 inputs[i]);
        assert_int_equal(gl_flow_decode(text, &arena, &f, &why), GL_E_INVALID);
    }
}

static void keys_made_of_a_long_name_count_as_well(void **state)
{
    (void)state;
    struct gl_buf text = {0};
    gl_buf_c(&text, "{\"name\":\"");
    for (int i = 0; i < GL_NAME_BYTES_MAX; i++) {
        gl_buf_char(&text, 'n');
    }
    gl_buf_c(&text, "\",\"steps\":{");
    for (unsigned i = 0; i < 60000; i++) {
        gl_buf_fmt(&text, "%s\"%u\":{\"noop\":true,\"rate\":\"1/s\",\"concurrency\":1}",
                   i ? "," : "", i);
    }
    gl_buf_c(&text, "}}");
    struct gl_json j;
    struct gl_flow *f;
    assert_int_equal(gl_json_parse(&j, gl_buf_view(&text), GL_FLOW_BYTES_MAX, &arena, &why), 0);
    assert_int_equal(gl_flow_parse(&j, gl_json_root(&j), NULL, &arena, &f, &errors), GL_E_INVALID);
    golden_say("too large", errors.items[0].text);
    gl_buf_done(&text);
}

/* A chain of `n` steps in random order of writing, so that nothing depends on it. */
static gl_str chain(struct gl_buf *out, unsigned n, bool closed)
{
    gl_buf_c(out, "{\"steps\":{");
    for (unsigned i = 0; i < n; i++) {
        unsigned k = (unsigned)(((uint64_t)i * 7919 + 13) % n); /* n is no multiple of 7919 */
        gl_buf_fmt(out, "%s\"s%u\":{\"noop\":true", i ? "," : "", k);
        if (k || closed) {
            gl_buf_fmt(out, ",\"needs\":\"s%u\"", k ? k - 1 : n - 1);
        }
        gl_buf_char(out, '}');
    }
    gl_buf_c(out, "}}");
    return gl_buf_view(out);
}

static void the_longest_chain_is_parsed_compiled_and_read_back(void **state)
{
    (void)state;
    struct gl_buf text = {0};
    (void)compile(chain(&text, GL_STEPS_MAX, false));
    assert_true(compiled.n < GL_FLOW_BYTES_MAX / 2);
    struct gl_flow *f;
    assert_int_equal(gl_flow_decode(gl_buf_view(&compiled), &arena, &f, &why), 0);
    int64_t at = gl_flow_find(f, GL_S("s0"));
    unsigned length = 1;
    for (; gl_flow_step(f, (uint32_t)at)->children_n; length++) {
        at = gl_flow_step(f, (uint32_t)at)->children[0];
    }
    assert_int_equal(length, GL_STEPS_MAX);
    gl_buf_done(&text);
}

static void the_longest_circle_is_found_without_deep_recursion(void **state)
{
    (void)state;
    struct gl_buf text = {0};
    struct gl_json j;
    struct gl_flow *f;
    gl_str yaml = chain(&text, GL_STEPS_MAX, true);
    assert_int_equal(gl_json_parse(&j, yaml, GL_FLOW_BYTES_MAX, &arena, &why), 0);
    assert_int_equal(gl_flow_parse(&j, gl_json_root(&j), NULL, &arena, &f, &errors), GL_E_INVALID);
    assert_int_equal(errors.total, 1);
    assert_non_null(strstr(errors.items[0].text.p, "199988 more"));
    gl_buf_done(&text);
}

static void one_step_too_many_is_refused(void **state)
{
    (void)state;
    struct gl_buf text = {0};
    struct gl_json j;
    struct gl_flow *f;
    gl_str json = chain(&text, GL_STEPS_MAX + 1, false);
    assert_int_equal(gl_json_parse(&j, json, GL_FLOW_BYTES_MAX, &arena, &why), 0);
    assert_int_equal(gl_flow_parse(&j, gl_json_root(&j), NULL, &arena, &f, &errors), GL_E_INVALID);
    assert_non_null(strstr(errors.items[0].text.p, "1 to 200000 steps, not 200001"));
    gl_buf_done(&text);
}

static void a_wide_join_is_fine_up_to_its_limit(void **state)
{
    (void)state;
    for (unsigned extra = 0; extra < 2; extra++) {
        struct gl_buf text = {0};
        gl_buf_c(&text, "{\"steps\":{");
        for (unsigned i = 0; i < GL_NEEDS_MAX + extra; i++) {
            gl_buf_fmt(&text, "\"s%u\":{\"noop\":true},", i);
        }
        gl_buf_c(&text, "\"join\":{\"noop\":true,\"needs\":[");
        for (unsigned i = 0; i < GL_NEEDS_MAX + extra; i++) {
            gl_buf_fmt(&text, "%s\"s%u\"", i ? "," : "", i);
        }
        gl_buf_c(&text, "]}}}");
        struct gl_json j;
        struct gl_flow *f;
        assert_int_equal(gl_json_parse(&j, gl_buf_view(&text), 8 << 20, &arena, &why), 0);
        int rc = gl_flow_parse(&j, gl_json_root(&j), NULL, &arena, &f, &errors);
        assert_int_equal(rc, extra ? GL_E_INVALID : 0);
        assert_true(extra || gl_flow_step(f, GL_NEEDS_MAX)->needs_n == GL_NEEDS_MAX);
        gl_buf_done(&text);
    }
}

static void a_flow_that_grows_too_large_when_compiled_is_refused(void **state)
{
    (void)state;
    /* Short to write, long when compiled: each step carries the hash of its file. */
    struct gl_buf text = {0};
    gl_buf_c(&text, "{\"steps\":{");
    for (unsigned i = 0; i < 199000; i++) {
        gl_buf_fmt(&text, "%s\"a-rather-long-name-of-a-step-%u\":{\"script\":\"a.py\"}",
                   i ? "," : "", i);
    }
    gl_buf_c(&text, "}}");
    struct gl_json j;
    struct gl_flow *f;
    struct gl_flow_loader loader = {.load = load};
    assert_int_equal(gl_json_parse(&j, gl_buf_view(&text), GL_FLOW_BYTES_MAX, &arena, &why), 0);
    assert_int_equal(gl_flow_parse(&j, gl_json_root(&j), &loader, &arena, &f, &errors),
                     GL_E_INVALID);
    golden_say("too large", errors.items[0].text);
    gl_buf_done(&text);
}

static void every_sentence_reads_as_in_the_golden(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/flow_compiled.golden");
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, tear_down)
    const struct CMUnitTest tests[] = {
        T(the_compiled_form_is_small_and_plain),
        T(a_compiled_flow_is_read_back_whole),
        T(the_same_flow_written_differently_compiles_to_the_same_bytes),
        T(a_later_format_is_refused_as_such),
        T(an_earlier_format_means_what_it_meant),
        T(new_fields_of_a_foreign_flow_are_checked),
        T(keys_made_of_a_long_name_count_as_well),
        T(a_foreign_compiled_flow_is_checked),
        T(the_longest_chain_is_parsed_compiled_and_read_back),
        T(the_longest_circle_is_found_without_deep_recursion),
        T(one_step_too_many_is_refused),
        T(a_wide_join_is_fine_up_to_its_limit),
        T(a_flow_that_grows_too_large_when_compiled_is_refused),
        cmocka_unit_test(every_sentence_reads_as_in_the_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
