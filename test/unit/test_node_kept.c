/* Flows and files come, are needed and go on several nodes at once, under chance: what a job needs
 * is always there (test/support/files_rig.h checks it after every transaction), and what nobody
 * needs goes. GLIA_KEPT_SEEDS=N runs more histories, GLIA_KEPT_SEED=N one. */
#include <stdio.h>
#include <stdlib.h>

#include "base/id.h"
#include "model/gc_state.h"
#include "support/cmocka_all.h"
#include "support/files_rig.h"

enum { SEEDS = 3, ROUNDS = 50, MINUTE = 60 * 1000 };

static struct files_rig rig;
static struct files_rig *const r = &rig;

static int end(void **state)
{
    (void)state;
    files_rig_done(r);
    return 0;
}

static void trim(size_t machine, int64_t keep_jobs)
{
    files_rig_trim(r, machine, keep_jobs);
    for (int i = 0; i < 6000 && r->trimmed == 1; i++) {
        files_rig_run(r, 10);
    }
    assert_int_equal(r->trimmed, 0);
}

static void wait_for_all(void)
{
    for (size_t i = 0; i < r->jobs_n; i++) {
        for (int n = 0; n < 600 && (r->jobs[i].code == 1 ||
                                    gl_str_is(files_rig_status(r, &r->jobs[i]), "running"));
             n++) {
            files_rig_run(r, 100);
        }
        assert_int_equal(r->jobs[i].code, 0);
        assert_true(gl_str_is(files_rig_status(r, &r->jobs[i]), "completed"));
    }
}

/* ---- told by hand ---- */

static void what_nobody_names_goes_when_it_is_old_enough(void **state)
{
    (void)state;
    files_rig_init(r, 1, 2, &(struct gl_keep){0});
    (void)files_rig_submit(r, 0, "51", false);
    wait_for_all();
    (void)files_rig_submit(r, 0, "21", false);
    wait_for_all();
    trim(1, INT64_MAX); /* as many as anybody can ask for: all of them stay */
    assert_int_equal(files_rig_count(r, "flow"), 2);
    trim(1, 1);
    assert_int_equal(files_rig_count(r, "flow"), 1);
    assert_non_null(strstr(r->body.p, "\"removed_flows\":1,\"removed_blobs\":0"));
    assert_int_equal(files_rig_rev(r, 5), GL_GC_WHOLE); /* somebody may be about to need it */
    files_rig_run(r, 61 * MINUTE);
    trim(1, 1);
    assert_non_null(strstr(r->body.p, "\"removed_flows\":0,\"removed_blobs\":1"));
    assert_int_equal(files_rig_rev(r, 5), 0);
    assert_int_equal(files_rig_rev(r, 2), GL_GC_WHOLE);
    assert_int_equal(files_rig_rev(r, 1), GL_GC_WHOLE);
    assert_int_equal(files_rig_count(r, "blob"), 4);
}

static void what_has_gone_is_brought_again(void **state)
{
    (void)state;
    files_rig_init(r, 1, 2, &(struct gl_keep){0});
    (void)files_rig_submit(r, 0, "51", false);
    wait_for_all();
    files_rig_run(r, 61 * MINUTE);
    (void)files_rig_submit(r, 0, "51", false); /* node 0 knows flow and files now */
    wait_for_all();
    trim(1, 0);
    assert_int_equal(files_rig_count(r, "flow") + files_rig_count(r, "blob"), 0);
    r->jobs_n = 0;
    (void)files_rig_submit(r, 0, "51", false);
    wait_for_all();
    assert_true(sim_world_mark_hits(&r->world, "holds.removed_meanwhile") > 0);
    assert_int_equal(files_rig_rev(r, 5), GL_GC_WHOLE);
}

/* Another node submits it between the two looks. */
static void what_is_condemned_can_still_be_saved(void **state)
{
    (void)state;
    files_rig_init(r, 1, 2, &(struct gl_keep){0});
    (void)files_rig_submit(r, 0, "51", false);
    wait_for_all();
    files_rig_run(r, 61 * MINUTE);
    r->jobs_n = 0;
    r->world.options.store_delay_ms = 20;
    files_rig_trim(r, 1, 0);
    while (sim_world_mark_hits(&r->world, "trim.condemns") == 0) {
        files_rig_run(r, 1);
    }
    (void)files_rig_submit(r, 0, "51", false);
    wait_for_all();
    assert_int_equal(files_rig_count(r, "flow"), 1);
    assert_int_equal(files_rig_rev(r, 5), GL_GC_WHOLE);
    while (r->trimmed == 1) {
        files_rig_run(r, 10);
    }
    assert_int_equal(files_rig_count(r, "flow"), 1);
}

/* Its text is lost, so it is condemned and removed without being read. test_retention has the rest.
 */
static void what_is_damaged_and_unused_goes(void **state)
{
    const struct sim_disk_record *flow;

    (void)state;
    files_rig_init(r, 1, 2, &(struct gl_keep){0});
    (void)files_rig_submit(r, 0, "51", false);
    wait_for_all();
    flow = (const void *)sim_disk_kind(&r->disk, SIM_CONTEXT, GL_S("flow"))->rows[0];
    sim_disk_damage(&r->disk, SIM_CONTEXT, GL_S("flow"), flow->row.id);
    trim(1, 0);
    assert_int_equal(files_rig_count(r, "flow"), 0);
}

static void one_node_trims_for_all(void **state)
{
    (void)state;
    files_rig_init(r, 1, 3, &(struct gl_keep){.job_ms = 30 * MINUTE});
    for (size_t i = 0; i < 9; i++) {
        (void)files_rig_submit(r, i % 3, "51", false);
    }
    wait_for_all();
    files_rig_run(r, 200 * MINUTE);
    assert_int_equal(files_rig_count(r, "job"), 0);
    assert_int_equal(files_rig_count(r, "flow"), 0);
    assert_int_equal(files_rig_count(r, "blob"), 0);
}

static void a_trimmer_that_dies_leaves_nothing_useless(void **state)
{
    (void)state;
    files_rig_init(r, 1, 2, &(struct gl_keep){0});
    (void)files_rig_submit(r, 0, "51", false);
    wait_for_all();
    files_rig_run(r, 61 * MINUTE);
    r->jobs_n = 0;
    r->world.options.store_delay_ms = 20;
    files_rig_trim(r, 1, 0);
    while (sim_world_mark_hits(&r->world, "trim.condemns") == 0) {
        files_rig_run(r, 1);
    }
    files_rig_run(r, 30);
    files_rig_kill(r, 1);
    (void)files_rig_submit(r, 0, "51", false);
    wait_for_all();
    trim(0, 1);
    assert_int_equal(files_rig_count(r, "flow"), 1);
    r->jobs_n = 0;
    trim(0, 0);
    assert_int_equal(files_rig_count(r, "flow"), 0);
}

/* Nothing happens for a long time, and costs none. */
static void sleep_all(size_t machines_n, gl_ms span)
{
    for (size_t i = 0; i < machines_n; i++) {
        files_rig_kill(r, i);
    }
    files_rig_run(r, span);
    for (size_t i = 0; i < machines_n; i++) {
        files_rig_start(r, i);
    }
    files_rig_run(r, 15000);
}

/* Another flow with the same file comes while the file is on its way out. */
static void a_file_that_is_named_meanwhile_stays(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 25; seed++) {
        struct gl_rng rng;
        files_rig_init(r, seed, 2, &(struct gl_keep){0});
        gl_rng_init(&rng, seed);
        (void)files_rig_submit(r, 0, "2", false);
        wait_for_all();
        sleep_all(2, 61 * MINUTE);
        r->jobs_n = 0;
        r->world.options.store_delay_ms = 20;
        files_rig_trim(r, 1, 0);
        files_rig_run(r, gl_rng_range(&rng, 0, 250));
        (void)files_rig_submit(r, 0, "2-", false);
        wait_for_all();
        while (r->trimmed == 1) {
            files_rig_run(r, 10);
        }
        assert_int_equal(files_rig_rev(r, 2), GL_GC_WHOLE);
        if (seed < 25) {
            files_rig_done(r);
        }
    }
}

/* One flow names a file just before it is condemned, and another brings it just after: what the
 * first relies on is whole all the time, also if who brings it dies. */
static void a_file_that_is_named_and_brought_at_once_stays_whole(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct gl_rng rng;
        files_rig_init(r, seed, 3, &(struct gl_keep){0});
        gl_rng_init(&rng, seed);
        (void)files_rig_submit(r, 0, "2", false);
        wait_for_all();
        sleep_all(3, 61 * MINUTE);
        r->jobs_n = 0;
        r->world.options.store_delay_ms = 20;
        files_rig_trim(r, 1, 0);
        files_rig_run(r, gl_rng_range(&rng, 50, 250));
        (void)files_rig_submit(r, 0, "2-", false);
        files_rig_run(r, gl_rng_range(&rng, 0, 120));
        (void)files_rig_submit(r, 2, "22", false);
        wait_for_all();
        while (r->trimmed == 1) {
            files_rig_run(r, 10);
        }
        assert_int_equal(files_rig_rev(r, 2), GL_GC_WHOLE);
        if (seed < 40) {
            files_rig_done(r);
        }
    }
}

/* A retry reads what the earlier job has left, and another node may be removing that. */
static void a_retry_and_a_trim_do_not_meet(void **state)
{
    size_t retried = 0, refused = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct gl_rng rng;
        files_rig_init(r, seed, 2, &(struct gl_keep){0});
        gl_rng_init(&rng, seed);
        struct files_job *earlier = files_rig_submit(r, 0, "2", false);
        wait_for_all();
        r->world.options.store_delay_ms = 20;
        files_rig_trim(r, 1, 0);
        files_rig_run(r, gl_rng_range(&rng, 0, 120));
        struct files_job *job = files_rig_retry(r, 0, earlier);
        while (job->code == 1 || r->trimmed == 1) {
            files_rig_run(r, 10);
        }
        retried += job->code == 0;
        refused += job->code == GL_E_NOT_FOUND;
        assert_true(job->code == 0 || job->code == GL_E_NOT_FOUND);
        files_rig_run(r, 5000);
        if (seed < 40) {
            files_rig_done(r);
        }
    }
    assert_true(retried > 0 && refused > 0);
}

/* One has written half of a file and gets stuck; what it has written is removed; another begins
 * anew; and then the first goes on. */
static void a_writer_that_was_given_up_begins_anew(void **state)
{
    (void)state;
    files_rig_init(r, 1, 3, &(struct gl_keep){0});
    struct files_job *first = files_rig_submit(r, 0, "5", false);
    while (files_rig_count(r, "blob") < 2) { /* its record and a piece */
        (void)sim_world_step(&r->world);
    }
    r->machines[0].blobs.slow_ms = 100 * MINUTE; /* the next piece */
    files_rig_run(r, 61 * MINUTE);
    r->machines[0].blobs.slow_ms = 0;
    assert_int_equal(files_rig_rev(r, 5), GL_GC_PARTIAL);
    trim(1, 0);
    assert_int_equal(files_rig_count(r, "blob"), 0);
    struct files_job *second = files_rig_submit(r, 2, "5-", false);
    while (files_rig_count(r, "blob") == 0) {
        (void)sim_world_step(&r->world);
    }
    r->machines[2].blobs.slow_ms = 60 * MINUTE;
    files_rig_run(r, 50 * MINUTE);
    assert_int_equal(first->code, 0);
    r->machines[2].blobs.slow_ms = 0;
    files_rig_run(r, 60 * MINUTE);
    assert_int_equal(second->code, 0);
    wait_for_all();
}

/* ---- the rest ---- */

static void put_record(const char *kind, gl_str id, gl_str value)
{
    struct gl_write w = {
        .type = GL_WRITE_PUT, .kind = gl_str_of(kind), .id = id, .rev = 1, .value = value};
    struct gl_tx tx = {.context = SIM_CONTEXT, .writes = &w, .writes_n = 1};
    size_t refused;
    assert_int_equal(sim_disk_commit(&r->disk, &tx, &refused), 0);
}

static bool is_there(const char *kind, gl_str id)
{
    return sim_disk_peek(&r->disk, SIM_CONTEXT, gl_str_of(kind), id) != NULL;
}

static gl_str rate_at(gl_ms at)
{
    return gl_str_fmt(&r->arena, "{\"next_at\":%lld}", (long long)at);
}

static gl_str ulid_at(gl_ms at)
{
    static const uint8_t chance[10] = {1, 2, 3};
    struct gl_ulid id;
    gl_id_make(&id, at, chance);
    return gl_str_dup(&r->arena, gl_str_of(id.text));
}

static void old_rates_and_answers_nobody_reads_go(void **state)
{
    (void)state;
    files_rig_init(r, 1, 1, &(struct gl_keep){.jobs = 1000});
    gl_ms start = r->world.now + r->machines[0].node->offset, day = 24 * 60 * MINUTE;
    gl_str old = ulid_at(start), young = ulid_at(start + 6 * 60 * MINUTE);
    put_record("rate", GL_S("old"), rate_at(start + 6 * 60 * MINUTE - day - MINUTE));
    put_record("rate", GL_S("young"), rate_at(start + 7 * 60 * MINUTE - day));
    put_record("rate", GL_S("odd"), GL_S("{}"));
    put_record("answer", old, GL_S("{}"));
    put_record("answer", young, GL_S("{}"));
    files_rig_run(r, 5 * 60 * MINUTE);
    assert_true(is_there("rate", GL_S("old")));
    files_rig_run(r, 62 * MINUTE);
    assert_false(is_there("rate", GL_S("old")));
    assert_true(is_there("rate", GL_S("young")));
    assert_true(is_there("rate", GL_S("odd"))); /* whatever it is: a person has to look at it */
    assert_false(is_there("answer", old));
    assert_true(is_there("answer", young));
}

/* ---- left to chance ---- */

static const char *const flows[] = {"0", "1", "21", "13", "2-", "5", "--", "412"};

static size_t any_up(struct gl_rng *rng)
{
    size_t at = gl_rng_below(rng, FILES_MACHINES);
    while (r->machines[at].node == NULL || !r->machines[at].node->ready) {
        at = (at + 1) % FILES_MACHINES;
        files_rig_run(r, 10);
    }
    return at;
}

static void one_round(struct gl_rng *rng)
{
    size_t at = any_up(rng), other = gl_rng_below(rng, FILES_MACHINES);
    switch (gl_rng_below(rng, 10)) {
    case 0:
    case 1:
    case 2:
    case 3:
        (void)files_rig_submit(r, at, flows[gl_rng_below(rng, GL_COUNT(flows))], false);
        break;
    case 4: /* the same to two nodes */
        (void)files_rig_submit(r, at, "51", false);
        (void)files_rig_submit(r, any_up(rng), "51", false);
        break;
    case 5:
    case 6:
        files_rig_trim(r, at, (int64_t)gl_rng_below(rng, 3));
        break;
    case 7:
        sim_blobs_remove_old(&r->machines[other].blobs, r->world.now - 60 * MINUTE);
        break;
    case 8:
        if (r->machines[other].node != NULL && other != at) {
            files_rig_kill(r, other);
        }
        break;
    default:
        if (r->machines[other].node == NULL) {
            files_rig_start(r, other);
        }
        break;
    }
}

static void tell(uint64_t seed)
{
    struct gl_rng rng;
    files_rig_init(r, seed, FILES_MACHINES, &(struct gl_keep){.job_ms = 20 * MINUTE});
    gl_rng_init(&rng, seed);
    r->world.options.store_delay_ms = (uint32_t)gl_rng_below(&rng, 40);
    for (size_t i = 0; i < FILES_MACHINES; i++) {
        r->machines[i].blobs.delay_ms = (uint32_t)gl_rng_below(&rng, 40);
    }
    for (int i = 0; i < ROUNDS; i++) {
        one_round(&rng);
        files_rig_run(r, gl_rng_chance(&rng, 100000) ? gl_rng_range(&rng, 0, 90 * MINUTE)
                                                     : gl_rng_range(&rng, 0, 300));
    }
    for (size_t i = 0; i < FILES_MACHINES; i++) {
        if (r->machines[i].node == NULL) {
            files_rig_start(r, i);
        }
    }
    files_rig_run(r, 5 * MINUTE);
    for (size_t i = 0; i < r->jobs_n; i++) {
        const struct files_job *job = &r->jobs[i];
        gl_str status = files_rig_status(r, job);
        if (job->code == 1 || (job->code == 0 && status.n > 0 && !gl_str_is(status, "completed"))) {
            fail_msg("seed %llu: %s is %.*s (code %d, %s)", (unsigned long long)seed, job->run_id,
                     GL_STR_ARG(status), job->code, job->why.text);
        }
    }
    /* What a leader that died had still to look at, the next one looks for within six hours, and
     * removes it within another. */
    files_rig_run(r, 7 * 60 * MINUTE);
    assert_int_equal(files_rig_count(r, "job"), 0);
    assert_int_equal(files_rig_count(r, "flow"), 0);
    assert_int_equal(files_rig_count(r, "blob"), 0);
}

static void histories_of_chance(void **state)
{
    const char *one = getenv("GLIA_KEPT_SEED"), *many = getenv("GLIA_KEPT_SEEDS");
    unsigned long long first = one != NULL ? strtoull(one, NULL, 0) : 1;
    unsigned long long n = one != NULL ? 1 : many != NULL ? strtoull(many, NULL, 0) : SEEDS;
    (void)state;
    for (unsigned long long seed = first; seed < first + n; seed++) {
        (void)fprintf(stderr, "seed %llu\n", seed);
        tell(seed);
        if (seed + 1 < first + n) {
            files_rig_done(r);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(name, end)
        TEST(what_nobody_names_goes_when_it_is_old_enough),
        TEST(what_has_gone_is_brought_again),
        TEST(what_is_condemned_can_still_be_saved),
        TEST(what_is_damaged_and_unused_goes),
        TEST(one_node_trims_for_all),
        TEST(a_trimmer_that_dies_leaves_nothing_useless),
        TEST(a_file_that_is_named_meanwhile_stays),
        TEST(a_file_that_is_named_and_brought_at_once_stays_whole),
        TEST(a_retry_and_a_trim_do_not_meet),
        TEST(a_writer_that_was_given_up_begins_anew),
        TEST(old_rates_and_answers_nobody_reads_go),
        TEST(histories_of_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
