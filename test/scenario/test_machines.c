/* test_machines.c - several machines on one store: what becomes of a job when one of them dies,
 * stands still, or cannot reach the store. Sessions last ten seconds, the grace of orphans, too. */
#include <stdio.h>

#include "scenario/scenario.h"

/* A job whose step `a` runs for so long, at the first machine. */
static void begin(struct sim_story *s, const char *flow, gl_ms lasts_ms)
{
    sim_story_run(s, 1000);
    sim_story_process(s, "a", lasts_ms, 0);
    sim_story_submit(s, "build", flow, 1);
    sim_story_run(s, 1000);
    assert_int_equal(s->answer, 0);
    assert_int_equal(sim_story_ran(s), 1);
    sim_story_skip(s);
}

SCENARIO(idempotent_work_of_a_dead_node_starts_again_at_once, .machines = 2,
         .kinds = "owner exec sim")
{
    begin(s, "a?", 60000);
    sim_story_kill(s);
    expect(s, " 8500 sim exec n=7500 an orphan is ended n1->\n"
              " 8600 sim exec job=A step=a token=1 n=1 process ended\n"
              "10049 n2.1 exec job=A step=a token=1 n=2 start\n"
              "10049 n2.1 owner job=A token=2 taken\n"
              "10049 sim exec job=A step=a token=2 n=2 process started\n"
              "70049 sim exec job=A step=a token=2 n=2 process ended\n"
              "70049 n2.1 exec job=A step=a token=2 n=2 ended\n");
}

/* Not before the keeper of the dead node has surely ended it. */
SCENARIO(unmarked_work_of_a_dead_node_waits_for_its_end, .machines = 2, .kinds = "step exec sim")
{
    begin(s, "a", 60000);
    sim_story_kill(s);
    expect(s, " 8500 sim exec n=7500 an orphan is ended n1->\n"
              " 8600 sim exec job=A step=a token=1 n=1 process ended\n"
              "10049 n2.1 step job=A step=a n=1 running->retry_wait\n"
              "20049 n2.1 step job=A step=a n=1 retry_wait->ready\n"
              "20049 n2.1 step job=A step=a n=1 ready->queued\n"
              "20049 n2.1 step job=A step=a n=1 queued->running\n"
              "20049 n2.1 exec job=A step=a token=2 n=2 start\n"
              "20049 sim exec job=A step=a token=2 n=2 process started\n");
}

SCENARIO(unsafe_work_of_a_dead_node_waits_for_a_person, .machines = 2, .kinds = "step job")
{
    begin(s, "a! b:a", 60000);
    sim_story_kill(s);
    expect(s, "10049 n2.1 step job=A step=a n=1 running->blocked\n"
              "10049 n2.1 job job=A token=1 running->paused\n");
    sim_story_run(s, 60000);
    assert_int_equal(sim_story_ran(s), 1);
    sim_story_at(s, 2);
    sim_story_ask(s, "respond", "build", "a", "done");
    expect(s, "70049 n2.1 job job=A token=2 paused->running\n"
              "70049 n2.1 step job=A step=a n=1 blocked->completed\n"
              "70049 n2.1 step job=A step=b pending->ready\n"
              "70049 n2.1 step job=A step=b ready->queued\n"
              "70049 n2.1 step job=A step=b queued->running\n"
              "71049 n2.1 step job=A step=b n=1 running->completed\n"
              "71049 n2.1 job job=A token=2 running->completed\n");
}

/* A node that is back in time finds its own work, and nobody else has touched it. */
SCENARIO(a_node_that_restarts_keeps_what_runs, .machines = 3, .kinds = "step job owner sim exec")
{
    begin(s, "a", 30000);
    sim_story_kill(s);
    sim_story_run(s, 5000);
    sim_story_start(s);
    expect(s, " 7000 n1.2 owner job=A token=2 taken\n"
              "31000 sim exec job=A step=a token=1 n=1 process ended\n"
              "31000 n1.2 exec job=A step=a token=2 n=1 ended\n"
              "31000 n1.2 step job=A step=a n=1 running->completed\n"
              "31000 n1.2 job job=A token=2 running->completed\n");
    assert_int_equal(sim_story_ran(s), 1);
}

/* Four times as long as a session lasts: everybody is past its time, and nobody dies of it. */
SCENARIO(an_outage_of_the_store_kills_nobody, .machines = 3, .kinds = "step job owner sim exec")
{
    begin(s, "a?", 60000);
    sim_story_outage(s, 40000);
    expect(s, "61000 sim exec job=A step=a token=1 n=1 process ended\n"
              "61000 n1.1 exec job=A step=a token=1 n=1 ended\n"
              "61000 n1.1 step job=A step=a n=1 running->completed\n"
              "61000 n1.1 job job=A token=1 running->completed\n");
    assert_int_equal(sim_story_ran(s), 1);
}

/* It could be a cut of this node alone, for all it knows. */
SCENARIO(a_long_outage_ends_unmarked_work_which_then_runs_again, .machines = 3, .kinds = "sim exec")
{
    begin(s, "a", 60000);
    sim_story_outage(s, 40000);
    sim_story_run(s, 39000);
    sim_story_skip(s);
    expect(s, "42900 n1.1 exec job=A step=a token=1 n=1 ended\n"
              "42900 n1.1 exec job=A step=a token=1 n=2 start\n"
              "42900 sim exec job=A step=a token=1 n=2 process started\n"
              "102900 sim exec job=A step=a token=1 n=2 process ended\n"
              "102900 n1.1 exec job=A step=a token=1 n=2 ended\n");
}

SCENARIO(an_outage_shorter_than_session_and_grace_ends_nothing, .machines = 3,
         .kinds = "job sim exec")
{
    begin(s, "a", 60000);
    sim_story_outage(s, 14000);
    expect(s, "61000 sim exec job=A step=a token=1 n=1 process ended\n"
              "61000 n1.1 exec job=A step=a token=1 n=1 ended\n"
              "61000 n1.1 job job=A token=1 running->completed\n");
    assert_int_equal(sim_story_ran(s), 1);
}

/* Its node and its keeper live. The copy elsewhere starts when this one has ended. */
SCENARIO(unmarked_work_of_a_node_that_is_cut_off_ends_before_it_runs_elsewhere, .machines = 2,
         .kinds = "sim exec")
{
    begin(s, "a", 60000);
    sim_story_cut(s, 40000);
    expect(s, "16400 sim exec n=7500 an orphan is ended n1->\n"
              "16500 sim exec job=A step=a token=1 n=1 process ended\n"
              "16500 n1.1 exec job=A step=a token=1 n=1 ended\n"
              "16500 n1.1 exec job=A step=a token=1 n=2 start\n" /* and is not committed */
              "20049 n2.1 exec job=A step=a token=2 n=2 start\n"
              "20049 sim exec job=A step=a token=2 n=2 process started\n"
              "80049 sim exec job=A step=a token=2 n=2 process ended\n"
              "80049 n2.1 exec job=A step=a token=2 n=2 ended\n");
}

/* Neither knows the other's: the longer one holds, whoever takes over. */
SCENARIO(the_longer_grace_holds, .machines = 2, .graces = {20000, 2000}, .kinds = "sim exec")
{
    begin(s, "a", 60000);
    sim_story_cut(s, 60000);
    expect(s, "23900 sim exec n=15000 an orphan is ended n1->\n"
              "24000 sim exec job=A step=a token=1 n=1 process ended\n"
              "24000 n1.1 exec job=A step=a token=1 n=1 ended\n"
              "24000 n1.1 exec job=A step=a token=1 n=2 start\n"
              "30049 n2.1 exec job=A step=a token=2 n=2 start\n"
              "30049 sim exec job=A step=a token=2 n=2 process started\n");
}

/* The next job may not have the seat before the lost attempt has ended. */
SCENARIO(a_seat_stays_taken_until_a_lost_attempt_has_ended, .machines = 2, .kinds = "sim exec")
{
    static const char one[] = "{\"name\":\"f\",\"steps\":{\"a\":{\"run\":[\"x\"],"
                              "\"idempotent\":true,\"concurrency\":{\"key\":\"k\",\"max\":1}}}}";
    sim_story_run(s, 1000);
    sim_story_process(s, "a", 60000, 0);
    sim_story_flow(s, "one", one);
    sim_story_run(s, 1000);
    sim_story_cut(s, 40000);
    sim_story_at(s, 2);
    sim_story_flow(s, "two", one);
    sim_story_run(s, 500);
    sim_story_skip(s);
    sim_story_run(s, 17000);
    assert_int_equal(sim_story_ran(s), 1);
    assert_true(s->machines[0].keeper.ledger[0]->ended_at > 0); /* within the grace of both */
    sim_story_run(s, 3000);
    assert_int_equal(sim_story_ran(s), 2);
}

/* Nobody ends it, so nobody but a person can say that its seat is free. */
SCENARIO(unsafe_work_keeps_its_seat_until_a_person_has_decided, .machines = 2,
         .kinds = "sim exec step job")
{
    static const char one[] = "{\"name\":\"f\",\"steps\":{\"a\":{\"run\":[\"x\"],"
                              "\"unsafe\":true,\"concurrency\":{\"key\":\"k\",\"max\":1}}}}";
    sim_story_run(s, 1000);
    sim_story_process(s, "a", 200000, 0);
    sim_story_flow(s, "one", one);
    sim_story_run(s, 1000);
    sim_story_cut(s, 150000);
    sim_story_at(s, 2);
    sim_story_flow(s, "two", one);
    sim_story_run(s, 100000);
    assert_int_equal(sim_story_ran(s), 1);
    sim_story_skip(s);
    sim_story_ask(s, "respond", "one", "a", "failed");
    expect(s, "102000 n2.1 job job=A token=2 paused->running\n"
              "102000 n2.1 step job=A step=a n=1 blocked->failed\n"
              "102000 n2.1 job job=A token=2 running->failed\n"
              "103000 n2.1 step job=B step=a queued->running\n"
              "103000 n2.1 exec job=B step=a token=1 n=1 start\n"
              "103000 sim exec job=B step=a token=1 n=1 process started\n"
              "160001 sim exec job=A step=a token=1 n=1 process ended\n");
}

/* It wakes up and finds the other past its time; perhaps nobody could renew (seed c22206). */
SCENARIO(who_has_slept_declares_nobody_dead_at_once, .machines = 2, .kinds = "job owner")
{
    begin(s, "a?", 60000);
    sim_story_cut(s, 15000);
    sim_story_at(s, 2);
    sim_story_sleep(s);
    sim_story_run(s, 14900);
    sim_story_wake(s);
    expect(s, "61000 n1.1 job job=A token=1 running->completed\n");
    assert_int_equal(sim_story_ran(s), 1);
}

SCENARIO(a_cancel_finds_the_job_wherever_it_lives, .machines = 2, .kinds = "step job mark")
{
    begin(s, "a", 60000);
    sim_story_at(s, 2);
    sim_story_ask(s, "cancel", "build", NULL, NULL);
    expect(s, "2000 n2.1 mark load.owned_elsewhere\n"
              "2000 n2.1 mark load.forwarded\n"
              "2000 n1.1 mark command.from_inbox\n"
              "2000 n1.1 job job=A token=1 running->cancelling\n"
              "2100 n1.1 step job=A step=a n=1 running->failed\n"
              "2100 n1.1 job job=A token=1 cancelling->cancelled\n");
    assert_int_equal(s->answer, 0);
}

/* The refusal is written in the transaction after the one that took the command out of the inbox.
 */
SCENARIO(a_refusal_comes_back_from_wherever_the_job_lives, .machines = 2, .kinds = "job")
{
    begin(s, "a", 60000);
    sim_story_at(s, 2);
    sim_story_ask(s, "respond", "build", "a", "rerun");
    sim_story_run(s, 1000);
    assert_int_equal(s->answer, GL_E_STATE);
}

/* Its work has begun anew elsewhere. It learns of it when it is back, in its next life. */
SCENARIO(a_node_that_was_cut_off_stops_what_it_lost, .machines = 2, .kinds = "exec owner sim")
{
    begin(s, "a?", 60000);
    sim_story_cut(s, 20000);
    expect(s, "10049 n2.1 exec job=A step=a token=1 n=2 start\n"
              "10049 n2.1 owner job=A token=2 taken\n"
              "10049 sim exec job=A step=a token=2 n=2 process started\n");
    sim_story_run(s, 12000);
    assert_true(s->at->node->lost);
    sim_story_kill(s);
    sim_story_start(s);
    expect(s, "22050 sim exec job=A step=a token=1 n=1 process ended\n"
              "70049 sim exec job=A step=a token=2 n=2 process ended\n"
              "70049 n2.1 exec job=A step=a token=2 n=2 ended\n");
}

/* All slots that are left are taken, but a timer needs none (seed c10193). */
SCENARIO(a_sleep_of_a_dead_nodes_job_ends_without_a_slot, .machines = 2, .slots = 1,
         .kinds = "step job owner")
{
    static const char cpu[] = "{\"name\":\"f\",\"steps\":{\"long\":{\"run\":[\"x\"]}}}";
    static const char gpu[] =
        "{\"name\":\"f\",\"steps\":{\"long\":{\"run\":[\"x\"],\"pool\":\"gpu\"}}}";
    static const char both[] =
        "{\"name\":\"f\",\"steps\":{\"nap\":{\"sleep\":\"30s\"},\"work\":{\"run\":[\"x\"]}}}";
    sim_story_run(s, 1000);
    sim_story_process(s, "long", 300000, 0);
    sim_story_flow(s, "n1-cpu", cpu);
    sim_story_flow(s, "n1-gpu", gpu);
    sim_story_at(s, 2);
    sim_story_flow(s, "n2-cpu", cpu);
    sim_story_run(s, 100);
    sim_story_flow(s, "both", both);
    sim_story_run(s, 900);
    sim_story_skip(s);
    sim_story_kill(s);
    expect(s, "10049 n1.1 step job=C step=long n=1 running->retry_wait\n"
              "10049 n1.1 owner job=C token=2 taken\n"
              "20049 n1.1 step job=C step=long n=1 retry_wait->ready\n"
              "20049 n1.1 step job=C step=long n=1 ready->queued\n"
              "31100 n1.1 step job=D step=nap blocked->completed\n"
              "31100 n1.1 owner job=D token=2 taken\n");
}

/* Steps with folders of their own run where their job is. What waits for a slot here runs first: no
 * other node could run it. Then the job goes where the pool is that it lacks. */
SCENARIO(a_job_goes_where_its_next_pool_is_when_nothing_of_it_waits_here, .machines = 2, .slots = 1,
         .gpu_at = 2, .is_split = true, .kinds = "step job")
{
    static const char flow[] =
        "{\"name\":\"f\",\"steps\":{\"a\":{\"run\":[\"x\"],\"cwd\":\"/srv\"},"
        "\"b\":{\"run\":[\"x\"],\"cwd\":\"/srv\"},"
        "\"g\":{\"run\":[\"x\"],\"cwd\":\"/srv\",\"pool\":\"gpu\"}}}";
    sim_story_run(s, 12000);
    sim_story_flow(s, "build", flow);
    expect(s, "12000 n1.1 job job=A pending->running\n"
              "12000 n1.1 step job=A step=a pending->ready\n"
              "12000 n1.1 step job=A step=b pending->ready\n"
              "12000 n1.1 step job=A step=g pending->ready\n"
              "12000 n1.1 step job=A step=a ready->queued\n"
              "12000 n1.1 step job=A step=b ready->queued\n"
              "12000 n1.1 step job=A step=g ready->queued\n"
              "12000 n1.1 step job=A step=a queued->running\n"
              "13000 n1.1 step job=A step=a n=1 running->completed\n"
              "13000 n1.1 step job=A step=b queued->running\n"
              "14000 n1.1 step job=A step=b n=1 running->completed\n"
              "14250 n2.1 step job=A step=g queued->running\n"
              "15250 n2.1 step job=A step=g n=1 running->completed\n"
              "15250 n2.1 job job=A token=2 running->completed\n");
}

/* A job that has to leave memory before it can be given away is still ours to give away. */
SCENARIO(a_job_that_lacks_a_pool_goes_though_it_had_to_leave_memory, .machines = 2, .gpu_at = 2,
         .hot_jobs_max = 1, .kinds = "step job owner")
{
    static const char flow[] = "{\"name\":\"f\",\"steps\":{\"nap\":{\"sleep\":\"30s\"},"
                               "\"g\":{\"run\":[\"x\"],\"cwd\":\"/srv\",\"pool\":\"gpu\","
                               "\"needs\":[\"nap\"]}}}";
    static const char other[] = "{\"name\":\"f\",\"steps\":{\"nap\":{\"sleep\":\"30s\"}}}";
    sim_story_run(s, 12000);
    sim_story_at(s, 2);
    sim_story_flow(s, "build", flow);
    sim_story_run(s, 100);
    sim_story_kill(s);
    sim_story_run(s, 29900);
    sim_story_start(s);
    sim_story_at(s, 1);
    sim_story_run(s, 100);
    sim_story_flow(s, "other", other);
    sim_story_skip(s);
    expect(s, "51000 n2.2 step job=A step=g queued->running\n"
              "51000 n2.2 owner job=A token=3 taken\n"
              "52000 n2.2 step job=A step=g n=1 running->completed\n"
              "52000 n2.2 job job=A token=3 running->completed\n"
              "72100 n1.1 step job=B step=nap blocked->completed\n"
              "72100 n1.1 job job=B token=1 running->completed\n");
}

/* Two that come for a moment each: what one of them leaves behind is for its own next life. */
SCENARIO(a_guest_takes_up_what_its_earlier_life_left, .machines = 2, .guests = true, .slots = 1,
         .kinds = "job owner")
{
    begin(s, "a?", 20000);
    sim_story_submit(s, "left", "b", 1);
    sim_story_run(s, 1000);
    sim_story_skip(s);
    sim_story_kill(s);
    sim_story_run(s, 60000);
    assert_int_equal(s->lines_n, 0);
    sim_story_start(s);
    expect(s, "63000 n1.2 owner job=A token=2 taken\n"
              "83000 n1.2 job job=A token=2 running->completed\n"
              "83000 n1.2 owner job=B token=2 taken\n"
              "84000 n1.2 job job=B token=2 running->completed\n");
}

/* A node that belongs to another stack for a while leaves what its keeper knows of the first one's
 * jobs where it is: nobody else could say that the step has run. */
SCENARIO(a_change_of_stack_forgets_no_attempt, .machines = 2, .guests = true, .stack = "blue",
         .kinds = "job step owner")
{
    begin(s, "a! b:a", 5000);
    sim_story_kill(s);
    s->options.stack = "green";
    sim_story_run(s, 1000);
    sim_story_start(s);
    sim_story_run(s, 30000);
    assert_int_equal(s->lines_n, 0);
    sim_story_kill(s);
    s->options.stack = "blue";
    sim_story_start(s);
    expect(s, "33000 n1.3 owner job=A token=2 taken\n"
              "33000 n1.3 step job=A step=a n=1 running->completed\n"
              "33000 n1.3 step job=A step=b pending->ready\n"
              "33000 n1.3 step job=A step=b ready->queued\n"
              "33000 n1.3 step job=A step=b queued->running\n"
              "34000 n1.3 step job=A step=b n=1 running->completed\n"
              "34000 n1.3 job job=A token=2 running->completed\n");
    assert_int_equal(sim_story_ran(s), 2);
}

/* Those who stay in its stack take its job over, as if it had not come back. What ran of it is
 * ended in time: the node that did come back does not speak for it. */
SCENARIO(who_changes_its_stack_is_dead_to_the_first_one, .machines = 2, .stack = "blue",
         .kinds = "owner exec sim")
{
    begin(s, "a", 60000);
    sim_story_kill(s);
    s->options.stack = "green";
    sim_story_run(s, 1000);
    sim_story_start(s);
    expect(s, "3333 n2.1 owner job=A token=2 taken\n"
              "8500 sim exec n=7500 an orphan is ended n1->\n"
              "8600 sim exec job=A step=a token=1 n=1 process ended\n"
              "13333 n2.1 exec job=A step=a token=2 n=2 start\n"
              "13333 sim exec job=A step=a token=2 n=2 process started\n"
              "73333 sim exec job=A step=a token=2 n=2 process ended\n"
              "73333 n2.1 exec job=A step=a token=2 n=2 ended\n");
}

/* Entries of an inbox that this node cannot carry out do not hide those after them. */
SCENARIO(a_command_is_found_after_a_hundred_that_nobody_takes, .machines = 2, .kinds = "job")
{
    enum { STUCK = 150 };
    static char ids[STUCK][64];
    struct gl_write writes[STUCK];
    struct gl_tx tx = {.context = SIM_CONTEXT, .writes = writes, .writes_n = STUCK};
    size_t refused;

    begin(s, "a b:a", 600000);
    for (int i = 0; i < STUCK; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]),
                       "01ARZ3NDEKTSV4RRFFQ69G5FAV/01ARZ3NDEKTSV4RRFFQ69%06d", i);
        writes[i] = (struct gl_write){
            .type = GL_WRITE_INDEX, .kind = GL_S("inbox"), .id = gl_str_of(ids[i]), .score = 1 + i};
    }
    assert_int_equal(sim_disk_commit(&s->disk, &tx, &refused), 0);
    sim_story_at(s, 2);
    sim_story_ask(s, "pause", "build", "", "");
    sim_story_run(s, 5000);
    assert_int_equal(s->answer, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idempotent_work_of_a_dead_node_starts_again_at_once),
        cmocka_unit_test(unmarked_work_of_a_dead_node_waits_for_its_end),
        cmocka_unit_test(unsafe_work_of_a_dead_node_waits_for_a_person),
        cmocka_unit_test(a_node_that_restarts_keeps_what_runs),
        cmocka_unit_test(an_outage_of_the_store_kills_nobody),
        cmocka_unit_test(a_long_outage_ends_unmarked_work_which_then_runs_again),
        cmocka_unit_test(an_outage_shorter_than_session_and_grace_ends_nothing),
        cmocka_unit_test(unmarked_work_of_a_node_that_is_cut_off_ends_before_it_runs_elsewhere),
        cmocka_unit_test(the_longer_grace_holds),
        cmocka_unit_test(a_seat_stays_taken_until_a_lost_attempt_has_ended),
        cmocka_unit_test(unsafe_work_keeps_its_seat_until_a_person_has_decided),
        cmocka_unit_test(who_has_slept_declares_nobody_dead_at_once),
        cmocka_unit_test(a_cancel_finds_the_job_wherever_it_lives),
        cmocka_unit_test(a_refusal_comes_back_from_wherever_the_job_lives),
        cmocka_unit_test(a_node_that_was_cut_off_stops_what_it_lost),
        cmocka_unit_test(a_command_is_found_after_a_hundred_that_nobody_takes),
        cmocka_unit_test(a_sleep_of_a_dead_nodes_job_ends_without_a_slot),
        cmocka_unit_test(a_job_goes_where_its_next_pool_is_when_nothing_of_it_waits_here),
        cmocka_unit_test(a_job_that_lacks_a_pool_goes_though_it_had_to_leave_memory),
        cmocka_unit_test(a_guest_takes_up_what_its_earlier_life_left),
        cmocka_unit_test(a_change_of_stack_forgets_no_attempt),
        cmocka_unit_test(who_changes_its_stack_is_dead_to_the_first_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
