#include "support/cmocka_all.h"

#include "base/rng.h"

static void the_same_seed_gives_the_same_draws(void **state)
{
    (void)state;
    struct gl_rng a, b, c;
    gl_rng_init(&a, 42);
    gl_rng_init(&b, 42);
    gl_rng_init(&c, 43);
    bool differs = false;
    for (int i = 0; i < 100; i++) {
        uint64_t v = gl_rng_u64(&a);
        assert_true(v == gl_rng_u64(&b));
        differs = differs || v != gl_rng_u64(&c);
    }
    assert_true(differs);
}

static void draws_stay_in_their_range_and_reach_all_of_it(void **state)
{
    (void)state;
    struct gl_rng r;
    unsigned seen[7] = {0};
    gl_rng_init(&r, 1);
    for (int i = 0; i < 7000; i++) {
        seen[gl_rng_below(&r, 7)]++;
        int64_t v = gl_rng_range(&r, -3, 3);
        assert_in_range(v + 3, 0, 6);
    }
    for (int i = 0; i < 7; i++) {
        assert_in_range(seen[i], 850, 1150);
    }
    assert_true(gl_rng_range(&r, 5, 5) == 5);
    (void)gl_rng_range(&r, INT64_MIN, INT64_MAX);
    assert_false(gl_rng_chance(&r, 0));
    assert_true(gl_rng_chance(&r, 1000000));
}

static void a_fork_has_its_own_draws(void **state)
{
    (void)state;
    struct gl_rng a, b, x, y;
    gl_rng_init(&a, 1);
    b = a;
    gl_rng_fork(&a, &x, "store");
    gl_rng_fork(&b, &y, "exec");
    assert_true(gl_rng_u64(&x) != gl_rng_u64(&y));
    assert_true(gl_rng_u64(&a) == gl_rng_u64(&b)); /* one draw each, whatever the name */
}

static void filling_bytes_touches_exactly_those(void **state)
{
    (void)state;
    struct gl_rng r;
    unsigned char bytes[32] = {0};
    gl_rng_init(&r, 1);
    gl_rng_fill(&r, bytes, 19);
    unsigned zeros = 0;
    for (int i = 0; i < 19; i++) {
        zeros += bytes[i] == 0;
    }
    assert_true(zeros < 5);
    for (int i = 19; i < 32; i++) {
        assert_int_equal(bytes[i], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same_draws),
        cmocka_unit_test(draws_stay_in_their_range_and_reach_all_of_it),
        cmocka_unit_test(a_fork_has_its_own_draws),
        cmocka_unit_test(filling_bytes_touches_exactly_those),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
