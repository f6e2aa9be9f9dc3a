#include "support/cmocka_all.h"

#include <string.h>

#include "base/check.h"
#include "model/flow/flow_check.h"
#include "model/text/ref.h"
#include "support/golden.h"

static struct gl_arena arena;
static struct gl_why why;

static const char facts_text[] =
    "{\"steps\":{"
    "\"fetch\":{\"status\":\"completed\",\"outcome\":\"success\",\"exit_code\":0,"
    " \"output\":{\"rows\":[1, {\"id\": \"x\"}],\"a b\":\"c\\nd\",\"n\":null,\"e\":1.50,"
    "\"nul\":\"a\\u0000b\"}},"
    "\"a.b\":{\"status\":\"completed\",\"output\":null},"
    "\"gone\":{\"status\":\"skipped\",\"outcome\":\"skipped\",\"output\":null},"
    "\"bad\":{\"status\":\"partial\",\"outcome\":\"failed\",\"exit_code\":3}},"
    "\"inputs\":{\"who\":\"me; rm -rf / $(x) `y` '\\\"\",\"on\":true,\"list\":[1,2]},"
    "\"job\":{\"id\":\"J\",\"run_id\":\"R\",\"name\":\"N\",\"item\":{\"name\":\"it\"},"
    "\"index\":3}}";

static struct gl_json facts;

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

static void expands(const char *text, const char *to)
{
    gl_str got;
    if (gl_ref_expand(gl_str_of(text), &facts, &arena, &got, &why)) {
        fail_msg("%s: %s", text, why.text);
    }
    assert_string_equal(gl_str_c(&arena, got), to);
}

static void fails(const char *text, int code)
{
    gl_str got;
    assert_int_equal(gl_ref_expand(gl_str_of(text), &facts, &arena, &got, &why), code);
    golden_say(text, gl_str_of(why.text));
}

static void a_value_becomes_text(void **state)
{
    (void)state;
    expands("", "");
    expands("plain $ text $$ {}", "plain $ text $$ {}");
    expands("<${steps.fetch.status}>", "<completed>");
    expands("${steps.fetch.exit_code}${steps.fetch.outcome}", "0success");
    expands("${steps.fetch.output.rows}", "[1,{\"id\":\"x\"}]");
    expands("${steps.fetch.output.n}", "");
    expands("${steps.fetch.output.e}", "1.50");
    expands("${inputs.on} ${inputs.list[1]} ${inputs.list.0}", "true 2 1");
    expands("${job.id} ${job.run_id} ${job.name}", "J R N");
    expands("${job.item.name}#${job.index}", "it#3");
    expands("${steps[\"a.b\"].output}.", ".");
    expands("${steps.bad.exit_code}", "3");
}

static void a_value_is_never_looked_at_again(void **state)
{
    (void)state;
    expands("${inputs.who}", "me; rm -rf / $(x) `y` '\"");
}

static void paths_go_through_objects_and_lists(void **state)
{
    (void)state;
    expands("${steps.fetch.output.rows.1.id}", "x");
    expands("${steps.fetch.output.rows[1].id}", "x");
    expands("${steps.fetch.output[\"rows\"][1]['id']}", "x");
    expands("${steps.fetch.output.[\"a b\"]}", "c\nd");
    expands("${ steps.fetch.output.rows[0] }", "1");
}

static void a_dollar_before_the_brace_makes_it_literal(void **state)
{
    (void)state;
    expands("$${HOME}", "${HOME}");
    expands("a $${x} ${job.id} $${", "a ${x} J ${");
    expands("$$${x}", "$${x}");
    expands("$$$${job.id}", "$$${job.id}");
}

static void what_leads_nowhere_is_said(void **state)
{
    (void)state;
    fails("${steps.gone.output}", GL_E_NOT_FOUND);
    fails("${steps.bad.output.x}", GL_E_NOT_FOUND);
    fails("${steps.other.output}", GL_E_NOT_FOUND);
    fails("${steps.fetch.output.row}", GL_E_NOT_FOUND);
    fails("${steps.fetch.output.rows.2}", GL_E_NOT_FOUND);
    fails("${steps.fetch.output.rows.x}", GL_E_NOT_FOUND);
    fails("${steps.fetch.output.e.x}", GL_E_NOT_FOUND);
    fails("${steps[\"a.b\"].output.x}", GL_E_NOT_FOUND);
    fails("${inputs.nobody}", GL_E_NOT_FOUND);
    fails("${job.submitted_at}", GL_E_NOT_FOUND);
}

static void a_nul_byte_is_no_text(void **state)
{
    (void)state;
    fails("x${steps.fetch.output.nul}", GL_E_INVALID);
}

static void what_is_no_reference_is_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "${",
        "${job.id",
        "${job\n.id}",
        "${}",
        "${HOME}",
        "${env.HOME}",
        "${steps}",
        "${steps.a}",
        "${steps.a.outptu}",
        "${steps.a.status.x}",
        "${steps.a.exit_code[0]}",
        "${inputs}",
        "${inputs.}",
        "${inputs..x}",
        "${inputs x}",
        "${inputs.x y}",
        "${inputs.x[}",
        "${inputs.x[y]}",
        "${inputs.x[-1]}",
        "${inputs.x[1}",
        "${inputs.x[\"y\"}",
        "${inputs.x[\"y}",
        "${job}",
        "${job.status}",
        "${job.index.x}",
        "${job.id.x}",
        "${steps[\"a b\"].output}",
    };
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        fails(cases[i], GL_E_INVALID);
    }
}

static void a_reference_knows_its_parts(void **state)
{
    (void)state;
    struct gl_ref ref;
    gl_str text = GL_S(" steps.[\"a.b\"].output[0]['x\\'y\"z'] ");
    assert_int_equal(gl_ref_parse(text, &arena, &ref, &why), 0);
    assert_int_equal(ref.root, GL_REF_STEPS);
    assert_true(gl_str_is(ref.step, "a.b"));
    assert_int_equal(ref.path.n, 3);
    assert_true(gl_str_is(ref.path.items[0], "output"));
    assert_true(gl_str_is(ref.path.items[1], "0"));
    assert_true(gl_str_is(ref.path.items[2], "x'y\"z"));
    assert_true(gl_str_eq(ref.text, gl_str_trim(text)));
}

static void a_path_has_a_limit(void **state)
{
    (void)state;
    struct gl_buf text = {0};
    gl_buf_c(&text, "${inputs.a");
    for (int i = 0; i < 64; i++) {
        gl_buf_c(&text, ".x");
    }
    gl_buf_c(&text, "}");
    gl_buf_char(&text, 0);
    fails(text.p, GL_E_INVALID);
    gl_buf_done(&text);
}

static void one_reference_keeps_its_type(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"${steps.fetch.output.rows}", "[1,{\"id\":\"x\"}]"},
        {"${inputs.on}", "true"},
        {"${steps.fetch.output.n}", "null"},
        {"${job.id}", "\"J\""},
        {"<${job.id}>", "\"<J>\""},
        {"${job.id}${job.id}", "\"JJ\""},
        {"plain \"q\"", "\"plain \\\"q\\\"\""},
        {"$${job.id}", "\"${job.id}\""},
    };
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        gl_str got;
        assert_int_equal(gl_ref_json(gl_str_of(cases[i][0]), &facts, &arena, &got, &why), 0);
        assert_string_equal(gl_str_c(&arena, got), cases[i][1]);
    }
}

static void a_text_knows_whether_it_has_references(void **state)
{
    (void)state;
    assert_false(gl_ref_has(GL_S("")));
    assert_false(gl_ref_has(GL_S("$")));
    assert_false(gl_ref_has(GL_S("$x {y} $$")));
    assert_false(gl_ref_has(GL_S("$${x}")));
    assert_false(gl_ref_has(GL_S("$$${x}")));
    assert_true(gl_ref_has(GL_S("${")));
    assert_true(gl_ref_has(GL_S("$${x} ${y}")));
    assert_true(gl_ref_is_one(GL_S("${job.id}")));
    assert_false(gl_ref_is_one(GL_S("${job.id} ")));
    assert_false(gl_ref_is_one(GL_S("${job.id")));
}

static void any_text_can_be_escaped(void **state)
{
    (void)state;
    static const char *const texts[] = {"",     "x",     "${job.id}", "$${x}", "$$${",
                                        "a ${", "$$$$$", "{}${}$${}", "$"};
    for (size_t i = 0; i < GL_COUNT(texts); i++) {
        gl_str escaped = gl_ref_escape(gl_str_of(texts[i]), &arena);
        assert_false(gl_ref_has(escaped));
        expands(gl_str_c(&arena, escaped), texts[i]);
        assert_true(gl_str_is(gl_ref_literal(escaped, &arena), texts[i]));
    }
}

static void a_text_that_grows_too_long_is_refused(void **state)
{
    (void)state;
    struct gl_buf text = {0};
    while (text.n < GL_ARG_BYTES_MAX) {
        gl_buf_c(&text, "${inputs.who}");
    }
    gl_buf_char(&text, 0);
    fails(text.p, GL_E_LIMIT);
    gl_buf_done(&text);
}

static void every_sentence_reads_as_in_the_golden(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/ref.golden");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_value_becomes_text),
        T(a_value_is_never_looked_at_again),
        T(paths_go_through_objects_and_lists),
        T(a_dollar_before_the_brace_makes_it_literal),
        T(what_leads_nowhere_is_said),
        T(a_nul_byte_is_no_text),
        T(what_is_no_reference_is_refused),
        T(a_reference_knows_its_parts),
        T(a_path_has_a_limit),
        T(one_reference_keeps_its_type),
        T(a_text_knows_whether_it_has_references),
        T(any_text_can_be_escaped),
        T(a_text_that_grows_too_long_is_refused),
        cmocka_unit_test(every_sentence_reads_as_in_the_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
