#include "support/cmocka_all.h"

#include <string.h>

#include "base/check.h"
#include "base/limits.h"
#include "model/text/cond.h"
#include "model/text/ref.h"
#include "support/golden.h"

static struct gl_arena arena;
static struct gl_why why;
static struct gl_json facts;

static const char facts_text[] =
    "{\"steps\":{\"a\":{\"status\":\"completed\",\"outcome\":\"success\",\"output\":"
    "{\"n\":3,\"half\":0.5,\"t\":\"text\",\"list\":[1,\"x\",[2]],\"empty\":{},"
    "\"o\":{\"k\":1,\"l\":[]},\"zero\":0.00,\"null\":null}},"
    "\"skipped\":{\"status\":\"skipped\",\"outcome\":\"skipped\"}},"
    "\"inputs\":{\"env\":\"prod\",\"names\":[\"x\",\"y\"],\"on\":false},\"job\":{\"id\":\"J\"}}";

static int set_up(void **state)
{
    (void)state;
    return gl_json_parse(&facts, gl_str_of(facts_text), 1 << 20, &arena, &why);
}

static int tear_down(void **state)
{
    (void)state;
    gl_arena_done(&arena);
    return 0;
}

static int eval(const char *text, bool *ret)
{
    const struct gl_cond *c;
    size_t at = 0;
    if (gl_cond_parse(gl_str_of(text), &arena, &c, &at, &why)) {
        fail_msg("%s\n%*s^ %s", text, (int)at, "", why.text);
    }
    return gl_cond_eval(c, &facts, &arena, ret, &why);
}

static void expect(bool wanted, const char *const *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool got;
        if (eval(cases[i], &got)) {
            fail_msg("%s: %s", cases[i], why.text);
        }
        if (got != wanted) {
            fail_msg("%s is %s", cases[i], got ? "true" : "false");
        }
    }
}

static void these_are_true(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "true",
        "1",
        "'x'",
        "[0]",
        "${steps.a.output.o}",
        "not false",
        "not not true",
        "${steps.a.output.n} == 3",
        "${steps.a.output.n} == 3.0",
        "${steps.a.output.n} == 0.3e1",
        "${steps.a.output.n} == 30E-1",
        "${steps.a.output.n} != \"3\"",
        "${steps.a.output.n} > 2.9999999999999999999",
        "${steps.a.output.n}<10",
        "${steps.a.output.half} == 0.50",
        "${steps.a.output.zero} == -0",
        "-1 < 0 and 0 < 1 and -2 < -1 and -1 < 1",
        "9007199254740993 > 9007199254740992",
        "1e300 < 1e301",
        "0.05 < 0.5 and 12.5 > 12.49 and 12 < 12.1 and 100 == 1e2",
        "${inputs.env} == \"prod\"",
        "${inputs.env} == 'prod' and ${steps.a.output.n} >= 3",
        "'a' < 'b' and 'a' <= 'a' and 'ab' > 'a'",
        "${inputs.env} in [\"prod\", \"stage\"]",
        "'x' in ${inputs.names}",
        "${inputs.names} contains \"y\"",
        "'k' in ${steps.a.output.o}",
        "${steps.a.output.t} contains 'ex'",
        "'' in 'x'",
        "[2] in ${steps.a.output.list}",
        "${steps.a.output.list} == [1, 'x', [2]]",
        "[${steps.a.output.n}, ${inputs.env}] == [3, \"prod\"]",
        "${steps.a.output.n} in [1, ${steps.a.output.n}]",
        "exists ${steps.a.output.t}",
        "not exists ${steps.a.output.none}",
        "not exists ${steps.a.output.null}",
        "not exists ${steps.skipped.output.x}",
        "not exists ${steps.nobody.output}",
        "${steps.skipped.output} == null",
        "${steps.skipped.outcome} == 'skipped'",
        "false or true",
        "true or 1 < 'x'",
        "not (false and 1 < 'x')",
        "true and false or true",
        "true or true and false",
        "(false or true) and (true)",
        "not 'z' in ${inputs.names}",
        "'it\\'s' == \"it's\" and \"\\\"\" == '\"' and 'a\\\\' == \"a\\\\\"",
        "\"$${x}\" != ''",
        "[] == [] and [[]] != []",
        "${job.id} == 'J'",
        "not null in 'text' and not 'x' in ${steps.skipped.output}",
    };
    expect(true, cases, GL_COUNT(cases));
}

static void these_are_false(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "false",
        "null",
        "0",
        "-0.0e7",
        "''",
        "[]",
        "${steps.a.output.empty}",
        "${steps.a.output.zero}",
        "${inputs.on}",
        "${steps.nobody.output.x}",
        "1 == 2",
        "1 == true",
        "null == false",
        "'1' == 1",
        "${steps.a.output.o} == ${steps.a.output.empty}",
        "${steps.a.output.n} in []",
        "'z' in ${steps.a.output.o}",
        "true and true and false",
        "false or false or null",
        "3 > 3",
        "3 < 3",
        "2 >= 3",
        "3 <= 2",
        "not 1",
    };
    expect(false, cases, GL_COUNT(cases));
}

static void members_of_objects_have_no_order(void **state)
{
    (void)state;
    static const char text[] =
        "{\"inputs\":{\"a\":{\"x\":1,\"y\":[{\"p\":1,\"q\":2}]},"
        "\"b\":{\"y\":[{\"q\":2.0,\"p\":1}],\"x\":1},"
        "\"c\":{\"1\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":1,\"6\":1,\"7\":1,\"8\":1,\"9\":1},"
        "\"d\":{\"9\":1,\"8\":1,\"7\":1,\"6\":1,\"5\":1,\"4\":1,\"3\":1,\"2\":1,\"1\":1},"
        "\"e\":{\"9\":1,\"8\":1,\"7\":1,\"6\":1,\"5\":1,\"4\":1,\"3\":1,\"2\":1,\"0\":1}}}";
    assert_int_equal(gl_json_parse(&facts, gl_str_of(text), 1 << 20, &arena, &why), 0);
    static const char *const cases[] = {
        "${inputs.a} == ${inputs.b}",
        "${inputs.c} == ${inputs.d}",
        "${inputs.c} != ${inputs.e}",
        "${inputs.a} != ${inputs.c}",
    };
    expect(true, cases, GL_COUNT(cases));
}

static void what_cannot_be_compared_is_an_error(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "1 < 'x'",      "${steps.nobody.output.x} > 3", "true < false", "[1] < [2]", "1 in 2",
        "1 in 'text1'", "[1] in ${steps.a.output.o}",   "null < null",
    };
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        bool got = true;
        assert_int_equal(eval(cases[i], &got), GL_E_INVALID);
        assert_true(got); /* untouched */
        assert_true(strlen(why.text) > 20);
    }
}

static void a_bad_condition_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t at;
        enum gl_reason reason;
    } cases[] = {
        {"", 0, GL_REASON_CONDITION_ENDS},
        {"true and", 8, GL_REASON_CONDITION_ENDS},
        {"1 = 2", 2, GL_REASON_FOREIGN_SIGN},
        {"1 && 2", 2, GL_REASON_FOREIGN_SIGN},
        {"1 || 2", 2, GL_REASON_FOREIGN_SIGN},
        {"!1", 0, GL_REASON_FOREIGN_SIGN},
        {"1 2", 2, GL_REASON_OPERATOR_EXPECTED},
        {"(1", 2, GL_REASON_PAREN_OPEN},
        {"1)", 1, GL_REASON_PAREN_EXTRA},
        {"prod == 1", 0, GL_REASON_BARE_WORD},
        {"inputs.x == 1", 0, GL_REASON_BARE_WORD},
        {"ture", 0, GL_REASON_BARE_WORD},
        {"'${inputs.x}' == 1", 0, GL_REASON_QUOTED_REFERENCE},
        {"1 == 'x", 5, GL_REASON_QUOTE_OPEN},
        {"'a\\x'", 0, GL_REASON_ESCAPE_INVALID},
        {"1.2.3", 0, GL_REASON_NUMBER_INVALID},
        {"01", 0, GL_REASON_NUMBER_INVALID},
        {"[1, 2", 5, GL_REASON_LIST_OPEN},
        {"[1 2]", 3, GL_REASON_LIST_OPEN},
        {"exists 'x'", 7, GL_REASON_EXISTS_OPERAND},
        {"exists", 6, GL_REASON_EXISTS_OPERAND},
        {"${HOME} == 1", 0, GL_REASON_REFERENCE_INVALID},
        {"true or ${inputs.x", 8, GL_REASON_REFERENCE_OPEN},
        {"1 not in [1]", 2, GL_REASON_NOT_MISPLACED},
        {"1 == == 2", 5, GL_REASON_VALUE_EXPECTED},
        {"1 ; 2", 2, GL_REASON_CHARACTER_INVALID},
        {"and", 0, GL_REASON_VALUE_EXPECTED},
        {"1 < 2 < 3", 6, GL_REASON_OPERATOR_EXPECTED},
        {"$x", 0, GL_REASON_FOREIGN_SIGN},
    };
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        const struct gl_cond *c = NULL;
        size_t at = 99;
        assert_int_equal(gl_cond_parse(gl_str_of(cases[i].text), &arena, &c, &at, &why),
                         GL_E_INVALID);
        assert_null(c);
        golden_say(gl_reason_word(cases[i].reason), gl_str_of(why.text));
        if (at != cases[i].at || why.reason != cases[i].reason) {
            fail_msg("%s: at %zu: %s", cases[i].text, at, why.text);
        }
    }
}

static int parse_many(const char *before, const char *after, const char *middle, int n)
{
    struct gl_buf text = {0};
    const struct gl_cond *c;
    size_t at;
    for (int i = 0; i < n; i++) {
        gl_buf_c(&text, before);
    }
    gl_buf_c(&text, middle);
    for (int i = 0; i < n; i++) {
        gl_buf_c(&text, after);
    }
    int rc = gl_cond_parse(gl_buf_view(&text), &arena, &c, &at, &why);
    gl_buf_done(&text);
    return rc;
}

static void depth_is_limited_but_length_is_not(void **state)
{
    (void)state;
    assert_int_equal(parse_many("(", ")", "1", 20), 0);
    assert_int_equal(parse_many("(", ")", "1", GL_COND_DEPTH_MAX), GL_E_INVALID);
    assert_int_equal(parse_many("(", "", "1", 10000), GL_E_INVALID);
    assert_int_equal(parse_many("not ", "", "1", GL_COND_DEPTH_MAX), GL_E_INVALID);
    assert_int_equal(parse_many("[", "]", "1", 20), 0);
    assert_int_equal(parse_many("[", "]", "1", GL_COND_DEPTH_MAX), GL_E_INVALID);
    assert_int_equal(parse_many("1 or ", "", "1", 3000), 0);
    assert_int_equal(parse_many("1 or ", "", "1", 4000), GL_E_INVALID);
    assert_non_null(strstr(why.text, "at most 16384 bytes"));
}

static void count(void *owner, const struct gl_ref *ref)
{
    struct gl_buf *out = owner;
    gl_buf_str(out, ref->text);
    gl_buf_char(out, ' ');
}

static void the_references_come_in_order(void **state)
{
    (void)state;
    const struct gl_cond *c;
    size_t at;
    struct gl_buf out = {0};
    gl_str text = GL_S("${inputs.a} == 1 or not (${inputs.b} in [1, [${inputs.c}]] and exists "
                       "${job.id}) or ${inputs.d}");
    assert_int_equal(gl_cond_parse(text, &arena, &c, &at, &why), 0);
    gl_cond_refs(c, count, &out);
    gl_buf_char(&out, 0);
    assert_string_equal(out.p, "inputs.a inputs.b inputs.c job.id inputs.d ");
    gl_buf_done(&out);
}

static void every_sentence_reads_as_it_should(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/cond.golden");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(these_are_true),
        T(these_are_false),
        T(members_of_objects_have_no_order),
        T(what_cannot_be_compared_is_an_error),
        T(a_bad_condition_is_refused_with_its_place),
        T(depth_is_limited_but_length_is_not),
        T(the_references_come_in_order),
        cmocka_unit_test(every_sentence_reads_as_it_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
