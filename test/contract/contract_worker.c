/* Workers of bundles under a real keeper: their folder, their output, and how they end. */
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/sha256.h"
#include "contract/worker_world.h"
#include "os/fs.h"
#include "os/sock.h"
#include "port/keeper_protocol.h"

/* ---- its folder ---- */

static void a_worker_gets_its_files_and_loses_its_folder(void **state)
{
    struct exec_world *w = *state;
    struct gl_exec_file files[] = {
        {.name = GL_S("worker/run.sh"),
         .blob = worker_blob(w, GL_S("#!/bin/sh\ncat \"$0\" | wc -l\n")),
         .executable = true},
        {.name = GL_S("a/b/data"), .blob = worker_blob(w, GL_S("one\ntwo\n"))},
        {.name = GL_S("mirror_neuron_input.json"), .text = GL_S("{\"n\":\001\"}")},
        {.name = GL_S("empty")},
    };
    struct worker_end e = worker_run(
        w,
        "stat -c '%a %n' worker worker/run.sh a/b a/b/data mirror_neuron_input.json empty; "
        "cat a/b/data mirror_neuron_input.json; ./worker/run.sh; pwd; echo $0",
        (struct exec_options){.files = files, .files_n = GL_COUNT(files)});
    assert_int_equal(e.end->result.exit_code, 0);
    gl_str rest, text = e.output.stdout_text;
    const char *expected = "755 worker\n755 worker/run.sh\n755 a/b\n644 a/b/data\n"
                           "644 mirror_neuron_input.json\n644 empty\none\ntwo\n{\"n\":\001\"}2\n";
    assert_true(gl_str_starts(text, gl_str_of(expected)));
    text.p += strlen(expected);
    text.n -= strlen(expected);
    gl_str folder = gl_str_cut(text, '\n', &rest);
    assert_true(gl_str_starts(folder, gl_str_of(w->data_dir)));
    assert_true(gl_str_ends(folder, GL_S("/work")));
    assert_int_equal(access(gl_str_c(&w->arena, folder), F_OK), -1);
}

static void a_failed_worker_loses_its_folder_too(void **state)
{
    struct exec_world *w = *state;
    struct worker_end e = worker_run(w, "pwd; exit 5", (struct exec_options){0});
    assert_int_equal(e.end->result.exit_code, 5);
    assert_int_equal(access(gl_str_c(&w->arena, gl_str_trim(e.output.stdout_text)), F_OK), -1);
    e = worker_run(w, "pwd; kill -9 $$", (struct exec_options){0});
    assert_int_equal(e.end->result.end, GL_EXEC_SIGNALED);
    assert_int_equal(access(gl_str_c(&w->arena, gl_str_trim(e.output.stdout_text)), F_OK), -1);
}

static void a_silent_worker_leaves_nothing(void **state)
{
    struct exec_world *w = *state;
    char path[PATH_MAX];
    struct worker_end e = worker_run(w, "touch x", (struct exec_options){0});
    snprintf(path, sizeof(path), "%s/contexts/default/runs/JOB/%s", w->data_dir, e.end->attempt);
    assert_int_equal(access(path, F_OK), -1);
    worker_folder(w, e.end->attempt, path);
    *strrchr(path, '/') = '\0'; /* nor the one above it */
    assert_int_equal(access(path, F_OK), -1);
}

static void the_folder_of_a_worker_whose_keeper_was_killed_goes(void **state)
{
    struct exec_world *w = *state;
    char path[PATH_MAX];
    const char *const argv[] = {"sleep", "1000", NULL};
    struct exec_options options = {argv, "k:attempt:1", .token = 1, .is_worker = true};
    assert_int_equal(exec_start(w, options), 0);
    worker_folder(w, "k:attempt:1", path);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(kill(exec_keeper_pid(w), SIGKILL), 0);
    while (w->ups == 1) {
        exec_wait(w);
    }
    assert_int_equal(access(path, F_OK), -1);
}

static void where_it_runs_and_where_its_folder_is_named(void **state)
{
    struct exec_world *w = *state;
    static const char *const env[] = {"PATH=/usr/bin:/bin", "DIR=" GL_EXEC_WORK "/x:" GL_EXEC_WORK,
                                      NULL};
    char made[PATH_MAX];
    snprintf(made, sizeof(made), "%s/runs/one/two", w->data_dir);
    struct worker_end e = worker_run(
        w, "pwd; echo $DIR; env | cut -d= -f1 | sort | tr '\\n' ' '",
        (struct exec_options){.cwd = GL_EXEC_WORK "/made/here", .env = env, .make_folder = made});
    gl_str text = e.output.stdout_text;
    gl_str cwd = gl_str_cut(text, '\n', &text);
    assert_true(gl_str_ends(cwd, GL_S("/made/here")));
    cwd.n -= strlen("/made/here");
    /* Its path can be used in PATH and the like; the data folder is its owner's choice. */
    assert_null(strchr(gl_str_c(&w->arena, cwd) + strlen(w->data_dir), ':'));
    gl_str dir = gl_str_cut(text, '\n', &text);
    assert_true(
        gl_str_eq(dir, gl_str_fmt(&w->arena, "%.*s/x:%.*s", GL_STR_ARG(cwd), GL_STR_ARG(cwd))));
    assert_true(gl_str_eq(text, GL_S("DIR PATH PWD "))); /* PWD is the shell's */
    struct stat st;
    assert_int_equal(stat(made, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    e = worker_run(w, "pwd", (struct exec_options){.cwd = "/"});
    assert_true(gl_str_eq(e.output.stdout_text, GL_S("/\n")));
}

static void a_snapshot_that_has_changed_is_not_used(void **state)
{
    struct exec_world *w = *state;
    struct gl_exec_file file = {.name = GL_S("worker.py"), .blob = worker_blob(w, GL_S("good"))};
    worker_spoil_blob(w, file.blob);
    struct worker_end e =
        worker_run(w, "cat worker.py", (struct exec_options){.files = &file, .files_n = 1});
    assert_int_equal(e.end->result.end, GL_EXEC_NOT_EXECUTED);
    assert_non_null(strstr(e.end->error, "'worker.py'"));
    assert_non_null(strstr(e.end->error, "damaged"));
    assert_int_equal(e.output.stdout_text.n, 0);
    /* ... nor is it for a step. */
    const char *const argv[] = {"cat", "worker.py", NULL};
    assert_int_equal(exec_start(w, (struct exec_options){argv, "s:attempt:1", .token = 1,
                                                         .files = &file, .files_n = 1}),
                     0);
    struct reported_end *step = exec_wait_end(w, "s:attempt:1");
    assert_int_equal(step->result.end, GL_EXEC_NOT_EXECUTED);
    assert_non_null(strstr(step->error, "'worker.py'"));
    assert_non_null(strstr(step->error, "damaged"));
}

static void a_worker_cannot_change_what_the_next_one_sees(void **state)
{
    struct exec_world *w = *state;
    struct gl_exec_file file = {.name = GL_S("f"), .blob = worker_blob(w, GL_S("as-it-was"))};
    struct exec_options options = {.files = &file, .files_n = 1};
    (void)worker_run(w, "echo more >> f; chmod 777 f", options);
    struct worker_end e = worker_run(w, "cat f", options);
    assert_true(gl_str_eq(e.output.stdout_text, GL_S("as-it-was")));
}

/* ---- its output ---- */

static void stdout_and_stderr_are_apart(void **state)
{
    struct exec_world *w = *state;
    struct worker_end e =
        worker_run(w, "echo one; echo two >&2; printf three; exit 4", (struct exec_options){0});
    assert_int_equal(e.end->result.end, GL_EXEC_EXITED);
    assert_int_equal(e.end->result.exit_code, 4);
    assert_true(gl_str_eq(e.output.stdout_text, GL_S("one\nthree")));
    assert_true(gl_str_eq(e.output.stderr_text, GL_S("two\n")));
    assert_int_equal(e.output.stdout_bytes, 9);
    assert_false(e.output.is_cut);
}

static void bytes_that_are_no_text_are_replaced(void **state)
{
    struct exec_world *w = *state;
    struct worker_end e = worker_run(w, "printf 'a\\377b\\0c\\303'", (struct exec_options){0});
    assert_int_equal(e.output.stdout_bytes, 6);
    assert_true(gl_str_eq(e.output.stdout_text, (gl_str){"a\xef\xbf\xbd"
                                                         "b\0c\xef\xbf\xbd",
                                                         10}));
}

static void stdout_is_cut_at_its_limit(void **state)
{
    struct exec_world *w = *state;
    struct worker_end e =
        worker_run(w, "printf '0123456789'", (struct exec_options){.stdout_max = 10});
    assert_false(e.output.is_cut);
    assert_true(gl_str_eq(e.output.stdout_text, GL_S("0123456789")));
    e = worker_run(w, "printf '0123456789x'", (struct exec_options){.stdout_max = 10});
    assert_true(e.output.is_cut);
    assert_int_equal(e.output.stdout_bytes, 11);
    assert_true(gl_str_eq(e.output.stdout_text,
                          GL_S("0123456789\n-- stdout cut: 10 of 11 bytes kept --\n")));
    /* Characters are not split. */
    e = worker_run(w, "printf '12345678\\342\\202\\254'", (struct exec_options){.stdout_max = 10});
    assert_true(gl_str_starts(e.output.stdout_text, GL_S("12345678\n-- stdout cut: 8 of 11")));
}

static void the_largest_stdout_arrives_whole(void **state)
{
    struct exec_world *w = *state;
    struct worker_end e = worker_run(w, "head -c 8388608 /dev/zero | tr '\\0' x; echo y >&2",
                                     (struct exec_options){.stdout_max = GL_STDOUT_BYTES_MAX});
    assert_false(e.output.is_cut);
    assert_int_equal(e.output.stdout_text.n, GL_STDOUT_BYTES_MAX);
    assert_true(gl_str_eq(e.output.stderr_text, GL_S("y\n")));
    /* It is on disk too: the next keeper has it. */
    assert_int_equal(kill(exec_keeper_pid(w), SIGKILL), 0);
    char attempt[64];
    memcpy(attempt, e.end->attempt, sizeof(attempt));
    w->ends_n = 0;
    e = worker_read(w, exec_wait_end(w, attempt));
    assert_int_equal(e.output.stdout_text.n, GL_STDOUT_BYTES_MAX);
    assert_int_equal(e.output.stdout_text.p[GL_STDOUT_BYTES_MAX - 1], 'x');
}

static void of_stderr_the_end_is_kept(void **state)
{
    struct exec_world *w = *state;
    struct worker_end e =
        worker_run(w, "i=0; while [ $i -lt 9000 ]; do echo line $i; i=$((i+1)); done >&2",
                   (struct exec_options){0});
    assert_true(e.output.stderr_text.n <= GL_STDERR_BYTES_MAX);
    assert_true(e.output.stderr_text.n > GL_STDERR_BYTES_MAX - 20);
    assert_true(gl_str_starts(e.output.stderr_text, GL_S("line ")));
    assert_true(gl_str_ends(e.output.stderr_text, GL_S("line 8999\n")));
}

static void a_worker_that_could_not_start_has_no_output(void **state)
{
    struct exec_world *w = *state;
    static const char *const argv[] = {"no-such-program", NULL};
    struct exec_options options = {argv, "n:attempt:1", .token = 1, .is_worker = true};
    assert_int_equal(exec_start(w, options), 0);
    struct worker_end e = worker_read(w, exec_wait_end(w, "n:attempt:1"));
    assert_int_equal(e.end->result.end, GL_EXEC_NOT_EXECUTED);
    assert_non_null(strstr(e.end->error, "'no-such-program'"));
    assert_int_equal(e.output.stdout_text.n, 0);
}

/* ---- lines for the runtime ---- */

static void lines_for_the_runtime_are_sent_in_order_and_removed(void **state)
{
    struct exec_world *w = *state;
    struct worker_end e = worker_run(
        w,
        "echo '{\"a\":1,'; echo '__MN_EVENT__{\"type\":\"x\"}'; echo __MN_AGENT_BEACON__; "
        "printf '__MN_EV'; sleep 0.05; printf 'ENT__2\\r\\n'; echo '__MN_EVEN'; "
        "echo ' __MN_EVENT__'; "
        "printf '\"b\":2}\\n__MN_EVENT__end'",
        (struct exec_options){0});
    assert_true(
        gl_str_eq(e.output.stdout_text, GL_S("{\"a\":1,\n__MN_EVEN\n __MN_EVENT__\n\"b\":2}\n")));
    assert_int_equal(w->lines_n, 4);
    assert_string_equal(w->lines[0].text, "__MN_EVENT__{\"type\":\"x\"}");
    assert_string_equal(w->lines[1].text, "__MN_AGENT_BEACON__");
    assert_string_equal(w->lines[2].text, "__MN_EVENT__2");
    assert_string_equal(w->lines[3].text, "__MN_EVENT__end");
    assert_string_equal(w->lines[0].attempt, e.end->attempt);
    GL_CLEANUP(gl_buf_done) struct gl_buf log = {0};
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/contexts/default/runs/JOB/%s/log", w->data_dir,
             e.end->attempt);
    assert_int_equal(gl_fs_read(path, 1 << 20, &log, NULL), 0);
    gl_buf_char(&log, 0);
    assert_null(strstr(log.p, "BEACON"));
    assert_non_null(strstr(log.p, " o {\"a\":1,\n"));
    assert_non_null(strstr(log.p, " o \"b\":2}\n"));
}

static void they_are_sent_while_it_runs(void **state)
{
    struct exec_world *w = *state;
    const char *const argv[] = {"sh", "-c", "echo __MN_EVENT__now; exec sleep 1000", NULL};
    struct exec_options options = {argv, "l:attempt:1", .token = 1, .is_worker = true,
                                   .beacon_ms = 20};
    assert_int_equal(exec_start(w, options), 0);
    while (w->lines_n == 0 || w->beacons == 0) {
        exec_wait(w);
    }
    assert_int_equal(w->ends_n, 0);
    assert_int_equal(exec_stop(w, "l:attempt:1", 1), 0);
    assert_int_equal(exec_wait_end(w, "l:attempt:1")->result.end, GL_EXEC_STOPPED);
}

static void a_line_that_is_too_long_is_dropped(void **state)
{
    struct exec_world *w = *state;
    struct worker_end e =
        worker_run(w,
                   "long() { printf __MN_EVENT__; head -c $1 /dev/zero | tr '\\0' x; echo; }; "
                   "long 65524; long 65525; echo done",
                   (struct exec_options){0});
    assert_true(gl_str_eq(e.output.stdout_text, GL_S("done\n")));
    assert_int_equal(w->lines_n, 1);
    assert_int_equal(strlen(w->lines[0].text), GL_SAID_BYTES_MAX);
    assert_true(gl_str_starts(e.output.stderr_text, GL_S("-- a line ")));
}

/* Write this many lines while the node is disconnected, then let it reconnect. */
static struct worker_end talk_alone(struct exec_world *w, const char *script)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    char done[PATH_MAX], full[4096];
    snprintf(done, sizeof(done), "%s/go", w->data_dir);
    const char *env[] = {"PATH=/usr/bin:/bin", NULL, NULL};
    snprintf(full, sizeof(full), "GO=%.3000s", done);
    env[1] = full;
    struct exec_options options = {argv, "t:attempt:1", .token = 1, .is_worker = true, .env = env};
    assert_int_equal(exec_start(w, options), 0);
    exec_close(w);
    assert_int_equal(gl_fs_write(done, GL_S("x"), NULL), 0);
    worker_wait_for_end(w, "t:attempt:1");
    exec_open(w);
    return worker_read(w, exec_wait_end(w, "t:attempt:1"));
}

static void lines_written_while_the_node_is_away_are_sent_later(void **state)
{
    struct exec_world *w = *state;
    struct worker_end e = talk_alone(w, "while [ ! -e $GO ]; do sleep 0.01; done; "
                                        "echo __MN_EVENT__1; echo __MN_AGENT_BEACON__2; echo out");
    assert_int_equal(w->lines_n, 2);
    assert_string_equal(w->lines[0].text, "__MN_EVENT__1");
    assert_string_equal(w->lines[1].text, "__MN_AGENT_BEACON__2");
    assert_true(gl_str_eq(e.output.stdout_text, GL_S("out\n")));
}

static void beacons_are_dropped_first_while_the_node_is_away(void **state)
{
    struct exec_world *w = *state;
    struct worker_end e =
        talk_alone(w, "while [ ! -e $GO ]; do sleep 0.01; done; i=0; while [ $i -lt 700 ]; do "
                      "echo __MN_EVENT__$i; echo __MN_AGENT_BEACON__; i=$((i+1)); done");
    assert_int_equal(w->lines_n, GL_SAID_WAITING_MAX);
    size_t events = 0;
    char expected[64];
    for (size_t i = 0; i < w->lines_n; i++) {
        if (strncmp(w->lines[i].text, "__MN_EVENT__", 12) == 0) {
            snprintf(expected, sizeof(expected), "__MN_EVENT__%zu", events++);
            assert_string_equal(w->lines[i].text, expected);
        }
    }
    assert_int_equal(events, 700);
    assert_true(gl_str_starts(e.output.stderr_text, GL_S("-- 400 lines ")));
    assert_true(gl_str_ends(e.output.stderr_text, GL_S(" --\n")));
    assert_null(memchr(e.output.stderr_text.p, '\n', e.output.stderr_text.n - 1)); /* only that */
}

static void nothing_is_lost_while_the_node_listens(void **state)
{
    struct exec_world *w = *state;
    enum { N = 15000 };
    struct worker_end e = worker_run(w,
                                     "exec awk 'BEGIN { for (i = 0; i < 15000; i++) "
                                     "printf \"__MN_EVENT__%d %0200d\\n\", i, i }'",
                                     (struct exec_options){0});
    assert_int_equal(e.end->result.exit_code, 0);
    assert_int_equal(w->lines_n, N);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(strtoul(w->lines[i].text + strlen(GL_EXEC_SAYS), NULL, 10), i);
    }
    assert_int_equal(e.output.stderr_text.n, 0);
}

/* ---- secrets ---- */

static void secrets_are_taken_out_of_all_of_it(void **state)
{
    struct exec_world *w = *state;
    setenv("GLIA_TEST_SECRET", "1234567", 1);
    struct worker_end e =
        worker_run(w,
                   "echo log $S; echo __MN_EVENT__$S; "
                   "echo \"{\\\"n\\\":$S,\\\"s\\\":\\\"a${S}b\\\"}\"; echo $S >&2",
                   (struct exec_options){.secret = "S=env:GLIA_TEST_SECRET"});
    unsetenv("GLIA_TEST_SECRET");
    assert_true(
        gl_str_eq(e.output.stdout_text, GL_S("log ***\n{\"n\":\"***\",\"s\":\"a***b\"}\n")));
    assert_true(gl_str_eq(e.output.stderr_text, GL_S("***\n")));
    assert_string_equal(w->lines[0].text, "__MN_EVENT__***");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, worker_open_world, exec_world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_worker_gets_its_files_and_loses_its_folder),
        TEST(a_failed_worker_loses_its_folder_too),
        TEST(a_silent_worker_leaves_nothing),
        TEST(the_folder_of_a_worker_whose_keeper_was_killed_goes),
        TEST(where_it_runs_and_where_its_folder_is_named),
        TEST(a_snapshot_that_has_changed_is_not_used),
        TEST(a_worker_cannot_change_what_the_next_one_sees),
        TEST(stdout_and_stderr_are_apart),
        TEST(bytes_that_are_no_text_are_replaced),
        TEST(stdout_is_cut_at_its_limit),
        TEST(the_largest_stdout_arrives_whole),
        TEST(of_stderr_the_end_is_kept),
        TEST(a_worker_that_could_not_start_has_no_output),
        TEST(lines_for_the_runtime_are_sent_in_order_and_removed),
        TEST(they_are_sent_while_it_runs),
        TEST(a_line_that_is_too_long_is_dropped),
        TEST(lines_written_while_the_node_is_away_are_sent_later),
        TEST(beacons_are_dropped_first_while_the_node_is_away),
        TEST(nothing_is_lost_while_the_node_listens),
        TEST(secrets_are_taken_out_of_all_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
