#include "support/cmocka_all.h"

#include <unistd.h>

#include "base/check.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/rng.h"

struct item {
    int number;
    struct gl_link link;
};

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_heap_gives_its_items_in_order_whatever_is_moved_or_removed),
        cmocka_unit_test(a_heap_knows_how_many_come_before_an_item),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
