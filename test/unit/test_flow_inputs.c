#include "support/cmocka_all.h"

#include <string.h>

#include "base/check.h"
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

static int parse(const char *inputs, struct gl_flow **ret)
{
    struct gl_json j;
    gl_str text = gl_str_fmt(&arena, "inputs: %s\nsteps: {a: {noop: true}}", inputs);
    if (gl_yaml_parse(&j, text, 1 << 20, &arena, &why)) {
        fail_msg("%s: %s", text.p, why.text);
    }
    return gl_flow_parse(&j, gl_json_root(&j), NULL, &arena, ret, &errors);
}

static const struct gl_flow *flow_with(const char *inputs)
{
    struct gl_flow *f;
    struct gl_buf out = {0};
    if (parse(inputs, &f)) {
        fail_msg("%s: %.*s", inputs, GL_STR_ARG(errors.items[0].text));
    }
    gl_flow_encode(f, &out);
    assert_int_equal(gl_flow_decode(gl_buf_view(&out), &arena, &f, &why), 0);
    gl_buf_done(&out);
    return f;
}

static void bad(const char *inputs, const char *path, enum gl_reason reason)
{
    struct gl_flow *f;
    assert_int_equal(parse(inputs, &f), GL_E_INVALID);
    if (!gl_str_is(errors.items[0].path, path) || errors.items[0].reason != reason) {
        fail_msg("%s: %.*s: %.*s", inputs, GL_STR_ARG(errors.items[0].path),
                 GL_STR_ARG(errors.items[0].text));
    }
    golden_say(gl_reason_word(reason), errors.items[0].text);
}

static const struct gl_flow_input *input(const struct gl_flow *f, size_t i)
{
    return &((const struct gl_flow_input *)f->inputs.items)[i];
}

static void the_type_follows_from_the_default(void **state)
{
    (void)state;
    static const uint8_t types[] = {GL_INPUT_STRING,  GL_INPUT_NUMBER,  GL_INPUT_NUMBER,
                                    GL_INPUT_BOOLEAN, GL_INPUT_LIST,    GL_INPUT_ANY,
                                    GL_INPUT_OBJECT,  GL_INPUT_INTEGER, GL_INPUT_ANY};
    const struct gl_flow *f =
        flow_with("{a: x, b: 1, c: 1.5, d: true, e: [1, 2], f: null, g: {default: {x: [ 1 ]}}, "
                  "h: {type: integer, default: 7, doc: how many}, i: {}}");
    assert_int_equal(f->inputs.n, GL_COUNT(types));
    for (size_t i = 0; i < GL_COUNT(types); i++) {
        assert_int_equal(input(f, i)->type, types[i]);
    }
    assert_true(gl_str_is(input(f, 0)->fallback, "\"x\""));
    assert_true(gl_str_is(input(f, 4)->fallback, "[1,2]"));
    assert_true(gl_str_is(input(f, 5)->fallback, ""));
    assert_true(gl_str_is(input(f, 6)->fallback, "{\"x\":[1]}"));
    assert_true(gl_str_is(input(f, 7)->doc, "how many"));
}

static void what_is_declared_wrongly_is_refused(void **state)
{
    (void)state;
    bad("[a]", "inputs", GL_REASON_WRONG_TYPE);
    bad("{a-b: 1}", "inputs.a-b", GL_REASON_NAME_INVALID);
    bad("{1a: 1}", "inputs.1a", GL_REASON_NAME_INVALID);
    bad("{a: {type: text}}", "inputs.a", GL_REASON_UNKNOWN_WORD);
    bad("{a: {type: string, default: 1}}", "inputs.a", GL_REASON_DEFAULT_WRONG_TYPE);
    bad("{a: {type: integer, default: 1.5}}", "inputs.a", GL_REASON_DEFAULT_WRONG_TYPE);
    bad("{a: {required: true, default: 1}}", "inputs.a", GL_REASON_DEFAULT_OF_REQUIRED);
    bad("{a: {required: 1}}", "inputs.a", GL_REASON_WRONG_TYPE);
    bad("{a: {defualt: 1}}", "inputs.a.defualt", GL_REASON_UNKNOWN_FIELD);
}

static const char *given(const struct gl_flow *f, const char *what)
{
    gl_str ret;
    if (gl_flow_inputs(f, gl_str_of(what), &arena, &ret, &why)) {
        fail_msg("%s: %s", what, why.text);
    }
    return gl_str_c(&arena, ret);
}

static void what_is_not_given_has_its_default(void **state)
{
    (void)state;
    const struct gl_flow *f = flow_with("{a: x, b: 1, c: {required: true}, d: {type: list}}");
    assert_string_equal(given(f, "{\"c\": [1, 2 ]}"),
                        "{\"a\":\"x\",\"b\":1,\"c\":[1,2],\"d\":null}");
    assert_string_equal(given(f, "{\"d\":null,\"c\":null,\"b\":2.5,\"a\":\" \\\" \"}"),
                        "{\"a\":\" \\\" \",\"b\":2.5,\"c\":null,\"d\":null}");
    f = flow_with("{}");
    assert_string_equal(given(f, ""), "");
    assert_string_equal(given(f, "{}"), "");
}

static void what_is_given_wrongly_is_told_all_at_once(void **state)
{
    (void)state;
    const struct gl_flow *f = flow_with("{who: x, n: {type: integer, default: 1}, "
                                        "must: {type: string, required: true}}");
    static const char *const names[] = {"`woh`", "`zzz`", "`who`", "`n`", "`must`"};
    gl_str ret = GL_S("same");
    gl_str wrong = GL_S("{\"woh\":1,\"n\":1.5,\"zzz\":2,\"who\":3}");
    assert_int_equal(gl_flow_inputs(f, wrong, &arena, &ret, &why), GL_E_INVALID);
    golden_say(wrong.p, gl_str_of(why.text));
    for (size_t i = 0; i < GL_COUNT(names); i++) { /* all of them at once */
        assert_non_null(strstr(why.text, names[i]));
    }
    assert_true(gl_str_is(ret, "same"));
    assert_int_equal(gl_flow_inputs(f, GL_S("[]"), &arena, &ret, &why), GL_E_INVALID);
    assert_int_equal(gl_flow_inputs(f, GL_S("{"), &arena, &ret, NULL), GL_E_INVALID);
    assert_int_equal(gl_flow_inputs(f, GL_S("{\"must\":null}"), &arena, &ret, &why), GL_E_INVALID);
    assert_int_equal(gl_flow_inputs(flow_with("{}"), GL_S("{\"a\":1}"), &arena, &ret, &why),
                     GL_E_INVALID);
    assert_int_equal(why.reason, GL_REASON_INPUT_UNKNOWN);
    golden_say("{\"a\":1}", gl_str_of(why.text));
}

static void what_is_given_has_limits(void **state)
{
    (void)state;
    const struct gl_flow *f = flow_with("{a: null}");
    struct gl_buf text = {0};
    gl_str ret;
    gl_buf_c(&text, "{\"a\":");
    for (int i = 0; i < GL_VALUE_DEPTH_MAX; i++) {
        gl_buf_char(&text, '[');
    }
    for (int i = 0; i < GL_VALUE_DEPTH_MAX; i++) {
        gl_buf_char(&text, ']');
    }
    gl_buf_char(&text, '}');
    assert_int_equal(gl_flow_inputs(f, gl_buf_view(&text), &arena, &ret, &why), GL_E_INVALID);
    gl_buf_reset(&text);
    gl_buf_c(&text, "{\"a\":\"");
    while (text.n <= GL_INPUTS_BYTES_MAX) {
        gl_buf_c(&text, "xxxxxxxx");
    }
    gl_buf_c(&text, "\"}");
    assert_int_not_equal(gl_flow_inputs(f, gl_buf_view(&text), &arena, &ret, &why), 0);
    gl_buf_done(&text);
}

static void every_sentence_reads_as_it_should(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/flow_inputs.golden");
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, tear_down)
    const struct CMUnitTest tests[] = {
        T(the_type_follows_from_the_default), T(what_is_declared_wrongly_is_refused),
        T(what_is_not_given_has_its_default), T(what_is_given_wrongly_is_told_all_at_once),
        T(what_is_given_has_limits),          cmocka_unit_test(every_sentence_reads_as_it_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
