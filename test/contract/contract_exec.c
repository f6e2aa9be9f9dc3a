/* The promises of port/exec.h, kept by every executor: the same suite runs against the keeper (a
 * real one), against the in-process noop executor, and against both behind the multiplexer. */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/mem.h"
#include "exec/keeper_exec.h"
#include "exec/mux_exec.h"
#include "exec/noop_exec.h"
#include "os/fs.h"
#include "os/loop.h"
#include "support/cmocka_all.h"
#include "support/folder.h"

enum { ENDS_MAX = 64, PATIENCE_S = 30 };

/* How each executor is told to do the same. */
struct maker {
    const char *name;
    const char *driver;
    bool has_keeper;
    const char *ok[4], *exit3[4], *output[4], *hold[4];
};

static const struct maker keeper_maker = {
    .name = "keeper",
    .driver = "process",
    .has_keeper = true,
    .ok = {"true"},
    .exit3 = {"sh", "-c", "exit 3"},
    .output = {"sh", "-c", "echo '{\"n\": 1}'"},
    .hold = {"sleep", "1000"},
};

static const struct maker noop_maker = {
    .name = "noop",
    .driver = "noop",
    .ok = {"ok"},
    .exit3 = {"exit", "3"},
    .output = {"output", "{\"n\": 1}"},
    .hold = {"hold"},
};

struct told_end {
    char attempt[64];
    uint64_t token;
    struct gl_exec_result result;
    char output[256], error[GL_WHY_BYTES];
};

struct world {
    const struct maker *maker;
    struct test_folder folder;
    const char *data_dir;
    struct gl_loop *loop;
    struct gl_exec *x;
    bool waiting;
    bool inside; /* a call of the port is under way */

    char epoch[64];
    int ups, downs;
    char down_why[GL_WHY_BYTES];
    struct told_end ends[ENDS_MAX];
    size_t ends_n;
    int beacons;
    bool closed;
    uint64_t incarnation;
};

/* ---- waiting ---- */

static void on_impatience(evutil_socket_t fd, short what, void *owner)
{
    (void)fd;
    (void)what;
    (void)owner;
    print_error("nothing happened for %d s\n", PATIENCE_S);
    abort();
}

/* Run the loop until something happens. */
static void wait_more(struct world *w)
{
    struct timeval patience = {.tv_sec = PATIENCE_S};
    struct event *guard = event_new(gl_loop_base(w->loop), -1, 0, on_impatience, NULL);
    event_add(guard, &patience);
    gl_loop_run(w->loop);
    event_free(guard);
}

static void happened(struct world *w)
{
    assert_false(w->inside);
    gl_loop_stop(w->loop);
}

/* ---- events ---- */

static void on_up(void *owner, gl_str epoch)
{
    struct world *w = owner;
    snprintf(w->epoch, sizeof(w->epoch), "%.*s", GL_STR_ARG(epoch));
    w->ups++;
    happened(w);
}

static void on_down(void *owner, const char *why)
{
    struct world *w = owner;
    snprintf(w->down_why, sizeof(w->down_why), "%s", why);
    w->downs++;
    happened(w);
}

static void on_ended(void *owner, const struct gl_attempt_key *key, uint64_t token,
                     const struct gl_exec_result *result)
{
    struct world *w = owner;
    assert_true(w->ends_n < ENDS_MAX);
    struct told_end *e = &w->ends[w->ends_n++];
    e->token = token;
    e->result = *result;
    snprintf(e->attempt, sizeof(e->attempt), "%.*s", GL_STR_ARG(key->attempt));
    snprintf(e->output, sizeof(e->output), "%.*s", GL_STR_ARG(result->output));
    snprintf(e->error, sizeof(e->error), "%.*s", GL_STR_ARG(result->error));
    happened(w);
}

static void on_beacon(void *owner, const struct gl_attempt_key *key, uint64_t token)
{
    struct world *w = owner;
    (void)key;
    (void)token;
    w->beacons++;
    happened(w);
}

static void on_closed(void *owner)
{
    struct world *w = owner;
    w->closed = true;
    happened(w);
}

/* ---- opening and closing ---- */

static const char *keeper_path(void)
{
    static const char *const places[] = {"../glia-keeper", "glia-keeper", "../../glia-keeper"};
    static char path[PATH_MAX];
    char self[PATH_MAX];
    const char *given = getenv("GLIA_KEEPER");
    if (given != NULL) {
        return given;
    }
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    assert_true(n > 0);
    self[n] = 0;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < GL_COUNT(places); i++) {
        snprintf(path, sizeof(path), "%.3000s/%s", self, places[i]);
        if (access(path, X_OK) == 0) {
            return path;
        }
    }
    fail_msg("no glia-keeper near %s; name it in GLIA_KEEPER", self);
    return NULL;
}

static struct gl_exec_events events_of(struct world *w)
{
    return (struct gl_exec_events){
        .owner = w,
        .up = on_up,
        .down = on_down,
        .ended = on_ended,
        .beacon = on_beacon,
    };
}

static struct gl_exec *open_keeper(struct world *w)
{
    struct gl_why why;
    struct gl_exec *x = NULL;
    struct gl_exec_events events = events_of(w);
    struct gl_keeper_exec_config config = {
        .data_dir = w->data_dir, .keeper_path = keeper_path(), .idle_ms = 200};
    assert_int_equal(gl_keeper_exec_open(&x, &config, w->loop, &events, &why), 0);
    gl_keeper_exec_connect(x, ++w->incarnation);
    return x;
}

static struct gl_exec *open_noop(struct world *w, bool quiet)
{
    struct gl_why why;
    struct gl_exec *x = NULL;
    struct gl_exec_events events = events_of(w);
    struct gl_noop_exec_config config = {.quiet = quiet};
    assert_int_equal(gl_noop_exec_open(&x, &config, w->loop, &events, &why), 0);
    return x;
}

static void open_exec(struct world *w)
{
    int ups = w->ups;
    if (strcmp(w->maker->name, "noop") == 0) {
        w->x = open_noop(w, false);
    } else if (strcmp(w->maker->name, "keeper") == 0) {
        w->x = open_keeper(w);
    } else {
        w->x = gl_mux_exec_new(open_noop(w, true), open_keeper(w));
    }
    while (w->ups == ups) {
        wait_more(w);
    }
}

static void close_exec(struct world *w)
{
    w->closed = false;
    w->x->ops->close(w->x, on_closed, w);
    while (!w->closed) {
        wait_more(w);
    }
}

static int open_world(void **state, const struct maker *maker)
{
    struct gl_why why;
    struct world *w = gl_mem_alloc(sizeof(*w));
    w->maker = maker;
    test_folder_make(&w->folder);
    w->data_dir = w->folder.path;
    assert_int_equal(gl_loop_new(&w->loop, &why), 0);
    open_exec(w);
    *state = w;
    return 0;
}

static pid_t keeper_pid(struct world *w)
{
    char path[PATH_MAX];
    struct gl_buf text = {0};
    uint64_t pid = 0;
    snprintf(path, sizeof(path), "%s/keeper/lock", w->data_dir);
    assert_int_equal(gl_fs_read(path, 64, &text, NULL), 0);
    assert_true(gl_str_u64(gl_str_trim(gl_buf_view(&text)), &pid));
    gl_buf_done(&text);
    return (pid_t)pid;
}

static void end_keeper(pid_t pid)
{
    struct pollfd gone = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    if (gone.fd >= 0) {
        (void)kill(pid, SIGTERM);
        assert_int_equal(poll(&gone, 1, PATIENCE_S * 1000), 1);
        (void)close(gone.fd);
    }
}

/* The folder goes when its keeper has gone, or the keeper would write into it again. */
static int close_world(void **state)
{
    struct world *w = *state;
    pid_t keeper = w->maker->has_keeper ? keeper_pid(w) : 0;
    close_exec(w);
    gl_loop_free(w->loop);
    if (keeper > 1) {
        end_keeper(keeper);
    }
    test_folder_remove(&w->folder);
    gl_mem_free(w);
    return 0;
}

static int open_keeper_world(void **state)
{
    return open_world(state, &keeper_maker);
}

static int open_noop_world(void **state)
{
    return open_world(state, &noop_maker);
}

static int open_mux_world(void **state)
{
    static struct maker mux_maker;
    mux_maker = keeper_maker;
    mux_maker.name = "mux";
    return open_world(state, &mux_maker);
}

/* ---- asking ---- */

struct question {
    struct gl_exec_req req;
    struct world *w;
    bool answered;
    char output[256];
    size_t infos_n;
    struct told_end first_info;
};

static void on_done(struct gl_exec_req *req)
{
    struct question *q = req->owner;
    assert_false(q->answered);
    q->answered = true;
    snprintf(q->output, sizeof(q->output), "%.*s", GL_STR_ARG(req->result.output));
    q->infos_n = req->infos_n;
    happened(q->w);
}

static void prepare(struct world *w, struct question *q)
{
    *q = (struct question){.w = w, .req = {.done = on_done, .owner = q}};
}

static void wait_answer(struct question *q)
{
    while (!q->answered) {
        wait_more(q->w);
    }
}

static struct gl_attempt_key key_of(const char *attempt)
{
    return (struct gl_attempt_key){GL_S("default"), GL_S("JOB"), gl_str_of(attempt)};
}

struct wish {
    const char *const *argv;
    const char *attempt;
    uint64_t token;
    gl_ms start_by;
    gl_ms beacon_ms;
    gl_ms timeout_ms;
    const char *driver;
    const char *epoch;
};

static void ask_start(struct world *w, struct question *q, struct wish wish)
{
    gl_str argv[4];
    struct gl_exec_start s = {
        .key = key_of(wish.attempt),
        .token = wish.token,
        .epoch = gl_str_of(wish.epoch != NULL ? wish.epoch : w->epoch),
        .start_by = wish.start_by,
        .driver = gl_str_of(wish.driver != NULL ? wish.driver : w->maker->driver),
        .argv = argv,
        .timeout_ms = wish.timeout_ms,
        .grace_ms = 1000,
        .beacon_ms = wish.beacon_ms,
    };
    while (s.argv_n < 4 && wish.argv[s.argv_n] != NULL) {
        argv[s.argv_n] = gl_str_of(wish.argv[s.argv_n]);
        s.argv_n++;
    }
    prepare(w, q);
    w->inside = true;
    w->x->ops->start(w->x, &q->req, &s);
    w->inside = false;
    assert_false(q->answered);
}

static int start(struct world *w, struct wish wish)
{
    struct question q;
    ask_start(w, &q, wish);
    wait_answer(&q);
    return q.req.status;
}

static void attach(struct world *w, struct question *q, const char *attempt, uint64_t token,
                   const char *epoch)
{
    struct gl_attempt_key key = key_of(attempt);
    prepare(w, q);
    w->inside = true;
    w->x->ops->attach(w->x, &q->req, &key, token, gl_str_of(epoch));
    w->inside = false;
    wait_answer(q);
}

static int stop(struct world *w, const char *attempt, uint64_t token)
{
    struct question q;
    struct gl_attempt_key key = key_of(attempt);
    prepare(w, &q);
    w->inside = true;
    w->x->ops->stop(w->x, &q.req, &key, token);
    w->inside = false;
    wait_answer(&q);
    return q.req.status;
}

static void ack(struct world *w, const char *attempt, uint64_t token)
{
    struct gl_attempt_key key = key_of(attempt);
    w->inside = true;
    w->x->ops->ack(w->x, &key, token);
    w->inside = false;
}

static size_t list(struct world *w)
{
    struct question q;
    prepare(w, &q);
    w->inside = true;
    w->x->ops->list(w->x, &q.req);
    w->inside = false;
    wait_answer(&q);
    assert_int_equal(q.req.status, 0);
    return q.infos_n;
}

static struct told_end *wait_end(struct world *w, const char *attempt)
{
    for (;;) {
        for (size_t i = 0; i < w->ends_n; i++) {
            if (strcmp(w->ends[i].attempt, attempt) == 0) {
                return &w->ends[i];
            }
        }
        wait_more(w);
    }
}

/* ---- what every executor does ---- */

static void a_start_is_answered_and_its_end_is_told(void **state)
{
    struct world *w = *state;
    assert_int_equal(start(w, (struct wish){w->maker->ok, "a:attempt:1", .token = 7}), 0);
    struct told_end *e = wait_end(w, "a:attempt:1");
    assert_int_equal(e->token, 7);
    assert_int_equal(e->result.end, GL_EXEC_EXITED);
    assert_int_equal(e->result.exit_code, 0);
    assert_true(e->result.started_at > 0);
    assert_true(e->result.ended_at >= e->result.started_at);
    assert_string_equal(e->output, "");
    assert_string_equal(e->error, "");
}

static void an_exit_code_is_told(void **state)
{
    struct world *w = *state;
    assert_int_equal(start(w, (struct wish){w->maker->exit3, "a:attempt:1", .token = 1}), 0);
    struct told_end *e = wait_end(w, "a:attempt:1");
    assert_int_equal(e->result.end, GL_EXEC_EXITED);
    assert_int_equal(e->result.exit_code, 3);
}

static void an_output_is_told_and_can_be_asked_for_again(void **state)
{
    struct world *w = *state;
    struct question q;
    assert_int_equal(start(w, (struct wish){w->maker->output, "a:attempt:1", .token = 1}), 0);
    assert_string_equal(wait_end(w, "a:attempt:1")->output, "{\"n\": 1}");
    attach(w, &q, "a:attempt:1", 1, w->epoch);
    assert_int_equal(q.req.status, 0);
    assert_int_equal(q.req.state, GL_EXEC_ENDED);
    assert_string_equal(q.output, "{\"n\": 1}");
}

static void a_known_attempt_is_not_started_again(void **state)
{
    struct world *w = *state;
    assert_int_equal(start(w, (struct wish){w->maker->hold, "a:attempt:1", .token = 1}), 0);
    assert_int_equal(start(w, (struct wish){w->maker->ok, "a:attempt:1", .token = 1}), 0);
    assert_int_equal(start(w, (struct wish){w->maker->ok, "b:attempt:1", .token = 1}), 0);
    (void)wait_end(w, "b:attempt:1");
    assert_int_equal(w->ends_n, 1);
    assert_int_equal(list(w), 2);
}

static void a_lower_token_is_refused_by_every_call(void **state)
{
    struct world *w = *state;
    struct question q;
    assert_int_equal(start(w, (struct wish){w->maker->hold, "a:attempt:1", .token = 5}), 0);
    assert_int_equal(start(w, (struct wish){w->maker->ok, "b:attempt:1", .token = 4}), GL_E_STALE);
    assert_int_equal(stop(w, "a:attempt:1", 4), GL_E_STALE);
    attach(w, &q, "a:attempt:1", 4, w->epoch);
    assert_int_equal(q.req.status, GL_E_STALE);
    assert_true(strlen(q.req.why.text) > 0);
    assert_int_equal(list(w), 1);
}

static void every_call_raises_the_floor(void **state)
{
    struct world *w = *state;
    struct question q;
    assert_int_equal(start(w, (struct wish){w->maker->hold, "a:attempt:1", .token = 1}), 0);
    attach(w, &q, "a:attempt:1", 3, w->epoch);
    assert_int_equal(q.req.state, GL_EXEC_RUNNING);
    assert_int_equal(start(w, (struct wish){w->maker->ok, "b:attempt:1", .token = 2}), GL_E_STALE);
    assert_int_equal(stop(w, "a:attempt:1", 9), 0);
    assert_int_equal(start(w, (struct wish){w->maker->ok, "b:attempt:1", .token = 8}), GL_E_STALE);
}

static void a_start_that_comes_too_late_is_refused(void **state)
{
    struct world *w = *state;
    struct gl_clock *clock = gl_loop_clock(w->loop);
    gl_ms now = clock->now(clock);
    struct question q;
    assert_int_equal(
        start(w, (struct wish){w->maker->ok, "a:attempt:1", .token = 1, .start_by = now - 1000}),
        GL_E_STALE);
    attach(w, &q, "a:attempt:1", 1, w->epoch);
    assert_int_equal(q.req.state, GL_EXEC_NEVER);
    assert_int_equal(
        start(w, (struct wish){w->maker->ok, "b:attempt:1", .token = 1, .start_by = now + 60000}),
        0);
}

static void an_unknown_attempt_has_never_started_if_the_epoch_is_the_same(void **state)
{
    struct world *w = *state;
    struct question q;
    attach(w, &q, "a:attempt:1", 1, w->epoch);
    assert_int_equal(q.req.status, 0);
    assert_int_equal(q.req.state, GL_EXEC_NEVER);
}

static void an_unknown_attempt_of_another_epoch_is_lost(void **state)
{
    struct world *w = *state;
    struct question q;
    attach(w, &q, "a:attempt:1", 1, "another");
    assert_int_equal(q.req.status, 0);
    assert_int_equal(q.req.state, GL_EXEC_LOST);
}

static void a_running_attempt_can_be_stopped(void **state)
{
    struct world *w = *state;
    assert_int_equal(start(w, (struct wish){w->maker->hold, "a:attempt:1", .token = 1}), 0);
    assert_int_equal(stop(w, "a:attempt:1", 1), 0);
    assert_int_equal(wait_end(w, "a:attempt:1")->result.end, GL_EXEC_STOPPED);
}

static void stopping_what_is_unknown_is_fine(void **state)
{
    struct world *w = *state;
    assert_int_equal(stop(w, "a:attempt:1", 1), 0);
}

static void an_acknowledged_result_is_forgotten(void **state)
{
    struct world *w = *state;
    assert_int_equal(start(w, (struct wish){w->maker->ok, "a:attempt:1", .token = 1}), 0);
    (void)wait_end(w, "a:attempt:1");
    assert_int_equal(list(w), 1);
    ack(w, "a:attempt:1", 1);
    assert_int_equal(list(w), 0);
}

static void a_running_attempt_cannot_be_acknowledged(void **state)
{
    struct world *w = *state;
    assert_int_equal(start(w, (struct wish){w->maker->hold, "a:attempt:1", .token = 1}), 0);
    ack(w, "a:attempt:1", 1);
    assert_int_equal(list(w), 1);
}

static void many_attempts_run_side_by_side(void **state)
{
    struct world *w = *state;
    enum { N = 40 };
    struct question q[N];
    char names[N][32];
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof(names[i]), "s%d:attempt:1", i);
        ask_start(w, &q[i], (struct wish){w->maker->ok, names[i], .token = 1});
    }
    for (int i = 0; i < N; i++) {
        wait_answer(&q[i]);
        assert_int_equal(q[i].req.status, 0);
        (void)wait_end(w, names[i]);
    }
    assert_int_equal(list(w), N);
}

static void names_that_could_leave_the_folder_are_refused(void **state)
{
    struct world *w = *state;
    static const char *const bad[] = {"../x:attempt:1", "a/b", "", ".", "-x", "a b"};
    for (size_t i = 0; i < GL_COUNT(bad); i++) {
        assert_int_equal(start(w, (struct wish){w->maker->ok, bad[i], .token = 1}), GL_E_INVALID);
    }
}

static void closing_answers_what_is_still_open(void **state)
{
    struct world *w = *state;
    struct question q;
    ask_start(w, &q, (struct wish){w->maker->ok, "a:attempt:1", .token = 1});
    close_exec(w);
    assert_true(q.answered);
    open_exec(w);
}

/* ---- what only the keeper does ---- */

static const char *const *sh(const char *script)
{
    static const char *argv[4];
    argv[0] = "sh";
    argv[1] = "-c";
    argv[2] = script;
    argv[3] = NULL;
    return argv;
}

static struct told_end *run(struct world *w, const char *script)
{
    w->ends_n = 0;
    static int number;
    char attempt[32];
    snprintf(attempt, sizeof(attempt), "r%d:attempt:1", number++);
    assert_int_equal(start(w, (struct wish){sh(script), attempt, .token = 1}), 0);
    return wait_end(w, attempt);
}

static void a_program_that_is_not_there_is_named(void **state)
{
    struct world *w = *state;
    static const char *const argv[] = {"no-such-program", NULL};
    assert_int_equal(start(w, (struct wish){argv, "a:attempt:1", .token = 1}), 0);
    struct told_end *e = wait_end(w, "a:attempt:1");
    assert_int_equal(e->result.end, GL_EXEC_NOT_EXECUTED);
    assert_non_null(strstr(e->error, "cannot run 'no-such-program': No such file or directory "
                                     "(not found in PATH "));
}

static void the_output_file_must_be_json(void **state)
{
    struct world *w = *state;
    struct told_end *e = run(w, "echo '[1, 2]' > $GLIA_OUTPUT");
    assert_string_equal(e->output, "[1, 2]");
    assert_string_equal(e->error, "");
    e = run(w, "printf '{\\n  \"a\": x}' > $GLIA_OUTPUT");
    assert_int_equal(e->result.end, GL_EXEC_EXITED);
    assert_int_equal(e->result.exit_code, 0);
    assert_string_equal(e->output, "");
    assert_non_null(strstr(e->error, "the output is not valid JSON: line 2, column 8"));
}

static void an_output_file_of_a_failed_step_is_no_second_failure(void **state)
{
    struct world *w = *state;
    struct told_end *e = run(w, "printf '{' > $GLIA_OUTPUT; exit 4");
    assert_int_equal(e->result.exit_code, 4);
    assert_string_equal(e->output, "");
    assert_string_equal(e->error, "");
}

static void an_output_file_above_one_mebibyte_is_an_error(void **state)
{
    struct world *w = *state;
    struct told_end *e = run(w, "head -c 1048577 /dev/zero > $GLIA_OUTPUT");
    assert_int_equal(e->result.exit_code, 0);
    assert_string_equal(e->error, "output larger than 1 MiB");
}

static void the_last_line_counts_if_it_is_an_object(void **state)
{
    struct world *w = *state;
    assert_string_equal(run(w, "echo one; echo '{\"a\":1}'; echo; echo '  '")->output, "{\"a\":1}");
    assert_string_equal(run(w, "echo '{\"a\":1}'; echo done")->output, "");
    assert_string_equal(run(w, "echo '[1]'")->output, "");
    struct told_end *e = run(w, "echo '{\"a\":'");
    assert_string_equal(e->output, "");
    assert_string_equal(e->error, "");
    assert_string_equal(run(w, "printf ' {\"b\":2} '")->output, "{\"b\":2}");
}

static void the_file_goes_before_the_line(void **state)
{
    struct world *w = *state;
    assert_string_equal(run(w, "echo 3 > $GLIA_OUTPUT; echo '{\"a\":1}'")->output, "3");
    assert_string_equal(run(w, ": > $GLIA_OUTPUT; echo '{\"a\":1}'")->output, "{\"a\":1}");
}

static void a_step_sees_only_its_own_environment(void **state)
{
    struct world *w = *state;
    setenv("GLIA_TEST_LEAK", "1", 1);
    struct told_end *e = run(w, "env | cut -d= -f1 | sort | tr '\\n' ' ' > names; "
                                "printf '\"%s\"' \"$(cat names)\" > $GLIA_OUTPUT");
    assert_null(strstr(e->output, "LEAK"));
    assert_non_null(strstr(e->output, "GLIA_INPUT_FILE GLIA_OUTPUT"));
    assert_non_null(strstr(e->output, "HOME"));
    assert_non_null(strstr(e->output, "PATH"));
}

static void a_deadline_ends_it(void **state)
{
    struct world *w = *state;
    assert_int_equal(
        start(w, (struct wish){w->maker->hold, "a:attempt:1", .token = 1, .timeout_ms = 20}), 0);
    assert_int_equal(wait_end(w, "a:attempt:1")->result.end, GL_EXEC_TIMEOUT);
}

static void beacons_come_while_it_runs(void **state)
{
    struct world *w = *state;
    assert_int_equal(
        start(w, (struct wish){w->maker->hold, "a:attempt:1", .token = 1, .beacon_ms = 5}), 0);
    while (w->beacons < 3) {
        wait_more(w);
    }
    assert_int_equal(stop(w, "a:attempt:1", 1), 0);
    (void)wait_end(w, "a:attempt:1");
}

static void a_result_is_offered_again_to_the_next_node(void **state)
{
    struct world *w = *state;
    assert_int_equal(start(w, (struct wish){w->maker->output, "a:attempt:1", .token = 1}), 0);
    (void)wait_end(w, "a:attempt:1");
    close_exec(w);
    w->ends_n = 0;
    open_exec(w);
    assert_string_equal(wait_end(w, "a:attempt:1")->output, "{\"n\": 1}");
}

static void a_step_outlives_its_node(void **state)
{
    struct world *w = *state;
    struct question q;
    char epoch[64];
    memcpy(epoch, w->epoch, sizeof(epoch));
    assert_int_equal(start(w, (struct wish){w->maker->hold, "a:attempt:1", .token = 1}), 0);
    close_exec(w);
    open_exec(w);
    assert_string_equal(epoch, w->epoch);
    attach(w, &q, "a:attempt:1", 2, epoch);
    assert_int_equal(q.req.state, GL_EXEC_RUNNING);
    assert_int_equal(stop(w, "a:attempt:1", 2), 0);
    (void)wait_end(w, "a:attempt:1");
}

static void an_older_incarnation_of_the_node_is_refused(void **state)
{
    struct world *w = *state;
    close_exec(w);
    w->incarnation += 10;
    open_exec(w);
    close_exec(w);
    w->incarnation -= 5;
    w->downs = 0;
    w->x = open_keeper(w);
    while (w->downs == 0) {
        wait_more(w);
    }
    assert_non_null(strstr(w->down_why, "incarnation"));
}

static void a_killed_keeper_is_replaced_and_its_steps_are_lost(void **state)
{
    struct world *w = *state;
    struct question q;
    char epoch[64];
    memcpy(epoch, w->epoch, sizeof(epoch));
    assert_int_equal(start(w, (struct wish){w->maker->hold, "a:attempt:1", .token = 1}), 0);
    assert_int_equal(kill(keeper_pid(w), SIGKILL), 0);
    while (w->downs == 0 || w->ups == 1) {
        wait_more(w);
    }
    assert_string_not_equal(epoch, w->epoch);
    attach(w, &q, "a:attempt:1", 1, epoch);
    assert_int_equal(q.req.state, GL_EXEC_LOST);
    assert_int_equal(
        start(w, (struct wish){w->maker->ok, "b:attempt:1", .token = 1, .epoch = epoch}),
        GL_E_STALE);
    assert_int_equal(start(w, (struct wish){w->maker->ok, "b:attempt:1", .token = 1}), 0);
}

static void what_was_asked_of_a_keeper_that_dies_is_answered(void **state)
{
    struct world *w = *state;
    struct question q;
    struct gl_attempt_key key = key_of("a:attempt:1");
    pid_t pid = keeper_pid(w);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    prepare(w, &q);
    w->x->ops->stop(w->x, &q.req, &key, 1);
    assert_int_equal(kill(pid, SIGKILL), 0);
    wait_answer(&q);
    assert_int_equal(q.req.status, GL_E_UNAVAILABLE);
    while (w->ups == 1) {
        wait_more(w);
    }
}

/* ---- what only the multiplexer does ---- */

static void the_driver_decides_who_runs_it(void **state)
{
    struct world *w = *state;
    assert_int_equal(
        start(w, (struct wish){noop_maker.output, "a:attempt:1", .token = 1, .driver = "noop"}), 0);
    assert_int_equal(
        start(w, (struct wish){noop_maker.hold, "b:attempt:1", .token = 1, .driver = "noop"}), 0);
    assert_int_equal(start(w, (struct wish){w->maker->hold, "c:attempt:1", .token = 1}), 0);
    assert_string_equal(wait_end(w, "a:attempt:1")->output, "{\"n\": 1}");
    assert_int_equal(list(w), 3);
    ack(w, "a:attempt:1", 1);
    assert_int_equal(list(w), 2);
    assert_int_equal(stop(w, "b:attempt:1", 1), 0);
    assert_int_equal(stop(w, "c:attempt:1", 1), 0);
    (void)wait_end(w, "b:attempt:1");
    (void)wait_end(w, "c:attempt:1");
    ack(w, "b:attempt:1", 1);
    ack(w, "c:attempt:1", 1);
    assert_int_equal(list(w), 0);
}

/* ---- the suite ---- */

#define COMMON(X)                                                    \
    X(a_start_is_answered_and_its_end_is_told)                       \
    X(an_exit_code_is_told)                                          \
    X(an_output_is_told_and_can_be_asked_for_again)                  \
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

#define KEEPER_ONLY(X)                                      \
    X(a_program_that_is_not_there_is_named)                 \
    X(the_output_file_must_be_json)                         \
    X(an_output_file_of_a_failed_step_is_no_second_failure) \
    X(an_output_file_above_one_mebibyte_is_an_error)        \
    X(the_last_line_counts_if_it_is_an_object)              \
    X(the_file_goes_before_the_line)                        \
    X(a_step_sees_only_its_own_environment)                 \
    X(a_deadline_ends_it)                                   \
    X(beacons_come_while_it_runs)                           \
    X(a_result_is_offered_again_to_the_next_node)           \
    X(a_step_outlives_its_node)                             \
    X(an_older_incarnation_of_the_node_is_refused)          \
    X(a_killed_keeper_is_replaced_and_its_steps_are_lost)   \
    X(what_was_asked_of_a_keeper_that_dies_is_answered)

int main(void)
{
#define KEEPER(name) cmocka_unit_test_setup_teardown(name, open_keeper_world, close_world),
#define NOOP(name) cmocka_unit_test_setup_teardown(name, open_noop_world, close_world),
#define MUX(name) cmocka_unit_test_setup_teardown(name, open_mux_world, close_world),
    const struct CMUnitTest keeper_tests[] = {COMMON(KEEPER) KEEPER_ONLY(KEEPER)};
    const struct CMUnitTest noop_tests[] = {COMMON(NOOP)};
    const struct CMUnitTest mux_tests[] = {COMMON(MUX) MUX(the_driver_decides_who_runs_it)};
    return cmocka_run_group_tests_name("keeper", keeper_tests, NULL, NULL) +
           cmocka_run_group_tests_name("noop", noop_tests, NULL, NULL) +
           cmocka_run_group_tests_name("mux", mux_tests, NULL, NULL);
}
