#include "support/cmocka_all.h"

#include <string.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/str.h"

static void check_str(gl_str got, const char *text, int line)
{
    if (!gl_str_is(got, text)) {
        fail_msg("line %d: got \"%.*s\", expected \"%s\"", line, GL_STR_ARG(got), text);
    }
}

#define assert_str(s, text) check_str((s), (text), __LINE__)

static void slices_compare_by_their_bytes(void **state)
{
    (void)state;
    assert_true(gl_str_eq(GL_S("ab"), (gl_str){"abc", 2}));
    assert_true(gl_str_eq((gl_str){0}, GL_S("")));
    assert_false(gl_str_eq(GL_S("a"), GL_S("b")));
    assert_true(gl_str_is(GL_S("x"), "x"));
    assert_false(gl_str_is(GL_S("x"), "xy"));
    assert_true(gl_str_cmp(GL_S("a"), GL_S("ab")) < 0);
    assert_true(gl_str_cmp(GL_S("b"), GL_S("ab")) > 0);
    assert_true(gl_str_cmp(GL_S("\xff"), GL_S("a")) > 0);
    assert_int_equal(gl_str_cmp((gl_str){0}, GL_S("")), 0);
    assert_str(gl_str_of(NULL), "");
}

static void slices_are_cut_trimmed_and_looked_at(void **state)
{
    (void)state;
    gl_str rest;
    assert_str(gl_str_trim(GL_S(" \t\n a\tb \r\n")), "a\tb");
    assert_str(gl_str_trim(GL_S("  ")), "");
    assert_str(gl_str_cut(GL_S("a=b=c"), '=', &rest), "a");
    assert_str(rest, "b=c");
    assert_str(gl_str_cut(GL_S("abc"), '=', &rest), "abc");
    assert_str(rest, "");
    assert_str(gl_str_cut((gl_str){0}, '=', &rest), "");
    assert_true(gl_str_starts(GL_S("abc"), GL_S("ab")));
    assert_false(gl_str_starts(GL_S("a"), GL_S("ab")));
    assert_true(gl_str_ends(GL_S("abc"), GL_S("bc")));
    assert_false(gl_str_ends(GL_S("c"), GL_S("bc")));
    assert_true(gl_str_ends((gl_str){0}, (gl_str){0}));
}

static void numbers_are_read_exactly_or_not_at_all(void **state)
{
    (void)state;
    uint64_t u = 5;
    int64_t i = 5;
    assert_true(gl_str_u64(GL_S("18446744073709551615"), &u));
    assert_true(u == UINT64_MAX);
    assert_false(gl_str_u64(GL_S("18446744073709551616"), &u));
    assert_false(gl_str_u64(GL_S("99999999999999999999"), &u));
    assert_false(gl_str_u64(GL_S(""), &u));
    assert_false(gl_str_u64(GL_S("+1"), &u));
    assert_false(gl_str_u64(GL_S("1 "), &u));
    assert_true(u == UINT64_MAX);
    assert_true(gl_str_i64(GL_S("-9223372036854775808"), &i));
    assert_true(i == INT64_MIN);
    assert_true(gl_str_i64(GL_S("9223372036854775807"), &i));
    assert_true(i == INT64_MAX);
    assert_false(gl_str_i64(GL_S("9223372036854775808"), &i));
    assert_false(gl_str_i64(GL_S("-9223372036854775809"), &i));
    assert_false(gl_str_i64(GL_S("-"), &i));
    assert_false(gl_str_i64(GL_S("--1"), &i));
}

static void ids_are_short_and_plain(void **state)
{
    (void)state;
    char longest[GL_ID_BYTES_MAX + 1];
    memset(longest, 'a', sizeof(longest));
    assert_true(gl_str_is_id(GL_S("Fetch-1.b_c")));
    assert_true(gl_str_is_id(GL_S("_")));
    assert_true(gl_str_is_id((gl_str){longest, GL_ID_BYTES_MAX}));
    assert_false(gl_str_is_id((gl_str){longest, GL_ID_BYTES_MAX + 1}));
    assert_false(gl_str_is_id(GL_S("")));
    assert_false(gl_str_is_id(GL_S(".a")));
    assert_false(gl_str_is_id(GL_S("-a")));
    assert_false(gl_str_is_id(GL_S("a b")));
    assert_false(gl_str_is_id(GL_S("a/b")));
    assert_false(gl_str_is_id(GL_S("\xc3\xa4")));
    assert_false(gl_str_is_id((gl_str){"a\0b", 3}));
}

static void only_well_formed_utf8_is_accepted(void **state)
{
    (void)state;
    static const struct {
        gl_str text;
        int bad_at; /* -1: fine */
    } cases[] = {
        {{"", 0}, -1},
        {{"plain-ascii-longer-than-eight!", 30}, -1},
        {{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9}, -1},
        {{"\xf4\x8f\xbf\xbf", 4}, -1}, /* U+10FFFF */
        {{"\xf4\x90\x80\x80", 4}, 0},  /* beyond it */
        {{"ab\xc0\x80", 4}, 2},        /* overlong */
        {{"\xe0\x80\xaf", 3}, 0},      /* overlong */
        {{"\xf0\x80\x80\xaf", 4}, 0},  /* overlong */
        {{"\xed\xa0\x80", 3}, 0},      /* a surrogate */
        {{"\xed\x9f\xbf", 3}, -1},     /* the last before them */
        {{"\x80", 1}, 0},              /* a continuation alone */
        {{"\xe2\x82", 2}, 0},          /* cut short */
        {{"12345678\xff", 9}, 8},
        {{"\xe2\x28\xa1", 3}, 0},
        {{"\xf8\x88\x80\x80\x80", 5}, 0},
    };
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        size_t bad_at = 99;
        assert_int_equal(gl_str_is_utf8(cases[i].text, &bad_at), cases[i].bad_at < 0);
        assert_int_equal(bad_at, cases[i].bad_at < 0 ? 99 : cases[i].bad_at);
        (void)gl_str_is_utf8(cases[i].text, NULL);
    }
}

static void hashes_are_the_same_on_every_machine(void **state)
{
    (void)state;
    /* These numbers stand in traces and decide iteration nowhere; they must never change by
     * accident. */
    assert_true(gl_str_hash(GL_S("")) == gl_str_hash((gl_str){0}));
    assert_true(gl_str_hash(GL_S("abcdefgh")) == gl_str_hash((gl_str){&"xabcdefgh"[1], 8}));
    assert_true(gl_str_hash(GL_S("a")) != gl_str_hash(GL_S("b")));
    assert_true(gl_str_hash((gl_str){"a\0", 2}) != gl_str_hash(GL_S("a")));
    assert_true(gl_str_hash(GL_S("fetch")) == UINT64_C(0x64b7e31b1179731a));
}

static void text_is_copied_with_a_nul_behind_it(void **state)
{
    (void)state;
    struct gl_arena a = {0};
    gl_str copy = gl_str_dup(&a, (gl_str){"abcdef", 3});
    assert_int_equal(copy.n, 3);
    assert_string_equal(copy.p, "abc");
    assert_string_equal(gl_str_c(&a, (gl_str){0}), "");
    gl_str made = gl_str_fmt(&a, "%d-%s", 42, "x");
    assert_str(made, "42-x");
    gl_arena_done(&a);
}

static void a_buffer_grows_and_keeps_everything(void **state)
{
    (void)state;
    struct gl_buf b = {0};
    assert_str(gl_buf_view(&b), "");
    for (int i = 0; i < 1000; i++) {
        gl_buf_char(&b, 'x');
        gl_buf_c(&b, "yz");
        gl_buf_fmt(&b, "%03d", i);
    }
    assert_int_equal(b.n, 6000);
    assert_memory_equal(b.p + 5994, "xyz999", 6);
    gl_buf_reset(&b);
    assert_int_equal(b.n, 0);
    assert_true(b.cap >= 6000);
    gl_buf_add(&b, NULL, 0);
    gl_buf_str(&b, (gl_str){0});
    gl_buf_str(&b, GL_S("a"));
    assert_str(gl_buf_view(&b), "a");
    gl_buf_done(&b);
}

static void a_buffer_writes_numbers_to_their_limits(void **state)
{
    (void)state;
    struct gl_buf b = {0};
    const int64_t numbers[] = {0, 7, -1, 1234567890, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < GL_COUNT(numbers); i++) {
        gl_buf_i64(&b, numbers[i]);
        gl_buf_char(&b, ' ');
    }
    gl_buf_u64(&b, UINT64_MAX);
    assert_str(gl_buf_view(&b), "0 7 -1 1234567890 9223372036854775807 -9223372036854775808 "
                                "18446744073709551615");
    gl_buf_done(&b);
}

static bool is_step(gl_str s)
{
    gl_str part;
    int64_t item;

    return gl_str_split_step(s, &part, &item);
}

static void instances_of_a_step_have_a_number_in_brackets(void **state)
{
    (void)state;
    assert_true(is_step(GL_S("fetch")));
    assert_true(is_step(GL_S("fetch[0]")));
    assert_true(is_step(GL_S("a.b-c_d[9999]")));
    assert_false(is_step(GL_S("")));
    assert_false(is_step(GL_S("fetch[")));
    assert_false(is_step(GL_S("fetch[]")));
    assert_false(is_step(GL_S("fetch[x]")));
    assert_false(is_step(GL_S("fetch[1]x")));
    assert_false(is_step(GL_S("fetch[1]]")));
    assert_false(is_step(GL_S("[1]")));
    assert_false(is_step(GL_S("../x")));
}

static void an_instance_is_its_step_and_an_item(void **state)
{
    gl_str part;
    int64_t item;

    (void)state;
    assert_true(gl_str_split_step(GL_S("fetch[12]"), &part, &item));
    assert_true(gl_str_is(part, "fetch"));
    assert_int_equal(item, 12);
    assert_true(gl_str_split_step(GL_S("fetch"), &part, &item));
    assert_int_equal(item, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instances_of_a_step_have_a_number_in_brackets),
        cmocka_unit_test(an_instance_is_its_step_and_an_item),
        cmocka_unit_test(slices_compare_by_their_bytes),
        cmocka_unit_test(slices_are_cut_trimmed_and_looked_at),
        cmocka_unit_test(numbers_are_read_exactly_or_not_at_all),
        cmocka_unit_test(ids_are_short_and_plain),
        cmocka_unit_test(only_well_formed_utf8_is_accepted),
        cmocka_unit_test(hashes_are_the_same_on_every_machine),
        cmocka_unit_test(text_is_copied_with_a_nul_behind_it),
        cmocka_unit_test(a_buffer_grows_and_keeps_everything),
        cmocka_unit_test(a_buffer_writes_numbers_to_their_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
