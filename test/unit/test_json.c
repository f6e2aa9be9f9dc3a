#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/json.h"
#include "base/limits.h"
#include "support/golden.h"

static struct gl_arena arena;
static struct gl_why why;

static int tear_down(void **state)
{
    (void)state;
    gl_arena_done(&arena);
    return 0;
}

/* Parse a copy without a NUL behind it, so that the address sanitizer sees every byte too many. */
static int parse_n(const char *text, size_t n, struct gl_json *ret)
{
    char *copy = gl_arena_copy(&arena, text, n);
    return gl_json_parse(ret, (gl_str){copy, n}, 1 << 20, &arena, &why);
}

static int parse(const char *text, struct gl_json *ret)
{
    return parse_n(text, strlen(text), ret);
}

static void check_str(gl_str got, const char *text, int line)
{
    if (!gl_str_is(got, text)) {
        fail_msg("line %d: got \"%.*s\", expected \"%s\"", line, GL_STR_ARG(got), text);
    }
}

#define assert_str(s, text) check_str((s), (text), __LINE__)

/* Reading. */

static void every_kind_of_value_is_read(void **state)
{
    (void)state;
    struct gl_json j;
    assert_int_equal(parse(" {\"a\": [1, -2.5e3, true,false,null], \"b\": {}, \"\": \"x\"} ", &j),
                     0);
    gl_jnode root = gl_json_root(&j), a = gl_json_get(&j, root, "a");
    assert_true(gl_json_is(root, GL_JSON_OBJECT));
    assert_int_equal(root->count, 3);
    assert_int_equal(a->count, 5);
    static const enum gl_json_type types[] = {GL_JSON_NUMBER, GL_JSON_NUMBER, GL_JSON_TRUE,
                                              GL_JSON_FALSE, GL_JSON_NULL};
    size_t i = 0;
    for (gl_jnode e = gl_json_first(&j, a); e; e = gl_json_after(&j, a, e), i++) {
        assert_true(gl_json_is(e, types[i]));
    }
    assert_int_equal(i, 5);
    assert_null(gl_json_first(&j, gl_json_get(&j, root, "b")));
    assert_str(gl_json_str(&j, gl_json_get(&j, root, ""), &arena), "x");
    assert_str(gl_json_raw(&j, a), "[1, -2.5e3, true,false,null]");
    assert_int_equal(j.depth, 2);
}

static void an_object_is_iterated_by_its_keys_in_order(void **state)
{
    (void)state;
    struct gl_json j;
    assert_int_equal(parse("{\"x\":[1,[2]],\"y\":{\"z\":0},\"w\":3}", &j), 0);
    gl_jnode root = gl_json_root(&j);
    char seen[32] = "";
    for (gl_jnode k = gl_json_first(&j, root); k; k = gl_json_after(&j, root, k)) {
        assert_true(k->is_key);
        (void)strncat(seen, gl_json_str(&j, k, &arena).p, 1);
        assert_ptr_equal(gl_json_value(k), k + 1);
    }
    assert_string_equal(seen, "xyw");
}

static void what_is_not_there_is_null_everywhere(void **state)
{
    (void)state;
    struct gl_json j;
    assert_int_equal(parse("[{\"a\":1}]", &j), 0);
    gl_jnode root = gl_json_root(&j), nothing = gl_json_get(&j, root, "a"); /* no object */
    assert_null(nothing);
    assert_null(gl_json_get(&j, nothing, "a"));
    assert_null(gl_json_first(&j, nothing));
    assert_false(gl_json_is(nothing, GL_JSON_NULL));
    assert_int_equal(gl_json_raw(&j, nothing).n, 0);
    assert_int_equal(gl_json_str(&j, nothing, &arena).n, 0);
    int64_t i;
    bool b;
    assert_false(gl_json_i64(&j, nothing, &i));
    assert_false(gl_json_bool(nothing, &b));
    assert_string_equal(gl_json_type_name(nothing), "nothing");
    assert_string_equal(gl_json_type_name(root), "an array");
}

static void escapes_are_decoded_and_plain_strings_are_not_copied(void **state)
{
    (void)state;
    struct gl_json j;
    assert_int_equal(parse("[\"plain\",\"\\\"\\\\\\/\\b\\f\\n\\r\\t\",\"\\u0041\\u00e9\\u20ac\","
                           "\"\\ud83d\\ude00\",\"a\\u0000b\"]",
                           &j),
                     0);
    gl_jnode root = gl_json_root(&j), e = gl_json_first(&j, root);
    gl_str plain = gl_json_str(&j, e, &arena);
    assert_ptr_equal(plain.p, j.text.p + 2);
    e = gl_json_after(&j, root, e);
    assert_str(gl_json_str(&j, e, &arena), "\"\\/\b\f\n\r\t");
    e = gl_json_after(&j, root, e);
    assert_str(gl_json_str(&j, e, &arena), "A\xc3\xa9\xe2\x82\xac");
    e = gl_json_after(&j, root, e);
    assert_str(gl_json_str(&j, e, &arena), "\xf0\x9f\x98\x80");
    e = gl_json_after(&j, root, e);
    gl_str nul = gl_json_str(&j, e, &arena);
    assert_int_equal(nul.n, 3);
    assert_memory_equal(nul.p, "a\0b", 3);
}

static void an_escaped_key_is_found_by_its_value(void **state)
{
    (void)state;
    struct gl_json j;
    assert_int_equal(parse("{\"\\u0061b\":1,\"ab\\u00e9\":2}", &j), 0);
    assert_str(gl_json_raw(&j, gl_json_get(&j, gl_json_root(&j), "ab")), "1");
    assert_str(gl_json_raw(&j, gl_json_get(&j, gl_json_root(&j), "ab\xc3\xa9")), "2");
    assert_null(gl_json_get(&j, gl_json_root(&j), "abc"));
    assert_null(gl_json_get(&j, gl_json_root(&j), "a"));
}

static void integers_are_exact_or_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_i64, is_u64;
    } cases[] = {
        {"0", true, true},
        {"-0", true, false},
        {"9223372036854775807", true, true},
        {"9223372036854775808", false, true},
        {"18446744073709551615", false, true},
        {"18446744073709551616", false, false},
        {"-9223372036854775808", true, false},
        {"-9223372036854775809", false, false},
        {"1.0", false, false},
        {"1e3", false, false},
        {"\"1\"", false, false},
        {"123456789012345678901234567890", false, false},
    };
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct gl_json j;
        int64_t v;
        uint64_t u;
        assert_int_equal(parse(cases[i].text, &j), 0);
        assert_int_equal(gl_json_i64(&j, gl_json_root(&j), &v), cases[i].is_i64);
        assert_int_equal(gl_json_u64(&j, gl_json_root(&j), &u), cases[i].is_u64);
    }
}

static void numbers_must_be_finite(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int rc;
    } cases[] = {
        {"1e308", 0},
        {"1.7976931348623157e308", 0},
        {"-1.7976931348623157e+308", 0},
        {"17976931348623157e292", 0},
        {"0.00017976931348623157e312", 0},
        {"1.7976931348623158e308", 0}, /* rounds down to the largest double */
        {"1.7976931348623159e308", GL_E_INVALID},
        {"0.0017976931348623159E+311", GL_E_INVALID},
        {"1e309", GL_E_INVALID},
        {"-1e999999999999999999999999", GL_E_INVALID},
        {"1e-999999999999999999999999", 0},
        {"0e999999999999999999999999", 0},
        {"0.000e99999", 0},
    };
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct gl_json j;
        assert_int_equal(parse(cases[i].text, &j), cases[i].rc);
        /* The C library agrees. */
        double d = strtod(cases[i].text, NULL);
        assert_int_equal(d - d != 0, cases[i].rc != 0);
    }
    char digits[400];
    memset(digits, '1', sizeof(digits));
    struct gl_json j;
    assert_int_equal(parse_n(digits, 309, &j), 0);
    assert_int_equal(parse_n(digits, 310, &j), GL_E_INVALID);
}

static void what_is_no_json_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *place;
    } cases[] = {
        {"", "line 1, column 1 (byte 0)"},
        {" \n ", "line 2, column 2 (byte 3)"},
        {"[1,]", "line 1, column 4 (byte 3)"},
        {"{\"a\":1,}", "line 1, column 8 (byte 7)"},
        {"[1 2]", "line 1, column 4 (byte 3)"},
        {"{\"a\" 1}", "line 1, column 6 (byte 5)"},
        {"{a:1}", "line 1, column 2 (byte 1)"},
        {"{\"a\":1 \"b\":2}", "line 1, column 8 (byte 7)"},
        {"{'a':1}", "line 1, column 2 (byte 1)"},
        {"'a'", "line 1, column 1 (byte 0)"},
        {"[1]//x", "line 1, column 4 (byte 3)"},
        {"[/*x*/1]", "line 1, column 2 (byte 1)"},
        {"[1]]", "line 1, column 4 (byte 3)"},
        {"[1}", "line 1, column 3 (byte 2)"},
        {"[", "line 1, column 2 (byte 1)"},
        {"{\"a\":", "line 1, column 6 (byte 5)"},
        {"nul", "line 1, column 1 (byte 0)"},
        {"NaN", "line 1, column 1 (byte 0)"},
        {"Infinity", "line 1, column 1 (byte 0)"},
        {"-Infinity", "line 1, column 2 (byte 1)"},
        {"True", "line 1, column 1 (byte 0)"},
        {"truex", "line 1, column 5 (byte 4)"},
        {"01", "line 1, column 1 (byte 0)"},
        {"-01", "line 1, column 1 (byte 0)"},
        {"1.", "line 1, column 3 (byte 2)"},
        {".5", "line 1, column 1 (byte 0)"},
        {"+1", "line 1, column 1 (byte 0)"},
        {"1e", "line 1, column 3 (byte 2)"},
        {"1e+", "line 1, column 4 (byte 3)"},
        {"0x10", "line 1, column 2 (byte 1)"},
        {"\"a", "line 1, column 3 (byte 2)"},
        {"\"a\\", "line 1, column 3 (byte 2)"},
        {"\"a\nb\"", "line 1, column 3 (byte 2)"},
        {"\"a\tb\"", "line 1, column 3 (byte 2)"},
        {"\"\\x\"", "line 1, column 2 (byte 1)"},
        {"\"\\u12G4\"", "line 1, column 2 (byte 1)"},
        {"\"\\u12", "line 1, column 2 (byte 1)"},
        {"\"\\ud800\"", "line 1, column 2 (byte 1)"},
        {"\"\\ud800\\u0041\"", "line 1, column 2 (byte 1)"},
        {"\"\\udc00\\ud800\"", "line 1, column 2 (byte 1)"},
        {"\"\xff\"", "line 1, column 2 (byte 1)"},
        {"\"\xed\xa0\x80\"", "line 1, column 2 (byte 1)"},
        {"\"\xc3", "line 1, column 2 (byte 1)"},
        {"\xef\xbb\xbf{}", "line 1, column 1 (byte 0)"},
        {"{\n \"\xc3\xa9\": x}", "line 2, column 7 (byte 9)"},
    };
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct gl_json j = {.nodes_n = 77};
        int rc = parse(cases[i].text, &j);
        if (rc != GL_E_INVALID || !strstr(why.text, cases[i].place)) {
            fail_msg("%s gives %d, %s", cases[i].text, rc, why.text);
        }
        golden_say(cases[i].text, gl_str_of(why.text));
        assert_int_equal(j.nodes_n, 77); /* untouched */
    }
    struct gl_json j;
    assert_int_equal(parse_n("\"a\0b\"", 5, &j), GL_E_INVALID);
    assert_int_equal(parse_n("[\0]", 3, &j), GL_E_INVALID);
    assert_int_equal(parse_n("\"\\\0\"", 4, &j), GL_E_INVALID);
}

static void duplicate_keys_are_found_in_small_and_large_objects(void **state)
{
    (void)state;
    struct gl_json j;
    assert_int_equal(parse("{\"a\":1,\"b\":{\"a\":2},\"a\":3}", &j), GL_E_INVALID);
    golden_say("a key twice", gl_str_of(why.text));
    assert_int_equal(parse("{\"ab\":1,\"\\u0061b\":2}", &j), GL_E_INVALID);
    assert_int_equal(parse("{\"\":1,\"\":2}", &j), GL_E_INVALID);
    for (unsigned twin = 0; twin < 2; twin++) {
        struct gl_buf text = {0};
        gl_buf_char(&text, '{');
        for (int i = 0; i < 5000; i++) {
            gl_buf_fmt(&text, "\"k%d\":[%d],", i, i);
        }
        gl_buf_fmt(&text, "\"%s\":0}", twin ? "k\\u003777" : "last");
        assert_int_equal(parse_n(text.p, text.n, &j), twin ? GL_E_INVALID : 0);
        assert_true(!twin || strstr(why.text, "\"k777\" appears twice"));
        gl_buf_done(&text);
    }
}

static void a_huge_object_is_read_in_reasonable_time(void **state)
{
    (void)state;
    /* 300,000 keys: comparing each with each would take minutes, and the test's time limit. */
    struct gl_buf text = {0};
    gl_buf_char(&text, '{');
    for (int i = 0; i < 300000; i++) {
        gl_buf_fmt(&text, "%s\"key%d\":0", i ? "," : "", i);
    }
    gl_buf_char(&text, '}');
    struct gl_json j;
    assert_int_equal(gl_json_parse(&j, gl_buf_view(&text), 8 << 20, &arena, &why), 0);
    assert_int_equal(gl_json_root(&j)->count, 300000);
    gl_buf_done(&text);
}

static void nesting_is_limited(void **state)
{
    (void)state;
    struct gl_json j;
    char text[2 * GL_JSON_DEPTH_MAX + 2];
    memset(text, '[', GL_JSON_DEPTH_MAX);
    memset(text + GL_JSON_DEPTH_MAX, ']', GL_JSON_DEPTH_MAX);
    assert_int_equal(parse_n(text, 2 * GL_JSON_DEPTH_MAX, &j), 0);
    assert_int_equal(j.depth, GL_JSON_DEPTH_MAX);
    memset(text, '[', GL_JSON_DEPTH_MAX + 1);
    memset(text + GL_JSON_DEPTH_MAX + 1, ']', GL_JSON_DEPTH_MAX + 1);
    assert_int_equal(parse_n(text, 2 * GL_JSON_DEPTH_MAX + 2, &j), GL_E_LIMIT);
    assert_non_null(strstr(why.text, "column 65"));
    golden_say("65 lists in each other", gl_str_of(why.text));
}

static void size_is_limited(void **state)
{
    (void)state;
    struct gl_json j;
    assert_int_equal(gl_json_parse(&j, GL_S("[1]"), 3, &arena, &why), 0);
    assert_int_equal(gl_json_parse(&j, GL_S("[1] "), 3, &arena, &why), GL_E_LIMIT);
    assert_int_equal(gl_json_parse(&j, GL_S("[1] "), 3, &arena, NULL), GL_E_LIMIT);
}

static void places_count_lines_and_code_points(void **state)
{
    (void)state;
    struct gl_json j;
    unsigned line, column;
    assert_int_equal(parse("{\n  \"\xc3\xa9\xe2\x82\xac\": [\r\n 7]}", &j), 0);
    gl_jnode root = gl_json_root(&j), key = gl_json_first(&j, root), list = gl_json_value(key);
    gl_json_place(&j, key, &line, &column);
    assert_int_equal(line, 2);
    assert_int_equal(column, 3);
    gl_json_place(&j, list, &line, &column);
    assert_int_equal(line, 2);
    assert_int_equal(column, 9);
    gl_json_place(&j, gl_json_first(&j, list), &line, &column);
    assert_int_equal(line, 3);
    assert_int_equal(column, 2);
}

/* Writing. */

static void the_writer_sets_commas_and_colons(void **state)
{
    (void)state;
    struct gl_buf b = {0};
    struct gl_jw w;
    gl_jw_init(&w, &b);
    gl_jw_object(&w);
    gl_jw_key(&w, "a");
    gl_jw_array(&w);
    gl_jw_i64(&w, -1);
    gl_jw_u64(&w, UINT64_MAX);
    gl_jw_object(&w);
    gl_jw_end(&w);
    gl_jw_array(&w);
    gl_jw_end(&w);
    gl_jw_bool(&w, true);
    gl_jw_end(&w);
    gl_jw_key_str(&w, GL_S("b\"c"));
    gl_jw_null(&w);
    gl_jw_key(&w, "d");
    gl_jw_raw(&w, GL_S("{\"x\": 1}"));
    gl_jw_key(&w, "e");
    gl_jw_c(&w, "text");
    gl_jw_key(&w, "f");
    gl_jw_bool(&w, false);
    gl_jw_end(&w);
    assert_str(gl_buf_view(&b), "{\"a\":[-1,18446744073709551615,{},[],true],\"b\\\"c\":null,"
                                "\"d\":{\"x\": 1},\"e\":\"text\",\"f\":false}");
    gl_buf_done(&b);
}

static gl_str write_one(struct gl_buf *b, gl_str s)
{
    struct gl_jw w;
    gl_buf_reset(b);
    gl_jw_init(&w, b);
    gl_jw_str(&w, s);
    return gl_buf_view(b);
}

static void the_writer_escapes_what_must_be(void **state)
{
    (void)state;
    struct gl_buf b = {0};
    assert_str(write_one(&b, (gl_str){0}), "\"\"");
    assert_str(write_one(&b, GL_S("a-longer-text-without-anything-special-in-it")),
               "\"a-longer-text-without-anything-special-in-it\"");
    assert_str(write_one(&b, GL_S("\"\\/\b\f\n\r\t\x01\x1f\x7f")),
               "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
    assert_str(write_one(&b, (gl_str){"a\0b", 3}), "\"a\\u0000b\"");
    assert_str(write_one(&b, GL_S("12345678\"12345678\"")), "\"12345678\\\"12345678\\\"\"");
    assert_str(write_one(&b, GL_S("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80")),
               "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\"");
    assert_str(write_one(&b, GL_S("a\xff\xc3z")), "\"a\xef\xbf\xbd\xef\xbf\xbdz\"");
    gl_buf_done(&b);
}

static void any_bytes_written_can_be_read_back(void **state)
{
    (void)state;
    struct gl_buf b = {0};
    uint32_t seed = 1;
    for (int round = 0; round < 5000; round++) {
        char text[24];
        size_t n = (size_t)round % sizeof(text);
        bool ascii = true;
        for (size_t i = 0; i < n; i++) {
            seed = seed * 1664525 + 1013904223;
            text[i] = (char)(seed >> 24);
            text[i] = round % 2 ? (char)(text[i] & 0x7f) : text[i];
            ascii = ascii && (signed char)text[i] >= 0;
        }
        gl_str json = write_one(&b, (gl_str){text, n});
        struct gl_json j;
        assert_int_equal(gl_json_parse(&j, json, 4096, &arena, &why), 0);
        gl_str back = gl_json_str(&j, gl_json_root(&j), &arena);
        assert_true(!ascii || gl_str_eq(back, (gl_str){text, n}));
        gl_arena_reset(&arena);
    }
    gl_buf_done(&b);
}

static void every_sentence_reads_as_in_the_golden(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/json.golden");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_kind_of_value_is_read, tear_down),
        cmocka_unit_test_teardown(an_object_is_iterated_by_its_keys_in_order, tear_down),
        cmocka_unit_test_teardown(what_is_not_there_is_null_everywhere, tear_down),
        cmocka_unit_test_teardown(escapes_are_decoded_and_plain_strings_are_not_copied, tear_down),
        cmocka_unit_test_teardown(an_escaped_key_is_found_by_its_value, tear_down),
        cmocka_unit_test_teardown(integers_are_exact_or_refused, tear_down),
        cmocka_unit_test_teardown(numbers_must_be_finite, tear_down),
        cmocka_unit_test_teardown(what_is_no_json_is_refused_with_its_place, tear_down),
        cmocka_unit_test_teardown(duplicate_keys_are_found_in_small_and_large_objects, tear_down),
        cmocka_unit_test_teardown(a_huge_object_is_read_in_reasonable_time, tear_down),
        cmocka_unit_test_teardown(nesting_is_limited, tear_down),
        cmocka_unit_test_teardown(size_is_limited, tear_down),
        cmocka_unit_test_teardown(places_count_lines_and_code_points, tear_down),
        cmocka_unit_test_teardown(the_writer_sets_commas_and_colons, tear_down),
        cmocka_unit_test_teardown(the_writer_escapes_what_must_be, tear_down),
        cmocka_unit_test_teardown(any_bytes_written_can_be_read_back, tear_down),
        cmocka_unit_test(every_sentence_reads_as_in_the_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
