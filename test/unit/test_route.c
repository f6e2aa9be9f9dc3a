#include "support/cmocka_all.h"

#include <string.h>

#include "base/check.h"
#include "base/limits.h"
#include "model/bundle/route.h"
#include "support/golden.h"

static struct gl_arena arena;
static struct gl_why why;

static int tear_down(void **state)
{
    (void)state;
    gl_arena_done(&arena);
    return 0;
}

/* A slice in an initializer of something static. */
#define L(text)                            \
    {                                      \
        .p = (text), .n = sizeof(text) - 1 \
    }

static const struct gl_message incoming = {
    .type = L("result"),
    .class_name = L("event"),
    .from = L("a\"b"),
    .to = L("c"),
    .headers = L("{\"mn.workflow.step_id\":\"s\",\"h\":{\"i\":1}}"),
    .body = L("{\"n\":2}"),
};

static const struct gl_route_facts facts = {
    .payload =
        L("{\"outputs\":{\"branch\":\"left\",\"score\":10,\"half\":0.5,\"list\":[1,\"x\",{\"k\":"
          "1}],\"none\":null,\"yes\":true,\"digits\":\"10\",\"empty\":\"\"},\"status\":\"ok\"}"),
    .incoming = &incoming,
    .state = L("{\"count\":3}"),
};

static int check(const char *text)
{
    struct gl_json j;

    if (gl_json_parse(&j, gl_str_of(text), 1 << 20, &arena, &why) != 0) {
        fail_msg("%s: %s", text, why.text);
    }
    return gl_route_check(&j, gl_json_root(&j), &why);
}

static void expect(bool wanted, const char *const *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (check(cases[i]) != 0) {
            fail_msg("%s: %s", cases[i], why.text);
        }
        if (gl_route_holds(gl_str_of(cases[i]), &facts, &arena) != wanted) {
            fail_msg("%s %s", cases[i], wanted ? "does not hold" : "holds");
        }
    }
}

#define E(text) "{\"expr\":\"" text "\"}"
#define P(path, op, value) "{\"path\":\"" path "\",\"op\":\"" op "\",\"value\":" value "}"

static void these_hold(void **state)
{
    static const char *const cases[] = {
        "{}",
        E("${payload.outputs.branch} == left"),
        E("${payload.outputs.branch} == 'left'"),
        E("${payload.outputs.branch} == \\\"left\\\""),
        E("  ${ payload.outputs.branch }==left  "),
        E("${payload.outputs.branch} != right"),
        E("${payload.outputs.branch} in [\\\"left\\\",\\\"right\\\"]"),
        E("${payload.outputs.branch} in the left hand"),
        E("${payload.outputs.branch} contains ef"),
        E("${payload.outputs.branch} >= lef"),
        E("${payload.outputs.score} == 10"),
        E("${payload.outputs.score} == 10.0"),
        E("${payload.outputs.score} == 1e1"),
        E("${payload.outputs.score}>=10"),
        E("${payload.outputs.score} <= 10"),
        E("${payload.outputs.score} > 9.99"),
        E("${payload.outputs.score} < 1e2"),
        E("${payload.outputs.score} != '10'"),
        E("${payload.outputs.digits} == '10'"),
        E("${payload.outputs.digits} == \\\"10\\\""),
        E("${payload.outputs.half} == 0.50"),
        E("${payload.outputs.yes} == true"),
        E("${payload.outputs.yes} exists"),
        E("${payload.outputs.none} == null"),
        E("${payload.outputs.nowhere.at.all} == null"),
        E("${payload.outputs.nowhere} != x"),
        E("${payload.outputs.list} contains 1"),
        E("${payload.outputs.list} contains x"),
        E("${payload.outputs.list} contains {\\\"k\\\":1}"),
        E("${payload.outputs.list} == [1,\\\"x\\\",{\\\"k\\\":1}]"),
        E("${payload.outputs.list.0} == 1"),
        E("${payload.outputs.list.2.k} == 1"),
        E("${payload.outputs.empty} == ''"),
        E("${payload} exists"),
        E("${message.body.n} == 2"),
        E("${message.type} == result"),
        E("${message.class} == event"),
        E("${message.from} contains a"),
        E("${message.to} == c"),
        E("${message.headers.mn.workflow.step_id} == s"),
        E("${message.headers.h.i} == 1"),
        E("${state.count} == 3"),
        E("${agent_state.count} > 2"),
        P("payload.outputs.score", ">=", "10"),
        P("payload.outputs.branch", "in", "[\"left\"]"),
        P("payload.outputs.list", "contains", "{\"k\":1.0}"),
        P("payload.outputs.list.1", "==", "\"x\""),
        "{\"path\":\"payload.status\",\"value\":\"ok\"}",
        "{\"path\":\"payload.status\",\"op\":\"exists\"}",
        "{\"path\":\"payload.outputs.nothing\",\"value\":null,\"label\":\"none\"}",
        "{\"all\":[]}",
        "{\"all\":[{},{\"path\":\"payload.status\",\"value\":\"ok\"}]}",
        ("{\"any\":[{\"path\":\"payload.status\",\"value\":\"no\"},"
         "{\"expr\":\"${state.count} == 3\"}]}"),
        "{\"not\":{\"path\":\"payload.status\",\"value\":\"no\"}}",
        "{\"not\":{\"any\":[]}}",
        "{\"all\":[{\"not\":{\"not\":{}}},{\"any\":[{\"all\":[]}]}]}",
    };

    (void)state;
    expect(true, cases, GL_COUNT(cases));
}

static void these_do_not_hold(void **state)
{
    static const char *const cases[] = {
        E("${payload.outputs.branch} == right"),
        E("${payload.outputs.branch} != left"),
        E("${payload.outputs.branch} contains LEFT"),
        E("${payload.outputs.score} == '10'"),
        E("${payload.outputs.score} > 10"),
        E("${payload.outputs.score} > text"),
        E("${payload.outputs.none} >= 0"),
        E("${payload.outputs.none} exists"),
        E("${payload.outputs.list.3} exists"),
        E("${payload.outputs.list.x} exists"),
        E("${payload.outputs.list.99999999999999999999} exists"),
        E("${payload.outputs.yes} == 'true'"),
        E("${payload.outputs.score} contains 1"),
        E("${payload.outputs.nowhere} in []"),
        E("${payload.outputs.nowhere} contains x"),
        E("${payload.outputs.yes} < true"),
        E("${payload..outputs} exists"),
        E("${state.other} exists"),
        "{\"any\":[]}",
        "{\"all\":[{},{\"any\":[]}]}",
        "{\"not\":{}}",
        "{\"path\":\"payload.status\",\"value\":null}",
    };

    (void)state;
    expect(false, cases, GL_COUNT(cases));
}

static void nothing_is_asked_of_an_edge_without_conditions(void **state)
{
    (void)state;
    assert_true(gl_route_holds((gl_str){0}, NULL, NULL));
    assert_true(gl_route_holds(GL_S("{}"), NULL, NULL));
    assert_true(gl_route_holds(GL_S("null"), NULL, NULL));
}

static void without_facts_every_path_is_null(void **state)
{
    static const struct gl_route_facts none = {0};

    (void)state;
    assert_true(gl_route_holds(GL_S(E("${message.type} == null")), &none, &arena));
    assert_true(gl_route_holds(GL_S(E("${payload.x} == null")), &none, &arena));
    assert_true(gl_route_holds(GL_S(E("${state} == {}")), &none, &arena));
}

static void what_cannot_be_read_does_not_hold(void **state)
{
    static const char *const cases[] = {
        "x",
        "[]",
        "7",
        "{\"al\":[]}",
        "{\"all\":{}}",
        "{\"any\":[7]}",
        "{\"not\":7}",
        "{\"expr\":7}",
        "{\"expr\":\"\"}",
        "{\"expr\":\"${payload\"}",
        "{\"expr\":\"${payload} ~ 3\"}",
        "{\"expr\":\"${payload} existsnot\"}",
        "{\"path\":7}",
        "{\"path\":\"payload\",\"op\":\"~\"}",
        "{\"path\":\"payload\",\"op\":7}",
    };
    static const struct gl_route_facts broken = {.payload = L("{")};

    (void)state;
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        if (gl_route_holds(gl_str_of(cases[i]), &facts, &arena)) {
            fail_msg("%s holds", cases[i]);
        }
    }
    assert_true(gl_route_holds(GL_S(E("${payload.x} == null")), &broken, &arena));
}

static void what_is_wrong_is_named_with_its_place(void **state)
{
    static const char *const cases[] = {
        "[]",
        "{\"exp\":\"x\"}",
        "{\"op\":\"==\"}",
        "{\"all\":[],\"path\":\"payload\"}",
        "{\"all\":{}}",
        "{\"any\":[{},{\"not\":[]}]}",
        "{\"expr\":1}",
        "{\"expr\":\"payload.x == 1\"}",
        "{\"expr\":\"${payload.x = 1\"}",
        "{\"expr\":\"${payload.x} = 1\"}",
        "{\"expr\":\"${payload.x} ==\"}",
        "{\"expr\":\"${payload.x} exists yes\"}",
        "{\"expr\":\"${payloads.x} exists\"}",
        "{\"expr\":\"${message} exists\"}",
        "{\"expr\":\"${message.type.x} exists\"}",
        "{\"path\":1,\"value\":1}",
        "{\"path\":\"body.x\",\"value\":1}",
        "{\"path\":\"payload\",\"op\":\"contain\",\"value\":1}",
        "{\"path\":\"payload\",\"op\":1,\"value\":1}",
        "{\"path\":\"payload\"}",
    };

    (void)state;
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        assert_int_equal(check(cases[i]), GL_E_INVALID);
        golden_say(cases[i], gl_str_of(why.text));
    }
}

static void all_that_is_wrong_is_told_at_once(void **state)
{
    (void)state;
    assert_int_equal(check("{\"all\":[{\"path\":\"x\",\"op\":\"~\"},{\"expr\":\"y\"}]}"),
                     GL_E_INVALID);
    assert_non_null(strstr(why.text, "conditions.all[0].path: "));
    assert_non_null(strstr(why.text, "; conditions.all[0].op: "));
    assert_non_null(strstr(why.text, "; conditions.all[0].value: "));
    assert_non_null(strstr(why.text, "; conditions.all[1].expr: "));
}

static int check_nested(unsigned n)
{
    struct gl_buf b = {0};
    int rc;

    for (unsigned i = 0; i < n; i++) {
        gl_buf_c(&b, "{\"not\":");
    }
    gl_buf_c(&b, "{}");
    for (unsigned i = 0; i < n; i++) {
        gl_buf_char(&b, '}');
    }
    gl_buf_char(&b, 0);
    rc = check(b.p);
    gl_buf_done(&b);
    return rc;
}

static void conditions_have_limits(void **state)
{
    gl_str text;
    struct gl_buf b = {0};

    (void)state;
    assert_int_equal(check_nested(GL_COND_DEPTH_MAX), 0);
    assert_int_equal(check_nested(GL_COND_DEPTH_MAX + 1), GL_E_INVALID);
    golden_say("33 deep", gl_str_of(why.text));
    gl_buf_c(&b, "{\"expr\":\"${payload} == ");
    memset(gl_buf_reserve(&b, GL_COND_BYTES_MAX), 'x', GL_COND_BYTES_MAX);
    b.n += GL_COND_BYTES_MAX;
    gl_buf_add(&b, "\"}", 3);
    text = gl_buf_view(&b);
    assert_int_equal(check(text.p), GL_E_INVALID);
    assert_non_null(strstr(why.text, "at most 16384"));
    gl_buf_done(&b);
}

static void who_looks_at_the_state_is_known(void **state)
{
    static const char *const yes[] = {
        E("${state.x} == 1"),
        E("${ agent_state } exists"),
        "{\"any\":[{},{\"not\":{\"path\":\"state.x\",\"value\":1}}]}",
        "{\"path\":\"st\\u0061te\",\"value\":1}",
    };
    static const char *const no[] = {
        "",
        "{}",
        E("${payload.state} == 1"),
        E("${payload.x} == state"),
        "{\"path\":\"states\",\"value\":1}",
        "{\"path\":\"payload\",\"value\":\"state.x\"}",
        "{\"state\":",
    };

    (void)state;
    for (size_t i = 0; i < GL_COUNT(yes); i++) {
        assert_true(gl_route_reads_state(gl_str_of(yes[i])));
    }
    for (size_t i = 0; i < GL_COUNT(no); i++) {
        assert_false(gl_route_reads_state(gl_str_of(no[i])));
    }
}

static void every_sentence_reads_as_in_the_golden(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/route.golden");
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, tear_down)
    const struct CMUnitTest tests[] = {
        T(these_hold),
        T(these_do_not_hold),
        T(nothing_is_asked_of_an_edge_without_conditions),
        T(without_facts_every_path_is_null),
        T(what_cannot_be_read_does_not_hold),
        T(what_is_wrong_is_named_with_its_place),
        T(all_that_is_wrong_is_told_at_once),
        T(conditions_have_limits),
        T(who_looks_at_the_state_is_known),
        cmocka_unit_test(every_sentence_reads_as_in_the_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
