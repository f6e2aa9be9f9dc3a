#include "contract/module_world.h"

#include <event2/event.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "exec/module_exec.h"
#include "os/fs.h"

enum { PATIENCE_S = 30, MODULE_BYTES_MAX = 8 << 20 };

/* ---- paths ---- */

/* The build folder: our program is in it or one folder below. */
static const char *build_path(struct gl_arena *a, const char *name)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    assert_true(n > 0);
    self[n] = 0;
    *strrchr(self, '/') = 0;
    const char *path = gl_str_fmt(a, "%s/../%s", self, name).p;
    if (access(path, R_OK) != 0) {
        path = gl_str_fmt(a, "%s/%s", self, name).p;
    }
    if (access(path, R_OK) != 0) {
        fail_msg("there is no %s near %s: is everything built?", name, self);
    }
    return path;
}

/* Into a folder that only we can write to, whatever the build folder's mode is. */
static void bring_modules(struct module_world *w)
{
    static const char *const all[] = {
        "examples/modules/counter.so",         "examples/modules/native_signal.so",
        "test/modules/test_plain.so",          "test/modules/test_say.so",
        "test/modules/test_future.so",         "test/modules/test_foreign.so",
        "test/modules/test_nameless.so",       "test/modules/test_reserved.so",
        "test/modules/test_crash_at_start.so",
    };
    for (size_t i = 0; i < GL_COUNT(all); i++) {
        GL_CLEANUP(gl_buf_done) struct gl_buf content = {0};
        struct gl_why why;
        const char *to = gl_str_fmt(&w->arena, "%s/%s", w->folder.path, strrchr(all[i], '/') + 1).p;
        assert_int_equal(
            gl_fs_read(build_path(&w->arena, all[i]), MODULE_BYTES_MAX, &content, &why), 0);
        assert_int_equal(gl_fs_write(to, gl_buf_view(&content), &why), 0);
    }
}

/* ---- waiting ---- */

static void on_impatience(evutil_socket_t fd, short what, void *owner)
{
    (void)fd;
    (void)what;
    (void)owner;
    print_error("nothing happened for %d s\n", PATIENCE_S);
    abort();
}

void module_wait(struct module_world *w)
{
    struct timeval patience = {.tv_sec = PATIENCE_S};
    struct event *guard = evtimer_new(gl_loop_base(w->loop), on_impatience, NULL);
    evtimer_add(guard, &patience);
    gl_loop_run(w->loop);
    event_free(guard);
}

static void on_up(void *owner, gl_str epoch)
{
    struct module_world *w = owner;
    snprintf(w->epoch, sizeof(w->epoch), "%.*s", GL_STR_ARG(epoch));
    gl_loop_stop(w->loop);
}

static void on_ended(void *owner, const struct gl_attempt_key *key, uint64_t token,
                     const struct gl_exec_result *result)
{
    struct module_world *w = owner;
    if (w->acks) {
        assert_int_equal(result->end, GL_EXEC_EXITED);
        assert_int_equal(result->exit_code, 0);
        w->ends_n++;
        struct gl_attempt_key copy = *key;
        w->x->ops->ack(w->x, &copy, token);
    } else {
        assert_true(w->ends_n < MODULE_ENDS_MAX);
        struct module_end *e = &w->ends[w->ends_n++];
        e->result = *result;
        snprintf(e->attempt, sizeof(e->attempt), "%.*s", GL_STR_ARG(key->attempt));
        snprintf(e->output, sizeof(e->output), "%.*s", GL_STR_ARG(result->output));
        snprintf(e->error, sizeof(e->error), "%.*s", GL_STR_ARG(result->error));
    }
    gl_loop_stop(w->loop);
}

static void on_closed(void *owner)
{
    struct module_world *w = owner;
    w->is_closed = true;
    gl_loop_stop(w->loop);
}

/* ---- opening and closing ---- */

void module_exec_start(struct module_world *w, const char *trusted)
{
    struct gl_why why;
    struct gl_exec_events events = {.owner = w, .up = on_up, .ended = on_ended};
    struct gl_module_exec_config config = {
        .folders = w->folders != NULL ? w->folders : w->folder.path,
        .trusted = trusted,
        .host_path = build_path(&w->arena, "glia-module-host"),
    };
    w->epoch[0] = 0;
    assert_int_equal(gl_module_exec_open(&w->x, &config, w->loop, &events, &why), 0);
    while (w->epoch[0] == 0) {
        module_wait(w);
    }
}

void module_exec_stop(struct module_world *w)
{
    w->is_closed = false;
    w->x->ops->close(w->x, on_closed, w);
    while (!w->is_closed) {
        module_wait(w);
    }
}

void module_world_open(struct module_world *w, const char *trusted)
{
    struct gl_why why;
    *w = (struct module_world){0};
    test_folder_make(&w->folder);
    bring_modules(w);
    assert_int_equal(gl_loop_new(&w->loop, &why), 0);
    module_exec_start(w, trusted);
}

void module_world_close(struct module_world *w)
{
    module_exec_stop(w);
    gl_loop_free(w->loop);
    test_folder_remove(&w->folder);
    gl_arena_done(&w->arena);
}

/* ---- asking ---- */

static void on_done(struct gl_exec_req *req)
{
    struct module_question *q = req->owner;
    assert_false(q->is_answered);
    q->is_answered = true;
    q->infos_n = req->infos_n;
    if (req->status == 0 && req->state == GL_EXEC_ENDED) {
        snprintf(q->output, sizeof(q->output), "%.*s", GL_STR_ARG(req->result.output));
    }
    gl_loop_stop(q->w->loop);
}

void module_prepare(struct module_world *w, struct module_question *q)
{
    *q = (struct module_question){.req = {.done = on_done, .owner = q}, .w = w};
}

struct gl_attempt_key module_key(const char *attempt)
{
    return (struct gl_attempt_key){
        .context = GL_S("default"), .job = GL_S("job1"), .attempt = gl_str_of(attempt)};
}

static gl_str make_input(struct module_world *w, const struct module_message *options)
{
    return gl_str_fmt(
        &w->arena,
        "{\"config\":%s,\"message\":{\"envelope\":{\"message_id\":\"m-1\",\"from\":\"so\\\"me\","
        "\"to\":\"me\",\"type\":\"ping\",\"class\":\"event\",\"attempt\":1,\"priority\":100},"
        "\"headers\":{\"a\":1},\"body\":%s,\"artifacts\":[],\"stream\":null},\"state\":%s,"
        "\"job_id\":\"job1\",\"agent_id\":\"%s\"}",
        options->config != NULL ? options->config : "{}",
        options->body != NULL ? options->body : "{}",
        options->state != NULL ? options->state : "null",
        options->agent != NULL ? options->agent : "me");
}

void module_ask(struct module_world *w, struct module_question *q, struct module_message options)
{
    gl_str argv[] = {gl_str_of(options.module != NULL ? options.module : "test.say")};
    struct gl_exec_start s = {
        .key = module_key(options.attempt),
        .token = options.token != 0 ? options.token : 1,
        .driver = GL_S("module"),
        .start_by = options.start_by,
        .timeout_ms = options.timeout_ms,
        .grace_ms = options.grace_ms,
        .input = options.input != NULL ? gl_str_of(options.input) : make_input(w, &options),
    };
    /* Arguments are borrowed until the request is answered. */
    s.argv = gl_arena_copy(&w->arena, argv, sizeof(argv));
    s.argv_n = 1;
    module_prepare(w, q);
    w->x->ops->start(w->x, &q->req, gl_arena_copy(&w->arena, &s, sizeof(s)));
    assert_false(q->is_answered);
}

void module_wait_answer(struct module_question *q)
{
    while (!q->is_answered) {
        module_wait(q->w);
    }
}

int module_start(struct module_world *w, struct module_message options)
{
    struct module_question q;
    module_ask(w, &q, options);
    module_wait_answer(&q);
    return q.req.status;
}

struct module_end *module_end_of(struct module_world *w, const char *attempt)
{
    for (;;) {
        for (size_t i = 0; i < w->ends_n; i++) {
            if (strcmp(w->ends[i].attempt, attempt) == 0) {
                return &w->ends[i];
            }
        }
        module_wait(w);
    }
}

struct module_end *module_run(struct module_world *w, struct module_message options)
{
    assert_int_equal(module_start(w, options), 0);
    return module_end_of(w, options.attempt);
}
