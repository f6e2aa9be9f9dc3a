/* test_stories.c - what happens to a job, told line by line. */
#include "node/node_state.h"
#include "scenario/scenario.h"

SCENARIO(a_job_runs_to_its_end)
{
    sim_story_run(s, 10);
    sim_story_submit(s, "build", "a b:a", 1);
    expect(s, "  10 n1.1 job job=A pending->running\n"
              "  10 n1.1 step job=A step=a pending->ready\n"
              "  10 n1.1 step job=A step=a ready->queued\n"
              "  10 n1.1 step job=A step=a queued->running\n"
              "  10 n1.1 exec job=A step=a n=1 start\n"
              "  10 n1.1 owner job=A token=1 taken\n"
              "1010 n1.1 exec job=A step=a token=1 n=1 ended\n"
              "1010 n1.1 step job=A step=a n=1 running->completed\n"
              "1010 n1.1 step job=A step=b pending->ready\n"
              "1010 n1.1 step job=A step=b ready->queued\n"
              "1010 n1.1 step job=A step=b queued->running\n"
              "1010 n1.1 exec job=A step=b token=1 n=1 start\n"
              "2010 n1.1 exec job=A step=b token=1 n=1 ended\n"
              "2010 n1.1 step job=A step=b n=1 running->completed\n"
              "2010 n1.1 job job=A token=1 running->completed\n");
    assert_int_equal(s->answer, 0);
}

SCENARIO(a_caller_hears_ok_only_after_the_commit, .store_ms = 40)
{
    sim_story_run(s, 1000);
    sim_story_submit(s, "build", "a", 1);
    while (s->answer == 1) {
        assert_null(sim_disk_peek(&s->disk, SIM_CONTEXT, GL_S("run"), GL_S("build")));
        uint64_t before = s->disk.commits_n;
        sim_story_run(s, 1);
        if (s->disk.commits_n != before) {
            break;
        }
    }
    assert_non_null(sim_disk_peek(&s->disk, SIM_CONTEXT, GL_S("run"), GL_S("build")));
    sim_story_run(s, 100);
    assert_int_equal(s->answer, 0);
}

/* Its step goes on without the node and is not run again: one process, one result. */
SCENARIO(a_job_outlives_the_node_that_owned_it, .kinds = "owner step job sim exec")
{
    sim_story_run(s, 10);
    sim_story_submit(s, "build", "a", 1);
    sim_story_run(s, 500);
    sim_story_skip(s);
    sim_story_kill(s);
    sim_story_run(s, 1000);
    sim_story_start(s);
    expect(s, "1010 sim exec job=A step=a token=1 n=1 process ended\n"
              "1510 n1.2 exec job=A step=a token=1 n=1 ended\n"
              "1510 n1.2 step job=A step=a n=1 running->completed\n"
              "1510 n1.2 job job=A token=1 running->completed\n"
              "1510 n1.2 owner job=A token=2 taken\n");
    assert_int_equal(s->at->keeper.ledger_n, 1);
}

SCENARIO(a_failed_try_is_repeated_after_its_backoff, .kinds = "step job")
{
    sim_story_run(s, 10);
    sim_story_process(s, "a:attempt:1", 100, 1);
    sim_story_submit(s, "build", "a", 2);
    expect(s, "  10 n1.1 job job=A pending->running\n"
              "  10 n1.1 step job=A step=a pending->ready\n"
              "  10 n1.1 step job=A step=a ready->queued\n"
              "  10 n1.1 step job=A step=a queued->running\n"
              " 110 n1.1 step job=A step=a n=1 running->retry_wait\n"
              "1110 n1.1 step job=A step=a n=1 retry_wait->ready\n"
              "1110 n1.1 step job=A step=a n=1 ready->queued\n"
              "1110 n1.1 step job=A step=a n=1 queued->running\n"
              "2110 n1.1 step job=A step=a n=2 running->completed\n"
              "2110 n1.1 job job=A token=1 running->completed\n");
}

SCENARIO(a_backoff_outlives_the_node, .kinds = "step job")
{
    sim_story_run(s, 10);
    sim_story_process(s, "a:attempt:1", 100, 1);
    sim_story_submit(s, "build", "a", 2);
    sim_story_run(s, 500);
    sim_story_skip(s);
    sim_story_kill(s);
    sim_story_start(s);
    expect(s, "1110 n1.2 step job=A step=a n=1 retry_wait->ready\n"
              "1110 n1.2 step job=A step=a n=1 ready->queued\n"
              "1110 n1.2 step job=A step=a n=1 queued->running\n"
              "2110 n1.2 step job=A step=a n=2 running->completed\n"
              "2110 n1.2 job job=A token=2 running->completed\n");
}

SCENARIO(the_last_failure_fails_the_job, .kinds = "step job")
{
    sim_story_run(s, 10);
    sim_story_process(s, "a", 100, 1);
    sim_story_submit(s, "build", "a b:a", 1);
    expect(s, "  10 n1.1 job job=A pending->running\n"
              "  10 n1.1 step job=A step=a pending->ready\n"
              "  10 n1.1 step job=A step=a ready->queued\n"
              "  10 n1.1 step job=A step=a queued->running\n"
              " 110 n1.1 step job=A step=a n=1 running->failed\n"
              " 110 n1.1 job job=A token=1 running->failed\n");
}

SCENARIO(unsafe_work_that_was_lost_waits_for_a_person, .kinds = "step job")
{
    sim_story_run(s, 10);
    sim_story_submit(s, "order", "pay!", 3);
    sim_story_run(s, 500);
    sim_story_skip(s);
    sim_keeper_crash(&s->at->keeper, 100);
    expect(s, " 660 n1.1 step job=A step=pay n=1 running->blocked\n"
              " 660 n1.1 job job=A token=1 running->paused\n");
    sim_story_run(s, 60000);
    sim_story_ask(s, "respond", "order", "pay", "rerun");
    expect(s, "60660 n1.1 job job=A token=1 paused->running\n"
              "60660 n1.1 step job=A step=pay n=1 blocked->ready\n"
              "60660 n1.1 step job=A step=pay n=1 ready->queued\n"
              "60660 n1.1 step job=A step=pay n=1 queued->running\n"
              "61660 n1.1 step job=A step=pay n=2 running->completed\n"
              "61660 n1.1 job job=A token=1 running->completed\n");
}

SCENARIO(unmarked_work_that_was_lost_is_run_again, .kinds = "step job")
{
    sim_story_run(s, 10);
    sim_story_submit(s, "build", "a", 1);
    sim_story_run(s, 500);
    sim_story_skip(s);
    sim_keeper_crash(&s->at->keeper, 100);
    expect(s, " 660 n1.1 step job=A step=a n=1 running->ready\n"
              " 660 n1.1 step job=A step=a n=1 ready->queued\n"
              " 660 n1.1 step job=A step=a n=1 queued->running\n"
              "1660 n1.1 step job=A step=a n=2 running->completed\n"
              "1660 n1.1 job job=A token=1 running->completed\n");
}

SCENARIO(a_sleeper_that_wakes_up_can_do_no_harm, .kinds = "owner step job node sim")
{
    sim_story_run(s, 10);
    sim_story_submit(s, "build", "a b:a", 1);
    sim_story_run(s, 500);
    sim_story_sleep(s);
    sim_story_start(s);
    sim_story_run(s, 1);
    sim_story_skip(s);
    expect(s, "1010 n1.2 step job=A step=a n=1 running->completed\n"
              "1010 n1.2 step job=A step=b pending->ready\n"
              "1010 n1.2 step job=A step=b ready->queued\n"
              "1010 n1.2 step job=A step=b queued->running\n");
    sim_story_wake(s);
    expect(s, "1010 sim node wakes up n1.1->\n"
              "1010 n1.1 node executor down\n"
              "2010 n1.2 step job=A step=b n=1 running->completed\n"
              "2010 n1.2 job job=A token=2 running->completed\n");
    sim_story_run(s, 10000);
    assert_true(s->at->sleeper->lost);
    assert_int_equal(s->at->keeper.ledger_n, 2);
}

/* Its successor may have removed what the job would need, and does not look for it: so it is not
 * accepted. */
SCENARIO(a_sleeper_that_wakes_up_takes_no_jobs, .slots = 1, .kinds = "job")
{
    sim_story_process(s, "long", 60000, 0);
    sim_story_run(s, 1000);
    sim_story_submit(s, "first", "long", 1);
    sim_story_run(s, 1000);
    sim_story_sleep(s);
    sim_story_start(s);
    sim_story_run(s, 10000);
    struct sim_node *successor = s->at->node;
    sim_story_wake(s);
    s->at->node = s->at->sleeper;
    sim_story_submit(s, "second", "a", 1);
    s->at->node = successor;
    expect(s, " 1000 n1.1 job job=A pending->running\n"
              "12000 n1.1 job job=B pending->running\n"
              "61000 n1.2 job job=A token=2 running->completed\n");
    assert_int_equal(s->answer, GL_E_UNAVAILABLE);
    assert_null(sim_facts_job(&s->checks.facts, gl_str_of(s->jobs[1])));
}

SCENARIO(a_paused_job_stops_and_goes_on_where_it_was, .kinds = "step job")
{
    sim_story_run(s, 10);
    sim_story_submit(s, "build", "a b:a", 1);
    sim_story_run(s, 500);
    sim_story_skip(s);
    sim_story_ask(s, "pause", "build", "", "");
    expect(s, " 510 n1.1 job job=A token=1 running->pausing\n"
              " 610 n1.1 step job=A step=a n=1 running->ready\n"
              " 610 n1.1 job job=A token=1 pausing->paused\n");
    sim_story_run(s, 60000);
    sim_story_ask(s, "resume", "build", "", "");
    expect(s, "60610 n1.1 job job=A token=1 paused->running\n"
              "60610 n1.1 step job=A step=a n=1 ready->queued\n"
              "60610 n1.1 step job=A step=a n=1 queued->running\n"
              "61610 n1.1 step job=A step=a n=2 running->completed\n");
}

SCENARIO(a_pause_lets_unsafe_work_end, .kinds = "step job")
{
    sim_story_run(s, 10);
    sim_story_submit(s, "order", "pay! b:pay", 1);
    sim_story_run(s, 500);
    sim_story_skip(s);
    sim_story_ask(s, "pause", "order", "", "");
    expect(s, " 510 n1.1 job job=A token=1 running->pausing\n"
              "1010 n1.1 step job=A step=pay n=1 running->completed\n"
              "1010 n1.1 step job=A step=b pending->ready\n"
              "1010 n1.1 job job=A token=1 pausing->paused\n");
}

SCENARIO(a_cancelled_job_ends_when_its_last_process_has, .kinds = "step job")
{
    sim_story_run(s, 10);
    sim_story_submit(s, "build", "a b:a", 1);
    sim_story_run(s, 500);
    sim_story_skip(s);
    sim_story_ask(s, "cancel", "build", "", "");
    expect(s, " 510 n1.1 job job=A token=1 running->cancelling\n"
              " 610 n1.1 step job=A step=a n=1 running->failed\n"
              " 610 n1.1 job job=A token=1 cancelling->cancelled\n");
    sim_story_ask(s, "resume", "build", "", "");
    sim_story_run(s, 10);
    assert_int_equal(s->answer, GL_E_STATE);
}

SCENARIO(a_step_waits_for_its_slot_without_a_process, .slots = 1, .kinds = "step")
{
    sim_story_run(s, 10);
    sim_story_submit(s, "one", "a", 1);
    sim_story_submit(s, "two", "b", 1);
    expect(s, "  10 n1.1 step job=A step=a pending->ready\n"
              "  10 n1.1 step job=A step=a ready->queued\n"
              "  10 n1.1 step job=A step=a queued->running\n"
              "  10 n1.1 step job=B step=b pending->ready\n"
              "  10 n1.1 step job=B step=b ready->queued\n");
    sim_story_run(s, 500);
    assert_int_equal(s->at->keeper.running_n, 1);
    expect(s, "1010 n1.1 step job=A step=a n=1 running->completed\n"
              "1010 n1.1 step job=B step=b queued->running\n"
              "2010 n1.1 step job=B step=b n=1 running->completed\n");
}

SCENARIO(a_run_id_is_one_job_also_when_that_has_ended, .kinds = "job")
{
    sim_story_run(s, 10);
    sim_story_submit(s, "build", "a", 1);
    sim_story_run(s, 10);
    sim_story_submit(s, "build", "a", 1);
    sim_story_run(s, 10);
    assert_int_equal(s->answer, 0);
    sim_story_submit(s, "build", "b", 1);
    sim_story_run(s, 10);
    assert_int_equal(s->answer, GL_E_EXISTS);
    sim_story_run(s, 2000);
    sim_story_submit(s, "build", "a", 1);
    sim_story_run(s, 10);
    assert_int_equal(s->answer, 0);
    assert_int_equal(gl_map_count(&s->checks.facts.jobs), 1);
}

static uint32_t inside_n;

/* What an effect does that fails at once, while the core is still in the step that asked for it. */
static void feed_inside(void *owner, const struct gl_event *ev)
{
    struct sim_node *n = owner;
    struct gl_event tick = {.type = GL_EV_TICK};

    if (ev->type != GL_EV_TICK) {
        inside_n++;
        gl_node_feed(n->node, &tick);
    }
}

SCENARIO(an_event_from_inside_a_step_is_handled_after_it)
{
    sim_story_run(s, 10);
    inside_n = 0;
    s->machines[0].node->node->config.on_event = feed_inside;
    uint64_t before = metric(s, "glia_core_events_total");
    sim_story_submit(s, "build", "a", 1);
    sim_story_run(s, 3000);
    assert_true(inside_n > 0);
    assert_true(metric(s, "glia_core_events_total") >= before + 2 * inside_n);
    sim_story_ask(s, "status", "build", "", "");
    sim_story_run(s, 1000);
    assert_non_null(strstr(s->body.p, "completed"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_runs_to_its_end),
        cmocka_unit_test(an_event_from_inside_a_step_is_handled_after_it),
        cmocka_unit_test(a_caller_hears_ok_only_after_the_commit),
        cmocka_unit_test(a_job_outlives_the_node_that_owned_it),
        cmocka_unit_test(a_failed_try_is_repeated_after_its_backoff),
        cmocka_unit_test(a_backoff_outlives_the_node),
        cmocka_unit_test(the_last_failure_fails_the_job),
        cmocka_unit_test(unsafe_work_that_was_lost_waits_for_a_person),
        cmocka_unit_test(unmarked_work_that_was_lost_is_run_again),
        cmocka_unit_test(a_sleeper_that_wakes_up_can_do_no_harm),
        cmocka_unit_test(a_sleeper_that_wakes_up_takes_no_jobs),
        cmocka_unit_test(a_paused_job_stops_and_goes_on_where_it_was),
        cmocka_unit_test(a_pause_lets_unsafe_work_end),
        cmocka_unit_test(a_cancelled_job_ends_when_its_last_process_has),
        cmocka_unit_test(a_step_waits_for_its_slot_without_a_process),
        cmocka_unit_test(a_run_id_is_one_job_also_when_that_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
