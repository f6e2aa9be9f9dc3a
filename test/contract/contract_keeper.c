/* What only the keeper does: programs, files, timeouts, and outliving the node. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "contract/exec_world.h"

static int open_world(void **state)
{
    return exec_world_open(state, &exec_keeper);
}

static const char *const *sh(const char *script)
{
    static const char *argv[4];
    argv[0] = "sh";
    argv[1] = "-c";
    argv[2] = script;
    argv[3] = NULL;
    return argv;
}

static struct reported_end *run(struct exec_world *w, const char *script)
{
    w->ends_n = 0;
    static int number;
    char attempt[32];
    snprintf(attempt, sizeof(attempt), "r%d:attempt:1", number++);
    assert_int_equal(exec_start(w, (struct exec_options){sh(script), attempt, .token = 1}), 0);
    return exec_wait_end(w, attempt);
}

static void a_program_that_is_not_there_is_named(void **state)
{
    struct exec_world *w = *state;
    static const char *const argv[] = {"no-such-program", NULL};
    assert_int_equal(exec_start(w, (struct exec_options){argv, "a:attempt:1", .token = 1}), 0);
    struct reported_end *e = exec_wait_end(w, "a:attempt:1");
    assert_int_equal(e->result.end, GL_EXEC_NOT_EXECUTED);
    assert_non_null(strstr(e->error, "'no-such-program'"));
    assert_non_null(strstr(e->error, strerror(ENOENT)));
    assert_non_null(strstr(e->error, "PATH "));
}

static void the_output_file_must_be_json(void **state)
{
    struct exec_world *w = *state;
    struct reported_end *e = run(w, "echo '[1, 2]' > $GLIA_OUTPUT");
    assert_string_equal(e->output, "[1, 2]");
    assert_string_equal(e->error, "");
    e = run(w, "printf '{\\n  \"a\": x}' > $GLIA_OUTPUT");
    assert_int_equal(e->result.end, GL_EXEC_EXITED);
    assert_int_equal(e->result.exit_code, 0);
    assert_string_equal(e->output, "");
    assert_non_null(strstr(e->error, "line 2, column 8"));
}

static void an_output_file_of_a_failed_step_is_no_second_failure(void **state)
{
    struct exec_world *w = *state;
    struct reported_end *e = run(w, "printf '{' > $GLIA_OUTPUT; exit 4");
    assert_int_equal(e->result.exit_code, 4);
    assert_string_equal(e->output, "");
    assert_string_equal(e->error, "");
}

static void an_output_file_above_one_mebibyte_is_an_error(void **state)
{
    struct exec_world *w = *state;
    struct reported_end *e = run(w, "head -c 1048577 /dev/zero > $GLIA_OUTPUT");
    assert_int_equal(e->result.exit_code, 0);
    assert_non_null(strstr(e->error, "1 MiB"));
}

static void the_last_line_counts_if_it_is_an_object(void **state)
{
    struct exec_world *w = *state;
    assert_string_equal(run(w, "echo 1; echo '{\"a\":1}'; printf '\\n  \\n'")->output, "{\"a\":1}");
    assert_string_equal(run(w, "echo '{\"a\":1}'; echo done")->output, "");
    assert_string_equal(run(w, "echo '[1]'")->output, "");
    struct reported_end *e = run(w, "echo '{\"a\":'");
    assert_string_equal(e->output, "");
    assert_string_equal(e->error, "");
    assert_string_equal(run(w, "printf ' {\"b\":2} '")->output, "{\"b\":2}");
}

static void the_file_goes_before_the_line(void **state)
{
    struct exec_world *w = *state;
    assert_string_equal(run(w, "echo 3 > $GLIA_OUTPUT; echo '{\"a\":1}'")->output, "3");
    assert_string_equal(run(w, ": > $GLIA_OUTPUT; echo '{\"a\":1}'")->output, "{\"a\":1}");
}

static void a_step_sees_only_its_own_environment(void **state)
{
    struct exec_world *w = *state;
    setenv("GLIA_TEST_LEAK", "1", 1);
    struct reported_end *e = run(w, "env | cut -d= -f1 | sort | tr '\\n' ' ' > names; "
                                    "printf '\"%s\"' \"$(cat names)\" > $GLIA_OUTPUT");
    assert_null(strstr(e->output, "LEAK"));
    assert_non_null(strstr(e->output, "GLIA_INPUT_FILE GLIA_OUTPUT"));
    assert_non_null(strstr(e->output, "HOME"));
    assert_non_null(strstr(e->output, "PATH"));
}

static void a_deadline_ends_it(void **state)
{
    struct exec_world *w = *state;
    assert_int_equal(exec_start(w, (struct exec_options){w->maker->hold, "a:attempt:1", .token = 1,
                                                         .timeout_ms = 20}),
                     0);
    assert_int_equal(exec_wait_end(w, "a:attempt:1")->result.end, GL_EXEC_TIMEOUT);
}

static void beacons_come_while_it_runs(void **state)
{
    struct exec_world *w = *state;
    assert_int_equal(exec_start(w, (struct exec_options){w->maker->hold, "a:attempt:1", .token = 1,
                                                         .beacon_ms = 5}),
                     0);
    while (w->beacons < 3) {
        exec_wait(w);
    }
    assert_int_equal(exec_stop(w, "a:attempt:1", 1), 0);
    (void)exec_wait_end(w, "a:attempt:1");
}

static void a_result_is_offered_again_to_the_next_node(void **state)
{
    struct exec_world *w = *state;
    assert_int_equal(
        exec_start(w, (struct exec_options){w->maker->output, "a:attempt:1", .token = 1}), 0);
    (void)exec_wait_end(w, "a:attempt:1");
    exec_close(w);
    w->ends_n = 0;
    exec_open(w);
    assert_string_equal(exec_wait_end(w, "a:attempt:1")->output, "{\"n\": 1}");
}

static void a_step_outlives_its_node(void **state)
{
    struct exec_world *w = *state;
    struct exec_question q;
    char epoch[64];
    memcpy(epoch, w->epoch, sizeof(epoch));
    assert_int_equal(
        exec_start(w, (struct exec_options){w->maker->hold, "a:attempt:1", .token = 1}), 0);
    exec_close(w);
    exec_open(w);
    assert_string_equal(epoch, w->epoch);
    exec_attach(w, &q, "a:attempt:1", 2, epoch);
    assert_int_equal(q.req.state, GL_EXEC_RUNNING);
    assert_int_equal(exec_stop(w, "a:attempt:1", 2), 0);
    (void)exec_wait_end(w, "a:attempt:1");
}

static void an_older_incarnation_of_the_node_is_refused(void **state)
{
    struct exec_world *w = *state;
    exec_close(w);
    w->incarnation += 10;
    exec_open(w);
    exec_close(w);
    w->incarnation -= 5;
    w->downs = 0;
    w->x = exec_open_keeper(w);
    while (w->downs == 0) {
        exec_wait(w);
    }
    assert_non_null(strstr(w->down_why, "incarnation"));
}

static void a_killed_keeper_is_replaced_and_its_steps_are_lost(void **state)
{
    struct exec_world *w = *state;
    struct exec_question q;
    char epoch[64];
    memcpy(epoch, w->epoch, sizeof(epoch));
    assert_int_equal(
        exec_start(w, (struct exec_options){w->maker->hold, "a:attempt:1", .token = 1}), 0);
    assert_int_equal(kill(exec_keeper_pid(w), SIGKILL), 0);
    while (w->downs == 0 || w->ups == 1) {
        exec_wait(w);
    }
    assert_string_not_equal(epoch, w->epoch);
    exec_attach(w, &q, "a:attempt:1", 1, epoch);
    assert_int_equal(q.req.state, GL_EXEC_LOST);
    assert_int_equal(exec_start(w, (struct exec_options){w->maker->ok, "b:attempt:1", .token = 1,
                                                         .epoch = epoch}),
                     GL_E_STALE);
    assert_int_equal(exec_start(w, (struct exec_options){w->maker->ok, "b:attempt:1", .token = 1}),
                     0);
}

static void what_was_asked_of_a_keeper_that_dies_is_answered(void **state)
{
    struct exec_world *w = *state;
    struct exec_question q;
    struct gl_attempt_key key = exec_key("a:attempt:1");
    pid_t pid = exec_keeper_pid(w);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    exec_prepare(w, &q);
    w->x->ops->stop(w->x, &q.req, &key, 1, 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    exec_wait_answer(&q);
    assert_int_equal(q.req.status, GL_E_UNAVAILABLE);
    while (w->ups == 1) {
        exec_wait(w);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, exec_world_close)

static void a_later_attempt_waits_until_the_earlier_one_has_ended(void **state)
{
    struct exec_world *w = *state;
    static const char *const argv[] = {"true", NULL};
    struct exec_options later = {argv, "a:attempt:2", .token = 2};
    assert_int_equal(
        exec_start(w, (struct exec_options){sh("trap 'sleep 0.2; exit 7' TERM; sleep 60 & wait"),
                                            "a:attempt:1", .token = 1}),
        0);
    assert_int_equal(exec_start(w, later), GL_E_UNAVAILABLE);
    assert_int_equal(exec_wait_end(w, "a:attempt:1")->result.end, GL_EXEC_STOPPED);
    assert_int_equal(exec_start(w, later), 0);
    assert_int_equal(exec_wait_end(w, "a:attempt:2")->result.end, GL_EXEC_EXITED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_later_attempt_waits_until_the_earlier_one_has_ended),
        TEST(a_program_that_is_not_there_is_named),
        TEST(the_output_file_must_be_json),
        TEST(an_output_file_of_a_failed_step_is_no_second_failure),
        TEST(an_output_file_above_one_mebibyte_is_an_error),
        TEST(the_last_line_counts_if_it_is_an_object),
        TEST(the_file_goes_before_the_line),
        TEST(a_step_sees_only_its_own_environment),
        TEST(a_deadline_ends_it),
        TEST(beacons_come_while_it_runs),
        TEST(a_result_is_offered_again_to_the_next_node),
        TEST(a_step_outlives_its_node),
        TEST(an_older_incarnation_of_the_node_is_refused),
        TEST(a_killed_keeper_is_replaced_and_its_steps_are_lost),
        TEST(what_was_asked_of_a_keeper_that_dies_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
