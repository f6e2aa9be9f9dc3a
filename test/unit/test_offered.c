/* What the records say of attempts that were offered to other nodes. */
#include "api/offered.h"
#include "model/offer.h"
#include "support/cmocka_all.h"

#include <string.h>

static const char flow_text[] = "{\"format\":2,\"name\":\"f\",\"steps\":["
                                "{\"id\":\"a\",\"argv\":[\"true\"]},"
                                "{\"id\":\"b\",\"argv\":[\"true\"]},"
                                "{\"id\":\"c\",\"argv\":[\"true\"]}]}";

static void only_attempts_that_were_offered_are_looked_up(void **state)
{
    static const struct gl_record job = {
        .id = GL_S("01J"),
        .value = GL_S("{\"job_id\":\"01J\",\"run_id\":\"r\",\"flow\":\"h\",\"status\":\"running\","
                      "\"steps_n\":3}")};
    static const struct gl_step_record here = {
        .step_id = GL_S("a"), .status = GL_STEP_RUNNING, .attempt_count = 1};
    static const struct gl_step_record away = {
        .step_id = GL_S("b"), .status = GL_STEP_RUNNING, .attempt_count = 3, .is_elsewhere = true};
    static const struct gl_step_record dull = {.status = GL_STEP_RUNNING, .is_elsewhere = true};
    struct gl_view_pick picks[] = {{0, -1}, {1, -1}, {2, -1}};
    struct gl_view_offer *offers = NULL;
    struct gl_key *keys = NULL;
    struct gl_arena a = {0};
    struct gl_view v;

    (void)state;
    assert_int_equal(gl_view_read(&a, &job, gl_str_of(flow_text), NULL, 0, &v, NULL), 0);
    v.picks = picks;
    v.picks_n = 1;
    v.steps[0] = &here;
    assert_int_equal(gl_offered_keys(&a, &v, &keys, &offers), 0);
    assert_null(keys);
    v.picks_n = 3;
    v.steps[1] = &away;
    v.steps[2] = &dull; /* of a large job: only its status is known */
    assert_int_equal(gl_offered_keys(&a, &v, &keys, &offers), 1);
    assert_true(gl_str_is(keys[0].kind, "taken"));
    assert_true(gl_str_is(keys[0].id, "01J/b:attempt:3"));
    assert_true(gl_str_is(offers[0].step_id, "b"));
    gl_arena_done(&a);
}

static struct gl_view_offer read_one(struct gl_record r)
{
    struct gl_view_offer offer = {.step_id = GL_S("b")};
    struct gl_arena a = {0};

    gl_offered_read(&a, &r, 1, &offer);
    gl_arena_done(&a);
    return offer;
}

static void an_offer_without_a_record_has_not_been_taken(void **state)
{
    (void)state;
    assert_false(read_one((struct gl_record){.rev = 0}).is_taken);
    assert_false(read_one((struct gl_record){.rev = 1, .value = GL_S("{\"state\":\"withdrawn\"}")})
                     .is_taken);
}

static void a_taken_one_runs_until_its_record_says_otherwise(void **state)
{
    struct gl_view_offer o =
        read_one((struct gl_record){.rev = 1, .value = GL_S("{\"state\":\"running\"}")});

    (void)state;
    assert_true(o.is_taken && o.state == GL_TAKEN_RUNNING);
    o = read_one((struct gl_record){.rev = 1, .value = GL_S("?"), .damaged = true});
    assert_true(o.is_taken && o.state == GL_TAKEN_RUNNING);
    o = read_one((struct gl_record){.rev = 2, .value = GL_S("{\"state\":\"lost\"}")});
    assert_true(o.is_taken && o.state == GL_TAKEN_LOST);
}

static void a_record_with_a_large_output_is_not_parsed(void **state)
{
    static char large[8 << 10];
    struct gl_view_offer o;

    (void)state;
    memset(large, '{', sizeof(large));
    o = read_one((struct gl_record){.rev = 2, .value = {.p = large, .n = sizeof(large)}});
    assert_true(o.is_taken && o.state == GL_TAKEN_ENDED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_attempts_that_were_offered_are_looked_up),
        cmocka_unit_test(an_offer_without_a_record_has_not_been_taken),
        cmocka_unit_test(a_taken_one_runs_until_its_record_says_otherwise),
        cmocka_unit_test(a_record_with_a_large_output_is_not_parsed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
