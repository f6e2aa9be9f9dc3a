#include "support/cmocka_all.h"

#include "base/base64.h"
#include "base/check.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_become_letters_and_bytes_again),
        cmocka_unit_test(padding_and_white_space_do_not_matter),
        cmocka_unit_test(other_text_is_no_base64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
