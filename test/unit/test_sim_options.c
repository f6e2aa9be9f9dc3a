#include "support/cmocka_all.h"

#include "sim/sim_options.h"

static void each_seed_draws_its_own_options_and_the_same_ones_again(void **state)
{
    (void)state;
    struct gl_buf text[3] = {{0}};
    for (uint64_t i = 0; i < 3; i++) {
        struct gl_rng r;
        gl_rng_init(&r, i == 2 ? 1 : i + 1);
        struct sim_options o;
        sim_options_draw(&o, &r);
        sim_options_print(&o, &text[i]);
    }
    assert_false(gl_str_eq(gl_buf_view(&text[0]), gl_buf_view(&text[1])));
    assert_true(gl_str_eq(gl_buf_view(&text[0]), gl_buf_view(&text[2])));
    struct sim_options o = {0};
    assert_true(sim_options_set(&o, GL_S("zombies"), 2));
    assert_false(sim_options_set(&o, GL_S("no_such_thing"), 2));
    assert_int_equal(o.zombies, 2);
    for (int i = 0; i < 3; i++) {
        gl_buf_done(&text[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_seed_draws_its_own_options_and_the_same_ones_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
