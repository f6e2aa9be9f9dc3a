#include "support/cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "os/crash_counter.h"
#include "os/fs.h"
#include "os/paths.h"
#include "support/folder.h"

#define JOB "01JCRASH0000000000000000AA"
#define OTHER "01JCRASH0000000000000000BB"

struct bench {
    struct test_folder folder;
    struct gl_arena a;
    struct gl_crash_counter mark;
};

static gl_ms the_time; /* of the tests: nothing here waits */

static gl_ms now(void)
{
    return the_time;
}

static int set_up(void **state)
{
    static struct bench b;

    memset(&b, 0, sizeof(b));
    the_time = 1000000;
    test_folder_make(&b.folder);
    *state = &b;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;

    test_folder_remove(&b->folder);
    gl_arena_done(&b->a);
    return 0;
}

static void open_mark(struct bench *b)
{
    struct gl_why why;

    assert_int_equal(gl_crash_counter_open(&b->mark, b->folder.path, now, &b->a, &why), 0);
}

static void handle(struct bench *b, const char *job)
{
    gl_crash_counter_set(&b->mark, gl_str_of(job));
    gl_crash_counter_set(&b->mark, (gl_str){0});
}

/* A process that opens the mark, handles some jobs well, and dies with `job` in its hands. */
static void crash(struct bench *b, const char *job)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        struct gl_crash_counter m;

        if (gl_crash_counter_open(&m, b->folder.path, now, &b->a, NULL) != 0) {
            _exit(1);
        }
        gl_crash_counter_set(&m, gl_str_of(OTHER));
        gl_crash_counter_set(&m, (gl_str){0});
        gl_crash_counter_set(&m, gl_str_of(job));
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static bool is_quarantined(const struct bench *b, const char *job)
{
    for (size_t i = 0; i < b->mark.quarantined_n; i++) {
        if (gl_str_is(b->mark.quarantined[i], job)) {
            return true;
        }
    }
    return false;
}

static void a_job_is_quarantined_after_three_crashes_in_a_row(void **state)
{
    struct bench *b = *state;

    for (int i = 0; i < 2; i++) {
        crash(b, JOB);
    }
    open_mark(b);
    assert_int_equal(b->mark.quarantined_n, 0);
    gl_crash_counter_close(&b->mark); /* nothing of it was handled: the count stays */
    crash(b, JOB);
    open_mark(b);
    assert_int_equal(b->mark.quarantined_n, 1);
    assert_true(is_quarantined(b, JOB));
    gl_crash_counter_close(&b->mark);
}

static void a_good_end_leaves_no_suspect(void **state)
{
    struct bench *b = *state;

    for (int i = 0; i < 5; i++) {
        open_mark(b);
        handle(b, JOB);
        assert_int_equal(b->mark.suspects_n, 0);
        gl_crash_counter_set(&b->mark, GL_S(JOB)); /* closed in good order while it is handled */
        gl_crash_counter_close(&b->mark);
    }
    open_mark(b);
    assert_int_equal(b->mark.suspects_n, 0);
    gl_crash_counter_close(&b->mark);
}

static void a_death_between_jobs_is_nobodys_fault(void **state)
{
    struct bench *b = *state;

    for (int i = 0; i < 4; i++) {
        crash(b, "");
    }
    open_mark(b);
    assert_int_equal(b->mark.suspects_n, 0);
    gl_crash_counter_close(&b->mark);
}

static void a_job_that_is_handled_well_for_a_while_is_forgiven(void **state)
{
    struct bench *b = *state;

    crash(b, JOB);
    crash(b, JOB);
    open_mark(b);
    handle(b, JOB);
    the_time += GL_CRASH_COUNTER_WELL_MS - 1;
    handle(b, OTHER);
    assert_int_equal(b->mark.suspects_n, 1);
    the_time += 1;
    handle(b, OTHER);
    assert_int_equal(b->mark.suspects_n, 0);
    gl_crash_counter_close(&b->mark);
    crash(b, JOB);
    open_mark(b);
    assert_int_equal(b->mark.quarantined_n, 0); /* the row was broken */
    assert_int_equal(b->mark.suspects[0].crashes, 1);
    gl_crash_counter_close(&b->mark);
}

static void a_job_that_crashes_a_little_later_is_not_forgiven(void **state)
{
    struct bench *b = *state;

    crash(b, JOB);
    crash(b, JOB);
    for (int i = 0; i < 1; i++) {
        open_mark(b);
        handle(b, JOB);
        the_time += GL_CRASH_COUNTER_WELL_MS / 2;
        gl_crash_counter_set(&b->mark, GL_S(JOB)); /* and here it dies: nothing is closed */
    }
    open_mark(b);
    assert_true(is_quarantined(b, JOB));
    gl_crash_counter_close(&b->mark);
}

static bool says_quarantined(void *owner, gl_str job)
{
    return *(bool *)owner && gl_str_is(job, JOB);
}

static void a_job_that_is_quarantined_stays_so_until_it_is_released(void **state)
{
    struct bench *b = *state;
    bool quarantined = true;

    for (int i = 0; i < 3; i++) {
        crash(b, JOB);
    }
    for (int i = 0; i < 2; i++) { /* questions about it are refused, and nothing happens */
        open_mark(b);
        assert_true(is_quarantined(b, JOB));
        b->mark.is_quarantined = says_quarantined;
        b->mark.owner = &quarantined;
        handle(b, JOB);
        the_time += 2 * GL_CRASH_COUNTER_WELL_MS;
        handle(b, JOB);
        gl_crash_counter_close(&b->mark);
    }
    open_mark(b);
    b->mark.is_quarantined = says_quarantined;
    b->mark.owner = &quarantined;
    quarantined = false; /* somebody has resumed it */
    handle(b, JOB);
    gl_crash_counter_close(&b->mark);
    open_mark(b);
    assert_int_equal(b->mark.suspects_n, 0);
    gl_crash_counter_close(&b->mark);
}

static void jobs_are_counted_apart(void **state)
{
    struct bench *b = *state;

    crash(b, JOB);
    crash(b, "01JCRASH0000000000000000CC");
    crash(b, JOB);
    crash(b, JOB);
    open_mark(b);
    assert_true(is_quarantined(b, JOB));
    assert_int_equal(b->mark.quarantined_n, 1);
    assert_int_equal(b->mark.suspects_n, 2);
    gl_crash_counter_close(&b->mark);
}

static void only_so_many_suspects_are_kept(void **state)
{
    struct bench *b = *state;
    char job[GL_ULID_BYTES + 1];

    for (int i = 0; i < GL_CRASH_COUNTER_SUSPECTS_MAX + 3; i++) {
        (void)snprintf(job, sizeof(job), "01JCRASH000000000000000%03d", i);
        open_mark(b);
        gl_crash_counter_set(&b->mark, gl_str_of(job));
    }
    open_mark(b);
    assert_int_equal(b->mark.suspects_n, GL_CRASH_COUNTER_SUSPECTS_MAX);
    assert_string_equal(b->mark.suspects[GL_CRASH_COUNTER_SUSPECTS_MAX - 1].job, job);
    gl_crash_counter_close(&b->mark);
}

static void damaged_files_are_no_reason_not_to_start(void **state)
{
    static const char *const contents[] = {
        "",
        "{",
        "[]",
        "{\"suspects\": 3}",
        "{\"suspects\": [{\"job_id\": \"../../x\", \"crashes\": 9}, 7, {\"crashes\": 3}]}",
        "{\"suspects\": [{\"job_id\": \"" JOB "\", \"crashes\": -3}]}",
    };
    struct bench *b = *state;

    for (size_t i = 0; i < GL_COUNT(contents); i++) {
        const char *counts = gl_paths_in(&b->a, b->folder.path, "crash.json");
        const char *mark = gl_paths_in(&b->a, b->folder.path, "crash.mark");

        assert_int_equal(gl_fs_write(counts, gl_str_of(contents[i]), NULL), 0);
        assert_int_equal(gl_fs_write(mark, gl_str_of(contents[i]), NULL), 0);
        open_mark(b);
        assert_int_equal(b->mark.suspects_n, 0);
        gl_crash_counter_close(&b->mark);
    }
}

static void a_mark_that_is_no_job_id_is_nobodys_fault(void **state)
{
    struct bench *b = *state;
    const char *mark = gl_paths_in(&b->a, b->folder.path, "crash.mark");
    char page[64] = "gliacm1";

    memset(page + 8, '/', sizeof(page) - 8);
    assert_int_equal(gl_fs_write(mark, (gl_str){.p = page, .n = sizeof(page)}, NULL), 0);
    open_mark(b);
    assert_int_equal(b->mark.suspects_n, 0);
    gl_crash_counter_close(&b->mark);
}

static void closing_what_was_never_opened_is_fine(void **state)
{
    struct gl_crash_counter m = {0};

    (void)state;
    gl_crash_counter_close(&m);
    assert_null(m.page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_job_is_quarantined_after_three_crashes_in_a_row, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_good_end_leaves_no_suspect, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_death_between_jobs_is_nobodys_fault, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_job_that_is_handled_well_for_a_while_is_forgiven, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_job_that_crashes_a_little_later_is_not_forgiven, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_job_that_is_quarantined_stays_so_until_it_is_released,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(jobs_are_counted_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_so_many_suspects_are_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damaged_files_are_no_reason_not_to_start, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_mark_that_is_no_job_id_is_nobodys_fault, set_up,
                                        tear_down),
        cmocka_unit_test(closing_what_was_never_opened_is_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
