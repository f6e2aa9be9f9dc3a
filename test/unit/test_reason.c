/* Why is it so: a sentence for every state of a job and of a step. */
#include "api/reason.h"
#include "model/offer.h"
#include "support/cmocka_all.h"
#include "support/golden.h"

#include <string.h>

static const char flow_text[] =
    "{\"format\":2,\"name\":\"f\",\"steps\":["
    "{\"id\":\"a\",\"argv\":[\"true\"],\"pool\":\"gpu\",\"slots\":2,\"retry\":{\"attempts\":3,"
    "\"backoff_ms\":1000,\"factor_pct\":200,\"backoff_max_ms\":60000}},"
    "{\"id\":\"b\",\"needs\":[\"a\"],\"argv\":[\"true\"],\"foreach\":\"[1,2,3]\",\"items_max\":10},"
    "{\"id\":\"c\",\"needs\":[\"a\",\"b\"],\"driver\":\"approval\",\"approval\":\"Ship it?\","
    "\"decisions\":[\"ship\",\"hold\"]},"
    "{\"id\":\"d\",\"driver\":\"signal\",\"signal\":\"go\"}]}";

struct rig {
    struct gl_arena arena;
    struct gl_view view;
};

static int make_rig(void **state)
{
    struct rig *r = test_calloc(1, sizeof(*r));
    struct gl_record job = {.id = GL_S("01J"),
                            .value = GL_S("{\"job_id\":\"01J\",\"run_id\":\"r\",\"flow\":\"h\","
                                          "\"status\":\"running\",\"steps_n\":4}")};

    assert_int_equal(gl_view_read(&r->arena, &job, gl_str_of(flow_text), NULL, 0, &r->view, NULL),
                     0);
    *state = r;
    return 0;
}

static int free_rig(void **state)
{
    struct rig *r = *state;

    gl_arena_done(&r->arena);
    test_free(r);
    return 0;
}

static enum gl_why_code explain_pool(void *owner, gl_str job, uint32_t number, struct gl_buf *out)
{
    (void)owner;
    (void)job;
    gl_buf_fmt(out, "waits behind 3 others (step %u)", number);
    return GL_BECAUSE_WAITS_FOR_SLOTS;
}

static bool is_quarantined(void *owner, gl_str job)
{
    (void)job;
    return owner != NULL;
}

static const struct gl_reason_live live = {.step = explain_pool, .is_quarantined = is_quarantined};

/* It must read well behind "step 'a' ", too. */
static bool begins_with_a_verb(gl_str why)
{
    static const char *const verbs[] = {"completed", "failed", "had",   "has", "is", "reuses",
                                        "runs",      "sleeps", "waits", "was", NULL};
    gl_str rest, word = gl_str_cut(why, ' ', &rest);

    word.n -= word.n > 0 && (word.p[word.n - 1] == ':' || word.p[word.n - 1] == ',');
    return gl_schema_word(verbs, word) >= 0;
}

/* Step `number` is in this state because of that. */
static void assert_step(struct rig *r, uint32_t number, struct gl_step_record rec,
                        const struct gl_reason_live *l, enum gl_why_code expected)
{
    struct gl_because b;

    rec.step_id = gl_flow_step(r->view.flow, number)->id;
    r->view.steps[number] = &rec;
    b = gl_reason_step(&r->arena, &r->view, number, -1, l);
    r->view.steps[number] = NULL;
    assert_string_equal(gl_why_code_word(b.code), gl_why_code_word(expected));
    if (!begins_with_a_verb(b.text)) {
        fail_msg("'%.*s' begins with no verb", GL_STR_ARG(b.text));
    }
    golden_say(gl_why_code_word(b.code), b.text);
}

static void assert_job(struct rig *r, const struct gl_reason_live *l, enum gl_why_code expected)
{
    struct gl_because b = gl_reason_job(&r->arena, &r->view, l);

    assert_string_equal(gl_why_code_word(b.code), gl_why_code_word(expected));
    golden_say(gl_why_code_word(b.code), b.text);
}

static void a_pending_step_names_what_it_waits_for(void **state)
{
    struct gl_step_record done = {.step_id = GL_S("a"), .status = GL_STEP_COMPLETED};
    struct rig *r = *state;

    assert_step(r, 2, (struct gl_step_record){0}, &live, GL_BECAUSE_WAITS_FOR_STEPS);
    r->view.steps[0] = &done;
    assert_step(r, 2, (struct gl_step_record){0}, &live, GL_BECAUSE_WAITS_FOR_STEPS);
    r->view.steps[0] = NULL;
    r->view.job.status = GL_JOB_CANCELLED;
    assert_step(r, 2, (struct gl_step_record){0}, &live, GL_BECAUSE_NOT_REACHED);
}

static void a_queued_step_names_its_pool_or_who_is_before_it(void **state)
{
    struct gl_step_record queued = {.status = GL_STEP_QUEUED};
    struct rig *r = *state;

    assert_step(r, 0, queued, &live, GL_BECAUSE_WAITS_FOR_SLOTS);
    assert_step(r, 0, queued, NULL, GL_BECAUSE_NO_NODE);
    r->view.job.status = GL_JOB_PAUSED;
    r->view.job.reason = GL_S("paused by ann");
    assert_step(r, 0, queued, &live, GL_BECAUSE_HELD_WITH_JOB);
    assert_step(r, 0, (struct gl_step_record){.status = GL_STEP_READY}, &live,
                GL_BECAUSE_HELD_WITH_JOB);
}

static void a_step_under_way_says_since_when_and_until_when(void **state)
{
    struct gl_step_record run = {
        .status = GL_STEP_RUNNING, .attempt_count = 2, .attempt_at = 1000, .deadline_at = 61000};
    struct gl_step_record again = {.status = GL_STEP_RETRY_WAIT,
                                   .attempt_count = 1,
                                   .counted = 1,
                                   .retry_at = 5000,
                                   .last_error = GL_S("exit code 1")};
    struct rig *r = *state;

    assert_step(r, 0, run, &live, GL_BECAUSE_RUNNING);
    run.stopping = GL_STOP_DEADLINE;
    assert_step(r, 0, run, &live, GL_BECAUSE_STOPPING);
    assert_step(r, 0, again, &live, GL_BECAUSE_RETRIES);
    assert_step(r, 0, (struct gl_step_record){.status = GL_STEP_READY}, &live, GL_BECAUSE_READY);
    assert_step(r, 1,
                (struct gl_step_record){
                    .status = GL_STEP_WAITING, .items_n = 3, .items_made = 2, .items_ended = 1},
                &live, GL_BECAUSE_WAITS_FOR_ITEMS);
}

static void a_step_on_another_node_names_that_node(void **state)
{
    struct gl_step_record run = {.status = GL_STEP_RUNNING,
                                 .attempt_count = 2,
                                 .attempt_at = 1000,
                                 .node = GL_S("b.2"),
                                 .is_elsewhere = true};
    struct gl_nodes_owner owner = {.session = GL_S("a.1#1.x"), .node = GL_S("a.1")};
    struct gl_view_offer offer = {.step_id = GL_S("a"), .state = GL_TAKEN_RUNNING};
    struct rig *r = *state;

    r->view.owner = &owner;
    assert_step(r, 0, run, &live, GL_BECAUSE_RUNS_ELSEWHERE); /* its record was not read */
    r->view.offers = &offer;
    r->view.offers_n = 1;
    assert_step(r, 0, run, &live, GL_BECAUSE_OFFERED);
    offer.is_taken = true;
    assert_step(r, 0, run, &live, GL_BECAUSE_RUNS_ELSEWHERE);
    offer.state = GL_TAKEN_ENDED;
    assert_step(r, 0, run, &live, GL_BECAUSE_ENDED_ELSEWHERE);
    run.stopping = GL_STOP_DEADLINE;
    assert_step(r, 0, run, &live, GL_BECAUSE_STOPPING);
}

/* Only a step that may leave its job's node does not have to wait for the job to move. */
static void a_pool_of_other_nodes_is_waited_for_where_the_job_is(void **state)
{
    static const struct gl_session_info two[] = {
        {.id = GL_S("a.1#1.x"),
         .node = GL_S("a.1"),
         .about = GL_S("{\"state\":\"ready\",\"offers\":1,\"pools\":[]}")},
        {.id = GL_S("b.2#1.x"),
         .node = GL_S("b.2"),
         .about = GL_S("{\"state\":\"ready\",\"offers\":1,\"pools\":[{\"name\":\"gpu\","
                       "\"slots\":2}]}")},
        {.id = GL_S("old#1.x"), .node = GL_S("old"), .about = GL_S("{\"state\":\"ready\"}")},
    };
    struct gl_step_record queued = {.status = GL_STEP_QUEUED};
    struct gl_nodes nodes = {
        .sessions = two, .sessions_n = 2, .is_shared = true, .has_node = true, .engine = "redis"};
    struct gl_nodes_owner owner = gl_nodes_find_owner(&nodes, GL_S("a.1#1.x"));
    struct rig *r = *state;

    r->view.owner = &owner;
    r->view.nodes = &nodes;
    assert_step(r, 0, queued, &live, GL_BECAUSE_POOL_ON_OTHER_NODES);
    nodes.sessions_n = 3; /* a node of an earlier release */
    assert_step(r, 0, queued, &live, GL_BECAUSE_POOL_MOVES);
}

static void a_blocked_step_says_who_can_help(void **state)
{
    struct gl_step_record b = {.status = GL_STEP_BLOCKED, .due_at = 9000};
    struct rig *r = *state;

    b.blocked_on = GL_BLOCK_APPROVAL;
    b.asked = GL_S("Ship it?");
    assert_step(r, 2, b, &live, GL_BECAUSE_WAITS_FOR_APPROVAL);
    b.blocked_on = GL_BLOCK_SIGNAL;
    assert_step(r, 3, b, &live, GL_BECAUSE_WAITS_FOR_SIGNAL);
    b.blocked_on = GL_BLOCK_TIMER;
    assert_step(r, 0, b, &live, GL_BECAUSE_SLEEPING);
    b.blocked_on = GL_BLOCK_REVIEW;
    b.last_error = GL_S("nobody knows");
    assert_step(r, 0, b, &live, GL_BECAUSE_WAITS_FOR_REVIEW);
}

/* The same job, of which the records of a and b[1] cannot be read, and c waits for a person. */
static void spoil(struct rig *r)
{
    struct gl_record job = {.id = GL_S("01J"),
                            .value = GL_S("{\"job_id\":\"01J\",\"run_id\":\"r\",\"flow\":\"h\","
                                          "\"status\":\"running\",\"steps_n\":4}")};
    struct gl_record steps[] = {
        {.id = GL_S("01J/a"), .value = GL_S("{\"step_id\":\"a\"}"), .damaged = true},
        {.id = GL_S("01J/b[1]"), .value = GL_S("?")},
        {.id = GL_S("01J/c"),
         .value = GL_S("{\"step_id\":\"c\",\"status\":\"blocked\",\"blocked_on\":\"approval\"}")}};

    assert_int_equal(gl_view_read(&r->arena, &job, gl_str_of(flow_text), steps, 3, &r->view, NULL),
                     0);
}

static void assert_told(struct rig *r, uint32_t number, int64_t item, enum gl_why_code expected)
{
    struct gl_because b = gl_reason_step(&r->arena, &r->view, number, item, &live);

    assert_true(begins_with_a_verb(b.text));
    assert_string_equal(gl_why_code_word(b.code), gl_why_code_word(expected));
    golden_say(gl_why_code_word(b.code), b.text);
}

#define TO_DO                                                                  \
    "cancel the job ('glia job cancel 01J'), or repair the record and resume " \
    "it ('glia job resume 01J')"

static void a_step_whose_record_is_damaged_offers_what_is_not_refused(void **state)
{
    struct rig *r = *state;

    spoil(r);
    assert_told(r, 0, -1, GL_BECAUSE_RECORD_DAMAGED);
    assert_told(r, 1, 1, GL_BECAUSE_RECORD_DAMAGED);
    assert_told(r, 2, -1, GL_BECAUSE_ANSWER_MAY_BE_REFUSED);
    assert_job(r, &live, GL_BECAUSE_RECORD_DAMAGED);
    r->view.job.status = GL_JOB_CANCELLING;
    assert_told(r, 0, -1, GL_BECAUSE_RECORD_DAMAGED);
    r->view.job.status = GL_JOB_CANCELLED;
    assert_told(r, 0, -1, GL_BECAUSE_RECORD_DAMAGED);
    assert_told(r, 2, -1, GL_BECAUSE_NOT_FINISHED);
}

static void a_job_that_is_paused_for_a_damaged_record_asks_nobody_to_decide(void **state)
{
    struct rig *r = *state;

    spoil(r);
    r->view.job.status = GL_JOB_PAUSED;
    r->view.job.hold = GL_HOLD_REVIEW;
    r->view.job.reason = GL_S("the record step/01J/a is damaged");
    assert_job(r, &live, GL_BECAUSE_RECORD_DAMAGED);
    assert_told(r, 2, -1, GL_BECAUSE_HELD_WITH_JOB);
    r->view.job.hold = GL_HOLD_PERSON;
    r->view.job.reason = GL_S("paused by ann");
    assert_job(r, &live, GL_BECAUSE_RECORD_DAMAGED);
    r->view.damaged_step = NULL; /* a message's record, say: only the job's reason knows */
    r->view.job.hold = GL_HOLD_REVIEW;
    r->view.job.reason = GL_S("a record of it is missing or does not match the others");
    assert_job(r, &live, GL_BECAUSE_RECORD_DAMAGED);
}

static void an_ended_step_says_how(void **state)
{
    struct gl_step_record e = {.status = GL_STEP_COMPLETED, .ended_at = 1000};
    struct rig *r = *state;

    assert_step(r, 0, e, &live, GL_BECAUSE_COMPLETED);
    e.reused_from = GL_S("01H");
    assert_step(r, 0, e, &live, GL_BECAUSE_REUSED);
    e.terminal_reason = GL_S("exit code 3");
    e.status = GL_STEP_FAILED;
    assert_step(r, 0, e, &live, GL_BECAUSE_FAILED);
    e.status = GL_STEP_PARTIAL;
    assert_step(r, 0, e, &live, GL_BECAUSE_PARTIAL);
    e.status = GL_STEP_SKIPPED;
    assert_step(r, 0, e, &live, GL_BECAUSE_SKIPPED);
}

static void a_job_says_what_it_is_about(void **state)
{
    struct gl_step_record run = {.step_id = GL_S("a"), .status = GL_STEP_RUNNING};
    struct rig *r = *state;

    assert_job(r, &live, GL_BECAUSE_ABOUT_TO_START);
    r->view.steps[0] = &run;
    assert_job(r, &live, GL_BECAUSE_RUNNING);
    run.status = GL_STEP_QUEUED;
    assert_job(r, &live, GL_BECAUSE_WAITS_FOR_SLOTS);
    run.status = GL_STEP_READY;
    assert_job(r, &live, GL_BECAUSE_READY);
    r->view.job.retry_of = GL_S("01H"); /* whose step has perhaps done it */
    assert_job(r, &live, GL_BECAUSE_READS_VALUES);
    r->view.job.retry_of = (gl_str){0};
    r->view.job.reason = GL_S("step 'a' failed: exit code 1");
    r->view.job.verdict = GL_VERDICT_FAILED;
    assert_job(r, &live, GL_BECAUSE_FAILING);
    r->view.job.status = GL_JOB_FAILED;
    assert_job(r, &live, GL_BECAUSE_FAILED);
    r->view.job.status = GL_JOB_COMPLETED;
    r->view.job.ended_at = 2000;
    assert_job(r, &live, GL_BECAUSE_COMPLETED);
}

static void a_held_job_says_by_whom_and_how_to_go_on(void **state)
{
    struct gl_reason_live crashed = live;
    struct rig *r = *state;

    r->view.job.reason = GL_S("paused by ann");
    r->view.job.hold = GL_HOLD_PERSON;
    r->view.job.status = GL_JOB_PAUSED;
    assert_job(r, &live, GL_BECAUSE_PAUSED);
    r->view.job.status = GL_JOB_PAUSING;
    assert_job(r, &live, GL_BECAUSE_PAUSING);
    r->view.job.status = GL_JOB_CANCELLING;
    assert_job(r, &live, GL_BECAUSE_CANCELLING);
    crashed.owner = r;
    assert_job(r, &crashed, GL_BECAUSE_QUARANTINED);
}

static gl_str store_is_shut(void *owner, struct gl_arena *a)
{
    (void)owner;
    return gl_str_fmt(a, "the store has accepted no commits since %d", 7);
}

static void a_job_that_has_not_ended_tells_of_a_store_without_room(void **state)
{
    struct gl_reason_live full = live;
    struct rig *r = *state;

    full.store = store_is_shut;
    assert_job(r, &full, GL_BECAUSE_ABOUT_TO_START);
    r->view.job.status = GL_JOB_COMPLETED;
    assert_null(
        strstr(gl_str_c(&r->arena, gl_reason_job(&r->arena, &r->view, &full).text), "commit"));
}

static void a_flow_that_cannot_be_read_is_named(void **state)
{
    struct rig *r = *state;
    static const struct gl_record job = {
        .id = GL_S("01J"),
        .value = GL_S("{\"job_id\":\"01J\",\"run_id\":\"r\",\"flow\":\"h\","
                      "\"status\":\"running\",\"steps_n\":3}")};
    struct gl_view v;
    struct gl_why why;

    assert_int_equal(gl_view_read(&r->arena, &job, GL_S(""), NULL, 0, &v, &why), GL_E_DAMAGED);
    golden_say("a flow that is missing", gl_str_of(why.text));
    assert_non_null(strstr(why.text, "01J"));
    assert_int_equal(gl_view_read(&r->arena, &job, GL_S("{\"format\":99}"), NULL, 0, &v, &why),
                     GL_E_VERSION);
    golden_say("a flow of a later release", gl_str_of(why.text));
}

static void every_sentence_reads_as_it_should(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/reason.golden");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, make_rig, free_rig)
        T(a_pending_step_names_what_it_waits_for),
        T(a_queued_step_names_its_pool_or_who_is_before_it),
        T(a_step_under_way_says_since_when_and_until_when),
        T(a_step_on_another_node_names_that_node),
        T(a_pool_of_other_nodes_is_waited_for_where_the_job_is),
        T(a_blocked_step_says_who_can_help),
        T(a_step_whose_record_is_damaged_offers_what_is_not_refused),
        T(a_job_that_is_paused_for_a_damaged_record_asks_nobody_to_decide),
        T(an_ended_step_says_how),
        T(a_job_says_what_it_is_about),
        T(a_held_job_says_by_whom_and_how_to_go_on),
        T(a_job_that_has_not_ended_tells_of_a_store_without_room),
        cmocka_unit_test_setup_teardown(a_flow_that_cannot_be_read_is_named, make_rig, free_rig),
        cmocka_unit_test(every_sentence_reads_as_it_should),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
