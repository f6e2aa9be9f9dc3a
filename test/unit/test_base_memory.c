#include "support/cmocka_all.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/rng.h"

/* Arenas. */

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

/* The heap and pools. */

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

/* Lists. */

struct item {
    int number;
    struct gl_link link;
};

static void a_list_keeps_its_order_and_lets_go_of_any_member(void **state)
{
    (void)state;
    struct gl_link head;
    struct item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
    gl_list_init(&head);
    assert_true(gl_list_empty(&head));
    assert_null(gl_list_first(&head));
    for (int i = 0; i < 3; i++) {
        gl_list_push(&head, &items[i].link);
    }
    gl_list_remove(&items[1].link);
    gl_list_remove(&items[1].link); /* a lone link may be removed again */
    struct gl_link *first = gl_list_first(&head);
    assert_int_equal(GL_CONTAINER(first, struct item, link)->number, 0);
    assert_int_equal(GL_CONTAINER(first->next, struct item, link)->number, 2);
    assert_ptr_equal(first->next->next, &head);
}

/* Maps. */

static void a_map_finds_what_was_added_and_nothing_else(void **state)
{
    (void)state;
    struct gl_map m;
    gl_map_init(&m);
    int one = 1, two = 2;
    assert_null(gl_map_find(&m, GL_S("a")));
    assert_null(gl_map_remove(&m, GL_S("a")));
    gl_map_add(&m, GL_S("a"), &one);
    gl_map_add(&m, GL_S(""), &two);
    assert_ptr_equal(gl_map_find(&m, GL_S("a")), &one);
    assert_ptr_equal(gl_map_find(&m, GL_S("")), &two);
    assert_null(gl_map_find(&m, GL_S("b")));
    assert_ptr_equal(gl_map_remove(&m, GL_S("a")), &one);
    assert_null(gl_map_find(&m, GL_S("a")));
    assert_int_equal(gl_map_count(&m), 1);
    gl_map_done(&m);
}

enum { KEYS = 3000 };

static char keys[KEYS][8];

static gl_str key(unsigned i)
{
    (void)snprintf(keys[i], sizeof(keys[i]), "k%u", i);
    return gl_str_of(keys[i]);
}

static void a_map_agrees_with_a_plain_table_over_many_changes(void **state)
{
    (void)state;
    struct gl_map m;
    struct gl_rng rng;
    gl_map_init(&m);
    gl_rng_init(&rng, 7);
    static bool present[KEYS];
    size_t count = 0;
    for (unsigned i = 0; i < 100000; i++) {
        unsigned k = (unsigned)gl_rng_below(&rng, i < 50000 ? KEYS : 50);
        void *found = gl_map_find(&m, key(k));
        assert_int_equal(found != NULL, present[k]);
        if (present[k]) {
            assert_ptr_equal(found, &present[k]);
            assert_ptr_equal(gl_map_remove(&m, key(k)), &present[k]);
            count--;
        } else {
            gl_map_add(&m, key(k), &present[k]);
            count++;
        }
        present[k] = !present[k];
        assert_int_equal(gl_map_count(&m), count);
    }
    assert_true(m.entries_cap <= 4 * KEYS);
    for (unsigned k = 0; k < KEYS; k++) {
        assert_int_equal(gl_map_find(&m, key(k)) != NULL, present[k]);
    }
    gl_map_done(&m);
}

static void a_map_is_iterated_in_the_order_of_insertion(void **state)
{
    (void)state;
    struct gl_map m;
    gl_map_init(&m);
    static int values[100];
    for (unsigned i = 0; i < 100; i++) {
        gl_map_add(&m, key(i), &values[i]);
    }
    for (unsigned i = 0; i < 100; i += 3) {
        (void)gl_map_remove(&m, key(i));
    }
    gl_map_add(&m, key(0), &values[0]); /* back, but last */
    int *v;
    size_t at = 0, seen = 0;
    int *last = NULL;
    for (unsigned expect = 1; (v = gl_map_next(&m, &at)) != NULL; seen++) {
        if (v != &values[0]) {
            assert_ptr_equal(v, &values[expect]);
            expect += expect % 3 == 2 ? 2 : 1;
        }
        last = v;
    }
    assert_int_equal(seen, gl_map_count(&m));
    assert_ptr_equal(last, &values[0]);
    size_t back = SIZE_MAX;
    assert_ptr_equal(gl_map_prev(&m, &back), &values[0]);
    for (unsigned expect = 98; (v = gl_map_prev(&m, &back)) != NULL; seen--) {
        assert_ptr_equal(v, &values[expect]);
        expect -= expect % 3 == 1 ? 2 : 1;
    }
    assert_int_equal(seen, 1);
    gl_map_done(&m);
}

static void entries_may_be_removed_while_a_map_is_iterated(void **state)
{
    (void)state;
    struct gl_map m;
    gl_map_init(&m);
    static unsigned values[300];
    for (unsigned i = 0; i < 300; i++) {
        values[i] = i;
        gl_map_add(&m, key(i), &values[i]);
    }
    unsigned *v;
    unsigned seen = 0;
    for (size_t at = 0; (v = gl_map_next(&m, &at)) != NULL; seen++) {
        (void)gl_map_remove(&m, key(*v));
    }
    assert_int_equal(seen, 300);
    assert_int_equal(gl_map_count(&m), 0);
    gl_map_done(&m);
}

/* Priority queues. */

struct timer {
    int64_t due;
    unsigned seq;
    struct gl_heap_item item;
};

static bool timer_before(const struct gl_heap_item *a, const struct gl_heap_item *b)
{
    const struct timer *x = GL_CONTAINER(a, const struct timer, item);
    const struct timer *y = GL_CONTAINER(b, const struct timer, item);
    return x->due != y->due ? x->due < y->due : x->seq < y->seq;
}

static void a_heap_gives_its_items_in_order_whatever_is_moved_or_removed(void **state)
{
    (void)state;
    enum { N = 1000 };
    static struct timer timers[N];
    struct gl_heap h;
    struct gl_rng rng;
    gl_heap_init(&h, timer_before);
    gl_rng_init(&rng, 3);
    assert_null(gl_heap_top(&h));
    for (unsigned i = 0; i < N; i++) {
        timers[i] = (struct timer){.due = gl_rng_range(&rng, 0, 100), .seq = i};
        gl_heap_push(&h, &timers[i].item);
    }
    for (unsigned i = 0; i < N; i += 2) {
        timers[i].due = gl_rng_range(&rng, -50, 150);
        gl_heap_moved(&h, &timers[i].item);
    }
    size_t left = N;
    for (unsigned i = 0; i < N; i += 5) {
        gl_heap_remove(&h, &timers[i].item);
        assert_false(gl_heap_has(&timers[i].item));
        left--;
    }
    const struct gl_heap_item *last = NULL;
    struct gl_heap_item *top;
    for (; (top = gl_heap_top(&h)) != NULL; left--) {
        gl_heap_remove(&h, top);
        assert_true(!last || timer_before(last, top));
        last = top;
    }
    assert_int_equal(left, 0);
    gl_heap_done(&h);
}

static void a_heap_knows_how_many_come_before_an_item(void **state)
{
    (void)state;
    enum { N = 200 };
    static struct timer timers[N];
    struct gl_heap h;
    gl_heap_init(&h, timer_before);
    for (unsigned i = 0; i < N; i++) {
        timers[i] = (struct timer){.due = i * 37 % N / 3, .seq = i};
        gl_heap_push(&h, &timers[i].item);
    }
    for (unsigned i = 0; i < N; i++) {
        size_t before = 0;
        for (unsigned k = 0; k < N; k++) {
            before += timer_before(&timers[k].item, &timers[i].item);
        }
        assert_int_equal(gl_heap_ahead(&h, &timers[i].item, N), before);
        assert_int_equal(gl_heap_ahead(&h, &timers[i].item, 20), before < 20 ? before : 20);
    }
    gl_heap_done(&h);
}

/* Assertions. */

static void break_assertion(void)
{
    GL_ASSERT(2 < 1);
}

static void run_out_of_memory(void)
{
    gl_check_out_of_memory(4711);
}

/* What it says when it aborts. */
static void abort_of(void (*run)(void), char text[static 512])
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(fds[1], 2);
        (void)signal(SIGABRT, SIG_DFL);
        run();
        _exit(0);
    }
    (void)close(fds[1]);
    memset(text, 0, 512);
    assert_true(read(fds[0], text, 511) > 0);
    (void)close(fds[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_broken_assertion_aborts_and_says_where(void **state)
{
    (void)state;
    char text[512];
    abort_of(break_assertion, text);
    assert_non_null(strstr(text, "test_base_memory.c"));
    assert_non_null(strstr(text, "assertion failed: 2 < 1"));
}

static void running_out_of_memory_does_not_look_like_a_defect(void **state)
{
    (void)state;
    char text[512];
    abort_of(run_out_of_memory, text);
    assert_non_null(strstr(text, "memory:"));
    assert_non_null(strstr(text, "4711 bytes"));
    assert_null(strstr(text, "assertion"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_an_arena_are_zeroed_aligned_and_apart),
        cmocka_unit_test(what_was_written_stays_when_the_arena_grows),
        cmocka_unit_test(a_piece_larger_than_any_block_is_fine),
        cmocka_unit_test(a_reset_arena_starts_again_with_zeroes),
        cmocka_unit_test(a_copy_in_an_arena_is_a_copy),
        cmocka_unit_test(heap_blocks_are_zeroed_and_grow),
        cmocka_unit_test(a_pool_hands_a_returned_piece_out_again_zeroed),
        cmocka_unit_test(a_pool_does_not_grow_when_pieces_come_and_go),
        cmocka_unit_test(a_pool_counts_what_it_has_handed_out),
        cmocka_unit_test(a_list_keeps_its_order_and_lets_go_of_any_member),
        cmocka_unit_test(a_map_finds_what_was_added_and_nothing_else),
        cmocka_unit_test(a_map_agrees_with_a_plain_table_over_many_changes),
        cmocka_unit_test(a_map_is_iterated_in_the_order_of_insertion),
        cmocka_unit_test(entries_may_be_removed_while_a_map_is_iterated),
        cmocka_unit_test(a_heap_gives_its_items_in_order_whatever_is_moved_or_removed),
        cmocka_unit_test(a_heap_knows_how_many_come_before_an_item),
        cmocka_unit_test(a_broken_assertion_aborts_and_says_where),
        cmocka_unit_test(running_out_of_memory_does_not_look_like_a_defect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
