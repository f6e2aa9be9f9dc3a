/* Retention: ended jobs go, with all that belongs to them, and nothing else does. */
#include <stdio.h>
#include <string.h>

#include "scenario/scenario.h"

static size_t count(struct sim_story *s, const char *kind)
{
    return sim_disk_kind(&s->disk, SIM_CONTEXT, gl_str_of(kind))->n;
}

static size_t indexed(struct sim_story *s, const char *index)
{
    struct gl_range all = {
        .index = gl_str_of(index), .score_min = INT64_MIN, .score_max = INT64_MAX, .limit = 1000};
    struct gl_arena a = {0};
    size_t n;
    (void)sim_disk_range(&s->disk, SIM_CONTEXT, &all, &a, &n);
    gl_arena_done(&a);
    return n;
}

static size_t logged(struct sim_story *s, const char *job)
{
    struct gl_arena a = {0};
    size_t n;
    (void)sim_disk_log(&s->disk, SIM_CONTEXT, GL_S("events"), gl_str_of(job), 0, 1000, &a, &n);
    gl_arena_done(&a);
    return n;
}

/* One after the other, each with a step of its own name: every flow is another one. */
static void run_jobs(struct sim_story *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char run[16], flow[32];
        (void)snprintf(run, sizeof(run), "run%u", i);
        (void)snprintf(flow, sizeof(flow), "s%u t%u:s%u", i, i, i);
        sim_story_submit(s, run, flow, 1);
        sim_story_run(s, 3000);
        assert_int_equal(s->answer, 0);
    }
}

SCENARIO(an_ended_job_is_removed_with_all_that_belongs_to_it, .kinds = "job")
{
    sim_story_run(s, 10);
    run_jobs(s, 2);
    char gone[GL_ULID_BYTES + 1];
    memcpy(gone, sim_disk_kind(&s->disk, SIM_CONTEXT, GL_S("job"))->rows[0]->id.p, GL_ULID_BYTES);
    gone[GL_ULID_BYTES] = 0;
    assert_int_equal(count(s, "step"), 4);
    assert_int_equal(indexed(s, "ended"), 2);
    assert_true(logged(s, gone) > 0);

    sim_story_ask(s, "remove", "run0", "", "");
    sim_story_run(s, 1000);
    assert_int_equal(s->answer, 0);
    assert_int_equal(count(s, "job"), 1);
    assert_int_equal(count(s, "step"), 2);
    assert_int_equal(count(s, "run"), 1);
    assert_int_equal(indexed(s, "ended"), 1);
    assert_int_equal(logged(s, gone), 0);

    sim_story_ask(s, "status", "run0", "", "");
    sim_story_run(s, 1000);
    assert_int_equal(s->answer, GL_E_NOT_FOUND);
    sim_story_ask(s, "status", "run1", "", "");
    sim_story_run(s, 1000);
    assert_int_equal(s->answer, 0);
}

SCENARIO(a_job_that_has_not_ended_stays, .kinds = "job")
{
    sim_story_process(s, "a", 60000, 0);
    sim_story_run(s, 10);
    sim_story_submit(s, "build", "a", 1);
    sim_story_run(s, 1000);
    sim_story_ask(s, "remove", "build", "", "");
    sim_story_run(s, 1000);
    assert_int_equal(s->answer, GL_E_STATE);
    assert_int_equal(s->reason, GL_REASON_JOB_NOT_ENDED);
    sim_story_trim(s, 0);
    sim_story_run(s, 1000);
    assert_int_equal(s->answer, 0);
    assert_string_equal(s->body.p, "{\"removed_jobs\":0,\"removed_flows\":0,\"removed_blobs\":0,"
                                   "\"removed_workspaces\":0,\"freed_bytes\":0}");
    assert_int_equal(count(s, "job"), 1);
    sim_story_run(s, 70000);
    sim_story_ask(s, "remove", "build", "", "");
    sim_story_run(s, 1000);
    assert_int_equal(s->answer, 0);
    assert_int_equal(count(s, "job"), 0);
}

SCENARIO(a_job_nobody_knows_cannot_be_removed, .kinds = "job")
{
    sim_story_run(s, 10);
    sim_story_ask(s, "remove", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "", "");
    sim_story_run(s, 1000);
    assert_int_equal(s->answer, GL_E_NOT_FOUND);
}

SCENARIO(the_oldest_go_when_there_are_too_many, .kinds = "job", .keep = {.jobs = 3})
{
    sim_story_run(s, 10);
    run_jobs(s, 8);
    sim_story_run(s, 120000);
    assert_int_equal(count(s, "job"), 3);
    assert_int_equal(count(s, "step"), 6);
    assert_int_equal(indexed(s, "ended"), 3);
    sim_story_ask(s, "status", "run4", "", "");
    sim_story_run(s, 1000);
    assert_int_equal(s->answer, GL_E_NOT_FOUND);
    sim_story_ask(s, "status", "run5", "", "");
    sim_story_run(s, 1000);
    assert_int_equal(s->answer, 0);
}

SCENARIO(jobs_go_when_they_are_old_enough, .kinds = "job", .keep = {.job_ms = 3600000})
{
    sim_story_run(s, 10);
    run_jobs(s, 2);
    sim_story_run(s, 3500000);
    assert_int_equal(count(s, "job"), 2);
    sim_story_run(s, 200000);
    assert_int_equal(count(s, "job"), 0);
    assert_int_equal(indexed(s, "ended"), 0);
}

SCENARIO(the_oldest_go_when_the_store_is_too_large, .kinds = "job", .keep = {.bytes = 30000})
{
    sim_story_run(s, 10);
    run_jobs(s, 20);
    uint64_t before = sim_disk_measure(&s->disk, SIM_CONTEXT);
    assert_true(before > 30000);
    sim_story_run(s, 7200000); /* flows wait for an hour */
    assert_true(sim_disk_measure(&s->disk, SIM_CONTEXT) <= 30000);
    assert_true(count(s, "job") > 0);
    assert_true(count(s, "job") < 20);
}

SCENARIO(a_flow_stays_as_long_as_a_job_names_it, .kinds = "job")
{
    sim_story_process(s, "long", 600000, 0);
    sim_story_run(s, 10);
    sim_story_submit(s, "live", "long", 1);
    run_jobs(s, 2);
    sim_story_submit(s, "again", "s0 t0:s0", 1); /* the flow of run0 */
    sim_story_run(s, 3000);
    assert_int_equal(count(s, "flow"), 3);
    sim_story_trim(s, 1);
    sim_story_run(s, 5000);
    assert_int_equal(s->answer, 0);
    assert_non_null(strstr(s->body.p, "\"removed_jobs\":2,\"removed_flows\":1,"));
    assert_int_equal(count(s, "flow"), 2); /* of "live" and of "again" */
    /* What was removed is written again when it is needed again. */
    sim_story_submit(s, "third", "s1 t1:s1", 1);
    sim_story_run(s, 3000);
    assert_int_equal(count(s, "flow"), 3);
    sim_story_ask(s, "status", "third", "", "");
    sim_story_run(s, 1000);
    assert_non_null(strstr(s->body.p, "completed"));
}

static gl_str job_id(struct sim_story *s, size_t number)
{
    return sim_disk_kind(&s->disk, SIM_CONTEXT, GL_S("job"))->rows[number]->id;
}

/* A job waits, its record is damaged while no node runs, and two others have ended. The byte in the
 * middle of the record is another one: is that one of the flow's hash? */
static void damage_waiting_job(struct sim_story *s, const char *run_id, bool in_hash)
{
    sim_story_run(s, 10);
    sim_story_flow(s, run_id, "{\"steps\":{\"w\":{\"signal\":\"go\"}}}");
    sim_story_run(s, 1000);
    run_jobs(s, 2);
    assert_int_equal(count(s, "flow"), 3);
    sim_story_kill(s);
    gl_str id = job_id(s, 0);
    gl_str value = sim_disk_peek(&s->disk, SIM_CONTEXT, GL_S("job"), id)->value;
    size_t hash = (size_t)((char *)memmem(value.p, value.n, "\"flow\":\"", 8) - value.p) + 8;
    assert_int_equal(value.n / 2 >= hash && value.n / 2 < hash + 64, in_hash);
    sim_disk_damage(&s->disk, SIM_CONTEXT, GL_S("job"), id);
    sim_story_start(s);
    sim_story_run(s, 2000);
}

SCENARIO(a_damaged_job_keeps_its_own_flow_only, .kinds = "job")
{
    damage_waiting_job(s, "live", false);
    sim_story_trim(s, 0);
    sim_story_run(s, 5000);
    assert_int_equal(s->answer, 0);
    assert_non_null(strstr(s->body.p, "\"removed_jobs\":2,\"removed_flows\":2,"));
    assert_int_equal(count(s, "flow"), 1);
}

/* Which flow it names cannot be known: those that are there stay until it is mended,
 * later ones do not. */
SCENARIO(a_job_whose_flow_is_unknown_keeps_those_it_may_name, .kinds = "job")
{
    damage_waiting_job(s, "live-with-hash", true);
    sim_story_trim(s, 0);
    sim_story_run(s, 5000);
    assert_int_equal(s->answer, 0);
    assert_non_null(strstr(s->body.p, "\"removed_jobs\":2,\"removed_flows\":0,"));
    assert_int_equal(count(s, "flow"), 3);
    sim_story_submit(s, "later", "x y:x", 1);
    sim_story_run(s, 3000);
    sim_story_trim(s, 0);
    sim_story_run(s, 5000);
    assert_int_equal(s->answer, 0);
    assert_non_null(strstr(s->body.p, "\"removed_jobs\":1,\"removed_flows\":1,"));
    assert_int_equal(count(s, "flow"), 3);
    gl_str id = job_id(s, 0);
    uint64_t rev = sim_disk_peek(&s->disk, SIM_CONTEXT, GL_S("job"), id)->rev;
    assert_true(sim_disk_mend(&s->disk, SIM_CONTEXT, GL_S("job"), id, rev));
    sim_story_trim(s, 0);
    sim_story_run(s, 5000);
    assert_int_equal(s->answer, 0);
    assert_non_null(strstr(s->body.p, "\"removed_flows\":2,"));
    assert_int_equal(count(s, "flow"), 1);
}

/* The damaged job may name it, too: it stays when the others that name it have gone. */
SCENARIO(a_flow_that_another_job_names_is_kept_for_a_damaged_one, .kinds = "job")
{
    damage_waiting_job(s, "live-with-hash", true);
    sim_story_trim(s, 2);
    sim_story_run(s, 5000);
    assert_int_equal(s->answer, 0);
    assert_int_equal(count(s, "flow"), 3);
    sim_story_trim(s, 0);
    sim_story_run(s, 5000);
    assert_int_equal(s->answer, 0);
    assert_non_null(strstr(s->body.p, "\"removed_jobs\":2,\"removed_flows\":0,"));
    assert_int_equal(count(s, "flow"), 3);
}

SCENARIO(a_large_job_goes_page_by_page, .kinds = "job", .store_ms = 5)
{
    struct gl_buf flow = {0};
    for (int i = 0; i < 450; i++) {
        gl_buf_fmt(&flow, "%ss%d", i > 0 ? " " : "", i);
    }
    gl_buf_char(&flow, 0);
    sim_story_run(s, 100);
    sim_story_submit(s, "wide", flow.p, 1);
    gl_buf_done(&flow);
    sim_story_run(s, 200000);
    assert_int_equal(count(s, "step"), 450);
    uint64_t commits = s->disk.commits_n;
    sim_story_trim(s, 0);
    sim_story_run(s, 5000);
    assert_int_equal(s->answer, 0);
    assert_int_equal(count(s, "step"), 0);
    assert_int_equal(count(s, "job"), 0);
    assert_true(s->disk.commits_n - commits >= 3);
}

SCENARIO(a_crash_in_the_middle_leaves_what_the_next_pass_removes, .kinds = "job", .store_ms = 20,
         .keep = {.jobs = 1})
{
    struct gl_buf flow = {0};
    for (int i = 0; i < 450; i++) {
        gl_buf_fmt(&flow, "%ss%d", i > 0 ? " " : "", i);
    }
    gl_buf_char(&flow, 0);
    sim_story_run(s, 500);
    sim_story_submit(s, "wide", flow.p, 1);
    gl_buf_done(&flow);
    sim_story_run(s, 300000);
    sim_story_submit(s, "next", "a", 1);
    sim_story_run(s, 3000);
    size_t steps = count(s, "step");
    assert_int_equal(steps, 451);
    while (count(s, "step") == steps) {
        sim_story_run(s, 5);
    }
    assert_true(count(s, "step") > 1); /* it is in the middle of it */
    assert_int_equal(count(s, "job"), 1);
    assert_int_equal(indexed(s, "ended"), 2);
    sim_story_kill(s);
    sim_story_start(s);
    sim_story_run(s, 10000);
    assert_int_equal(count(s, "step"), 1);
    assert_int_equal(count(s, "job"), 1);
    assert_int_equal(indexed(s, "ended"), 1);
}

SCENARIO(a_job_that_is_being_retried_stays, .kinds = "job")
{
    sim_story_process(s, "b:attempt:1", 1000, 1);
    sim_story_run(s, 10);
    sim_story_submit(s, "first", "a b:a", 1);
    sim_story_run(s, 5000);
    sim_story_process(s, "b:attempt:1", 60000, 0);
    sim_story_ask(s, "retry", "first", "", "");
    sim_story_run(s, 5000);
    assert_int_equal(s->answer, 0);
    sim_story_trim(s, 0);
    sim_story_run(s, 1000);
    assert_int_equal(s->answer, 0);
    assert_int_equal(count(s, "job"), 2);
    sim_story_ask(s, "remove", "first", "", "");
    sim_story_run(s, 1000);
    assert_int_equal(s->answer, GL_E_STATE);
    assert_int_equal(s->reason, GL_REASON_JOB_RETRIED);
    sim_story_run(s, 70000);
    sim_story_trim(s, 0);
    sim_story_run(s, 1000);
    assert_int_equal(count(s, "job"), 0);
    assert_int_equal(count(s, "flow"), 0);
}

SCENARIO(a_run_id_that_has_a_new_owner_stays_with_it, .kinds = "job")
{
    sim_story_run(s, 10);
    sim_story_submit(s, "build", "a", 1);
    sim_story_run(s, 3000);
    char first[GL_ULID_BYTES + 1];
    memcpy(first, sim_disk_kind(&s->disk, SIM_CONTEXT, GL_S("job"))->rows[0]->id.p, GL_ULID_BYTES);
    first[GL_ULID_BYTES] = 0;
    /* The name passes on, as when the same run id is used again. */
    struct gl_write w = {.type = GL_WRITE_PUT,
                         .kind = GL_S("run"),
                         .id = GL_S("build"),
                         .rev = 9,
                         .value = GL_S("{\"job_id\":\"01ARZ3NDEKTSV4RRFFQ69G5FAV\"}")};
    struct gl_tx tx = {.context = SIM_CONTEXT, .writes = &w, .writes_n = 1};
    size_t refused;
    assert_int_equal(sim_disk_commit(&s->disk, &tx, &refused), 0);
    sim_story_ask(s, "remove", first, "", "");
    sim_story_run(s, 1000);
    assert_int_equal(s->answer, 0);
    assert_int_equal(count(s, "job"), 0);
    assert_int_equal(count(s, "run"), 1);
}

SCENARIO(a_node_that_stops_answers_who_waits_for_a_trim, .kinds = "job", .store_ms = 50)
{
    sim_story_run(s, 1000);
    run_jobs(s, 3);
    sim_story_trim(s, 0);
    sim_story_ask(s, "remove", "run2", "", "");
    sim_node_stop(s->at->node);
    sim_story_run(s, 5000);
    assert_true(s->at->node->stopped);
    assert_int_equal(s->answer, GL_E_UNAVAILABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ended_job_is_removed_with_all_that_belongs_to_it),
        cmocka_unit_test(a_job_that_has_not_ended_stays),
        cmocka_unit_test(a_job_nobody_knows_cannot_be_removed),
        cmocka_unit_test(the_oldest_go_when_there_are_too_many),
        cmocka_unit_test(jobs_go_when_they_are_old_enough),
        cmocka_unit_test(the_oldest_go_when_the_store_is_too_large),
        cmocka_unit_test(a_flow_stays_as_long_as_a_job_names_it),
        cmocka_unit_test(a_damaged_job_keeps_its_own_flow_only),
        cmocka_unit_test(a_job_whose_flow_is_unknown_keeps_those_it_may_name),
        cmocka_unit_test(a_flow_that_another_job_names_is_kept_for_a_damaged_one),
        cmocka_unit_test(a_large_job_goes_page_by_page),
        cmocka_unit_test(a_crash_in_the_middle_leaves_what_the_next_pass_removes),
        cmocka_unit_test(a_job_that_is_being_retried_stays),
        cmocka_unit_test(a_run_id_that_has_a_new_owner_stays_with_it),
        cmocka_unit_test(a_node_that_stops_answers_who_waits_for_a_trim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
