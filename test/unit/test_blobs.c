/* The files of flows on a shared store: given to one node, needed by another, removed by a third.
 */
#include <stdlib.h>

#include "model/gc_state.h"
#include "support/cmocka_all.h"
#include "support/files_rig.h"

static struct files_rig rig;
static struct files_rig *const r = &rig;

static void begin(size_t machines_n)
{
    files_rig_init(r, 1, machines_n, &(struct gl_keep){0});
}

static int end(void **state)
{
    (void)state;
    files_rig_done(r);
    return 0;
}

static void wait_for(const struct files_job *job, const char *status)
{
    for (int i = 0; i < 600 && !gl_str_is(files_rig_status(r, job), status); i++) {
        files_rig_run(r, 100);
    }
    if (!gl_str_is(files_rig_status(r, job), status)) {
        fail_msg("it is '%.*s', not %s (code %d, %s)", GL_STR_ARG(files_rig_status(r, job)), status,
                 job->code, job->why.text);
    }
}

static gl_str step_error(const struct files_job *job, const char *step)
{
    const struct sim_disk_record *record = sim_disk_peek(
        &r->disk, SIM_CONTEXT, GL_S("step"), gl_str_fmt(&r->arena, "%s/%s", job->id, step));
    assert_non_null(record);
    return gl_str_dup(&r->arena, record->value);
}

static void files_are_in_the_store_before_the_job_is(void **state)
{
    (void)state;
    begin(1);
    struct files_job *job = files_rig_submit(r, 0, "5305", false);
    wait_for(job, "completed");
    assert_int_equal(files_rig_rev(r, 5), GL_GC_WHOLE);
    assert_int_equal(files_rig_rev(r, 3), GL_GC_WHOLE);
    assert_int_equal(files_rig_rev(r, 0), GL_GC_WHOLE);
    assert_int_equal(files_rig_count(r, "blob"), 3 + 2 + 1); /* heads; pieces: two, one, none */
    assert_int_equal(r->machines[0].blobs.fetched_n, 0);
}

static void another_node_fetches_what_it_needs(void **state)
{
    (void)state;
    begin(1);
    r->lasts_ms = 600000;
    struct files_job *job = files_rig_submit(r, 0, "54321", false);
    files_rig_run(r, 3000);
    assert_int_equal(job->code, 0);
    files_rig_kill(r, 0);
    sim_keeper_crash(&r->machines[0].keeper, 1000);
    r->lasts_ms = 100;
    files_rig_start(r, 1);
    wait_for(job, "completed");
    assert_int_equal(r->machines[1].blobs.fetched_n, 5);
}

static void a_flow_without_files_asks_for_nothing(void **state)
{
    (void)state;
    begin(1);
    uint64_t before = r->disk.commits_n;
    wait_for(files_rig_submit(r, 0, "--", false), "completed");
    assert_int_equal(r->machines[0].blobs.asked_n, 0);
    assert_int_equal(files_rig_count(r, "blob"), 0);
    assert_true(r->disk.commits_n > before);
}

static void what_is_known_is_not_read_again(void **state)
{
    (void)state;
    begin(1);
    wait_for(files_rig_submit(r, 0, "55", false), "completed");
    uint64_t asked = r->machines[0].blobs.asked_n;
    for (int i = 0; i < 10; i++) {
        wait_for(files_rig_submit(r, 0, "55", false), "completed");
    }
    assert_int_equal(r->machines[0].blobs.asked_n, asked);
    wait_for(files_rig_submit(r, 0, "5", false), "completed"); /* another flow, the same file */
    assert_int_equal(r->machines[0].blobs.asked_n, asked);
}

static void many_at_once_are_uploaded_once(void **state)
{
    (void)state;
    begin(1);
    r->machines[0].blobs.delay_ms = 50;
    struct files_job *jobs[20];
    for (int i = 0; i < 20; i++) {
        jobs[i] = files_rig_submit(r, 0, "5", false);
    }
    for (int i = 0; i < 20; i++) {
        wait_for(jobs[i], "completed");
    }
    /* One look with its hash, two pieces, and a look before the first start. */
    assert_int_equal(r->machines[0].blobs.asked_n, 4);
}

static void a_file_nobody_has_is_refused(void **state)
{
    (void)state;
    begin(1);
    struct files_job *job = files_rig_submit(r, 0, "2", true);
    files_rig_run(r, 1000);
    assert_int_equal(job->code, GL_E_INVALID);
    assert_int_equal(job->why.reason, GL_REASON_BLOB_MISSING);
    assert_non_null(strstr(job->why.text, "'file2.sh'"));
    assert_non_null(strstr(job->why.text, r->hashes[2].p));
    assert_int_equal(files_rig_count(r, "job"), 0);
    assert_int_equal(files_rig_count(r, "blob"), 0);
}

static void a_file_that_is_in_the_store_need_not_be_here(void **state)
{
    (void)state;
    begin(2);
    wait_for(files_rig_submit(r, 0, "2", false), "completed");
    wait_for(files_rig_submit(r, 1, "2-", true), "completed");
}

static void a_damaged_file_is_not_taken(void **state)
{
    (void)state;
    begin(1);
    assert_int_equal(r->machines[0].blobs.port.put(&r->machines[0].blobs.port, SIM_CONTEXT,
                                                   r->hashes[2], r->contents[2], NULL),
                     0);
    sim_blobs_spoil(&r->machines[0].blobs, r->hashes[2]);
    struct files_job *job = files_rig_submit(r, 0, "2", true);
    files_rig_run(r, 1000);
    assert_int_equal(job->code, GL_E_DAMAGED);
    assert_non_null(strstr(job->why.text, "'file2.sh'"));
    assert_int_equal(files_rig_count(r, "blob"), 0);
}

/* A piece is changed behind everybody's back: who fetches it notices, and who submits the flow
 * again from where the file is puts it right. */
static void damage_in_the_store_is_noticed_and_mended(void **state)
{
    (void)state;
    begin(2);
    wait_for(files_rig_submit(r, 0, "5", false), "completed");
    sim_disk_damage(&r->disk, SIM_CONTEXT, GL_S("blob"),
                    gl_str_fmt(&r->arena, "%.*s/1", GL_STR_ARG(r->hashes[5])));
    r->is_meddled = true;
    struct files_job *job = files_rig_submit(r, 1, "5-", true);
    wait_for(job, "failed");
    gl_str error = step_error(job, "s0");
    assert_non_null(strstr(error.p, "'file5.sh'"));
    assert_non_null(strstr(error.p, "damaged"));
    assert_int_equal(files_rig_rev(r, 5), GL_GC_PARTIAL);
    files_rig_run(r, 11 * 60 * 1000); /* until nobody believes in it */
    wait_for(files_rig_submit(r, 0, "5", false), "completed");
    r->is_meddled = false;
    assert_int_equal(files_rig_rev(r, 5), GL_GC_WHOLE);
    wait_for(files_rig_submit(r, 1, "5-", true), "completed");
    assert_int_equal(r->machines[1].blobs.fetched_n, 1);
}

static void a_store_that_is_away_is_asked_again(void **state)
{
    (void)state;
    begin(2);
    wait_for(files_rig_submit(r, 0, "4", false), "completed");
    r->machines[1].blobs.delay_ms = 500;
    struct files_job *job = files_rig_submit(r, 1, "44", true);
    while (files_rig_status(r, job).n == 0) { /* committed, and not yet fetched */
        files_rig_run(r, 1);
    }
    assert_int_equal(r->machines[1].blobs.fetched_n, 0);
    r->disk.away_until = r->world.now + 3000;
    files_rig_run(r, 2900);
    assert_true(gl_str_is(files_rig_status(r, job), "running"));
    wait_for(job, "completed");
}

static void a_disk_that_refuses_is_asked_again(void **state)
{
    (void)state;
    begin(2);
    wait_for(files_rig_submit(r, 0, "4", false), "completed");
    r->world.faults = true;
    r->world.fault_budget = 3;
    r->machines[1].blobs.refuses = 1000000;
    struct files_job *job = files_rig_submit(r, 1, "4-", true);
    wait_for(job, "completed");
    assert_int_equal(r->world.faults_hit, 3);
}

static void nothing_starts_when_others_may_take_us_for_dead(void **state)
{
    (void)state;
    begin(1);
    wait_for(files_rig_submit(r, 0, "4", false), "completed");
    files_rig_run(r, 11 * 60 * 1000);
    struct files_job *job = files_rig_submit(r, 0, "4", false);
    r->machines[0].blobs.delay_ms =
        60000; /* to find the file takes longer than the session lives */
    while (files_rig_status(r, job).n == 0) {
        files_rig_run(r, 1);
    }
    gl_ms away = r->world.now;
    size_t started = r->machines[0].keeper.ledger_n;
    r->disk.away_until = away + 100000;
    files_rig_run(r, 100000);
    assert_true(sim_world_mark_hits(&r->world, "starts.too_late") > 0);
    assert_int_equal(r->machines[0].keeper.ledger_n, started);
    r->machines[0].blobs.delay_ms = 0;
    wait_for(job, "completed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(name, end)
        TEST(files_are_in_the_store_before_the_job_is),
        TEST(another_node_fetches_what_it_needs),
        TEST(a_flow_without_files_asks_for_nothing),
        TEST(what_is_known_is_not_read_again),
        TEST(many_at_once_are_uploaded_once),
        TEST(a_file_nobody_has_is_refused),
        TEST(a_file_that_is_in_the_store_need_not_be_here),
        TEST(a_damaged_file_is_not_taken),
        TEST(damage_in_the_store_is_noticed_and_mended),
        TEST(a_store_that_is_away_is_asked_again),
        TEST(a_disk_that_refuses_is_asked_again),
        TEST(nothing_starts_when_others_may_take_us_for_dead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
