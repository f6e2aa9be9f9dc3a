/* Workers that mean no good, or know no better: the keeper must not care. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/asan.h"
#include "base/check.h"
#include "contract/worker_world.h"
#include "os/fs.h"

enum {
    SMALL_DISK_MIB = 24,
    GIVEN_BACK_TRIES = 500,
#ifdef GL_ASAN
    GROWTH_KIB_MAX = 400 << 10, /* freed memory stays in its quarantine for a while */
#else
    GROWTH_KIB_MAX = 48 << 10,
#endif
};

/* The most memory the keeper ever had, in KiB. */
static uint64_t keeper_peak(struct exec_world *w)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/status", (int)exec_keeper_pid(w));
    assert_int_equal(gl_fs_read(path, 1 << 16, &text, NULL), 0);
    gl_buf_char(&text, 0);
    const char *at = strstr(text.p, "VmHWM:");
    assert_non_null(at);
    return strtoull(at + strlen("VmHWM:"), NULL, 10);
}

static void print_and_watch(struct exec_world *w, uint64_t bytes, const char *how)
{
    char script[256];
    struct timespec begin, end;
    uint64_t before = keeper_peak(w);
    snprintf(script, sizeof(script), "head -c %llu /dev/zero %s", (unsigned long long)bytes, how);
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    struct worker_end e = worker_run(w, script, (struct exec_options){.beacon_ms = 1000});
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    uint64_t grown = keeper_peak(w) - before;
    double seconds =
        (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    print_message("%llu MiB in %.1f s, %llu KiB more\n", (unsigned long long)(bytes >> 20), seconds,
                  (unsigned long long)grown);
    assert_int_equal(e.end->result.exit_code, 0);
    assert_true(e.output.is_cut);
    assert_true(e.output.stdout_text.n >= GL_STDOUT_BYTES);
    assert_true(grown < GROWTH_KIB_MAX);
    exec_ack(w, e.end->attempt, 1);
}

static void one_that_prints_for_ever_costs_no_memory(void **state)
{
    struct exec_world *w = *state;
    const char *lines = "| tr '\\0' x | fold -w 1000";
    print_and_watch(w, 64 << 20, lines);
    print_and_watch(w, 64 << 20, ""); /* a single line, of zeros */
    if (getenv("GLIA_SOAK") != NULL) {
        print_and_watch(w, 1ull << 30, lines);
        print_and_watch(w, 10ull << 30, "");
    }
}

static void one_that_prints_beacons_for_ever_costs_no_memory(void **state)
{
    struct exec_world *w = *state;
    uint64_t before = keeper_peak(w);
    const char *attempt = worker_start(w, "exec yes __MN_AGENT_BEACON__", (struct exec_options){0});
    while (w->lines_n < 3000) {
        exec_wait(w);
    }
    assert_int_equal(exec_stop(w, attempt, 1), 0);
    struct worker_end e = worker_read(w, exec_wait_end(w, attempt));
    assert_int_equal(e.end->result.end, GL_EXEC_STOPPED);
    assert_int_equal(e.output.stdout_text.n, 0);
    assert_true(keeper_peak(w) - before < GROWTH_KIB_MAX);
}

static void half_a_document_is_told_as_it_is(void **state)
{
    struct exec_world *w = *state;
    struct worker_end e = worker_run(w, "printf '{\"next_state\": {\"a'", (struct exec_options){0});
    assert_int_equal(e.end->result.exit_code, 0);
    assert_true(gl_str_eq(e.output.stdout_text, GL_S("{\"next_state\": {\"a")));
}

static void a_child_that_outlives_it_with_its_stdout_does_not_hold_up_the_end(void **state)
{
    struct exec_world *w = *state;
    struct worker_end e = worker_run(
        w, "sleep 1000 & (setsid sleep 1000 &) ; (trap '' TERM HUP; sleep 1000) & echo hi",
        (struct exec_options){0});
    assert_int_equal(e.end->result.end, GL_EXEC_EXITED);
    assert_true(gl_str_eq(e.output.stdout_text, GL_S("hi\n")));
}

static void one_that_closes_its_stdout_goes_on(void **state)
{
    struct exec_world *w = *state;
    struct worker_end e =
        worker_run(w, "echo one; exec >&- 2>&-; sleep 0.1; exit 3", (struct exec_options){0});
    assert_int_equal(e.end->result.exit_code, 3);
    assert_true(gl_str_eq(e.output.stdout_text, GL_S("one\n")));
}

static void one_that_never_reads_its_input_is_fine(void **state)
{
    struct exec_world *w = *state;
    static char body[GL_BODY_BYTES_MAX];
    memset(body, 'x', sizeof(body));
    struct gl_exec_file files[] = {
        {.name = GL_S("mirror_neuron_input.json"), .text = {body, sizeof(body)}},
        {.name = GL_S("mirror_neuron_message.json"), .text = {body, sizeof(body)}},
        {.name = GL_S("mirror_neuron_body.bin"), .text = {body, sizeof(body)}},
    };
    struct worker_end e = worker_run(w, "cat; wc -c < mirror_neuron_body.bin",
                                     (struct exec_options){.files = files, .files_n = 3});
    assert_int_equal(e.end->result.exit_code, 0);
    assert_true(gl_str_eq(e.output.stdout_text, GL_S("262144\n"))); /* stdin was empty */
}

/* It needs a moment before it ignores anything: the more of them, the busier the machine is. */
static void one_that_ignores_everything_is_killed_at_its_deadline(void **state)
{
    struct exec_world *w = *state;
    bool was_deaf = false;
    for (gl_ms ms = 100; ms <= 100000 && !was_deaf; ms *= 10) {
        struct worker_end e =
            worker_run(w, "trap '' TERM INT HUP; echo here; while :; do sleep 1000; done",
                       (struct exec_options){.timeout_ms = ms});
        assert_int_equal(e.end->result.end, GL_EXEC_TIMEOUT);
        was_deaf = gl_str_eq(e.output.stdout_text, GL_S("here\n"));
    }
    assert_true(was_deaf);
}

static void one_that_removes_or_replaces_its_folder_changes_nothing_else(void **state)
{
    struct exec_world *w = *state;
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/precious", w->data_dir);
    assert_int_equal(gl_fs_write(path, GL_S("mine"), NULL), 0);
    (void)worker_run(w, "cd ..; rm -rf work; ln -s ../../../../.. work; echo done",
                     (struct exec_options){0});
    (void)worker_run(w, "chmod 0 .; mkdir -p a/b/c; chmod 0 a; echo done",
                     (struct exec_options){0});
    struct worker_end e = worker_run(w, "echo next", (struct exec_options){0});
    assert_true(gl_str_eq(e.output.stdout_text, GL_S("next\n")));
    assert_int_equal(gl_fs_read(path, 64, &text, NULL), 0);
    assert_true(gl_str_eq(gl_buf_view(&text), GL_S("mine")));
}

/* ---- a disk that is full ---- */

static int open_small_world(void **state)
{
    return exec_world_open_small(state, &exec_keeper, SMALL_DISK_MIB);
}

static void one_that_fills_the_disk_is_told_of_and_what_it_took_is_given_back(void **state)
{
    struct exec_world *w = *state;
    struct worker_end e =
        worker_run(w, "cat /dev/zero > big; echo full; exit 7", (struct exec_options){0});
    assert_int_equal(e.end->result.exit_code, 7);
    assert_true(gl_str_eq(e.output.stdout_text, GL_S("full\n")));
    /* Its folder is taken away beside the others' work: soon, not at once. */
    for (int i = 0; i < GIVEN_BACK_TRIES; i++) {
        e = worker_run(w, "head -c 4000000 /dev/zero > big && echo fine", (struct exec_options){0});
        if (gl_str_eq(e.output.stdout_text, GL_S("fine\n"))) {
            return;
        }
    }
    fail_msg("what it took was not given back");
}

static void a_worker_that_does_not_fit_on_the_disk_has_not_started(void **state)
{
    struct exec_world *w = *state;
    static char big[1 << 20];
    struct gl_exec_file file = {.name = GL_S("a/b"), .text = {big, sizeof(big)}};
    struct exec_question q;
    const char *const argv[] = {"true", NULL};
    struct exec_options options = {argv,           "f:attempt:1", .token = 1, .is_worker = true,
                                   .files = &file, .files_n = 1};
    const char *hog =
        worker_start(w, "cat /dev/zero > big; touch ../../../../../../full; exec sleep 1000",
                     (struct exec_options){0});
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/full", w->data_dir);
    worker_wait_for_file(path);
    exec_ask_start(w, &q, options);
    exec_wait_answer(&q);
    assert_int_equal(q.req.status, GL_E_UNAVAILABLE);
    assert_non_null(strstr(q.req.why.text, strerror(ENOSPC)));
    exec_attach(w, &q, "f:attempt:1", 1, w->epoch);
    assert_int_equal(q.req.state, GL_EXEC_NEVER);
    assert_int_equal(exec_stop(w, hog, 1), 0);
    (void)exec_wait_end(w, hog);
    worker_wait_for_room(w);
    assert_int_equal(exec_start(w, options), 0);
    assert_int_equal(exec_wait_end(w, "f:attempt:1")->result.exit_code, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, worker_open_world, exec_world_close)
#define SMALL(name) cmocka_unit_test_setup_teardown(name, open_small_world, exec_world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_that_prints_for_ever_costs_no_memory),
        TEST(one_that_prints_beacons_for_ever_costs_no_memory),
        TEST(half_a_document_is_told_as_it_is),
        TEST(a_child_that_outlives_it_with_its_stdout_does_not_hold_up_the_end),
        TEST(one_that_closes_its_stdout_goes_on),
        TEST(one_that_never_reads_its_input_is_fine),
        TEST(one_that_ignores_everything_is_killed_at_its_deadline),
        TEST(one_that_removes_or_replaces_its_folder_changes_nothing_else),
        SMALL(one_that_fills_the_disk_is_told_of_and_what_it_took_is_given_back),
        SMALL(a_worker_that_does_not_fit_on_the_disk_has_not_started),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
