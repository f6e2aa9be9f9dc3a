/* A record of a job cannot be used: the job is held for a person, and never believed in part. */
#include "base/check.h"
#include "base/limits.h"
#include "model/job.h"
#include "support/cmocka_all.h"
#include "support/core_rig.h"

static gl_str job_text(struct rig *r)
{
    return rig_row(r, GL_S("job"), gl_str_of(r->job))->value;
}

static bool says(gl_str text, const char *part)
{
    struct gl_arena a = {0};
    bool found = strstr(gl_str_c(&a, text), part) != NULL;

    gl_arena_done(&a);
    return found;
}

/* Two steps run, and the record of one is spoiled while nobody has it in memory. */
static struct rig *spoiled(void)
{
    struct rig *r = rig_new(4, 1);
    struct gl_arena a = {0};

    rig_submit(r, "a; b");
    rig_row(r, GL_S("step"), gl_str_fmt(&a, "%s/a", r->job))->value = GL_S("{\"status\":\"odd\"");
    gl_arena_done(&a);
    rig_restart(r);
    return r;
}

static void a_job_with_a_damaged_step_is_paused_and_says_which(void **state)
{
    (void)state;
    struct rig *r = spoiled();

    assert_true(says(job_text(r), "\"status\":\"paused\""));
    assert_true(says(job_text(r), "\"hold\":\"review\""));
    assert_true(says(job_text(r), "/a is damaged"));
    rig_free(r);
}

static bool is_known_as_damaged(struct rig *r)
{
    struct gl_arena a = {0};
    struct gl_job_record record;
    struct gl_json j;
    bool is_known;

    assert_int_equal(gl_json_parse(&j, job_text(r), GL_RECORD_BYTES_MAX, &a, NULL), 0);
    assert_int_equal(gl_schema_read(&gl_job_schema, &j, gl_json_root(&j), false, &a, &record, NULL),
                     0);
    is_known = gl_job_is_paused_for_damage(&record);
    gl_arena_done(&a);
    return is_known;
}

/* Who explains a job has only its record. */
static void its_record_tells_that_it_is_paused_for_that(void **state)
{
    (void)state;
    struct rig *r = spoiled();

    assert_true(is_known_as_damaged(r));
    rig_command(r, r->job, GL_CMD_CANCEL);
    rig_settle(r);
    assert_false(is_known_as_damaged(r));
    rig_free(r);
}

static void so_it_does_if_no_single_record_is_to_blame(void **state)
{
    (void)state;
    struct rig *r = rig_new(4, 1);
    struct gl_arena a = {0};
    struct rig_row *job;

    rig_submit(r, "a; b");
    job = rig_row(r, GL_S("job"), gl_str_of(r->job));
    job->value = gl_str_fmt(&a, "%.*s,\"completed_n\":2}", (int)job->value.n - 1, job->value.p);
    rig_restart(r);
    gl_arena_done(&a);
    assert_true(is_known_as_damaged(r));
    rig_free(r);
}

static void it_is_not_resumed_and_nothing_starts(void **state)
{
    (void)state;
    struct rig *r = spoiled();
    size_t runs = r->runs_n;

    rig_command(r, r->job, GL_CMD_RESUME);
    rig_settle(r);
    assert_true(says(job_text(r), "\"status\":\"paused\""));
    assert_int_equal(r->runs_n, runs);
    rig_free(r);
}

static void it_can_be_cancelled(void **state)
{
    (void)state;
    struct rig *r = spoiled();

    rig_command(r, r->job, GL_CMD_CANCEL);
    rig_settle(r);
    assert_true(says(job_text(r), "\"status\":\"cancelled\""));
    rig_free(r);
}

/* The executor tells what it has. */
static void list(struct rig *r)
{
    struct gl_event_info infos[4];

    assert_true(r->runs_n <= GL_COUNT(infos));
    for (size_t i = 0; i < r->runs_n; i++) {
        infos[i] = (struct gl_event_info){.context = GL_S("default"),
                                          .job = gl_str_of(r->runs[i].job),
                                          .attempt = gl_str_of(r->runs[i].attempt),
                                          .token = r->runs[i].token,
                                          .state = GL_EXEC_RUNNING};
    }
    rig_feed(r, (struct gl_event){.type = GL_EV_LISTED,
                                  .listed = {.infos = {.items = infos, .n = r->runs_n}}});
    rig_settle(r);
}

static void what_runs_of_it_runs_on_until_it_is_cancelled(void **state)
{
    (void)state;
    struct rig *r = spoiled();

    assert_int_equal(r->runs_n, 2);
    list(r);
    assert_int_equal(r->stopped_n, 0);
    rig_command(r, r->job, GL_CMD_CANCEL);
    rig_settle(r);
    list(r);
    assert_int_equal(r->stopped_n, 2);
    rig_free(r);
}

static void a_mended_record_lets_it_go_on(void **state)
{
    (void)state;
    struct rig *r = rig_new(4, 1);
    struct gl_arena a = {0};
    struct rig_row *row;
    gl_str good;

    rig_submit(r, "a; b");
    row = rig_row(r, GL_S("step"), gl_str_fmt(&a, "%s/a", r->job));
    good = row->value;
    row->value = GL_S("?");
    rig_restart(r);
    rig_row(r, GL_S("step"), gl_str_fmt(&a, "%s/a", r->job))->value = good;
    rig_command(r, r->job, GL_CMD_RESUME);
    rig_settle(r);
    assert_true(says(job_text(r), "\"status\":\"running\""));
    gl_arena_done(&a);
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_with_a_damaged_step_is_paused_and_says_which),
        cmocka_unit_test(its_record_tells_that_it_is_paused_for_that),
        cmocka_unit_test(so_it_does_if_no_single_record_is_to_blame),
        cmocka_unit_test(it_is_not_resumed_and_nothing_starts),
        cmocka_unit_test(it_can_be_cancelled),
        cmocka_unit_test(what_runs_of_it_runs_on_until_it_is_cancelled),
        cmocka_unit_test(a_mended_record_lets_it_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
