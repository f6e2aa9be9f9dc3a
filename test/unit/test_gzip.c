#include "support/cmocka_all.h"

#include <string.h>

#include "base/gzip.h"

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
        cmocka_unit_test(what_is_packed_can_be_unpacked),
        cmocka_unit_test(damage_and_bombs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
