/* The contract of port/exec.h, for every executor: the same suite runs against a real keeper, the
 * in-process noop executor, and both behind the multiplexer. */
#include <stdio.h>

#include "base/check.h"
#include "contract/exec_world.h"

static int open_keeper_world(void **state)
{
    return exec_world_open(state, &exec_keeper);
}

static int open_noop_world(void **state)
{
    return exec_world_open(state, &exec_noop);
}

static int open_mux_world(void **state)
{
    return exec_world_open(state, &exec_mux);
}

/* ---- what every executor does ---- */

static void a_start_is_answered_and_its_end_is_reported(void **state)
{
    struct exec_world *w = *state;
    assert_int_equal(exec_start(w, (struct exec_options){w->maker->ok, "a:attempt:1", .token = 7}),
                     0);
    struct reported_end *e = exec_wait_end(w, "a:attempt:1");
    assert_int_equal(e->token, 7);
    assert_int_equal(e->result.end, GL_EXEC_EXITED);
    assert_int_equal(e->result.exit_code, 0);
    assert_true(e->result.started_at > 0);
    assert_true(e->result.ended_at >= e->result.started_at);
    assert_string_equal(e->output, "");
    assert_string_equal(e->error, "");
}

static void an_exit_code_is_reported(void **state)
{
    struct exec_world *w = *state;
    assert_int_equal(
        exec_start(w, (struct exec_options){w->maker->exit3, "a:attempt:1", .token = 1}), 0);
    struct reported_end *e = exec_wait_end(w, "a:attempt:1");
    assert_int_equal(e->result.end, GL_EXEC_EXITED);
    assert_int_equal(e->result.exit_code, 3);
}

static void an_output_is_reported_and_can_be_requested_again(void **state)
{
    struct exec_world *w = *state;
    struct exec_question q;
    assert_int_equal(
        exec_start(w, (struct exec_options){w->maker->output, "a:attempt:1", .token = 1}), 0);
    assert_string_equal(exec_wait_end(w, "a:attempt:1")->output, "{\"n\": 1}");
    exec_attach(w, &q, "a:attempt:1", 1, w->epoch);
    assert_int_equal(q.req.status, 0);
    assert_int_equal(q.req.state, GL_EXEC_ENDED);
    assert_string_equal(q.output, "{\"n\": 1}");
}

static void a_known_attempt_is_not_started_again(void **state)
{
    struct exec_world *w = *state;
    assert_int_equal(
        exec_start(w, (struct exec_options){w->maker->hold, "a:attempt:1", .token = 1}), 0);
    assert_int_equal(exec_start(w, (struct exec_options){w->maker->ok, "a:attempt:1", .token = 1}),
                     0);
    assert_int_equal(exec_start(w, (struct exec_options){w->maker->ok, "b:attempt:1", .token = 1}),
                     0);
    (void)exec_wait_end(w, "b:attempt:1");
    assert_int_equal(w->ends_n, 1);
    assert_int_equal(exec_list(w), 2);
}

static void a_lower_token_is_refused_by_every_call(void **state)
{
    struct exec_world *w = *state;
    struct exec_question q;
    assert_int_equal(
        exec_start(w, (struct exec_options){w->maker->hold, "a:attempt:1", .token = 5}), 0);
    assert_int_equal(exec_start(w, (struct exec_options){w->maker->ok, "b:attempt:1", .token = 4}),
                     GL_E_STALE);
    assert_int_equal(exec_stop(w, "a:attempt:1", 4), GL_E_STALE);
    exec_attach(w, &q, "a:attempt:1", 4, w->epoch);
    assert_int_equal(q.req.status, GL_E_STALE);
    assert_true(strlen(q.req.why.text) > 0);
    assert_int_equal(exec_list(w), 1);
}

static void every_call_raises_the_floor(void **state)
{
    struct exec_world *w = *state;
    struct exec_question q;
    assert_int_equal(
        exec_start(w, (struct exec_options){w->maker->hold, "a:attempt:1", .token = 1}), 0);
    exec_attach(w, &q, "a:attempt:1", 3, w->epoch);
    assert_int_equal(q.req.state, GL_EXEC_RUNNING);
    assert_int_equal(exec_start(w, (struct exec_options){w->maker->ok, "b:attempt:1", .token = 2}),
                     GL_E_STALE);
    assert_int_equal(exec_stop(w, "a:attempt:1", 9), 0);
    assert_int_equal(exec_start(w, (struct exec_options){w->maker->ok, "b:attempt:1", .token = 8}),
                     GL_E_STALE);
}

static void a_start_that_comes_too_late_is_refused(void **state)
{
    struct exec_world *w = *state;
    struct gl_clock *clock = gl_loop_clock(w->loop);
    gl_ms now = clock->now(clock);
    struct exec_question q;
    assert_int_equal(exec_start(w, (struct exec_options){w->maker->ok, "a:attempt:1", .token = 1,
                                                         .start_by = now - 1000}),
                     GL_E_STALE);
    exec_attach(w, &q, "a:attempt:1", 1, w->epoch);
    assert_int_equal(q.req.state, GL_EXEC_NEVER);
    assert_int_equal(exec_start(w, (struct exec_options){w->maker->ok, "b:attempt:1", .token = 1,
                                                         .start_by = now + 60000}),
                     0);
}

static void an_unknown_attempt_has_never_started_if_the_epoch_is_the_same(void **state)
{
    struct exec_world *w = *state;
    struct exec_question q;
    exec_attach(w, &q, "a:attempt:1", 1, w->epoch);
    assert_int_equal(q.req.status, 0);
    assert_int_equal(q.req.state, GL_EXEC_NEVER);
}

static void an_unknown_attempt_of_another_epoch_is_lost(void **state)
{
    struct exec_world *w = *state;
    struct exec_question q;
    exec_attach(w, &q, "a:attempt:1", 1, "another");
    assert_int_equal(q.req.status, 0);
    assert_int_equal(q.req.state, GL_EXEC_LOST);
}

static void a_running_attempt_can_be_stopped(void **state)
{
    struct exec_world *w = *state;
    assert_int_equal(
        exec_start(w, (struct exec_options){w->maker->hold, "a:attempt:1", .token = 1}), 0);
    assert_int_equal(exec_stop(w, "a:attempt:1", 1), 0);
    assert_int_equal(exec_wait_end(w, "a:attempt:1")->result.end, GL_EXEC_STOPPED);
}

static void stopping_what_is_unknown_is_fine(void **state)
{
    struct exec_world *w = *state;
    assert_int_equal(exec_stop(w, "a:attempt:1", 1), 0);
}

static void an_acknowledged_result_is_forgotten(void **state)
{
    struct exec_world *w = *state;
    assert_int_equal(exec_start(w, (struct exec_options){w->maker->ok, "a:attempt:1", .token = 1}),
                     0);
    (void)exec_wait_end(w, "a:attempt:1");
    assert_int_equal(exec_list(w), 1);
    exec_ack(w, "a:attempt:1", 1);
    assert_int_equal(exec_list(w), 0);
}

static void a_running_attempt_cannot_be_acknowledged(void **state)
{
    struct exec_world *w = *state;
    assert_int_equal(
        exec_start(w, (struct exec_options){w->maker->hold, "a:attempt:1", .token = 1}), 0);
    exec_ack(w, "a:attempt:1", 1);
    assert_int_equal(exec_list(w), 1);
}

static void many_attempts_run_side_by_side(void **state)
{
    struct exec_world *w = *state;
    enum { N = 40 };
    struct exec_question q[N];
    char names[N][32];
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof(names[i]), "s%d:attempt:1", i);
        exec_ask_start(w, &q[i], (struct exec_options){w->maker->ok, names[i], .token = 1});
    }
    for (int i = 0; i < N; i++) {
        exec_wait_answer(&q[i]);
        assert_int_equal(q[i].req.status, 0);
        (void)exec_wait_end(w, names[i]);
    }
    assert_int_equal(exec_list(w), N);
}

static void names_that_could_leave_the_folder_are_refused(void **state)
{
    struct exec_world *w = *state;
    static const char *const bad[] = {"../x:attempt:1", "a/b", "", ".", "-x", "a b"};
    for (size_t i = 0; i < GL_COUNT(bad); i++) {
        assert_int_equal(exec_start(w, (struct exec_options){w->maker->ok, bad[i], .token = 1}),
                         GL_E_INVALID);
    }
}

static void closing_answers_what_is_still_open(void **state)
{
    struct exec_world *w = *state;
    struct exec_question q;
    exec_ask_start(w, &q, (struct exec_options){w->maker->ok, "a:attempt:1", .token = 1});
    exec_close(w);
    assert_true(q.answered);
    exec_open(w);
}

/* ---- what only the multiplexer does ---- */

static void the_driver_selects_the_executor(void **state)
{
    struct exec_world *w = *state;
    assert_int_equal(exec_start(w, (struct exec_options){exec_noop.output, "a:attempt:1",
                                                         .token = 1, .driver = "noop"}),
                     0);
    assert_int_equal(exec_start(w, (struct exec_options){exec_noop.hold, "b:attempt:1", .token = 1,
                                                         .driver = "noop"}),
                     0);
    assert_int_equal(
        exec_start(w, (struct exec_options){w->maker->hold, "c:attempt:1", .token = 1}), 0);
    assert_string_equal(exec_wait_end(w, "a:attempt:1")->output, "{\"n\": 1}");
    assert_int_equal(exec_list(w), 3);
    exec_ack(w, "a:attempt:1", 1);
    assert_int_equal(exec_list(w), 2);
    assert_int_equal(exec_stop(w, "b:attempt:1", 1), 0);
    assert_int_equal(exec_stop(w, "c:attempt:1", 1), 0);
    (void)exec_wait_end(w, "b:attempt:1");
    (void)exec_wait_end(w, "c:attempt:1");
    exec_ack(w, "b:attempt:1", 1);
    exec_ack(w, "c:attempt:1", 1);
    assert_int_equal(exec_list(w), 0);
}

/* ---- the suite ---- */

#define COMMON(X)                                                    \
    X(a_start_is_answered_and_its_end_is_reported)                   \
    X(an_exit_code_is_reported)                                      \
    X(an_output_is_reported_and_can_be_requested_again)              \
    X(a_known_attempt_is_not_started_again)                          \
    X(a_lower_token_is_refused_by_every_call)                        \
    X(every_call_raises_the_floor)                                   \
    X(a_start_that_comes_too_late_is_refused)                        \
    X(an_unknown_attempt_has_never_started_if_the_epoch_is_the_same) \
    X(an_unknown_attempt_of_another_epoch_is_lost)                   \
    X(a_running_attempt_can_be_stopped)                              \
    X(stopping_what_is_unknown_is_fine)                              \
    X(an_acknowledged_result_is_forgotten)                           \
    X(a_running_attempt_cannot_be_acknowledged)                      \
    X(many_attempts_run_side_by_side)                                \
    X(names_that_could_leave_the_folder_are_refused)                 \
    X(closing_answers_what_is_still_open)

int main(void)
{
#define KEEPER(name) cmocka_unit_test_setup_teardown(name, open_keeper_world, exec_world_close),
#define NOOP(name) cmocka_unit_test_setup_teardown(name, open_noop_world, exec_world_close),
#define MUX(name) cmocka_unit_test_setup_teardown(name, open_mux_world, exec_world_close),
    const struct CMUnitTest keeper_tests[] = {COMMON(KEEPER)};
    const struct CMUnitTest noop_tests[] = {COMMON(NOOP)};
    const struct CMUnitTest mux_tests[] = {COMMON(MUX) MUX(the_driver_selects_the_executor)};
    return cmocka_run_group_tests_name("keeper", keeper_tests, NULL, NULL) +
           cmocka_run_group_tests_name("noop", noop_tests, NULL, NULL) +
           cmocka_run_group_tests_name("mux", mux_tests, NULL, NULL);
}
