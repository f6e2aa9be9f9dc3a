/* test_leases.c - an agent's lease of slots lasts through its tries at once, whoever dies; what
 * nobody may keep is given back. */
#include <stdio.h>

#include "scenario/scenario.h"

#define RETRY                                                           \
    "\"retry\":{\"attempts\":1,\"backoff_ms\":1000,\"factor_pct\":200," \
    "\"backoff_max_ms\":60000}"
#define LIMITS                                                                        \
    "\"lease_timeout_ms\":600000,\"lease_queue_max\":1000,\"beacon_ms\":1000,"        \
    "\"beacon_timeout_ms\":45000,\"depth_max\":100,\"high_mark\":75,\"low_mark\":25," \
    "\"retry_after_ms\":250"
/* Its second attempt comes after so many milliseconds. */
#define BUNDLE(agent, backoff)                                                                 \
    "{\"format\":3,\"name\":\"" agent "\",\"bundle\":{\"agents\":[{\"id\":\"" agent "\","      \
    "\"kind\":\"executor\",\"tries\":3,\"try_backoff_ms\":" backoff "," LIMITS "}],"           \
    "\"seeds\":[{\"agent\":\"" agent "\",\"message\":{\"body\":1}}]},"                         \
    "\"steps\":[{\"id\":\"@" agent "\",\"driver\":\"worker\",\"safety\":\"idempotent\","       \
    "\"argv\":[\"x\"]," RETRY "},{\"id\":\"one\",\"driver\":\"agent\",\"agent_ids\":[\"" agent \
    "\"]," RETRY "}]}"

static const char first[] = BUNDLE("a", "20000"), second[] = BUNDLE("b", "20000");
static const char good[] = "{\"stdout\":\"{\\\"complete_step\\\":true}\",\"stderr\":\"\","
                           "\"stdout_bytes\":24}";
static const char bad[] = "{\"stdout\":\"\",\"stderr\":\"connection reset\",\"stdout_bytes\":0}";

/* Every attempt succeeds after `lasts_ms`, but for the first so many, which look transient. */
static void plan(struct sim_story *s, const char *unit, unsigned fail, gl_ms lasts_ms)
{
    char attempt[64];
    sim_story_says(s, unit, good);
    s->processes[s->processes_n - 1].behaviour.lasts_ms = lasts_ms;
    for (unsigned i = 1; i <= fail; i++) {
        (void)snprintf(attempt, sizeof(attempt), "%s:attempt:%u", unit, i);
        sim_story_process(s, attempt, 1000, 9);
        s->processes[s->processes_n - 1].behaviour.result.output = gl_str_of(bad);
    }
}

static void submit(struct sim_story *s, const char *run_id, const char *flow)
{
    sim_story_compiled(s, run_id, flow);
    for (int i = 0; i < 5000 && s->answer == 1; i++) {
        sim_story_run(s, 1);
    }
    if (s->answer != 0) {
        fail_msg("%.*s", (int)s->body.n, s->body.p);
    }
}

static struct sim_fact_job *job_of(const struct sim_story *s, const char *run_id)
{
    struct sim_fact_job *j;
    for (size_t i = 0; (j = gl_map_next(&s->checks.facts.jobs, &i)) != NULL;) {
        if (gl_str_is(j->run_id, run_id)) {
            return j;
        }
    }
    fail_msg("no job %s", run_id);
    return NULL;
}

static const struct gl_step_record *unit_of(const struct sim_story *s, const char *run_id)
{
    struct sim_fact_job *j = job_of(s, run_id);
    return &j->steps[0].r;
}

static bool has_met(const struct sim_story *s, const char *mark)
{
    return gl_map_find(&s->world.marks, gl_str_of(mark)) != NULL;
}

/* Between two tries. */
static void begin(struct sim_story *s)
{
    sim_story_run(s, 1000);
    plan(s, "@a", 1, 1000);
    plan(s, "@b", 0, 1000);
    submit(s, "first", first);
    sim_story_run(s, 3000);
    assert_int_equal(unit_of(s, "first")->status, GL_STEP_RETRY_WAIT);
    assert_true(unit_of(s, "first")->keeps_slots);
    assert_int_equal(job_of(s, "first")->r.wake, GL_WAKE_RUNNING);
}

static void both_complete(struct sim_story *s)
{
    sim_story_run(s, 200000);
    assert_int_equal(job_of(s, "first")->r.status, GL_JOB_COMPLETED);
    assert_int_equal(job_of(s, "second")->r.status, GL_JOB_COMPLETED);
}

static gl_ms started(const struct sim_story *s, const char *run_id)
{
    return unit_of(s, run_id)->attempt_at;
}

SCENARIO(nobody_gets_what_is_kept_between_two_attempts, .slots = 1)
{
    begin(s);
    submit(s, "second", second);
    both_complete(s);
    assert_true(started(s, "second") >= started(s, "first") + 1000);
}

SCENARIO(what_is_kept_outlives_the_node, .slots = 1)
{
    begin(s);
    submit(s, "second", second);
    for (int lives = 0; lives < 3; lives++) {
        sim_story_kill(s);
        sim_story_run(s, 2000);
        sim_story_start(s);
        sim_story_run(s, 2000);
        assert_int_equal(unit_of(s, "second")->status, GL_STEP_QUEUED);
    }
    both_complete(s);
    assert_true(started(s, "second") >= started(s, "first") + 1000);
}

/* Nothing is started without the executor; what is kept stays so, and nobody gives it up. */
SCENARIO(a_try_that_is_due_waits_for_the_executor, .slots = 1)
{
    begin(s);
    submit(s, "second", second);
    sim_story_run(s, 10000);
    sim_keeper_crash(&s->machines[0].keeper, 30000);
    sim_story_run(s, 20000);
    assert_true(unit_of(s, "first")->keeps_slots);
    sim_story_kill(s);
    sim_story_run(s, 1000);
    sim_story_start(s);
    both_complete(s);
    assert_true(started(s, "second") >= started(s, "first") + 1000);
}

SCENARIO(a_job_that_is_paused_keeps_nothing, .slots = 1)
{
    begin(s);
    submit(s, "second", second);
    sim_story_ask(s, "pause", "first", "", "");
    sim_story_run(s, 500);
    assert_false(unit_of(s, "first")->keeps_slots);
    sim_story_run(s, 5000);
    assert_int_equal(job_of(s, "second")->r.status, GL_JOB_COMPLETED);
    assert_int_equal(unit_of(s, "first")->tries, 1);
    sim_story_ask(s, "resume", "first", "", "");
    both_complete(s);
    assert_int_equal(unit_of(s, "first")->tries, 0);
    assert_int_equal(sim_story_ran(s), 3);
}

SCENARIO(a_job_that_is_cancelled_keeps_nothing, .slots = 1)
{
    begin(s);
    submit(s, "second", second);
    sim_story_ask(s, "cancel", "first", "", "");
    sim_story_run(s, 5000);
    assert_int_equal(job_of(s, "first")->r.status, GL_JOB_CANCELLED);
    assert_int_equal(job_of(s, "second")->r.status, GL_JOB_COMPLETED);
}

/* Who takes the job over has slots of its own, and they are taken: what is kept is too much. */
SCENARIO(a_node_without_room_takes_a_lease_over, .slots = 1, .machines = 2)
{
    begin(s);
    sim_story_at(s, 2);
    plan(s, "@b", 0, 60000);
    submit(s, "second", second);
    sim_story_run(s, 1000);
    assert_int_equal(unit_of(s, "second")->status, GL_STEP_RUNNING);
    sim_story_at(s, 1);
    sim_story_kill(s);
    sim_story_run(s, 15000); /* taken over, and kept */
    assert_true(unit_of(s, "first")->keeps_slots);
    sim_story_run(s, 15000); /* its time has come */
    assert_int_equal(unit_of(s, "first")->status, GL_STEP_QUEUED);
    assert_false(unit_of(s, "first")->keeps_slots);
    assert_int_equal(sim_story_ran(s), 2);
    both_complete(s);
    assert_true(started(s, "first") >= started(s, "second") + 60000);
}

/* The same, and the transaction that gives it up fails: its place in the queue is another one. */
SCENARIO(a_lease_that_could_not_be_given_up, .slots = 1, .machines = 2)
{
    begin(s);
    sim_story_at(s, 2);
    plan(s, "@b", 0, 60000);
    submit(s, "second", second);
    sim_story_run(s, 1000);
    sim_story_at(s, 1);
    sim_story_kill(s);
    sim_story_run(s, 15000);
    sim_story_outage(s, 8000);
    sim_story_run(s, 15000);
    assert_false(unit_of(s, "first")->keeps_slots);
    assert_true(has_met(s, "slots.entry_of_another_lease"));
    both_complete(s);
}

/* Two leases where there is room for one: each goes on, one after the other. */
SCENARIO(two_leases_meet_in_a_pool_of_one, .slots = 1, .machines = 3)
{
    begin(s);
    sim_story_at(s, 2);
    plan(s, "@b", 1, 1000);
    submit(s, "second", second);
    sim_story_run(s, 3000);
    assert_true(unit_of(s, "second")->keeps_slots);
    sim_story_kill(s);
    sim_story_at(s, 1);
    sim_story_kill(s);
    sim_story_run(s, 13000);
    assert_true(unit_of(s, "first")->keeps_slots);
    assert_true(unit_of(s, "second")->keeps_slots);
    assert_true(gl_str_starts(gl_buf_view(&job_of(s, "first")->owner), GL_S("n3")));
    assert_true(gl_str_starts(gl_buf_view(&job_of(s, "second")->owner), GL_S("n3")));
    both_complete(s);
    assert_true(has_met(s, "slots.lease_lost"));
    assert_int_equal(sim_story_ran(s), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_gets_what_is_kept_between_two_attempts),
        cmocka_unit_test(what_is_kept_outlives_the_node),
        cmocka_unit_test(a_try_that_is_due_waits_for_the_executor),
        cmocka_unit_test(a_job_that_is_paused_keeps_nothing),
        cmocka_unit_test(a_job_that_is_cancelled_keeps_nothing),
        cmocka_unit_test(a_node_without_room_takes_a_lease_over),
        cmocka_unit_test(a_lease_that_could_not_be_given_up),
        cmocka_unit_test(two_leases_meet_in_a_pool_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
