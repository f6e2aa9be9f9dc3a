#include "support/cmocka_all.h"

#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

static void heap_blocks_are_zeroed_and_grow(void **state)
{
    (void)state;
    char *p = gl_mem_alloc(100);
    assert_int_equal(p[0] | p[99], 0);
    p[99] = 7;
    p = gl_mem_realloc(p, 1000);
    assert_int_equal(p[99], 7);
    gl_mem_free(p);
    gl_mem_free(NULL);
}

static void a_pool_hands_a_returned_piece_out_again_zeroed(void **state)
{
    (void)state;
    struct gl_pool pool;
    gl_pool_init(&pool);
    char *p = gl_pool_alloc(&pool, 50);
    memset(p, 0xff, 50);
    gl_pool_free(&pool, p, 50);
    char *q = gl_pool_alloc(&pool, 60); /* the same class of 64 */
    assert_ptr_equal(p, q);
    for (int i = 0; i < 60; i++) {
        assert_int_equal(q[i], 0);
    }
    gl_pool_free(&pool, NULL, 60);
    gl_pool_done(&pool);
}

static void a_pool_does_not_grow_when_pieces_come_and_go(void **state)
{
    (void)state;
    struct gl_pool pool;
    struct gl_rng rng;
    gl_pool_init(&pool);
    gl_rng_init(&rng, 1);
    struct {
        unsigned char *p;
        size_t bytes;
        unsigned char mark;
    } held[200] = {0};
    size_t after_warm_up = 0;
    for (unsigned i = 0; i < 20000; i++) {
        unsigned k = (unsigned)gl_rng_below(&rng, 200);
        if (held[k].p) {
            assert_int_equal(held[k].p[0], held[k].mark);
            assert_int_equal(held[k].p[held[k].bytes - 1], held[k].mark);
            gl_pool_free(&pool, held[k].p, held[k].bytes);
        }
        held[k].bytes = 1 + gl_rng_below(&rng, 5000); /* some are larger than any class */
        held[k].p = gl_pool_alloc(&pool, held[k].bytes);
        assert_int_equal((uintptr_t)held[k].p % 16, 0);
        held[k].mark = (unsigned char)i;
        memset(held[k].p, held[k].mark, held[k].bytes);
        after_warm_up = i == 10000 ? pool.slab_bytes : after_warm_up;
    }
    assert_true(pool.slab_bytes < after_warm_up + after_warm_up / 2);
    gl_pool_done(&pool); /* also frees what is still held: the leak checker sees it */
}

static void a_pool_counts_what_it_has_handed_out(void **state)
{
    (void)state;
    struct gl_pool pool;
    gl_pool_init(&pool);
    void *small = gl_pool_alloc(&pool, 17);
    void *large = gl_pool_alloc(&pool, 10000);
    assert_int_equal(pool.used_bytes, 32 + 10000);
    gl_pool_free(&pool, large, 10000);
    gl_pool_free(&pool, small, 17);
    assert_int_equal(pool.used_bytes, 0);
    gl_pool_done(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heap_blocks_are_zeroed_and_grow),
        cmocka_unit_test(a_pool_hands_a_returned_piece_out_again_zeroed),
        cmocka_unit_test(a_pool_does_not_grow_when_pieces_come_and_go),
        cmocka_unit_test(a_pool_counts_what_it_has_handed_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
