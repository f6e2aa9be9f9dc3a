/* What waits for slots, and where it could run. */
#include "core/scheduling/placement.h"
#include "support/cmocka_all.h"
#include "support/core_rig.h"

static void the_first_of_all_queues_has_waited_longest(void **state)
{
    struct gl_core_waiting w;
    struct rig *r = rig_new(1, 1);

    (void)state;
    assert_false(gl_core_longest_waiting(r->core, &w));
    rig_submit(r, "a; x pool=gpu");
    assert_false(gl_core_longest_waiting(r->core, &w)); /* both run */
    rig_submit(r, "y pool=gpu");
    rig_at(r, r->now + 1000);
    rig_submit(r, "b");
    assert_true(gl_core_longest_waiting(r->core, &w));
    assert_true(gl_str_is(w.step, "y"));
    assert_true(gl_str_is(w.pool, "gpu"));
    assert_int_equal(w.since, r->now - 1000);
    rig_submit(r, "urgent p=1"); /* worth ten seconds */
    assert_true(gl_core_longest_waiting(r->core, &w));
    assert_true(gl_str_is(w.step, "urgent"));
    assert_true(gl_str_is(w.job, r->job));
    assert_int_equal(w.since, r->now);
    rig_free(r);
}

/* What a limit holds back would not start with more slots. */
static void who_waits_for_a_limit_does_not_wait_for_slots(void **state)
{
    struct gl_core_waiting w;
    struct rig *r = rig_new(2, 1);

    (void)state;
    rig_submit(r, "a c=db/1; b c=db/1");
    assert_false(gl_core_longest_waiting(r->core, &w));
    rig_free(r);
}

static void this_node_is_the_first_of_the_places(void **state)
{
    struct gl_place_request one = {.pool = GL_S("default"), .slots = 1},
                            large = {.pool = GL_S("default"), .slots = 3},
                            other = {.pool = GL_S("tpu"), .slots = 1};
    struct gl_core_places p;
    struct gl_arena a = {0};
    struct rig *r = rig_new(2, 1);

    (void)state;
    gl_core_places(r->core, &a, &p);
    assert_int_equal(p.nodes_n, 1);
    assert_false(p.is_placing);
    assert_int_equal(gl_place_judge(&p.nodes[0], &one), GL_PLACE_FITS);
    assert_int_equal(gl_place_judge(&p.nodes[0], &large), GL_PLACE_POOL_TOO_SMALL);
    assert_int_equal(gl_place_judge(&p.nodes[0], &other), GL_PLACE_NO_POOL);
    rig_submit(r, "a; b");
    gl_core_places(r->core, &a, &p);
    assert_int_equal(gl_place_judge(&p.nodes[0], &one), GL_PLACE_BUSY);
    gl_arena_done(&a);
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_of_all_queues_has_waited_longest),
        cmocka_unit_test(who_waits_for_a_limit_does_not_wait_for_slots),
        cmocka_unit_test(this_node_is_the_first_of_the_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
