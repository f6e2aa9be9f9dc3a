/* test_agents.c - bundles: what agents do, and what becomes of it when nodes die. */
#include <stdio.h>
#include <string.h>

#include "core/core_state.h"
#include "node/node_state.h"
#include "scenario/scenario.h"

#define RETRY                                                           \
    "\"retry\":{\"attempts\":2,\"backoff_ms\":1000,\"factor_pct\":200," \
    "\"backoff_max_ms\":60000}"
#define MODULE(name) \
    "{\"id\":\"@" name "\",\"driver\":\"module\",\"safety\":\"idempotent\"," RETRY "}"
#define ROUTER(name) \
    "{\"id\":\"@" name "\",\"driver\":\"relay\",\"safety\":\"idempotent\"," RETRY "}"
#define STEP(name, agent, more) \
    "{\"id\":\"" name "\",\"driver\":\"agent\",\"agent_ids\":[\"" agent "\"]," more "" RETRY "}"

static const char chain[] =
    "{\"format\":3,\"name\":\"chain\",\"bundle\":{\"agents\":["
    "{\"id\":\"a\",\"kind\":\"module\",\"module\":\"m\"},{\"id\":\"b\",\"kind\":\"router\"}],"
    "\"seeds\":[{\"agent\":\"a\",\"message\":{\"body\":{}}}]},"
    "\"steps\":[" MODULE("a") "," ROUTER("b") "," STEP("one", "a", "") "," STEP(
        "two", "b", "\"needs\":[\"one\"],") "]}";

static void submit_as(struct sim_story *s, const char *flow)
{
    sim_story_run(s, 10);
    sim_story_compiled(s, "chain", flow);
    while (s->answer == 1 && s->world.now < SIM_EPOCH_MS + 5000) {
        sim_story_run(s, 1);
    }
    if (s->answer != 0) {
        fail_msg("%.*s", (int)s->body.n, s->body.p);
    }
}

static void submit(struct sim_story *s)
{
    submit_as(s, chain);
}

/* Its message is handled once, whoever hears of the end. */
SCENARIO(an_agent_outlives_the_node, .kinds = "step job")
{
    sim_story_says(s, "@a", "{\"complete_step\":true,\"emit_messages\":[]}");
    submit(s);
    sim_story_run(s, 500);
    sim_story_skip(s);
    sim_story_kill(s);
    sim_story_run(s, 1000);
    sim_story_start(s);
    expect(s, "1511 n1.2 step job=A step=one n=1 running->completed\n"
              "1511 n1.2 step job=A step=@a n=1 running->waiting\n"
              "1511 n1.2 step job=A step=two pending->ready\n"
              "1511 n1.2 step job=A step=two ready->running\n"
              "1511 n1.2 step job=A step=two n=1 running->completed\n"
              "1511 n1.2 job job=A token=2 running->completed\n");
    assert_int_equal(sim_story_ran(s), 1);
}

static const struct sim_fact_job *the_job(const struct sim_story *s)
{
    size_t at = 0;
    return gl_map_next(&s->checks.facts.jobs, &at);
}

static const struct sim_fact_step *the_step(const struct sim_story *s, const char *id)
{
    return sim_facts_step((struct sim_fact_job *)(uintptr_t)the_job(s), gl_str_of(id));
}

static void until_ended(struct sim_story *s)
{
    for (int i = 0; i < 600 && !gl_job_status_is_terminal(the_job(s)->r.status); i++) {
        sim_story_run(s, 1000);
    }
}

static void restart(struct sim_story *s)
{
    sim_story_kill(s);
    sim_story_run(s, 100);
    sim_story_start(s);
}

/* The number of the message that a process was given, by the order of their starts. */
static int given(const struct sim_story *s, size_t process)
{
    const struct gl_buf *m = &s->machines[0].keeper.ledger[process]->message;
    const char *id = memmem(m->p, m->n, "\"message_id\":\"", 14);
    int number = 0;
    assert_non_null(id);
    assert_int_equal(sscanf(id + 14 + GL_ULID_BYTES, "-%d", &number), 1);
    return number;
}

/* What was handled and not committed is committed by the next node, from the same process: its
 * state and its messages together, once. */
SCENARIO(a_turn_that_was_not_committed, .kinds = "job")
{
    sim_story_says(s, "@a",
                   "{\"next_state\":{\"n\":1,\"sent\":1,\"last\":\"x\"},"
                   "\"emit_messages\":[{\"to\":\"b\",\"type\":\"hop\",\"body\":1}],"
                   "\"complete_step\":true}");
    submit(s);
    sim_story_outage(s, 3000); /* it ends meanwhile, and nothing can be written */
    sim_story_run(s, 2500);
    assert_true(the_step(s, "@a")->r.status == GL_STEP_RUNNING);
    restart(s);
    until_ended(s);
    assert_int_equal(the_job(s)->r.status, GL_JOB_COMPLETED);
    assert_int_equal(the_step(s, "@a")->r.processed, 1);
    assert_int_equal(sim_story_ran(s), 1);
}

static const char held[] =
    "{\"format\":3,\"name\":\"held\",\"bundle\":{\"agents\":["
    "{\"id\":\"a\",\"kind\":\"module\",\"module\":\"m\"},"
    "{\"id\":\"b\",\"kind\":\"module\",\"module\":\"m\"}],"
    "\"seeds\":[{\"agent\":\"b\",\"message\":{\"body\":1}},"
    "{\"agent\":\"b\",\"message\":{\"body\":2}},"
    "{\"agent\":\"b\",\"message\":{\"body\":3}},{\"agent\":\"a\",\"message\":{\"body\":4}}]},"
    "\"steps\":[" MODULE("a") "," MODULE("b") "," STEP("one", "a", "") "," STEP(
        "two", "b", "\"needs\":[\"one\"],") "]}";

/* All of them, in the order in which they came, also by a node that has not seen them come. */
SCENARIO(what_is_deferred_keeps_its_order, .kinds = "job")
{
    sim_story_says(s, "@a", "{\"complete_step\":true}");
    sim_story_says(s, "@b", "{\"next_state\":null}");
    submit_as(s, held);
    sim_story_run(s, 500);
    restart(s);
    sim_story_run(s, 2200); /* "one" has ended, and the first of them is being handled */
    restart(s);
    sim_story_run(s, 4000);
    assert_int_equal(sim_story_ran(s), 4);
    assert_int_equal(given(s, 0), 4);
    assert_int_equal(given(s, 1), 1);
    assert_int_equal(given(s, 2), 2);
    assert_int_equal(given(s, 3), 3);
}

static const char gathers[] =
    "{\"format\":3,\"name\":\"gathers\",\"bundle\":{\"agents\":["
    "{\"id\":\"a\",\"kind\":\"module\",\"module\":\"m\"},"
    "{\"id\":\"g\",\"kind\":\"aggregator\",\"complete_after\":2,\"output\":\"typed\","
    "\"output_type\":\"all\"}],"
    "\"seeds\":[{\"agent\":\"a\",\"message\":{\"body\":1}},"
    "{\"agent\":\"a\",\"message\":{\"body\":2}}]},"
    "\"steps\":[" MODULE("a") "," ROUTER("g") "," STEP("all", "g", "") "]}";

/* What comes twice counts once, before and after a restart. */
SCENARIO(an_aggregator_counts_a_sender_once, .kinds = "job")
{
    sim_story_says(s, "@a",
                   "{\"emit_messages\":[{\"to\":\"g\",\"type\":\"part\","
                   "\"body\":{\"agent_id\":\"x\"}}]}");
    submit_as(s, gathers);
    sim_story_run(s, 1500); /* one of two is there */
    restart(s);
    sim_story_run(s, 5000);
    assert_int_equal(sim_story_ran(s), 2);
    assert_int_equal(the_step(s, "all")->r.status, GL_STEP_RUNNING);
    sim_story_ask(s, "send", "chain", "g", "{\"type\":\"part\",\"body\":{\"agent_id\":\"y\"}}");
    until_ended(s);
    assert_int_equal(the_job(s)->r.status, GL_JOB_COMPLETED);
}

#define GROWS(region)                                                                            \
    "{\"format\":3,\"name\":\"grows\",\"bundle\":{\"agents\":["                                  \
    "{\"id\":\"a\",\"kind\":\"module\",\"module\":\"m\"},"                                       \
    "{\"id\":\"b\",\"kind\":\"module\",\"module\":\"m\"}],"                                      \
    "\"seeds\":[{\"agent\":\"a\",\"message\":{\"body\":1}}],"                                    \
    "\"dynamic\":{\"enabled\":true,\"templates\":[{\"id\":\"more\",\"agent\":\"b\"}],"           \
    "\"regions\":[{\"id\":\"r\"," region ",\"controller\":\"one\",\"templates\":[\"more\"]}]}}," \
    "\"steps\":[" MODULE("a") "," MODULE("b") "," STEP("one", "a", "") "," STEP(                 \
        "two", "b", "\"needs\":[\"one\"],\"edges\":[{\"id\":\"e\",\"accepts\":1}],") "]}"

static const char grows[] = GROWS("\"exit\":\"two\",\"mutable_edges\":[\"e\"]"),
                  fans_out[] = GROWS("\"is_fanout\":true");

#define PATCH(id, revision, operations)                                               \
    "{\"events\":[{\"type\":\"workflow_graph_patch\",\"payload\":{\"patch_id\":\"" id \
    "\",\"region_id\":\"r\",\"base_revision\":" revision ",\"operations\":[" operations "]}}]"

/* The node dies when the change is written: the next one has it, and the new step comes between. */
SCENARIO(a_flow_that_was_changed_outlives_the_node, .kinds = "job")
{
    sim_story_says(s, "@a",
                   PATCH("p", "0",
                         "{\"op\":\"add_step\",\"id\":\"new\",\"template\":\"more\"},"
                         "{\"op\":\"add_edge\",\"id\":\"f\",\"from\":\"one\",\"to\":\"new\"},"
                         "{\"op\":\"add_edge\",\"id\":\"g\",\"from\":\"new\",\"to\":\"two\"},"
                         "{\"op\":\"remove_edge\",\"id\":\"e\"}") ",\"complete_step\":true}");
    sim_story_says(s, "@b", "{\"complete_step\":true}");
    submit_as(s, grows);
    sim_story_run(s, 1100);
    assert_int_equal(the_job(s)->r.graph_revision, 1);
    restart(s);
    until_ended(s);
    assert_int_equal(the_job(s)->r.status, GL_JOB_COMPLETED);
    assert_int_equal(the_job(s)->r.completed_n, 3);
    assert_true(the_step(s, "new")->r.ended_at <= the_step(s, "two")->r.started_at);
    assert_int_equal(sim_story_ran(s), 3);
}

#define EMITS ",\"emit_messages\":[{\"to\":\"nobody\",\"type\":\"word\",\"body\":1}]"

/* Twice, with a restart after each: its controller waits until it is told something. */
SCENARIO(a_fan_out_outlives_the_node, .kinds = "job")
{
    static const char *const says[] = {
        PATCH("p", "0", "{\"op\":\"add_step\",\"id\":\"n1\",\"template\":\"more\"}") "}",
        PATCH("q", "1", "{\"op\":\"add_step\",\"id\":\"n2\",\"template\":\"more\"}") EMITS "}",
        "{\"complete_step\":true}",
    };
    sim_story_says(s, "@b", "{\"complete_step\":true}");
    for (int turn = 0; turn < 3; turn++) {
        sim_story_says(s, "@a", says[turn]);
        if (turn == 0) {
            submit_as(s, fans_out);
        } else {
            sim_story_ask(s, "send", "chain", "a", "{\"body\":2}");
        }
        sim_story_run(s, 1050);
        restart(s);
        sim_story_run(s, 3000);
        assert_int_equal(the_job(s)->r.graph_revision, turn < 2 ? turn + 1 : 2);
        assert_int_equal(the_step(s, "one")->r.status,
                         turn < 2 ? GL_STEP_WAITING : GL_STEP_COMPLETED);
    }
    until_ended(s);
    assert_int_equal(the_job(s)->r.status, GL_JOB_COMPLETED);
    assert_int_equal(the_job(s)->r.completed_n, 4);
}

static const char service[] =
    "{\"format\":3,\"name\":\"service\",\"bundle\":{\"agents\":["
    "{\"id\":\"a\",\"kind\":\"module\",\"module\":\"m\"}],"
    "\"seeds\":[{\"agent\":\"a\",\"message\":{\"body\":1}}],"
    "\"policies\":{\"job_type\":\"service\",\"restart\":{\"attempts\":2,\"interval_ms\":60000,"
    "\"delay_ms\":1000,\"max_delay_ms\":8000,\"delay_function\":\"exponential\"}}},"
    "\"steps\":[" MODULE("a") "]}";

/* Restarts of one life count in the next: the third failure within the minute asks a person. */
SCENARIO(restarts_are_counted_over_the_lives_of_nodes, .kinds = "job")
{
    sim_story_process(s, "@a", 500, 1);
    submit_as(s, service);
    sim_story_run(s, 1000); /* it has failed, and waits for its first restart */
    assert_int_equal(the_step(s, "@a")->r.status, GL_STEP_RETRY_WAIT);
    restart(s);
    sim_story_run(s, 1500);
    assert_int_equal(the_step(s, "@a")->r.status, GL_STEP_RETRY_WAIT);
    restart(s);
    sim_story_run(s, 5000);
    assert_int_equal(sim_story_ran(s), 3);
    assert_int_equal(the_step(s, "@a")->r.blocked_on, GL_BLOCK_REVIEW);
    assert_int_equal(the_job(s)->r.status, GL_JOB_PAUSED);
    sim_story_ask(s, "cancel", "chain", "", "");
    until_ended(s);
    assert_int_equal(the_job(s)->r.status, GL_JOB_CANCELLED);
}

static const char beats[] =
    "{\"format\":3,\"name\":\"beats\",\"bundle\":{\"agents\":["
    "{\"id\":\"a\",\"kind\":\"executor\",\"beacons\":true,\"beacon_required\":true,"
    "\"beacon_ms\":1000,\"beacon_timeout_ms\":4000}],"
    "\"seeds\":[{\"agent\":\"a\",\"message\":{\"body\":1}}]},"
    "\"steps\":[{\"id\":\"@a\",\"driver\":\"worker\","
    "\"safety\":\"idempotent\",\"argv\":[\"x\"]," RETRY "}," STEP("one", "a", "") "]}";

/* A worker that gives signs of life is heard by the node that comes after the one that started it,
 * and is given the time to be heard. */
SCENARIO(signs_of_life_outlive_the_node, .kinds = "job")
{
    sim_story_says(s, "@a", "{\"stdout\":\"{}\",\"stderr\":\"\",\"stdout_bytes\":2}");
    s->processes[0].behaviour.lasts_ms = 15000;
    s->processes[0].behaviour.says_ms = 400;
    submit_as(s, beats);
    sim_story_run(s, 5000);
    restart(s);
    until_ended(s);
    assert_int_equal(the_job(s)->r.status, GL_JOB_COMPLETED);
    assert_int_equal(the_step(s, "one")->r.attempt_count, 1);
    assert_int_equal(sim_story_ran(s), 1);
}

enum { ITEMS = 10000 };

/* More than one transaction makes: each instance is made once, and counted once. */
/* What was asked in an earlier life of the job, for another message, is no answer. (A job is thrown
 * away and loaded again when a transaction is refused.) */
SCENARIO(an_answer_is_taken_for_its_question, .kinds = "job", .store_ms = 400)
{
    struct gl_buf said = {0};
    struct gl_arena a = {0};
    struct gl_effects out = {.arena = &a};
    gl_buf_fmt(&said,
               "{\"next_state\":{\"n\":1,\"sent\":1,\"last\":\"x\"},\"complete_step\":true,"
               "\"emit_messages\":[{\"to\":\"b\",\"type\":\"hop\","
               "\"body\":\"%03000d\"}]}",
               1);
    gl_buf_char(&said, 0);
    sim_story_says(s, "@a", said.p);
    sim_story_run(s, 2000); /* the node has its session */
    submit(s);
    struct gl_core *core = s->machines[0].node->node->core;
    struct gl_step *unit = NULL;
    struct gl_job *job = NULL;
    for (int i = 0;
         i < 10000 && (unit == NULL || unit->mailbox == NULL || unit->mailbox->asked == 0); i++) {
        sim_story_run(s, 1);
        job = gl_job_find(core, the_job(s) != NULL ? the_job(s)->id : (gl_str){0});
        unit = job != NULL ? gl_step_find(job, 1) : NULL;
    }
    assert_non_null(unit);
    uint64_t asked = unit->mailbox->asked;
    assert_true(asked > 0);
    struct gl_event stale = {
        .type = GL_EV_RESOLVED,
        .now = core->now,
        .context = core->context,
        .job = job->id,
        .resolved = {.step_number = 1,
                     .number = asked - 1,
                     .facts = GL_S("{\"message\":{\"envelope\":{\"type\":\"other\"}}}")}};
    gl_core_step(core, &stale, &out);
    assert_int_equal(out.n, 0);
    assert_int_equal(unit->mailbox->asked, asked);
    until_ended(s);
    assert_int_equal(the_job(s)->r.status, GL_JOB_COMPLETED);
    assert_int_equal(the_step(s, "@b")->r.processed, 1);
    gl_arena_done(&a);
    gl_buf_done(&said);
}

/* Its message is being read when the job is cancelled: what comes then is of no use any more. */
SCENARIO(what_is_read_too_late_changes_nothing, .kinds = "job", .store_ms = 400)
{
    struct gl_buf said = {0};
    gl_buf_fmt(&said,
               "{\"next_state\":{\"n\":1,\"sent\":1,\"last\":\"x\"},\"complete_step\":true,"
               "\"emit_messages\":[{\"to\":\"b\",\"type\":\"hop\","
               "\"body\":\"%03000d\"}]}",
               1);
    gl_buf_char(&said, 0);
    sim_story_says(s, "@a", said.p);
    sim_story_run(s, 2000); /* the node has its session */
    submit(s);
    struct gl_node *node = s->machines[0].node->node;
    struct gl_step *unit = NULL;
    struct gl_job *job = NULL;
    for (int i = 0;
         i < 10000 && (unit == NULL || unit->mailbox == NULL || unit->mailbox->asked == 0); i++) {
        sim_story_run(s, 1);
        job = gl_job_find(node->core, the_job(s) != NULL ? the_job(s)->id : (gl_str){0});
        unit = job != NULL ? gl_step_find(job, 1) : NULL;
    }
    assert_non_null(unit);
    struct gl_event cancel = {.type = GL_EV_COMMAND,
                              .now = node->core->now,
                              .context = node->core->context,
                              .job = job->id,
                              .command = {.verb = GL_CMD_CANCEL}};
    struct gl_event answer = {
        .type = GL_EV_RESOLVED,
        .now = node->core->now,
        .context = node->core->context,
        .job = job->id,
        .resolved = {.step_number = 1,
                     .number = unit->mailbox->asked,
                     .facts = GL_S("{\"message\":{\"envelope\":{\"type\":\"hop\"}}}")}};
    gl_node_feed(node, &cancel);
    gl_node_feed(node, &answer); /* it has been on its way */
    until_ended(s);
    sim_story_run(s, 5000);
    assert_int_equal(the_job(s)->r.status, GL_JOB_CANCELLED);
    assert_non_null(gl_map_find(&s->world.marks, GL_S("agents.read_too_late")));
    assert_int_equal(the_step(s, "@b")->r.status, GL_STEP_WAITING);
    assert_int_equal(the_step(s, "@b")->r.processed, 0);
    gl_buf_done(&said);
}

SCENARIO(ten_thousand_items, .kinds = "job", .store_ms = 20)
{
    struct gl_buf said = {0};
    gl_buf_c(&said, "{\"events\":[{\"type\":\"workflow_step_scatter\",\"payload\":{\"target\":"
                    "\"two\",\"max_items\":10000,\"items\":[");
    for (int i = 0; i < ITEMS; i++) {
        gl_buf_fmt(&said, "%s%d", i > 0 ? "," : "", i);
    }
    gl_buf_c(&said, "]}}],\"complete_step\":true}");
    gl_buf_char(&said, 0);
    sim_story_says(s, "@a", said.p);
    submit(s);
    for (int lives = 0; lives < 4; lives++) {
        sim_story_run(s, lives == 0 ? 1100 : 150);
        sim_story_kill(s);
        sim_story_start(s);
    }
    until_ended(s);
    assert_int_equal(the_job(s)->r.status, GL_JOB_COMPLETED);
    assert_int_equal(the_job(s)->r.completed_n, ITEMS + 1);
    assert_int_equal(the_job(s)->r.skipped_n, 1); /* the step they stand for */
    assert_int_equal(the_job(s)->r.steps_n, ITEMS + 2);
    gl_buf_done(&said);
}

SCENARIO(a_worker_that_fails_is_counted, .kinds = "job")
{
    sim_story_process(s, "@a", 1000, 3);
    submit(s);
    until_ended(s);
    const struct gl_core_counts *counts = gl_core_counts(s->machines[0].node->node->core);
    assert_true(counts->attempts_failed > 0);
    assert_int_equal(counts->attempts_succeeded, 0);
}

SCENARIO(a_worker_that_succeeds_is_counted, .kinds = "job")
{
    sim_story_says(s, "@a", "{\"complete_step\":true,\"emit_messages\":[]}");
    submit(s);
    until_ended(s);
    const struct gl_core_counts *counts = gl_core_counts(s->machines[0].node->node->core);
    assert_int_equal(counts->attempts_failed, 0);
    assert_int_equal(counts->attempts_succeeded, 1);
}

/* Work that may be repeated waits for a person because the bundle wants that, and not because it
 * were unsafe. */
SCENARIO(a_review_of_idempotent_work_does_not_call_it_unsafe, .machines = 2, .kinds = "job")
{
    static const char manual[] =
        "{\"format\":3,\"name\":\"chain\",\"bundle\":{\"agents\":["
        "{\"id\":\"a\",\"kind\":\"module\",\"module\":\"m\"},{\"id\":\"b\",\"kind\":\"router\"}],"
        "\"policies\":{\"recovery_mode\":\"manual_recover\"},"
        "\"seeds\":[{\"agent\":\"a\",\"message\":{\"body\":{}}}]},"
        "\"steps\":[" MODULE("a") "," ROUTER("b") "," STEP("one", "a", "") "," STEP(
            "two", "b", "\"needs\":[\"one\"],") "]}";
    sim_story_process(s, "@a", 60000, 0);
    sim_story_run(s, 2000);
    submit_as(s, manual);
    sim_story_run(s, 2000);
    sim_story_kill(s);
    sim_story_run(s, 60000);
    sim_story_at(s, 2);
    sim_story_ask(s, "why", "chain", "", "");
    sim_story_run(s, 1000);
    assert_int_equal(s->answer, 0);
    assert_non_null(strstr(s->body.p, "recovery_mode is manual_recover"));
    assert_null(strstr(s->body.p, "unsafe"));
}

static int64_t told(struct sim_story *s, const char *field)
{
    sim_story_ask(s, "status", "chain", "", "");
    sim_story_run(s, 100);
    const char *at = strstr(s->body.p, field);
    assert_non_null(at);
    gl_ms ret = 0;
    gl_str text = {.p = at + strlen(field), .n = 24};
    assert_true(gl_times_parse(text, &ret));
    return ret;
}

/* Signs of life are not written down: a status tells what the node has heard last. */
SCENARIO(a_status_shows_the_latest_sign_of_life, .kinds = "job")
{
    sim_story_process(s, "a", 60000, 0);
    sim_story_run(s, 10);
    sim_story_flow(s, "chain", "{\"steps\":{\"a\":{\"run\":[\"x\"],\"heartbeat\":\"9s\"}}}");
    sim_story_run(s, 5000);
    int64_t beacon = told(s, "\"beacon_at\":\""), due = told(s, "\"heartbeat_at\":\"");
    uint64_t commits = metric(s, "glia_store_commits_total");
    sim_story_run(s, 20000);
    assert_true(told(s, "\"beacon_at\":\"") > beacon);
    assert_true(told(s, "\"heartbeat_at\":\"") > due);
    assert_int_equal(metric(s, "glia_store_commits_total"), commits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_agent_outlives_the_node),
        cmocka_unit_test(a_turn_that_was_not_committed),
        cmocka_unit_test(what_is_deferred_keeps_its_order),
        cmocka_unit_test(an_aggregator_counts_a_sender_once),
        cmocka_unit_test(a_flow_that_was_changed_outlives_the_node),
        cmocka_unit_test(a_fan_out_outlives_the_node),
        cmocka_unit_test(a_worker_that_fails_is_counted),
        cmocka_unit_test(a_worker_that_succeeds_is_counted),
        cmocka_unit_test(a_review_of_idempotent_work_does_not_call_it_unsafe),
        cmocka_unit_test(a_status_shows_the_latest_sign_of_life),
        cmocka_unit_test(restarts_are_counted_over_the_lives_of_nodes),
        cmocka_unit_test(signs_of_life_outlive_the_node),
        cmocka_unit_test(an_answer_is_taken_for_its_question),
        cmocka_unit_test(what_is_read_too_late_changes_nothing),
        cmocka_unit_test(ten_thousand_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
