#include "support/cmocka_all.h"

#include <stdio.h>

#include "base/map.h"
#include "base/rng.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_map_finds_what_was_added_and_nothing_else),
        cmocka_unit_test(a_map_agrees_with_a_plain_table_over_many_changes),
        cmocka_unit_test(a_map_is_iterated_in_the_order_of_insertion),
        cmocka_unit_test(entries_may_be_removed_while_a_map_is_iterated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
