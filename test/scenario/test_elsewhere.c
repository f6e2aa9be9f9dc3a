/* test_elsewhere.c - attempts that run on another node than the owner of their job: how they get
 * there, and what becomes of them when one of the two dies, restarts or cannot reach the store.
 * Each machine has one slot; sessions last ten seconds, the grace of orphans, too. */
#include "scenario/scenario.h"

/* The steps `a` and `b` of a job at the first machine: `a` runs there, `b` on the second one. */
static void begin(struct sim_story *s, const char *flow, gl_ms lasts_ms)
{
    sim_story_run(s, 12000);
    sim_story_process(s, "a", lasts_ms, 0);
    sim_story_process(s, "b", lasts_ms, 0);
    sim_story_submit(s, "build", flow, 3);
    sim_story_run(s, 1000);
    assert_int_equal(s->answer, 0);
    assert_int_equal(sim_story_ran(s), 2);
    sim_story_skip(s);
}

SCENARIO(a_step_without_a_free_slot_runs_on_another_node, .machines = 2, .slots = 1,
         .kinds = "exec job")
{
    sim_story_run(s, 12000);
    sim_story_submit(s, "build", "a b c:a,b", 1);
    expect(s, "12000 n1.1 job job=A pending->running\n"
              "12000 n1.1 exec job=A step=a n=1 start\n"
              "12000 n1.1 exec job=A step=b n=1 offered\n"
              "12000 n2.1 exec job=A step=b token=1 n=1 start for another node\n"
              "13000 n1.1 exec job=A step=a token=1 n=1 ended\n"
              "13000 n2.1 exec job=A step=b token=1 n=1 ended for another node\n"
              "13000 n1.1 exec job=A step=b token=1 n=1 ended\n"
              "13000 n1.1 exec job=A step=c token=1 n=1 start\n"
              "14000 n1.1 exec job=A step=c token=1 n=1 ended\n"
              "14000 n1.1 job job=A token=1 running->completed\n");
}

SCENARIO(a_step_runs_where_its_pool_is, .machines = 2, .slots = 1, .gpu_at = 2, .is_split = true,
         .kinds = "step job")
{
    static const char flow[] =
        "{\"name\":\"f\",\"steps\":{\"a\":{\"run\":[\"x\"]},"
        "\"g\":{\"run\":[\"x\"],\"pool\":\"gpu\"},\"z\":{\"run\":[\"x\"],\"needs\":[\"g\"]}}}";
    sim_story_run(s, 12000);
    sim_story_flow(s, "build", flow);
    expect(s, "12000 n1.1 job job=A pending->running\n"
              "12000 n1.1 step job=A step=a pending->ready\n"
              "12000 n1.1 step job=A step=g pending->ready\n"
              "12000 n1.1 step job=A step=a ready->queued\n"
              "12000 n1.1 step job=A step=g ready->queued\n"
              "12000 n1.1 step job=A step=a queued->running\n"
              "12000 n1.1 step job=A step=g queued->running\n"
              "13000 n1.1 step job=A step=a n=1 running->completed\n"
              "13000 n1.1 step job=A step=g n=1 running->completed\n"
              "13000 n1.1 step job=A step=z pending->ready\n"
              "13000 n1.1 step job=A step=z ready->queued\n"
              "13000 n1.1 step job=A step=z queued->running\n"
              "14000 n1.1 step job=A step=z n=1 running->completed\n"
              "14000 n1.1 job job=A token=1 running->completed\n");
}

SCENARIO(idempotent_work_of_a_dead_executor_starts_again_at_once, .machines = 2, .slots = 1,
         .kinds = "step exec job")
{
    begin(s, "a b?", 30000);
    sim_story_at(s, 2);
    sim_story_kill(s);
    expect(s, "20048 n1.1 step job=A step=b n=1 running->ready\n"
              "20048 n1.1 step job=A step=b n=1 ready->queued\n"
              "42000 n1.1 exec job=A step=a token=1 n=1 ended\n"
              "42000 n1.1 step job=A step=a n=1 running->completed\n"
              "42000 n1.1 step job=A step=b n=1 queued->running\n"
              "42000 n1.1 exec job=A step=b token=1 n=2 start\n"
              "72000 n1.1 exec job=A step=b token=1 n=2 ended\n"
              "72000 n1.1 step job=A step=b n=2 running->completed\n"
              "72000 n1.1 job job=A token=1 running->completed\n");
}

SCENARIO(unmarked_work_of_a_dead_executor_waits_for_its_end, .machines = 2, .slots = 1,
         .kinds = "step exec job")
{
    begin(s, "a b", 40000);
    sim_story_at(s, 2);
    sim_story_kill(s);
    expect(s, "20048 n1.1 step job=A step=b n=1 running->retry_wait\n"
              "30048 n1.1 step job=A step=b n=1 retry_wait->ready\n"
              "30048 n1.1 step job=A step=b n=1 ready->queued\n"
              "52000 n1.1 exec job=A step=a token=1 n=1 ended\n"
              "52000 n1.1 step job=A step=a n=1 running->completed\n"
              "52000 n1.1 step job=A step=b n=1 queued->running\n"
              "52000 n1.1 exec job=A step=b token=1 n=2 start\n"
              "92000 n1.1 exec job=A step=b token=1 n=2 ended\n"
              "92000 n1.1 step job=A step=b n=2 running->completed\n"
              "92000 n1.1 job job=A token=1 running->completed\n");
}

SCENARIO(unsafe_work_of_a_dead_executor_waits_for_a_person, .machines = 2, .slots = 1,
         .kinds = "step job")
{
    begin(s, "a b!", 30000);
    sim_story_at(s, 2);
    sim_story_kill(s);
    sim_story_run(s, 60000);
    sim_story_at(s, 1);
    sim_story_ask(s, "respond", "build", "b", "done");
    expect(s, "20048 n1.1 step job=A step=b n=1 running->blocked\n"
              "42000 n1.1 step job=A step=a n=1 running->completed\n"
              "42000 n1.1 job job=A token=1 running->paused\n"
              "73000 n1.1 job job=A token=1 paused->running\n"
              "73000 n1.1 step job=A step=b n=1 blocked->completed\n"
              "73000 n1.1 job job=A token=1 running->completed\n");
    assert_int_equal(sim_story_ran(s), 2);
}

SCENARIO(an_executor_that_restarts_takes_its_work_up_again, .machines = 2, .slots = 1,
         .kinds = "step exec job sim")
{
    begin(s, "a b!", 20000);
    sim_story_at(s, 2);
    sim_story_kill(s);
    sim_story_run(s, 5000);
    sim_story_start(s);
    expect(s, "32000 sim exec job=A step=a token=1 n=1 process ended\n"
              "32000 sim exec job=A step=b token=1 n=1 process ended\n"
              "32000 n1.1 exec job=A step=a token=1 n=1 ended\n"
              "32000 n1.1 step job=A step=a n=1 running->completed\n"
              "32000 n2.2 exec job=A step=b token=1 n=1 ended for another node\n"
              "32000 n1.1 exec job=A step=b token=1 n=1 ended\n"
              "32000 n1.1 step job=A step=b n=1 running->completed\n"
              "32000 n1.1 job job=A token=1 running->completed\n");
    assert_int_equal(sim_story_ran(s), 2);
}

SCENARIO(what_runs_elsewhere_goes_on_when_the_owner_dies, .machines = 3, .slots = 1,
         .kinds = "step exec job owner")
{
    begin(s, "a? b!", 30000);
    sim_story_kill(s);
    expect(s, "20048 n2.1 step job=A step=a n=1 running->ready\n"
              "20048 n2.1 step job=A step=a n=1 ready->queued\n"
              "20048 n2.1 step job=A step=a n=1 queued->running\n"
              "20048 n2.1 exec job=A step=a token=1 n=2 offered\n"
              "20048 n2.1 owner job=A token=2 taken\n"
              "20048 n3.1 step job=A step=a n=1 running->ready\n"
              "20048 n3.1 step job=A step=a n=1 ready->queued\n"
              "20048 n3.1 step job=A step=a n=1 queued->running\n"
              "20048 n3.1 exec job=A step=a token=1 n=2 start\n"
              "20048 n3.1 owner job=A token=2 taken\n"
              "20048 n3.1 exec job=A step=a token=2 n=2 start for another node\n"
              "42000 n2.1 exec job=A step=b token=1 n=1 ended for another node\n"
              "42048 n2.1 exec job=A step=b token=2 n=1 ended\n"
              "42048 n2.1 step job=A step=b n=1 running->completed\n"
              "50048 n3.1 exec job=A step=a token=2 n=2 ended for another node\n"
              "50048 n2.1 exec job=A step=a token=2 n=2 ended\n"
              "50048 n2.1 step job=A step=a n=2 running->completed\n"
              "50048 n2.1 job job=A token=2 running->completed\n");
}

SCENARIO(a_result_without_an_owner_is_kept_for_the_next_one, .machines = 2, .slots = 1,
         .kinds = "step exec job owner")
{
    begin(s, "a? b!", 3000);
    sim_story_kill(s);
    expect(s, "15000 n2.1 exec job=A step=b token=1 n=1 ended for another node\n"
              "20048 n2.1 step job=A step=a n=1 running->ready\n"
              "20048 n2.1 step job=A step=a n=1 ready->queued\n"
              "20048 n2.1 step job=A step=a n=1 queued->running\n"
              "20048 n2.1 exec job=A step=a token=1 n=2 start\n"
              "20048 n2.1 owner job=A token=2 taken\n"
              "20048 n2.1 exec job=A step=b token=2 n=1 ended\n"
              "20048 n2.1 step job=A step=b n=1 running->completed\n"
              "23048 n2.1 exec job=A step=a token=2 n=2 ended\n"
              "23048 n2.1 step job=A step=a n=2 running->completed\n"
              "23048 n2.1 job job=A token=2 running->completed\n");
}

SCENARIO(owner_and_executor_die, .machines = 3, .slots = 1, .kinds = "step job owner")
{
    begin(s, "a? b?", 30000);
    sim_story_kill(s);
    sim_story_at(s, 2);
    sim_story_kill(s);
    expect(s, "20048 n3.1 step job=A step=a n=1 running->ready\n"
              "20048 n3.1 step job=A step=a n=1 ready->queued\n"
              "20048 n3.1 step job=A step=a n=1 queued->running\n"
              "20048 n3.1 owner job=A token=2 taken\n"
              "20048 n3.1 step job=A step=b n=1 running->ready\n"
              "20048 n3.1 step job=A step=b n=1 ready->queued\n"
              "50048 n3.1 step job=A step=a n=2 running->completed\n"
              "50048 n3.1 step job=A step=b n=1 queued->running\n"
              "80048 n3.1 step job=A step=b n=2 running->completed\n"
              "80048 n3.1 job job=A token=2 running->completed\n");
}

SCENARIO(a_cancel_reaches_what_runs_elsewhere, .machines = 2, .slots = 1, .kinds = "exec job sim")
{
    begin(s, "a b", 60000);
    sim_story_ask(s, "cancel", "build", "", "");
    expect(s, "13000 n1.1 job job=A token=1 running->cancelling\n"
              "13100 sim exec job=A step=a token=1 n=1 process ended\n"
              "13100 sim exec job=A step=b token=1 n=1 process ended\n"
              "13100 n1.1 exec job=A step=a token=1 n=1 ended\n"
              "13100 n2.1 exec job=A step=b token=1 n=1 ended for another node\n"
              "13100 n1.1 exec job=A step=b token=1 n=1 ended\n"
              "13100 n1.1 job job=A token=1 cancelling->cancelled\n");
}

SCENARIO(an_offer_to_a_node_that_cannot_take_it_is_withdrawn, .machines = 2, .slots = 1,
         .kinds = "step exec job")
{
    sim_story_run(s, 12000);
    sim_story_at(s, 2);
    sim_story_cut(s, 60000);
    sim_story_at(s, 1);
    sim_story_process(s, "a", 30000, 0);
    sim_story_submit(s, "build", "a b", 1);
    expect(s, "12000 n1.1 job job=A pending->running\n"
              "12000 n1.1 step job=A step=a pending->ready\n"
              "12000 n1.1 step job=A step=b pending->ready\n"
              "12000 n1.1 step job=A step=a ready->queued\n"
              "12000 n1.1 step job=A step=b ready->queued\n"
              "12000 n1.1 step job=A step=a queued->running\n"
              "12000 n1.1 exec job=A step=a n=1 start\n"
              "12000 n1.1 step job=A step=b queued->running\n"
              "12000 n1.1 exec job=A step=b n=1 offered\n"
              "21000 n1.1 step job=A step=b n=1 running->ready\n"
              "21000 n1.1 step job=A step=b n=1 ready->queued\n"
              "42000 n1.1 exec job=A step=a token=1 n=1 ended\n"
              "42000 n1.1 step job=A step=a n=1 running->completed\n"
              "42000 n1.1 step job=A step=b n=1 queued->running\n"
              "42000 n1.1 exec job=A step=b token=1 n=2 start\n"
              "43000 n1.1 exec job=A step=b token=1 n=2 ended\n"
              "43000 n1.1 step job=A step=b n=2 running->completed\n"
              "43000 n1.1 job job=A token=1 running->completed\n");
}

SCENARIO(an_executor_cut_off_from_the_store_does_not_vouch_for_its_work, .machines = 2, .slots = 1,
         .kinds = "step exec job sim")
{
    begin(s, "a b", 50000);
    sim_story_at(s, 2);
    sim_story_cut(s, 60000);
    expect(s, "20048 n1.1 step job=A step=b n=1 running->retry_wait\n"
              "26399 sim exec n=7500 an orphan is ended n2->\n"
              "26499 sim exec job=A step=b token=1 n=1 process ended\n"
              "26499 n2.1 exec job=A step=b token=1 n=1 ended for another node\n"
              "30048 n1.1 step job=A step=b n=1 retry_wait->ready\n"
              "30048 n1.1 step job=A step=b n=1 ready->queued\n"
              "62000 sim exec job=A step=a token=1 n=1 process ended\n"
              "62000 n1.1 exec job=A step=a token=1 n=1 ended\n"
              "62000 n1.1 step job=A step=a n=1 running->completed\n"
              "62000 n1.1 step job=A step=b n=1 queued->running\n"
              "62000 n1.1 exec job=A step=b token=1 n=2 start\n"
              "62000 sim exec job=A step=b token=1 n=2 process started\n"
              "112000 sim exec job=A step=b token=1 n=2 process ended\n"
              "112000 n1.1 exec job=A step=b token=1 n=2 ended\n"
              "112000 n1.1 step job=A step=b n=2 running->completed\n"
              "112000 n1.1 job job=A token=1 running->completed\n");
}

SCENARIO(a_failure_elsewhere_is_tried_again, .machines = 2, .slots = 1, .kinds = "step exec job")
{
    sim_story_run(s, 12000);
    sim_story_process(s, "a", 30000, 0);
    sim_story_process(s, "b:attempt:1", 1000, 7);
    sim_story_submit(s, "build", "a b", 2);
    expect(s, "12000 n1.1 job job=A pending->running\n"
              "12000 n1.1 step job=A step=a pending->ready\n"
              "12000 n1.1 step job=A step=b pending->ready\n"
              "12000 n1.1 step job=A step=a ready->queued\n"
              "12000 n1.1 step job=A step=b ready->queued\n"
              "12000 n1.1 step job=A step=a queued->running\n"
              "12000 n1.1 exec job=A step=a n=1 start\n"
              "12000 n1.1 step job=A step=b queued->running\n"
              "12000 n1.1 exec job=A step=b n=1 offered\n"
              "12000 n2.1 exec job=A step=b token=1 n=1 start for another node\n"
              "13000 n2.1 exec job=A step=b token=1 n=1 ended for another node\n"
              "13000 n1.1 exec job=A step=b token=1 n=1 ended\n"
              "13000 n1.1 step job=A step=b n=1 running->retry_wait\n"
              "14000 n1.1 step job=A step=b n=1 retry_wait->ready\n"
              "14000 n1.1 step job=A step=b n=1 ready->queued\n"
              "14000 n1.1 step job=A step=b n=1 queued->running\n"
              "14000 n1.1 exec job=A step=b token=1 n=2 offered\n"
              "14000 n2.1 exec job=A step=b token=1 n=2 start for another node\n"
              "15000 n2.1 exec job=A step=b token=1 n=2 ended for another node\n"
              "15000 n1.1 exec job=A step=b token=1 n=2 ended\n"
              "15000 n1.1 step job=A step=b n=2 running->completed\n"
              "42000 n1.1 exec job=A step=a token=1 n=1 ended\n"
              "42000 n1.1 step job=A step=a n=1 running->completed\n"
              "42000 n1.1 job job=A token=1 running->completed\n");
}

/* The record of the attempt of `b` gets damaged. */
static void damage(struct sim_story *s)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};

    (void)sim_disk_spoil(&s->disk, SIM_CONTEXT, GL_S("taken"),
                         gl_str_fmt(&a, "%s/b:attempt:1", s->jobs[0]), false);
}

SCENARIO(an_executor_writes_its_damaged_record_again, .machines = 2, .slots = 1,
         .kinds = "exec job sim")
{
    begin(s, "a b!", 20000);
    damage(s);
    expect(s, "32000 sim exec job=A step=a token=1 n=1 process ended\n"
              "32000 sim exec job=A step=b token=1 n=1 process ended\n"
              "32000 n1.1 exec job=A step=a token=1 n=1 ended\n"
              "32000 n2.1 exec job=A step=b token=1 n=1 ended for another node\n"
              "32000 n1.1 exec job=A step=b token=1 n=1 ended\n"
              "32000 n1.1 job job=A token=1 running->completed\n");
    assert_int_equal(sim_story_ran(s), 2);
}

SCENARIO(a_damaged_record_without_its_node_holds_no_job, .machines = 2, .slots = 1,
         .kinds = "step exec job sim")
{
    begin(s, "a b?", 120000);
    sim_story_at(s, 2);
    sim_story_kill(s);
    damage(s);
    sim_story_start(s);
    expect(s, "13001 sim exec job=A step=b token=1 n=1 process ended\n"
              "48332 n1.1 step job=A step=b n=1 running->ready\n"
              "48332 n1.1 step job=A step=b n=1 ready->queued\n"
              "48332 n1.1 step job=A step=b n=1 queued->running\n"
              "48332 n1.1 exec job=A step=b token=1 n=2 offered\n"
              "48332 n2.2 exec job=A step=b token=1 n=2 start for another node\n"
              "48332 sim exec job=A step=b token=1 n=2 process started\n"
              "132000 sim exec job=A step=a token=1 n=1 process ended\n"
              "132000 n1.1 exec job=A step=a token=1 n=1 ended\n"
              "132000 n1.1 step job=A step=a n=1 running->completed\n"
              "168332 sim exec job=A step=b token=1 n=2 process ended\n"
              "168332 n2.2 exec job=A step=b token=1 n=2 ended for another node\n"
              "168332 n1.1 exec job=A step=b token=1 n=2 ended\n"
              "168332 n1.1 step job=A step=b n=2 running->completed\n"
              "168332 n1.1 job job=A token=1 running->completed\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_without_a_free_slot_runs_on_another_node),
        cmocka_unit_test(a_step_runs_where_its_pool_is),
        cmocka_unit_test(idempotent_work_of_a_dead_executor_starts_again_at_once),
        cmocka_unit_test(unmarked_work_of_a_dead_executor_waits_for_its_end),
        cmocka_unit_test(unsafe_work_of_a_dead_executor_waits_for_a_person),
        cmocka_unit_test(an_executor_that_restarts_takes_its_work_up_again),
        cmocka_unit_test(what_runs_elsewhere_goes_on_when_the_owner_dies),
        cmocka_unit_test(a_result_without_an_owner_is_kept_for_the_next_one),
        cmocka_unit_test(owner_and_executor_die),
        cmocka_unit_test(a_cancel_reaches_what_runs_elsewhere),
        cmocka_unit_test(an_offer_to_a_node_that_cannot_take_it_is_withdrawn),
        cmocka_unit_test(an_executor_cut_off_from_the_store_does_not_vouch_for_its_work),
        cmocka_unit_test(a_failure_elsewhere_is_tried_again),
        cmocka_unit_test(an_executor_writes_its_damaged_record_again),
        cmocka_unit_test(a_damaged_record_without_its_node_holds_no_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
