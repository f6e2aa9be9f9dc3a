#include "contract/exec_world.h"

#include <event2/event.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "exec/keeper_exec.h"
#include "exec/mux_exec.h"
#include "exec/noop_exec.h"
#include "os/fs.h"

const struct exec_maker exec_keeper = {
    .name = "keeper",
    .driver = "process",
    .has_keeper = true,
    .ok = {"true"},
    .exit3 = {"sh", "-c", "exit 3"},
    .output = {"sh", "-c", "echo '{\"n\": 1}'"},
    .hold = {"sleep", "1000"},
};

const struct exec_maker exec_noop = {
    .name = "noop",
    .driver = "noop",
    .ok = {"ok"},
    .exit3 = {"exit", "3"},
    .output = {"output", "{\"n\": 1}"},
    .hold = {"hold"},
};

const struct exec_maker exec_mux = {
    .name = "mux",
    .driver = "process",
    .has_keeper = true,
    .ok = {"true"},
    .exit3 = {"sh", "-c", "exit 3"},
    .output = {"sh", "-c", "echo '{\"n\": 1}'"},
    .hold = {"sleep", "1000"},
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
void exec_wait(struct exec_world *w)
{
    struct timeval patience = {.tv_sec = PATIENCE_S};
    struct event *guard = event_new(gl_loop_base(w->loop), -1, 0, on_impatience, NULL);
    event_add(guard, &patience);
    gl_loop_run(w->loop);
    event_free(guard);
}

static void happened(struct exec_world *w)
{
    assert_false(w->inside);
    gl_loop_stop(w->loop);
}

/* ---- events ---- */

static void on_up(void *owner, gl_str epoch)
{
    struct exec_world *w = owner;
    snprintf(w->epoch, sizeof(w->epoch), "%.*s", GL_STR_ARG(epoch));
    w->ups++;
    happened(w);
}

static void on_down(void *owner, const char *why)
{
    struct exec_world *w = owner;
    snprintf(w->down_why, sizeof(w->down_why), "%s", why);
    w->downs++;
    happened(w);
}

static void on_ended(void *owner, const struct gl_attempt_key *key, uint64_t token,
                     const struct gl_exec_result *result)
{
    struct exec_world *w = owner;
    assert_true(w->ends_n < ENDS_MAX);
    struct reported_end *e = &w->ends[w->ends_n++];
    e->token = token;
    e->result = *result;
    snprintf(e->attempt, sizeof(e->attempt), "%.*s", GL_STR_ARG(key->attempt));
    e->output = gl_str_dup(&w->arena, result->output).p;
    e->result.output = e->result.error = (gl_str){0}; /* gone when this returns */
    snprintf(e->error, sizeof(e->error), "%.*s", GL_STR_ARG(result->error));
    happened(w);
}

static void on_beacon(void *owner, const struct gl_attempt_key *key, uint64_t token)
{
    struct exec_world *w = owner;
    (void)key;
    (void)token;
    w->beacons++;
    happened(w);
}

static void on_line(void *owner, const struct gl_attempt_key *key, uint64_t token, gl_str line)
{
    struct exec_world *w = owner;
    assert_true(token > 0);
    assert_true(w->lines_n < LINES_MAX);
    struct worker_line *l = &w->lines[w->lines_n++];
    snprintf(l->attempt, sizeof(l->attempt), "%.*s", GL_STR_ARG(key->attempt));
    l->text = gl_str_dup(&w->arena, line).p;
    happened(w);
}

static void on_closed(void *owner)
{
    struct exec_world *w = owner;
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

static struct gl_exec_events events_of(struct exec_world *w)
{
    return (struct gl_exec_events){
        .owner = w,
        .up = on_up,
        .down = on_down,
        .ended = on_ended,
        .beacon = on_beacon,
        .said = w->lines != NULL ? on_line : NULL,
    };
}

struct gl_exec *exec_open_keeper(struct exec_world *w)
{
    struct gl_why why;
    struct gl_exec *x = NULL;
    struct gl_exec_events events = events_of(w);
    /* It is ended with its world; until then a slow test must not make it exit as idle. */
    struct gl_keeper_exec_config config = {
        .data_dir = w->data_dir, .keeper_path = keeper_path(), .idle_ms = PATIENCE_S * 1000};
    assert_int_equal(gl_keeper_exec_open(&x, &config, w->loop, &events, &why), 0);
    gl_keeper_exec_connect(x, ++w->incarnation);
    return x;
}

static struct gl_exec *open_noop(struct exec_world *w, bool quiet)
{
    struct gl_why why;
    struct gl_exec *x = NULL;
    struct gl_exec_events events = events_of(w);
    struct gl_noop_exec_config config = {.quiet = quiet};
    assert_int_equal(gl_noop_exec_open(&x, &config, w->loop, &events, &why), 0);
    return x;
}

void exec_open(struct exec_world *w)
{
    int ups = w->ups;
    if (strcmp(w->maker->name, "noop") == 0) {
        w->x = open_noop(w, false);
    } else if (strcmp(w->maker->name, "keeper") == 0) {
        w->x = exec_open_keeper(w);
    } else {
        w->x = gl_mux_exec_new(open_noop(w, true), exec_open_keeper(w));
    }
    while (w->ups == ups) {
        exec_wait(w);
    }
}

void exec_close(struct exec_world *w)
{
    w->closed = false;
    w->x->ops->close(w->x, on_closed, w);
    while (!w->closed) {
        exec_wait(w);
    }
}

static void mount_disk(struct exec_world *w, unsigned mib)
{
    char options[64];
    snprintf(options, sizeof(options), "size=%um,mode=700", mib);
    assert_int_equal(mount("glia-test", w->folder.path, "tmpfs", 0, options), 0);
    w->has_disk = true;
}

int exec_world_open(void **state, const struct exec_maker *maker)
{
    return exec_world_open_small(state, maker, 0);
}

int exec_world_open_small(void **state, const struct exec_maker *maker, unsigned mib)
{
    struct gl_why why;
    struct exec_world *w = gl_mem_alloc(sizeof(*w));
    w->maker = maker;
    w->lines = gl_mem_alloc(LINES_MAX * sizeof(*w->lines));
    test_folder_make(&w->folder);
    w->data_dir = w->folder.path;
    if (mib > 0) {
        mount_disk(w, mib);
    }
    assert_int_equal(gl_loop_new(&w->loop, &why), 0);
    exec_open(w);
    *state = w;
    return 0;
}

pid_t exec_keeper_pid(struct exec_world *w)
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

/* Remove the folder only after its keeper has exited, or the keeper would write into it again. */
void exec_end_keeper(struct exec_world *w)
{
    pid_t keeper = w->maker->has_keeper ? exec_keeper_pid(w) : 0;
    exec_close(w);
    if (keeper > 1) {
        end_keeper(keeper);
    }
    if (w->has_disk) {
        assert_int_equal(umount2(w->folder.path, MNT_DETACH), 0);
    }
    test_folder_remove(&w->folder);
}

int exec_world_close(void **state)
{
    struct exec_world *w = *state;
    exec_end_keeper(w);
    gl_loop_free(w->loop);
    gl_arena_done(&w->arena);
    gl_mem_free(w->lines);
    gl_mem_free(w);
    return 0;
}

/* ---- asking ---- */

static void on_done(struct gl_exec_req *req)
{
    struct exec_question *q = req->owner;
    assert_false(q->answered);
    q->answered = true;
    snprintf(q->output, sizeof(q->output), "%.*s", GL_STR_ARG(req->result.output));
    q->infos_n = req->infos_n;
    happened(q->w);
}

void exec_prepare(struct exec_world *w, struct exec_question *q)
{
    *q = (struct exec_question){.w = w, .req = {.done = on_done, .owner = q}};
}

void exec_wait_answer(struct exec_question *q)
{
    while (!q->answered) {
        exec_wait(q->w);
    }
}

struct gl_attempt_key exec_key(const char *attempt)
{
    return (struct gl_attempt_key){GL_S("default"), GL_S("JOB"), gl_str_of(attempt)};
}

void exec_ask_start(struct exec_world *w, struct exec_question *q, struct exec_options options)
{
    gl_str argv[4], env[8];
    gl_str secret = gl_str_of(options.secret);
    struct gl_exec_start s = {
        .key = exec_key(options.attempt),
        .token = options.token,
        .epoch = gl_str_of(options.epoch != NULL ? options.epoch : w->epoch),
        .start_by = options.start_by,
        .driver = gl_str_of(options.driver != NULL ? options.driver
                            : options.is_worker    ? "worker"
                                                   : w->maker->driver),
        .argv = argv,
        .timeout_ms = options.timeout_ms,
        .grace_ms = 1000,
        .beacon_ms = options.beacon_ms,
        .secrets = &secret,
        .secrets_n = options.secret != NULL,
        .is_worker = options.is_worker,
        .stdout_max = options.stdout_max,
        .cwd = gl_str_of(options.cwd),
        .make_folder = gl_str_of(options.make_folder),
        .files = options.files,
        .files_n = options.files_n,
        .env = env,
    };
    while (options.env != NULL && s.env_n < GL_COUNT(env) && options.env[s.env_n] != NULL) {
        env[s.env_n] = gl_str_of(options.env[s.env_n]);
        s.env_n++;
    }
    while (s.argv_n < 4 && options.argv[s.argv_n] != NULL) {
        argv[s.argv_n] = gl_str_of(options.argv[s.argv_n]);
        s.argv_n++;
    }
    exec_prepare(w, q);
    w->inside = true;
    w->x->ops->start(w->x, &q->req, &s);
    w->inside = false;
    assert_false(q->answered);
}

int exec_start(struct exec_world *w, struct exec_options options)
{
    struct exec_question q;
    exec_ask_start(w, &q, options);
    exec_wait_answer(&q);
    return q.req.status;
}

void exec_attach(struct exec_world *w, struct exec_question *q, const char *attempt, uint64_t token,
                 const char *epoch)
{
    struct gl_attempt_key key = exec_key(attempt);
    exec_prepare(w, q);
    w->inside = true;
    w->x->ops->attach(w->x, &q->req, &key, token, gl_str_of(epoch));
    w->inside = false;
    exec_wait_answer(q);
}

int exec_stop(struct exec_world *w, const char *attempt, uint64_t token)
{
    struct exec_question q;
    struct gl_attempt_key key = exec_key(attempt);
    exec_prepare(w, &q);
    w->inside = true;
    w->x->ops->stop(w->x, &q.req, &key, token, 0);
    w->inside = false;
    exec_wait_answer(&q);
    return q.req.status;
}

void exec_ack(struct exec_world *w, const char *attempt, uint64_t token)
{
    struct gl_attempt_key key = exec_key(attempt);
    w->inside = true;
    w->x->ops->ack(w->x, &key, token);
    w->inside = false;
}

size_t exec_list(struct exec_world *w)
{
    struct exec_question q;
    exec_prepare(w, &q);
    w->inside = true;
    w->x->ops->list(w->x, &q.req);
    w->inside = false;
    exec_wait_answer(&q);
    assert_int_equal(q.req.status, 0);
    return q.infos_n;
}

struct reported_end *exec_wait_end(struct exec_world *w, const char *attempt)
{
    for (;;) {
        for (size_t i = 0; i < w->ends_n; i++) {
            if (strcmp(w->ends[i].attempt, attempt) == 0) {
                return &w->ends[i];
            }
        }
        exec_wait(w);
    }
}
