/* The seven trigger rules: when they let a step run, and when they have become impossible. */
#include "core/flow/rule.h"
#include "support/cmocka_all.h"

#define P(...) (&(struct gl_rule_parents){__VA_ARGS__})

static void expect(enum gl_rule rule, uint32_t quorum, const struct gl_rule_parents *p,
                   enum gl_rule_answer want)
{
    assert_int_equal(gl_rule_evaluate(rule, quorum, p), want);
}

static void all_success_wants_every_parent_accepted(void **state)
{
    (void)state;
    expect(GL_RULE_ALL_SUCCESS, 0, P(.all = 0), GL_RULE_RUN);
    expect(GL_RULE_ALL_SUCCESS, 0, P(.all = 2, .ended = 1, .success = 1, .accepted = 1),
           GL_RULE_WAIT);
    expect(GL_RULE_ALL_SUCCESS, 0, P(.all = 2, .ended = 2, .success = 1, .accepted = 2),
           GL_RULE_RUN);
    expect(GL_RULE_ALL_SUCCESS, 0, P(.all = 2, .ended = 2, .success = 1, .accepted = 1),
           GL_RULE_IMPOSSIBLE);
    /* Not before all have ended, even if one is skipped already. */
    expect(GL_RULE_ALL_SUCCESS, 0, P(.all = 2, .ended = 1), GL_RULE_WAIT);
}

static void all_done_never_becomes_impossible(void **state)
{
    (void)state;
    expect(GL_RULE_ALL_DONE, 0, P(.all = 0), GL_RULE_RUN);
    expect(GL_RULE_ALL_DONE, 0, P(.all = 3, .ended = 2, .failed = 2), GL_RULE_WAIT);
    expect(GL_RULE_ALL_DONE, 0, P(.all = 3, .ended = 3, .failed = 3), GL_RULE_RUN);
}

static void one_success_runs_at_the_first(void **state)
{
    (void)state;
    expect(GL_RULE_ONE_SUCCESS, 0, P(.all = 3, .ended = 1, .failed = 1), GL_RULE_WAIT);
    expect(GL_RULE_ONE_SUCCESS, 0, P(.all = 3, .ended = 2, .success = 1, .failed = 1), GL_RULE_RUN);
    expect(GL_RULE_ONE_SUCCESS, 0, P(.all = 3, .ended = 3, .failed = 3), GL_RULE_IMPOSSIBLE);
}

static void one_done_runs_at_the_first_end_of_any_kind(void **state)
{
    (void)state;
    expect(GL_RULE_ONE_DONE, 0, P(.all = 3), GL_RULE_WAIT);
    expect(GL_RULE_ONE_DONE, 0, P(.all = 3, .ended = 1, .failed = 1), GL_RULE_RUN);
}

static void one_failed_is_impossible_when_none_has(void **state)
{
    (void)state;
    expect(GL_RULE_ONE_FAILED, 0, P(.all = 2, .ended = 1, .success = 1), GL_RULE_WAIT);
    expect(GL_RULE_ONE_FAILED, 0, P(.all = 2, .ended = 1, .failed = 1), GL_RULE_RUN);
    expect(GL_RULE_ONE_FAILED, 0, P(.all = 2, .ended = 2, .success = 2), GL_RULE_IMPOSSIBLE);
}

static void none_failed_wants_one_success_and_no_failure(void **state)
{
    (void)state;
    expect(GL_RULE_NONE_FAILED, 0, P(.all = 2, .ended = 1, .success = 1), GL_RULE_WAIT);
    expect(GL_RULE_NONE_FAILED, 0, P(.all = 2, .ended = 2, .success = 1), GL_RULE_RUN);
    expect(GL_RULE_NONE_FAILED, 0, P(.all = 2, .ended = 2, .success = 1, .failed = 1),
           GL_RULE_IMPOSSIBLE);
    expect(GL_RULE_NONE_FAILED, 0, P(.all = 2, .ended = 2), GL_RULE_IMPOSSIBLE);
}

static void a_quorum_is_known_before_the_last_parent_has_ended(void **state)
{
    (void)state;
    expect(GL_RULE_QUORUM, 2, P(.all = 4, .ended = 2, .success = 1, .failed = 1), GL_RULE_WAIT);
    expect(GL_RULE_QUORUM, 2, P(.all = 4, .ended = 3, .success = 2, .failed = 1), GL_RULE_RUN);
    expect(GL_RULE_QUORUM, 3, P(.all = 4, .ended = 2, .failed = 2), GL_RULE_IMPOSSIBLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_success_wants_every_parent_accepted),
        cmocka_unit_test(all_done_never_becomes_impossible),
        cmocka_unit_test(one_success_runs_at_the_first),
        cmocka_unit_test(one_done_runs_at_the_first_end_of_any_kind),
        cmocka_unit_test(one_failed_is_impossible_when_none_has),
        cmocka_unit_test(none_failed_wants_one_success_and_no_failure),
        cmocka_unit_test(a_quorum_is_known_before_the_last_parent_has_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
