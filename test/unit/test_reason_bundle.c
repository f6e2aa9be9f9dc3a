/* Why is it so, in a bundle: steps, their agents, and the whole job. */
#include "support/golden.h"
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

static void assert_says(struct gl_because b, enum gl_why_code expected)
{
    assert_string_equal(gl_why_code_word(b.code), gl_why_code_word(expected));
    golden_say(gl_why_code_word(b.code), b.text);
}

static void assert_job(struct fixture *f, const struct rig *r, enum gl_why_code expected)
{
    assert_says(gl_reason_job(&f->a, &r->view, NULL), expected);
}

static void assert_step(struct fixture *f, const struct rig *r, uint32_t n,
                        enum gl_why_code expected)
{
    assert_says(gl_reason_step(&f->a, &r->view, n, -1, NULL), expected);
}

static void a_step_waits_for_a_message_or_for_its_agent(void **state)
{
    struct rig r;

    make(*state, &r);
    assert_job(*state, &r, GL_BECAUSE_WAITS_FOR_MESSAGE);
    assert_step(*state, &r, A, GL_BECAUSE_WAITS_FOR_MESSAGES);
    r.a.status = GL_STEP_QUEUED;
    assert_step(*state, &r, S, GL_BECAUSE_AGENT_BUSY);
}

static void a_step_that_has_begun_says_how_far_its_agent_is(void **state)
{
    struct rig r;

    make(*state, &r);
    r.s.status = GL_STEP_RUNNING;
    r.s.letter = r.a.letter = 7;
    r.a.status = GL_STEP_RUNNING;
    assert_job(*state, &r, GL_BECAUSE_RUNNING);
    r.a.status = GL_STEP_READY;
    assert_job(*state, &r, GL_BECAUSE_WAITS_FOR_AGENT);
    r.a.status = GL_STEP_QUEUED;
    assert_job(*state, &r, GL_BECAUSE_WAITS_FOR_AGENT);
    r.a.status = GL_STEP_RETRY_WAIT;
    r.a.retry_at = 1000;
    r.a.last_error = GL_S("exit code 1");
    assert_job(*state, &r, GL_BECAUSE_WAITS_FOR_AGENT);
    r.a.letter = 8; /* another step's */
    assert_step(*state, &r, S, GL_BECAUSE_RUNNING);
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
    assert_job(*state, &r, GL_BECAUSE_WAITS_FOR_AGENT);
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
    assert_step(*state, &r, S, GL_BECAUSE_RETRIES);
}

static void an_agent_without_a_step_is_told_by_its_name(void **state)
{
    struct rig r;

    make(*state, &r);
    r.b.status = GL_STEP_RUNNING;
    assert_job(*state, &r, GL_BECAUSE_RUNNING);
    r.b.status = GL_STEP_BLOCKED;
    r.b.blocked_on = GL_BLOCK_REVIEW;
    r.b.last_error = GL_S("why");
    assert_job(*state, &r, GL_BECAUSE_WAITS_FOR_REVIEW);
}

static void a_run_that_was_completed_too_early_says_so(void **state)
{
    struct rig r;

    make(*state, &r);
    r.view.job.completion = GL_S("{}");
    assert_job(*state, &r, GL_BECAUSE_WAITS_FOR_MESSAGE);
    r.view.job.status = GL_JOB_COMPLETED;
    assert_job(*state, &r, GL_BECAUSE_COMPLETED);
}

static void a_job_whose_steps_have_ended_waits_for_messages(void **state)
{
    struct rig r;

    make(*state, &r);
    r.s.status = GL_STEP_COMPLETED;
    assert_job(*state, &r, GL_BECAUSE_ABOUT_TO_START);
    r.view.job.letters_n = 4;
    r.view.job.waiting_n = 2;
    assert_job(*state, &r, GL_BECAUSE_ABOUT_TO_HANDLE);
    r.view.job.waiting_n = 0;
    assert_job(*state, &r, GL_BECAUSE_WAITS_FOR_MESSAGES);
}

static void what_a_worker_asks_is_said_with_how_to_answer(void **state)
{
    struct rig r;
    gl_str words[] = {GL_S("go"), GL_S("stop")};
    struct gl_question open[] = {{.request_id = GL_S("q"), .prompt = GL_S("launch?")},
                                 {.request_id = GL_S("p"), .decisions = {.items = words, .n = 2}}};
    struct gl_questions_run asks = {.asked_at = 2000, .open = open, .n = 1, .open_n = 1};

    make(*state, &r);
    r.s.status = r.a.status = GL_STEP_RUNNING;
    r.s.letter = r.a.letter = 7;
    r.a.attempt_at = 4000; /* clocks differ a little */
    r.view.asks = &asks;
    assert_job(*state, &r, GL_BECAUSE_RUNNING);
    open[1].expires_at = 5000;
    open[1].default_decision = GL_S("go");
    asks = (struct gl_questions_run){.asked_at = 500,
                                     .open = open + 1,
                                     .n = 1,
                                     .open_n = 70000,
                                     .trouble = GL_S("there are more")};
    assert_job(*state, &r, GL_BECAUSE_RUNNING);
    open[0].request_id = GL_S("-x'$(id)"); /* as a worker likes */
    words[0] = GL_S("go now");
    open[0].decisions = (struct gl_strs){.items = words, .n = 1};
    asks = (struct gl_questions_run){.asked_at = 9000, .open = open, .n = 1, .open_n = 1};
    assert_job(*state, &r, GL_BECAUSE_RUNNING);
    asks = (struct gl_questions_run){.open_n = 2}; /* of more runs than are kept in mind */
    assert_job(*state, &r, GL_BECAUSE_RUNNING);
}

static void every_sentence_reads_as_it_should(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/reason_bundle.golden");
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
        cmocka_unit_test(every_sentence_reads_as_it_should),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
