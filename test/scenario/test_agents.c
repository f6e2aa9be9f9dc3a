/* test_agents.c - bundles: what agents do, and what becomes of it when nodes die. */
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

static void submit(struct sim_story *s)
{
    sim_story_run(s, 10);
    sim_story_compiled(s, "chain", chain);
    while (s->answer == 1 && s->world.now < SIM_EPOCH_MS + 5000) {
        sim_story_run(s, 1);
    }
    if (s->answer != 0) {
        fail_msg("%.*s", (int)s->body.n, s->body.p);
    }
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

enum { ITEMS = 10000 };

/* More than one transaction makes: each instance is made once, and counted once. */
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
    for (int i = 0; i < 600 && !gl_job_status_is_terminal(the_job(s)->r.status); i++) {
        sim_story_run(s, 1000);
    }
    assert_int_equal(the_job(s)->r.status, GL_JOB_COMPLETED);
    assert_int_equal(the_job(s)->r.completed_n, ITEMS + 1);
    assert_int_equal(the_job(s)->r.skipped_n, 1); /* the step they stand for */
    assert_int_equal(the_job(s)->r.steps_n, ITEMS + 2);
    gl_buf_done(&said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_agent_outlives_the_node),
        cmocka_unit_test(ten_thousand_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
