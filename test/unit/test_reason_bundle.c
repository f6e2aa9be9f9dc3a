/* Why is it so, in a bundle: steps, their agents, and the whole job. */
#include "support/manifest_rig.h"

#include <string.h>

#include "api/reason.h"

static const char manifest[] =
    "{'manifest_version':'1.0','graph_id':'g','job_name':'j','entrypoints':['a'],'flow':{'nodes':["
    "{'node_id':'a','agent_type':'executor','config':{'command':['p']}},"
    "{'node_id':'b','agent_type':'executor','config':{'command':['p']}}],'edges':[],"
    "'steps':[{'id':'s','agent_ids':['a']}],'graph':{'edges':[]}}}";

enum { A, B, S, STEPS_N };

struct rig {
    struct gl_view view;
    struct gl_view_items items[STEPS_N];
    const struct gl_step_record *steps[STEPS_N];
    struct gl_step_record a, b, s;
};

static void make(struct fixture *f, struct rig *r)
{
    *r = (struct rig){.view = {.job = {.job_id = GL_S("01J"), .status = GL_JOB_RUNNING}},
                      .a = {.step_id = GL_S("@a")},
                      .b = {.step_id = GL_S("@b")},
                      .s = {.step_id = GL_S("s"), .status = GL_STEP_READY}};
    r->view.flow = compile(f, manifest);
    assert_int_equal(r->view.flow->steps.n, STEPS_N);
    r->view.items = r->items;
    r->view.steps = r->steps;
    r->steps[A] = &r->a;
    r->steps[B] = &r->b;
    r->steps[S] = &r->s;
}

static void assert_says(struct fixture *f, gl_str why, const char *expected)
{
    if (strcmp(gl_str_c(&f->a, why), expected) != 0) {
        fail_msg("expected '%s', not '%.*s'", expected, GL_STR_ARG(why));
    }
}

static void assert_job(struct fixture *f, const struct rig *r, const char *expected)
{
    assert_says(f, gl_reason_job(&f->a, &r->view, NULL).text, expected);
}

static void assert_step(struct fixture *f, const struct rig *r, uint32_t n, const char *expected)
{
    assert_says(f, gl_reason_step(&f->a, &r->view, n, -1, NULL).text, expected);
}

static void a_step_waits_for_a_message_or_for_its_agent(void **state)
{
    struct rig r;

    make(*state, &r);
    assert_job(*state, &r, "step 's' waits for a message to its agent 'a'");
    assert_step(*state, &r, A, "waits for messages");
    r.a.status = GL_STEP_QUEUED;
    assert_step(*state, &r, S, "waits for its agent 'a', which has another message to handle");
}

static void a_step_that_has_begun_says_how_far_its_agent_is(void **state)
{
    struct rig r;

    make(*state, &r);
    r.s.status = GL_STEP_RUNNING;
    r.s.letter = r.a.letter = 7;
    r.a.status = GL_STEP_RUNNING;
    assert_job(*state, &r, "runs 's'");
    r.a.status = GL_STEP_READY;
    assert_job(*state, &r, "step 's' waits for its agent 'a', which is about to handle a message");
    r.a.status = GL_STEP_QUEUED;
    assert_job(*state, &r,
               "step 's' waits for its agent 'a', which waits for 1 slot of pool 'default', and no "
               "node is running to give it any: start one with 'glia serve'");
    r.a.status = GL_STEP_RETRY_WAIT;
    r.a.retry_at = 1000;
    r.a.last_error = GL_S("exit code 1");
    assert_job(*state, &r,
               "step 's' waits for its agent 'a', which waits until 1970-01-01T00:00:01.000Z, then "
               "it handles its message again: exit code 1");
    r.a.letter = 8; /* another step's */
    assert_step(*state, &r, S, "runs attempt 0 since 1970-01-01T00:00:00.000Z");
}

static void a_review_says_how_to_decide(void **state)
{
    struct rig r;

    make(*state, &r);
    r.view.job.status = GL_JOB_PAUSED;
    r.view.job.hold = GL_HOLD_REVIEW;
    r.s.status = GL_STEP_RUNNING;
    r.s.letter = r.a.letter = 7;
    r.a.status = GL_STEP_BLOCKED;
    r.a.blocked_on = GL_BLOCK_REVIEW;
    r.view.asks_person = true;
    r.a.last_error = GL_S("nobody knows");
    assert_job(*state, &r,
               "step 's' waits for its agent 'a', which waits for a person: nobody knows; decide "
               "with 'glia human respond 01J a --decision rerun' (or done, failed)");
}

static void a_step_that_is_tried_again_says_when(void **state)
{
    struct rig r;

    make(*state, &r);
    r.s.status = GL_STEP_RETRY_WAIT;
    r.s.attempt_count = 1;
    r.s.counted = 1;
    r.s.retry_at = 1000;
    r.s.last_error = GL_S("exit code 1");
    assert_step(*state, &r, S,
                "failed in attempt 1 (exit code 1) and is tried again at 1970-01-01T00:00:01.000Z "
                "(2 of 1)");
}

static void an_agent_without_a_step_is_told_by_its_name(void **state)
{
    struct rig r;

    make(*state, &r);
    r.b.status = GL_STEP_RUNNING;
    assert_job(*state, &r, "runs 'b'");
    r.b.status = GL_STEP_BLOCKED;
    r.b.blocked_on = GL_BLOCK_REVIEW;
    r.b.last_error = GL_S("why");
    assert_job(*state, &r,
               "agent 'b' waits for a person: why; decide with 'glia human respond 01J b "
               "--decision rerun' (or done, failed)");
}

static void a_run_that_was_completed_too_early_says_so(void **state)
{
    struct rig r;

    make(*state, &r);
    r.view.job.completion = GL_S("{}");
    assert_job(*state, &r,
               "step 's' waits for a message to its agent 'a'; its sink has completed the run, "
               "which ends when all steps have");
    r.view.job.status = GL_JOB_COMPLETED;
    assert_job(*state, &r, "completed at 1970-01-01T00:00:00.000Z");
}

static void a_job_whose_steps_have_ended_waits_for_messages(void **state)
{
    struct rig r;

    make(*state, &r);
    r.s.status = GL_STEP_COMPLETED;
    assert_job(*state, &r, "is about to begin");
    r.view.job.letters_n = 4;
    r.view.job.waiting_n = 2;
    assert_job(*state, &r, "is about to handle 2 messages");
    r.view.job.waiting_n = 0;
    assert_job(*state, &r, "waits for messages to its agents: 'glia send 01J AGENT' sends one");
}

static void what_a_worker_asks_is_said_with_how_to_answer(void **state)
{
    struct rig r;
    gl_str words[] = {GL_S("go"), GL_S("stop")};
    struct gl_ask open[] = {{.request_id = GL_S("q"), .prompt = GL_S("launch?")},
                            {.request_id = GL_S("p"), .decisions = {.items = words, .n = 2}}};
    struct gl_asks_run asks = {.asked_at = 2000, .open = open, .n = 1, .open_n = 1};

    make(*state, &r);
    r.s.status = r.a.status = GL_STEP_RUNNING;
    r.s.letter = r.a.letter = 7;
    r.a.attempt_at = 4000; /* clocks differ a little */
    r.view.asks = &asks;
    assert_job(*state, &r,
               "runs 's'; request 'q' waits for a person: launch?; answer with: glia human respond "
               "01J q --decision approve (or reject)");
    open[1].expires_at = 5000;
    open[1].default_decision = GL_S("go");
    asks = (struct gl_asks_run){.asked_at = 500,
                                .open = open + 1,
                                .n = 1,
                                .open_n = 70000,
                                .trouble = GL_S("there are more")};
    assert_job(
        *state, &r,
        "runs 's'; request 'p' waits for a person (until 1970-01-01T00:00:05.000Z; then: "
        "go); answer with: glia human respond 01J p --decision go (or stop); 69999 more wait, too: "
        "'glia human list' shows them; no worker that may have asked is running: the answer "
        "waits for the next attempt; there are more");
    open[0].request_id = GL_S("-x'$(id)"); /* as a worker likes */
    words[0] = GL_S("go now");
    open[0].decisions = (struct gl_strs){.items = words, .n = 1};
    asks = (struct gl_asks_run){.asked_at = 9000, .open = open, .n = 1, .open_n = 1};
    assert_job(*state, &r,
               "runs 's'; request '-x'$(id)' waits for a person: launch?; answer with: glia human "
               "respond 01J --decision 'go now' -- '-x'\\''$(id)'");
    asks = (struct gl_asks_run){.open_n = 2}; /* of more runs than are kept in mind */
    assert_job(*state, &r,
               "runs 's'; 2 requests of its workers wait for a person: 'glia human list'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(a_step_waits_for_a_message_or_for_its_agent),
        T(a_step_that_has_begun_says_how_far_its_agent_is),
        T(a_review_says_how_to_decide),
        T(a_step_that_is_tried_again_says_when),
        T(an_agent_without_a_step_is_told_by_its_name),
        T(a_run_that_was_completed_too_early_says_so),
        T(a_job_whose_steps_have_ended_waits_for_messages),
        T(what_a_worker_asks_is_said_with_how_to_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
