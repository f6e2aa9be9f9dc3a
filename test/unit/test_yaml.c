#include "support/cmocka_all.h"

#include <string.h>

#include "base/check.h"
#include "base/limits.h"
#include "model/text/yaml.h"
#include "support/golden.h"

static struct gl_arena arena;
static struct gl_why why;

static int tear_down(void **state)
{
    (void)state;
    gl_arena_done(&arena);
    return 0;
}

static int parse(const char *text, struct gl_json *ret)
{
    size_t n = strlen(text);
    char *copy = gl_arena_copy(&arena, text, n);
    return gl_yaml_parse(ret, (gl_str){copy, n}, 1 << 20, &arena, &why);
}

static void expect(const char *yaml, const char *json)
{
    struct gl_json j;
    if (parse(yaml, &j)) {
        fail_msg("%s is refused: %s", yaml, why.text);
    }
    if (!gl_str_is(j.text, json)) {
        fail_msg("%s becomes %.*s, expected %s", yaml, GL_STR_ARG(j.text), json);
    }
}

static void expect_error(const char *yaml, int code, const char *place)
{
    struct gl_json j = {.nodes_n = 77};
    int rc = parse(yaml, &j);
    if (rc != code || !strstr(why.text, place)) {
        fail_msg("%s gives %d, %s", yaml, rc, rc ? why.text : "no error");
    }
    assert_int_equal(j.nodes_n, 77);
    golden_say(yaml, gl_str_of(why.text));
}

static void plain_scalars_follow_the_core_schema(void **state)
{
    (void)state;
    expect("[~, null, Null, NULL, ]", "[null,null,null,null]");
    expect("{a: , b: }", "{\"a\":null,\"b\":null}");
    expect("[true, True, TRUE, false, False, FALSE]", "[true,true,true,false,false,false]");
    expect("[yes,no,on,off,y,n,tRue,nuLL]",
           "[\"yes\",\"no\",\"on\",\"off\",\"y\",\"n\",\"tRue\",\"nuLL\"]");
    expect("[0, 12, -3, +4, 007, 0o17, 0x1F, 0xff]", "[0,12,-3,4,7,15,31,255]");
    expect("[0b1, 1_000, 0o8, 0xg, 12:30:45, 1.2.3, 2026-11-15, '5']",
           "[\"0b1\",\"1_000\",\"0o8\",\"0xg\",\"12:30:45\",\"1.2.3\",\"2026-11-15\",\"5\"]");
    expect("[1.5, -0.25, .5, 5., 1e3, 1.E-2, +.5, -00.10]", "[1.5,-0.25,0.5,5,1e3,1E-2,0.5,-0.10]");
    expect("[., e3, 1e, 1e+, '', \"x\", -a, +b]",
           "[\".\",\"e3\",\"1e\",\"1e+\",\"\",\"x\",\"-a\",\"+b\"]");
}

static void text_keeps_its_breaks_and_its_letters(void **state)
{
    (void)state;
    expect("a: |\n  one\n  two\nb: >\n  three\n  four\nc: |-\n  five\n",
           "{\"a\":\"one\\ntwo\\n\",\"b\":\"three four\\n\",\"c\":\"five\"}");
    expect("\"a\\tb\\u00e9\": 'it''s'", "{\"a\\tb\xc3\xa9\":\"it's\"}");
    expect("# comment\n- a # not text\n- 'b # text'\n", "[\"a\",\"b # text\"]");
    expect("\xef\xbb\xbf"
           "a: b\r\nc: d\r\n",
           "{\"a\":\"b\",\"c\":\"d\"}");
}

static void json_is_yaml(void **state)
{
    (void)state;
    expect("{\"a\": [1, 2.5, \"x\\n\", true, null, {}], \"b\": {\"c\": []}}",
           "{\"a\":[1,2.5,\"x\\n\",true,null,{}],\"b\":{\"c\":[]}}");
}

static void scalar_keys_become_text(void **state)
{
    (void)state;
    expect("{1: a, true: b, ~: c, 1.50: d, ? e : f}",
           "{\"1\":\"a\",\"true\":\"b\",\"~\":\"c\",\"1.50\":\"d\",\"e\":\"f\"}");
    expect_error("? [a]\n: b", GL_E_INVALID, "line 1, column 3");
    expect_error("? {a: b}\n: c", GL_E_INVALID, "line 1, column 3");
}

static void known_tags_are_obeyed_and_others_refused(void **state)
{
    (void)state;
    expect("[!!str 5, !!int '5', !!float 5, !!bool 'true', !!null '', !<tag:yaml.org,2002:str> 1]",
           "[\"5\",5,5,true,null,\"1\"]");
    expect("[! 5, !!map {a: 1}, !!seq [1]]", "[\"5\",{\"a\":1},[1]]");
    expect_error("a: !!binary aGk=", GL_E_INVALID, "line 1, column 4");
    expect_error("!mine {a: 1}", GL_E_INVALID, "line 1, column 1");
    expect_error("!!seq {a: 1}", GL_E_INVALID, "line 1, column 1");
    expect_error("!!int five", GL_E_INVALID, "line 1, column 1");
    expect_error("!!float 0x10", GL_E_INVALID, "line 1, column 1");
}

static void what_json_cannot_say_is_refused(void **state)
{
    (void)state;
    expect_error("a: .inf", GL_E_INVALID, "line 1, column 4");
    expect_error("[1, -.INF]", GL_E_INVALID, "line 1, column 5");
    expect_error("- .nan", GL_E_INVALID, "line 1, column 3");
    expect("['.nan', \".inf\", .infinity]", "[\".nan\",\".inf\",\".infinity\"]");
    expect_error("a: 1e999", GL_E_INVALID, "line 1, column 4");
    expect_error("a: 0x1ffffffffffffffff", GL_E_INVALID, "line 1, column 4");
    expect("123456789012345678901234567890", "123456789012345678901234567890");
}

static void duplicate_keys_are_found_at_their_place(void **state)
{
    (void)state;
    expect_error("a: 1\nb: 2\na: 3\n", GL_E_INVALID, "line 3, column 1");
    expect_error("x:\n  {b: 1, 'b': 2}\n", GL_E_INVALID, "line 2, column 10");
    expect_error("1: a\n'1': b\n", GL_E_INVALID, "line 2, column 1");
}

static void there_is_exactly_one_document(void **state)
{
    (void)state;
    expect("---\na: 1\n...\n", "{\"a\":1}");
    expect("%YAML 1.1\n--- a\n", "\"a\"");
    expect_error("a: 1\n---\nb: 2\n", GL_E_INVALID, "line 2, column 1");
    expect_error("", GL_E_INVALID, "line 1, column 1");
    expect_error("# nothing\n", GL_E_INVALID, "line 1, column 1");
}

static void broken_yaml_is_refused_with_its_place(void **state)
{
    (void)state;
    expect_error("a: b: c", GL_E_INVALID, "line 1, column 5");
    expect_error("a: [1, 2", GL_E_INVALID, "line 1, column 9");
    expect_error("a:\n\tb: 1", GL_E_INVALID, "line 2, column 1");
    expect_error("a: \"x", GL_E_INVALID, "line 1");
    expect_error("\xc3\xa9: *nobody", GL_E_INVALID, "line 1, column 4 (byte 4)");
    expect_error("a: \xff", GL_E_INVALID, "line 1, column 4 (byte 3)");
    expect_error("\xef\xbb\xbf"
                 "a: *b",
                 GL_E_INVALID, "line 1, column 4 (byte 6)");
    expect_error("a: \x01", GL_E_INVALID, "");
    expect_error("- a\nb: c", GL_E_INVALID, "line 2, column 1");
}

static void a_text_that_is_taken_for_yaml_is_told_how_to_write_it(void **state)
{
    (void)state;
    expect_error("a:\n  sh: echo '{\"n\": 1}'\n", GL_E_INVALID, "line 2, column 17");
    expect_error("- sh: a: b", GL_E_INVALID, "line 1, column 8");
    expect_error("sh: \"$A\" b", GL_E_INVALID, "line 1, column 10");
    expect_error("sh: [ -f x ] && b", GL_E_INVALID, "line 1, column 15");
    expect_error("'a b': c: d", GL_E_INVALID, "line 1, column 9");
    expect_error("sh: @b", GL_E_INVALID, "line 1, column 5");
    expect_error("sh: *.c", GL_E_INVALID, "line 1, column 6");
    expect_error("a:\n  b: 1\n   c: 2\n", GL_E_INVALID, "line 3, column 5");
    expect_error("a:\n  b: 1\n c: 2\n", GL_E_INVALID, "line 3, column 2");
    expect("a:\n  sh: |\n    echo '{\"n\": 1}'", "{\"a\":{\"sh\":\"echo '{\\\"n\\\": 1}'\"}}");
}

static void a_reference_in_braces_without_quotes_is_told_so(void **state)
{
    (void)state;
    expect_error("a: {sh: echo ${inputs.x}}", GL_E_INVALID, "line 1, column 14");
    expect_error("a: {sh: echo \"${inputs.x}\"}", GL_E_INVALID, "line 1, column 15");
    expect_error("a: {sh: ${inputs.x}}", GL_E_INVALID, "line 1, column 9");
    expect_error("a:\n  run: [x,\n    ${job.id}]\n", GL_E_INVALID, "line 3, column 5");
    expect_error("a: {b: {c: a-${job.id}}, d: 1}", GL_E_INVALID, "line 1, column 14");
    expect("a: {sh: 'echo ${inputs.x}'}", "{\"a\":{\"sh\":\"echo ${inputs.x}\"}}");
    expect("a: echo ${inputs.x}", "{\"a\":\"echo ${inputs.x}\"}");
}

static void nodes_point_into_the_yaml(void **state)
{
    (void)state;
    struct gl_json j;
    assert_int_equal(parse("# \xe2\x82\xac\nsteps:\n  caf\xc3\xa9: {sh: x}\n", &j), 0);
    gl_jnode steps = gl_json_get(&j, gl_json_root(&j), "steps");
    gl_jnode key = gl_json_first(&j, steps);
    unsigned line, column;
    gl_json_place(&j, key, &line, &column);
    assert_int_equal(line, 3);
    assert_int_equal(column, 3);
    gl_json_place(&j, gl_json_value(key), &line, &column);
    assert_int_equal(column, 9);
    assert_memory_equal(j.source.p + gl_json_value(key)->at, "{sh", 3);
    assert_true(gl_str_is(gl_json_raw(&j, gl_json_value(key)), "{\"sh\":\"x\"}"));
}

static void aliases_repeat_what_they_stand_for(void **state)
{
    (void)state;
    expect("a: &x {k: [1, 2]}\nb: *x\nc: [*x, *x]\n",
           "{\"a\":{\"k\":[1,2]},\"b\":{\"k\":[1,2]},\"c\":[{\"k\":[1,2]},{\"k\":[1,2]}]}");
    expect("[&a 1, *a, &a two, *a, &e, *e]", "[1,1,\"two\",\"two\",null,null]");
    expect("&a [&a 1, *a]", "[1,1]");
    expect("{&k key: *k}", "{\"key\":\"key\"}");
    struct gl_json j;
    unsigned line, column;
    assert_int_equal(parse("a: &x\n  k: 1\nb: *x\n", &j), 0);
    gl_jnode b = gl_json_get(&j, gl_json_root(&j), "b");
    gl_json_place(&j, b, &line, &column); /* the alias itself */
    assert_int_equal(line, 3);
    assert_int_equal(column, 4);
    gl_json_place(&j, gl_json_get(&j, b, "k"), &line,
                  &column); /* what is inside stays where it is */
    assert_int_equal(line, 2);
    assert_int_equal(column, 6);
}

static void aliases_cannot_go_wild(void **state)
{
    (void)state;
    expect_error("&a [*a]", GL_E_INVALID, "line 1, column 5");
    expect_error("a: &x {b: {c: *x}}", GL_E_INVALID, "line 1, column 15");
    expect_error("a: &x k\n*x : 1\n", GL_E_INVALID, "line 2, column 1");
    /* A billion laughs: each level ten times the one before it. */
    struct gl_buf laughs = {0};
    gl_buf_c(&laughs, "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for (int i = 1; i < 10; i++) {
        gl_buf_fmt(&laughs, "a%d: &a%d [", i, i);
        for (int k = 0; k < 10; k++) {
            gl_buf_fmt(&laughs, "%s*a%d", k ? ", " : "", i - 1);
        }
        gl_buf_c(&laughs, "]\n");
    }
    struct gl_json j;
    assert_int_equal(gl_yaml_parse(&j, gl_buf_view(&laughs), 1 << 20, &arena, &why), GL_E_LIMIT);
    assert_non_null(strstr(why.text, "too large"));
    gl_buf_done(&laughs);
}

static void the_number_of_aliases_is_limited(void **state)
{
    (void)state;
    for (int extra = 0; extra < 2; extra++) {
        struct gl_buf text = {0};
        gl_buf_c(&text, "- &a 1\n");
        for (int i = 0; i < GL_YAML_ALIASES_MAX + extra; i++) {
            gl_buf_c(&text, "- *a\n");
        }
        struct gl_json j;
        int rc = gl_yaml_parse(&j, gl_buf_view(&text), 1 << 20, &arena, &why);
        assert_int_equal(rc, extra ? GL_E_LIMIT : 0);
        gl_buf_done(&text);
    }
}

static void nesting_is_limited_with_and_without_aliases(void **state)
{
    (void)state;
    struct gl_json j;
    char text[2 * GL_JSON_DEPTH_MAX + 2];
    memset(text, '[', GL_JSON_DEPTH_MAX);
    memset(text + GL_JSON_DEPTH_MAX, ']', GL_JSON_DEPTH_MAX);
    gl_str deep = {text, 2 * GL_JSON_DEPTH_MAX};
    assert_int_equal(gl_yaml_parse(&j, deep, 1 << 20, &arena, &why), 0);
    assert_int_equal(j.depth, GL_JSON_DEPTH_MAX);
    memset(text, '[', GL_JSON_DEPTH_MAX + 1);
    memset(text + GL_JSON_DEPTH_MAX + 1, ']', GL_JSON_DEPTH_MAX + 1);
    deep.n += 2;
    assert_int_equal(gl_yaml_parse(&j, deep, 1 << 20, &arena, &why), GL_E_LIMIT);
    assert_non_null(strstr(why.text, "column 65"));
    /* Each alias adds one level. */
    for (int levels = 63; levels < 66; levels++) {
        struct gl_buf nest = {0};
        gl_buf_c(&nest, "- &a0 [1]\n");
        for (int i = 1; i < levels; i++) {
            gl_buf_fmt(&nest, "- &a%d [*a%d]\n", i, i - 1);
        }
        int rc = gl_yaml_parse(&j, gl_buf_view(&nest), 1 << 20, &arena, &why);
        assert_int_equal(rc, levels == 63 ? 0 : GL_E_LIMIT);
        gl_buf_done(&nest);
    }
}

static void size_is_limited_before_and_after_expansion(void **state)
{
    (void)state;
    struct gl_json j;
    assert_int_equal(gl_yaml_parse(&j, GL_S("abcdefgh"), 8, &arena, &why), GL_E_LIMIT);
    assert_int_equal(gl_yaml_parse(&j, GL_S("abcdefgh"), 10, &arena, &why), 0);
    assert_int_equal(gl_yaml_parse(&j, GL_S("abcdefgh"), 7, &arena, &why), GL_E_LIMIT);
    assert_int_equal(gl_yaml_parse(&j, (gl_str){0}, 8, &arena, NULL), GL_E_INVALID);
}

static void every_sentence_reads_as_in_the_golden(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/yaml.golden");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(plain_scalars_follow_the_core_schema, tear_down),
        cmocka_unit_test_teardown(text_keeps_its_breaks_and_its_letters, tear_down),
        cmocka_unit_test_teardown(json_is_yaml, tear_down),
        cmocka_unit_test_teardown(scalar_keys_become_text, tear_down),
        cmocka_unit_test_teardown(known_tags_are_obeyed_and_others_refused, tear_down),
        cmocka_unit_test_teardown(what_json_cannot_say_is_refused, tear_down),
        cmocka_unit_test_teardown(duplicate_keys_are_found_at_their_place, tear_down),
        cmocka_unit_test_teardown(there_is_exactly_one_document, tear_down),
        cmocka_unit_test_teardown(broken_yaml_is_refused_with_its_place, tear_down),
        cmocka_unit_test_teardown(a_text_that_is_taken_for_yaml_is_told_how_to_write_it, tear_down),
        cmocka_unit_test_teardown(a_reference_in_braces_without_quotes_is_told_so, tear_down),
        cmocka_unit_test_teardown(nodes_point_into_the_yaml, tear_down),
        cmocka_unit_test_teardown(aliases_repeat_what_they_stand_for, tear_down),
        cmocka_unit_test_teardown(aliases_cannot_go_wild, tear_down),
        cmocka_unit_test_teardown(the_number_of_aliases_is_limited, tear_down),
        cmocka_unit_test_teardown(nesting_is_limited_with_and_without_aliases, tear_down),
        cmocka_unit_test_teardown(size_is_limited_before_and_after_expansion, tear_down),
        cmocka_unit_test(every_sentence_reads_as_in_the_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
