#include "support/cmocka_all.h"

#include <string.h>

#include "base/arena.h"

static void pieces_of_an_arena_are_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    struct gl_arena a;
    gl_arena_init(&a);
    char *last = NULL;
    for (size_t bytes = 0; bytes < 700; bytes += 7) {
        char *p = gl_arena_alloc(&a, bytes);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < bytes; i++) {
            assert_int_equal(p[i], 0);
        }
        memset(p, 0x5a, bytes);
        assert_ptr_not_equal(p, last);
        last = p;
    }
    gl_arena_done(&a);
}

static void what_was_written_stays_when_the_arena_grows(void **state)
{
    (void)state;
    struct gl_arena a = {0};
    uint32_t *pieces[500];
    for (uint32_t i = 0; i < 500; i++) {
        size_t n = 1 + i * 37 % 5000;
        pieces[i] = GL_NEW_ARRAY(&a, uint32_t, n);
        pieces[i][0] = i;
        pieces[i][n - 1] = i;
    }
    for (uint32_t i = 0; i < 500; i++) {
        assert_int_equal(pieces[i][0], i);
    }
    gl_arena_done(&a);
}

static void a_piece_larger_than_any_block_is_fine(void **state)
{
    (void)state;
    struct gl_arena a = {0};
    char *small = gl_arena_alloc(&a, 10);
    char *large = gl_arena_alloc(&a, 3 << 20);
    char *after = gl_arena_alloc(&a, 10);
    large[(3 << 20) - 1] = 1;
    /* The free part of the small block stays in use. */
    assert_true(after > small && after < small + 4096);
    gl_arena_done(&a);
}

static void a_reset_arena_starts_again_with_zeroes(void **state)
{
    (void)state;
    struct gl_arena a = {0};
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++) {
            char *p = gl_arena_alloc(&a, 1000);
            assert_int_equal(p[0] | p[999], 0);
            memset(p, 0xff, 1000);
        }
        (void)gl_arena_alloc(&a, 1 << 20);
        gl_arena_reset(&a);
        assert_int_equal(a.used_bytes, 0);
        assert_non_null(a.blocks);
    }
    gl_arena_done(&a);
    gl_arena_reset(&a); /* an empty one is fine too */
    assert_null(a.blocks);
}

static void a_copy_in_an_arena_is_a_copy(void **state)
{
    (void)state;
    struct gl_arena a = {0};
    char text[] = "abc";
    char *copy = gl_arena_copy(&a, text, sizeof(text));
    text[0] = 'x';
    assert_string_equal(copy, "abc");
    gl_arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_an_arena_are_zeroed_aligned_and_apart),
        cmocka_unit_test(what_was_written_stays_when_the_arena_grows),
        cmocka_unit_test(a_piece_larger_than_any_block_is_fine),
        cmocka_unit_test(a_reset_arena_starts_again_with_zeroes),
        cmocka_unit_test(a_copy_in_an_arena_is_a_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
