/* test_priority.c - the order in which an agent handles the messages that wait for it. */
#include <stdio.h>
#include <string.h>

#include "core/agents/message_order.h"
#include "core/core_state.h"
#include "core/snapshot.h"
#include "node/node_state.h"
#include "scenario/scenario.h"

#define RETRY                                                           \
    "\"retry\":{\"attempts\":3,\"backoff_ms\":1000,\"factor_pct\":200," \
    "\"backoff_max_ms\":60000}"
#define MODULE(name) \
    "{\"id\":\"@" name "\",\"driver\":\"module\",\"safety\":\"idempotent\"," RETRY "}"
#define STEP(name, agent, more) \
    "{\"id\":\"" name "\",\"driver\":\"agent\",\"agent_ids\":[\"" agent "\"]," more "" RETRY "}"
#define SEED(agent, priority) \
    "{\"agent\":\"" agent "\",\"message\":{\"priority\":" #priority ",\"body\":1}}"
#define ALONE(seeds)                                            \
    "{\"format\":3,\"name\":\"alone\",\"bundle\":{\"agents\":[" \
    "{\"id\":\"a\",\"kind\":\"module\",\"module\":\"m\"}],"     \
    "\"seeds\":[" seeds "]},\"steps\":[" MODULE("a") "]}"

static void submit(struct sim_story *s, const char *flow)
{
    sim_story_run(s, 10);
    sim_story_compiled(s, "chain", flow);
    for (int i = 0; i < 5000 && s->answer == 1; i++) {
        sim_story_run(s, 1);
    }
    if (s->answer != 0) {
        fail_msg("%.*s", (int)s->body.n, s->body.p);
    }
}

static void send(struct sim_story *s, const char *message)
{
    sim_story_ask(s, "send", "chain", "a", message);
    sim_story_run(s, 10);
    if (s->answer != 0) {
        fail_msg("%.*s", (int)s->body.n, s->body.p);
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

/* Exactly these messages were handled, in this order. */
static void assert_given(const struct sim_story *s, const char *expected)
{
    char text[256] = "";
    size_t n = 0;

    for (size_t i = 0; i < s->machines[0].keeper.ledger_n; i++) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%d", i > 0 ? " " : "", given(s, i));
    }
    assert_string_equal(text, expected);
}

static const char mixed[] = ALONE(SEED("a", 100) "," SEED("a", 0) "," SEED("a", 500) "," SEED(
    "a", 100) "," SEED("a", 500) "," SEED("a", 1000));

SCENARIO(the_higher_priority_goes_first, .kinds = "job")
{
    sim_story_says(s, "@a", "{}");
    submit(s, mixed);
    sim_story_run(s, 20000);
    assert_given(s, "6 3 5 1 4 2");
}

SCENARIO(a_node_that_loads_the_job_keeps_the_order, .kinds = "job")
{
    sim_story_says(s, "@a", "{}");
    submit(s, mixed);
    sim_story_run(s, 2500);
    restart(s);
    sim_story_run(s, 2500);
    restart(s);
    sim_story_run(s, 20000);
    assert_given(s, "6 3 5 1 4 2");
}

/* The first one is being handled when it comes. */
SCENARIO(a_message_overtakes_those_that_wait_not_the_one_being_handled, .kinds = "job")
{
    sim_story_says(s, "@a", "{}");
    submit(s, ALONE(SEED("a", 100) "," SEED("a", 100) "," SEED("a", 100)));
    sim_story_run(s, 500);
    send(s, "{\"type\":\"go\",\"priority\":200,\"body\":1}");
    sim_story_run(s, 20000);
    assert_given(s, "1 4 2 3");
}

/* Each second that it has waited is worth a point. */
SCENARIO(a_message_that_waits_gains_priority, .kinds = "job")
{
    sim_story_says(s, "@a", "{}");
    s->processes[0].behaviour.lasts_ms = 4500;
    submit(s, ALONE(SEED("a", 100) "," SEED("a", 100) "," SEED("a", 97)));
    sim_story_run(s, 2500);                                   /* the first is being handled */
    send(s, "{\"type\":\"go\",\"priority\":101,\"body\":1}"); /* waits */
    send(s, "{\"type\":\"go\",\"priority\":103,\"body\":1}");
    sim_story_run(s, 60000);
    assert_given(s, "1 5 2 4 3");
}

/* A message without `urgency` is one of the usual priority. */
SCENARIO(a_usual_priority_is_not_written, .kinds = "job")
{
    size_t with = 0, messages = 0;

    sim_story_says(s, "@a", "{}");
    submit(s, ALONE(SEED("a", 100) "," SEED("a", 100) "," SEED("a", 101)));
    sim_story_run(s, 100);
    const struct sim_sorted *all = sim_disk_kind(&s->disk, SIM_CONTEXT, GL_S("letter"));
    for (size_t i = 0; all != NULL && i < all->n; i++) {
        const struct sim_disk_record *r =
            sim_disk_peek(&s->disk, SIM_CONTEXT, GL_S("letter"), all->rows[i]->id);

        messages++;
        with += memmem(r->value.p, r->value.n, "\"urgency\":1,", 12) != NULL;
        assert_null(memmem(r->value.p, r->value.n, "again", 5));
    }
    assert_int_equal(messages, 3);
    assert_int_equal(with, 1);
    sim_story_run(s, 20000);
    assert_given(s, "3 1 2");
}

/* Its clock is ten seconds behind: what is sent then has waited for a shorter time all the same. */
SCENARIO(a_node_with_a_slow_clock_keeps_the_order, .kinds = "job")
{
    sim_story_says(s, "@a", "{}");
    s->processes[0].behaviour.lasts_ms = 4000;
    submit(s, ALONE(SEED("a", 100) "," SEED("a", 100) "," SEED("a", 100)));
    sim_story_run(s, 1000);
    sim_story_kill(s);
    s->at->wall -= 10000;
    sim_story_run(s, 100);
    sim_story_start(s);
    sim_story_run(s, 1000);
    send(s, "{\"type\":\"go\",\"body\":1}");
    sim_story_run(s, 60000);
    assert_given(s, "1 2 3 4");
}

/* Earlier releases ordered messages by number; their dates could go back with a new owner. */
SCENARIO(messages_of_earlier_releases_keep_their_order, .kinds = "job")
{
    sim_story_says(s, "@a", "{}");
    submit(s, ALONE(SEED("a", 100) "," SEED("a", 100) "," SEED("a", 100) "," SEED("a", 100)));
    sim_story_kill(s);
    const struct sim_sorted *all = sim_disk_kind(&s->disk, SIM_CONTEXT, GL_S("letter"));
    const struct sim_disk_record *second =
        sim_disk_peek(&s->disk, SIM_CONTEXT, GL_S("letter"), all->rows[1]->id);
    char *at = memmem(second->value.p, second->value.n, "\"created_at\":18000000000", 24);
    assert_non_null(at);
    at[20] = '1'; /* later by some minutes */
    sim_story_run(s, 100);
    sim_story_start(s);
    sim_story_run(s, 20000);
    assert_given(s, "1 2 3 4");
}

/* A core that was made from the text of another takes the same message next. */
SCENARIO(a_snapshot_keeps_the_order, .kinds = "job")
{
    static const int numbers[] = {3, 5, 1, 4, 2};
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0}, again = {0};
    struct gl_arena arena = {0};
    struct gl_effects out = {.arena = &arena};
    struct gl_trace trace = {0};
    struct gl_core *core;
    struct gl_why why;
    size_t at = 0;

    sim_story_says(s, "@a", "{}");
    submit(s, mixed);
    sim_story_run(s, 100);
    assert_true(gl_core_save(s->at->node->node->core, SIZE_MAX, &text));
    assert_int_equal(gl_core_restore(gl_buf_view(&text), &trace, NULL, &core, &why), 0);
    assert_true(gl_core_save(core, SIZE_MAX, &again));
    assert_true(gl_str_eq(gl_buf_view(&text), gl_buf_view(&again)));
    struct gl_step *unit = gl_step_find(gl_map_next(&core->jobs, &at), 0);
    core->out = &out;
    for (size_t i = 0; i < GL_COUNT(numbers); i++) {
        struct gl_queued_message *q = gl_message_order_next(unit);

        assert_int_equal(q->r.number, numbers[i]);
        gl_mailbox_take(core, unit, q);
        gl_list_push(&unit->mailbox->counted, &q->link); /* freed with the core */
    }
    core->out = NULL;
    gl_core_free(core);
    gl_arena_done(&arena);
}

static const char retried[] =
    "{\"format\":3,\"name\":\"retried\",\"bundle\":{\"agents\":["
    "{\"id\":\"a\",\"kind\":\"module\",\"module\":\"m\"}],"
    "\"seeds\":[" SEED("a", 100) "]},\"steps\":[" MODULE("a") "," STEP("one", "a", "") "]}";

/* The attempt fails with it, and the next begins with it, though another one comes meanwhile. */
SCENARIO(a_retry_begins_with_its_message, .kinds = "job")
{
    sim_story_says(s, "@a", "{\"events\":[{\"type\":\"workflow_step_failed\",\"payload\":{}}]}");
    submit(s, retried);
    sim_story_run(s, 1500); /* the first attempt has failed */
    send(s, "{\"type\":\"go\",\"priority\":900,\"body\":1}");
    sim_story_run(s, 200);
    restart(s);
    sim_story_run(s, 30000);
    assert_int_equal(given(s, 0), 1);
    assert_int_equal(given(s, 1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_higher_priority_goes_first),
        cmocka_unit_test(a_node_that_loads_the_job_keeps_the_order),
        cmocka_unit_test(a_message_overtakes_those_that_wait_not_the_one_being_handled),
        cmocka_unit_test(a_message_that_waits_gains_priority),
        cmocka_unit_test(a_usual_priority_is_not_written),
        cmocka_unit_test(a_node_with_a_slow_clock_keeps_the_order),
        cmocka_unit_test(messages_of_earlier_releases_keep_their_order),
        cmocka_unit_test(a_snapshot_keeps_the_order),
        cmocka_unit_test(a_retry_begins_with_its_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
