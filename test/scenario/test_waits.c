/* test_waits.c - steps that wait, that go through a list, or that were done before: told line by
 * line. */
#include "scenario/scenario.h"

SCENARIO(a_sleep_outlives_the_node, .kinds = "step job")
{
    sim_story_run(s, 10);
    sim_story_flow(s, "nap", "{\"steps\":{\"a\":{\"sleep\":\"90s\"}}}");
    sim_story_run(s, 1000);
    sim_story_kill(s);
    sim_story_run(s, 30000);
    sim_story_start(s);
    expect(s, "  10 n1.1 job job=A pending->running\n"
              "  10 n1.1 step job=A step=a pending->ready\n"
              "  10 n1.1 step job=A step=a ready->blocked\n"
              "90010 n1.2 step job=A step=a blocked->completed\n"
              "90010 n1.2 job job=A token=1 running->completed\n");
}

SCENARIO(a_signal_that_comes_early_is_kept, .kinds = "step")
{
    sim_story_run(s, 10);
    sim_story_flow(
        s, "go", "{\"steps\":{\"a\":{\"run\":[\"x\"]},\"b\":{\"needs\":\"a\",\"signal\":\"go\"}}}");
    sim_story_run(s, 10);
    sim_story_ask(s, "signal", "go", "go", "");
    sim_story_run(s, 10);
    assert_int_equal(s->answer, 0);
    sim_story_kill(s);
    sim_story_start(s);
    expect(s, "  10 n1.1 step job=A step=a pending->ready\n"
              "  10 n1.1 step job=A step=a ready->queued\n"
              "  10 n1.1 step job=A step=a queued->running\n"
              "1010 n1.2 step job=A step=a n=1 running->completed\n"
              "1010 n1.2 step job=A step=b pending->ready\n"
              "1010 n1.2 step job=A step=b ready->completed\n");
}

SCENARIO(one_signal_ends_one_step, .kinds = "step job")
{
    sim_story_run(s, 10);
    sim_story_flow(s, "go", "{\"steps\":{\"a\":{\"signal\":\"go\"},\"b\":{\"signal\":\"go\"}}}");
    sim_story_run(s, 10);
    sim_story_skip(s);
    sim_story_ask(s, "signal", "go", "go", "");
    sim_story_run(s, 1000);
    sim_story_ask(s, "signal", "go", "go", "");
    expect(s, "  20 n1.1 step job=A step=a blocked->completed\n"
              "1020 n1.1 step job=A step=b blocked->completed\n"
              "1020 n1.1 job job=A token=1 running->completed\n");
}

SCENARIO(an_approval_that_nobody_gives_is_decided_by_its_timeout, .kinds = "step job")
{
    sim_story_run(s, 10);
    sim_story_flow(s, "ask",
                   "{\"steps\":{\"a\":{\"approval\":{\"message\":\"?\","
                   "\"decisions\":[\"yes\",\"no\"],\"on_timeout\":\"no\"},\"timeout\":\"5s\"}}}");
    sim_story_run(s, 10);
    sim_story_skip(s);
    sim_story_ask(s, "respond", "ask", "a", "maybe");
    sim_story_run(s, 10);
    assert_int_equal(s->answer, GL_E_INVALID);
    expect(s, "5010 n1.1 step job=A step=a blocked->failed\n"
              "5010 n1.1 job job=A token=1 running->failed\n");
    sim_story_ask(s, "respond", "ask", "a", "yes");
    sim_story_run(s, 10);
    assert_int_equal(s->answer, GL_E_STATE);
}

SCENARIO(a_list_is_gone_through_two_at_a_time, .kinds = "step job")
{
    sim_story_run(s, 10);
    sim_story_process(s, "a[1]:attempt:1", 2500, 0);
    sim_story_flow(s, "list",
                   "{\"steps\":{\"a\":{\"run\":[\"x\",\"${job.item}\"],"
                   "\"foreach\":[\"p\",\"q\",\"r\"],\"max_parallel\":2}}}");
    expect(s, "  10 n1.1 job job=A pending->running\n"
              "  10 n1.1 step job=A step=a pending->ready\n"
              "  10 n1.1 step job=A step=a ready->waiting\n"
              "  10 n1.1 step job=A step=a[0] pending->ready\n"
              "  10 n1.1 step job=A step=a[1] pending->ready\n"
              "  10 n1.1 step job=A step=a[0] ready->queued\n"
              "  10 n1.1 step job=A step=a[1] ready->queued\n"
              "  10 n1.1 step job=A step=a[0] queued->running\n"
              "  10 n1.1 step job=A step=a[1] queued->running\n"
              "1010 n1.1 step job=A step=a[0] n=1 running->completed\n"
              "1010 n1.1 step job=A step=a[2] pending->ready\n"
              "1010 n1.1 step job=A step=a[2] ready->queued\n"
              "1010 n1.1 step job=A step=a[2] queued->running\n"
              "2010 n1.1 step job=A step=a[2] n=1 running->completed\n"
              "2510 n1.1 step job=A step=a[1] n=1 running->completed\n"
              "2510 n1.1 step job=A step=a waiting->completed\n"
              "2510 n1.1 job job=A token=1 running->completed\n");
}

SCENARIO(the_first_item_that_fails_fails_the_job, .kinds = "step job")
{
    sim_story_run(s, 10);
    sim_story_process(s, "a[1]:attempt:1", 100, 1);
    sim_story_flow(s, "list",
                   "{\"steps\":{\"a\":{\"run\":[\"x\"],\"foreach\":[1,2,3],"
                   "\"max_parallel\":2}}}");
    sim_story_run(s, 50);
    sim_story_skip(s);
    expect(s, " 110 n1.1 step job=A step=a[1] n=1 running->failed\n"
              " 110 n1.1 step job=A step=a waiting->failed\n"
              " 210 n1.1 step job=A step=a[0] n=1 running->failed\n"
              " 210 n1.1 job job=A token=1 running->failed\n");
}

/* b was skipped by its condition, and is so again: that is no reason to run c once more. */
SCENARIO(a_retry_runs_what_failed_and_nothing_else, .kinds = "step job")
{
    sim_story_run(s, 10);
    sim_story_process(s, "d", 100, 1);
    sim_story_flow(s, "all",
                   "{\"steps\":{\"a\":{\"run\":[\"x\"]},"
                   "\"b\":{\"needs\":\"a\",\"run\":[\"x\"],\"when\":\"${steps.a.exit_code} != 0\"},"
                   "\"c\":{\"needs\":[\"a\",\"b\"],\"run\":[\"x\"],\"trigger_rule\":\"all_done\"},"
                   "\"d\":{\"needs\":\"c\",\"run\":[\"x\"]}}}");
    sim_story_run(s, 5000);
    sim_story_skip(s);
    sim_story_ask(s, "retry", "all", "", "");
    expect(s, "5010 n1.1 job job=B pending->running\n"
              "5010 n1.1 step job=B step=a pending->ready\n"
              "5010 n1.1 step job=B step=a ready->completed\n"
              "5010 n1.1 step job=B step=b pending->ready\n"
              "5010 n1.1 step job=B step=b ready->skipped\n"
              "5010 n1.1 step job=B step=c pending->ready\n"
              "5010 n1.1 step job=B step=c ready->completed\n"
              "5010 n1.1 step job=B step=d pending->ready\n"
              "5010 n1.1 step job=B step=d ready->queued\n"
              "5010 n1.1 step job=B step=d queued->running\n"
              "5110 n1.1 step job=B step=d n=1 running->failed\n"
              "5110 n1.1 job job=B token=1 running->failed\n");
    assert_int_equal(s->at->keeper.ledger_n, 4); /* a, c, d, and d again */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sleep_outlives_the_node),
        cmocka_unit_test(a_signal_that_comes_early_is_kept),
        cmocka_unit_test(one_signal_ends_one_step),
        cmocka_unit_test(an_approval_that_nobody_gives_is_decided_by_its_timeout),
        cmocka_unit_test(a_list_is_gone_through_two_at_a_time),
        cmocka_unit_test(the_first_item_that_fails_fails_the_job),
        cmocka_unit_test(a_retry_runs_what_failed_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
