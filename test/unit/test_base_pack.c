#include "support/cmocka_all.h"

#include <string.h>

#include "base/base64.h"
#include "base/check.h"
#include "base/gzip.h"

static const struct {
    const char *plain, *letters;
} pairs[] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xff\xfe\xfd", "//79"},
};

static void bytes_become_letters_and_bytes_again(void **state)
{
    struct gl_buf out = {0};

    (void)state;
    for (size_t i = 0; i < GL_COUNT(pairs); i++) {
        gl_buf_reset(&out);
        gl_base64_encode(gl_str_of(pairs[i].plain), &out);
        assert_true(gl_str_is(gl_buf_view(&out), pairs[i].letters));
        gl_buf_reset(&out);
        assert_true(gl_base64_decode(gl_str_of(pairs[i].letters), &out));
        assert_true(gl_str_is(gl_buf_view(&out), pairs[i].plain));
    }
    gl_buf_done(&out);
}

static void padding_and_white_space_do_not_matter(void **state)
{
    static const char *const cases[] = {"Zm9vYg", "Zm9v\nYg==\n", " Z m 9 v Y g = = "};
    struct gl_buf out = {0};

    (void)state;
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        gl_buf_reset(&out);
        assert_true(gl_base64_decode(gl_str_of(cases[i]), &out));
        assert_true(gl_str_is(gl_buf_view(&out), "foob"));
    }
    gl_buf_done(&out);
}

static void other_text_is_no_base64(void **state)
{
    static const char *const cases[] = {"Z",      "Zg=",  "Zg===", "=",    "Zm9v=", "Zm9vY",
                                        "Zg==Zg", "Zm9-", "Z?==",  "Zh==", "\xff",  "Zm9="};
    struct gl_buf out = {0};

    (void)state;
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        if (gl_base64_decode(gl_str_of(cases[i]), &out)) {
            fail_msg("%s was taken", cases[i]);
        }
    }
    gl_buf_done(&out);
}

static void round_trip(gl_str text)
{
    struct gl_buf packed = {0}, again = {0}, plain = {0};
    struct gl_why why;

    gl_gzip_pack(text, &packed);
    gl_gzip_pack(text, &again);
    assert_true(gl_str_eq(gl_buf_view(&packed), gl_buf_view(&again)));
    assert_true(gl_gzip_is(gl_buf_view(&packed)));
    assert_int_equal(gl_gzip_unpack(gl_buf_view(&packed), text.n, &plain, &why), 0);
    assert_true(gl_str_eq(gl_buf_view(&plain), text));
    gl_buf_done(&packed);
    gl_buf_done(&again);
    gl_buf_done(&plain);
}

static void what_is_packed_can_be_unpacked(void **state)
{
    struct gl_buf long_one = {0};

    (void)state;
    round_trip((gl_str){0});
    round_trip(GL_S("{\"a\":1}"));
    for (uint32_t i = 0; i < 300000; i++) {
        gl_buf_char(&long_one, (char)(i * 2654435761u >> 24));
    }
    round_trip(gl_buf_view(&long_one));
    gl_buf_done(&long_one);
}

static void damage_and_bombs_are_refused(void **state)
{
    struct gl_buf packed = {0}, plain = {0}, zeros = {0};
    struct gl_why why;
    gl_str text;

    (void)state;
    memset(gl_buf_reserve(&zeros, 1 << 20), 0, 1 << 20);
    zeros.n = 1 << 20;
    gl_gzip_pack(gl_buf_view(&zeros), &packed);
    text = gl_buf_view(&packed);
    assert_int_equal(gl_gzip_unpack(text, 1000, &plain, &why), GL_E_LIMIT);
    assert_non_null(strstr(why.text, "1000"));
    text.n--;
    assert_int_equal(gl_gzip_unpack(text, 2 << 20, &plain, &why), GL_E_INVALID);
    packed.p[packed.n - 6] ^= 1; /* its checksum */
    assert_int_equal(gl_gzip_unpack(gl_buf_view(&packed), 2 << 20, &plain, &why), GL_E_INVALID);
    packed.p[packed.n - 6] ^= 1; /* its checksum */
    gl_buf_char(&packed, 'x');
    assert_int_equal(gl_gzip_unpack(gl_buf_view(&packed), 2 << 20, &plain, &why), GL_E_INVALID);
    assert_int_equal(gl_gzip_unpack(GL_S("plain text"), 100, &plain, &why), GL_E_INVALID);
    assert_int_equal(gl_gzip_unpack((gl_str){0}, 100, &plain, &why), GL_E_INVALID);
    assert_false(gl_gzip_is(GL_S("plain text")));
    gl_buf_done(&packed);
    gl_buf_done(&plain);
    gl_buf_done(&zeros);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_become_letters_and_bytes_again),
        cmocka_unit_test(padding_and_white_space_do_not_matter),
        cmocka_unit_test(other_text_is_no_base64),
        cmocka_unit_test(what_is_packed_can_be_unpacked),
        cmocka_unit_test(damage_and_bombs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
