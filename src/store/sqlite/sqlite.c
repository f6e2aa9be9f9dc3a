/* sqlite.c - opening, closing, and dispatching requests to the writer or the reader thread.
 *
 * Closing: the queues are closed, the threads finish what is queued and post `ended`, their
 * completions run on the loop, and whatever comes last (a thread's end or a completion) finishes
 * the close. */
#include "store/sqlite/sqlite.h"

#include <string.h>

#include "base/check.h"
#include "os/fs.h"
#include "store/common/thread.h"
#include "store/sqlite/sqlite_parts.h"

/* ---- requests ---- */

static const enum gl_sqlite_role roles[GL_CALLS_N] = {
    /* all others go to the writer */
    [GL_CALL_SESSION_LIST] = GL_SQLITE_ROLE_R, [GL_CALL_GET] = GL_SQLITE_ROLE_R,
    [GL_CALL_RANGE] = GL_SQLITE_ROLE_R,        [GL_CALL_LIST] = GL_SQLITE_ROLE_R,
    [GL_CALL_LOG_READ] = GL_SQLITE_ROLE_R,     [GL_CALL_EXPORT] = GL_SQLITE_ROLE_R,
    [GL_CALL_MEASURE] = GL_SQLITE_ROLE_R,
};

static void read_clock(struct gl_store_req *req)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail: the clock exists */
    req->time = (gl_ms)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Requests that need no thread (refused, or TIME) are still completed through a post, so that
 * `done` never runs inside the call. */
static void begin(struct gl_calls *calls, struct gl_call *call)
{
    struct gl_sqlite *s = GL_CONTAINER(calls, struct gl_sqlite, calls);

    GL_ASSERT(call->type < GL_CALLS_N);
    if (!gl_call_is_refused(calls, call) && call->type != GL_CALL_TIME) {
        gl_sqlite_queue_push(&s->workers[roles[call->type]].queue, call);
        return;
    }
    if (call->type == GL_CALL_TIME) {
        read_clock(call->req);
    }
    struct gl_sqlite_completion *batch = gl_sqlite_completion_new(s);
    gl_list_push(&batch->calls, &call->link);
    gl_sqlite_completion_post(batch);
}

/* ---- closing ---- */

static void close_store(struct gl_calls *calls)
{
    struct gl_sqlite *s = GL_CONTAINER(calls, struct gl_sqlite, calls);

    GL_ASSERT(calls->closing);
    for (int i = 0; i < GL_SQLITE_ROLES_N; i++) {
        gl_sqlite_queue_close(&s->workers[i].queue);
    }
}

static void free_store(struct gl_calls *calls)
{
    struct gl_sqlite *s = GL_CONTAINER(calls, struct gl_sqlite, calls);

    GL_ASSERT(s->threads_n == 0);
    GL_ASSERT(calls->pending_n == 0);
    for (int i = 0; i < GL_SQLITE_ROLES_N; i++) {
        struct gl_sqlite_worker *w = &s->workers[i];
        gl_sqlite_contexts_done(&w->contexts); /* empty, unless its thread never ran */
        gl_sqlite_queue_done(&w->queue);
        gl_buf_done(&w->session);
        gl_buf_done(&w->about);
        gl_buf_done(&w->barrier_session);
        gl_buf_done(&w->text);
    }
    gl_calls_done(calls);
    gl_arena_done(&s->arena);
    gl_mem_free(s);
}

void gl_sqlite_finish_close(struct gl_sqlite *s)
{
    GL_ASSERT(s->threads_n >= 0);
    if (s->calls.closing && s->threads_n == 0 && s->calls.pending_n == 0) {
        gl_calls_closed(&s->calls);
    }
}

static void on_ended(struct gl_loop_task *t)
{
    struct gl_sqlite_worker *w = GL_CONTAINER(t, struct gl_sqlite_worker, ended);

    GL_ASSERT(w->store->threads_n > 0);
    /* The thread posted this as its last action, so the join does not block. */
    (void)pthread_join(w->thread, NULL);
    w->store->threads_n--;
    gl_sqlite_finish_close(w->store);
}

/* ---- opening ---- */

/* The lock on the folder provides exclusivity, so a session needs no deadline and `ttl_ms` is
 * unused. Only this process could commit a wake-up word or lose a connection, so no events are ever
 * reported. */
static const struct gl_calls_engine engine = {
    .name = "sqlite",
    .call_bytes = sizeof(struct gl_call),
    .begin = begin,
    .close = close_store,
    .free = free_store,
};

static struct gl_sqlite *new_store(const struct gl_sqlite_config *cfg, struct gl_loop *loop)
{
    struct gl_sqlite *s = gl_mem_alloc(sizeof(*s));
    gl_calls_init(&s->calls, &engine, loop);
    s->folder = gl_str_c(&s->arena, gl_str_of(cfg->folder));
    s->vfs = cfg->vfs != NULL ? gl_str_c(&s->arena, gl_str_of(cfg->vfs)) : NULL;
    s->read_only = cfg->read_only;
    s->group_max = cfg->group_max > 0 ? cfg->group_max : GL_SQLITE_GROUP_MAX;
    s->idle_ms = cfg->idle_ms > 0 ? cfg->idle_ms : GL_SQLITE_IDLE_MS;
    for (int i = 0; i < GL_SQLITE_ROLES_N; i++) {
        s->workers[i].store = s;
        s->workers[i].ended.run = on_ended;
        gl_sqlite_queue_init(&s->workers[i].queue);
        gl_sqlite_contexts_init(&s->workers[i].contexts, s, (enum gl_sqlite_role)i);
    }
    GL_ASSERT(s->group_max > 0);
    GL_ASSERT(s->idle_ms > 0);
    return s;
}

/* Open the default database now, so that damage is reported by gl_sqlite_open() and not by the
 * first request. The connection stays open for its thread, which has not started yet. */
static int check(struct gl_sqlite *s, struct gl_why *reterr_why)
{
    GL_ASSERT(!s->calls.closing);
    if (!s->read_only) {
        int err = gl_fs_mkdirs(s->folder, reterr_why);
        if (err < 0) {
            return err;
        }
    }
    if (!gl_sqlite_db_exists(s, GL_CONTEXT_DEFAULT)) {
        return 0;
    }
    struct gl_sqlite_db *db = NULL;
    int err = gl_sqlite_contexts_get(
        &s->workers[s->read_only ? GL_SQLITE_ROLE_R : GL_SQLITE_ROLE_W].contexts,
        GL_CONTEXT_DEFAULT, &db, reterr_why);
    return err == GL_E_NOT_FOUND ? 0 : err;
}

static int start(struct gl_sqlite *s, struct gl_why *reterr_why)
{
    void *(*const mains[])(void *) = {gl_sqlite_writer_main, gl_sqlite_reader_main};

    GL_ASSERT(s->threads_n == 0);
    for (int i = 0; i < GL_SQLITE_ROLES_N; i++) {
        int err = gl_thread_start(&s->workers[i].thread, mains[i], &s->workers[i]);
        if (err != 0) {
            return gl_why(reterr_why, GL_E_IO, "cannot start a store thread: %s", strerror(err));
        }
        s->threads_n++;
    }
    GL_ASSERT(s->threads_n == GL_SQLITE_ROLES_N);
    return 0;
}

int gl_sqlite_open(struct gl_store **ret, const struct gl_sqlite_config *cfg, struct gl_loop *loop,
                   struct gl_why *reterr_why)
{
    GL_ASSERT(cfg->folder != NULL);
    struct gl_sqlite *s = new_store(cfg, loop);
    int err = check(s, reterr_why);
    if (err == 0) {
        err = start(s, reterr_why);
    }
    if (err < 0) {
        s->calls.port.ops->close(&s->calls.port, NULL, NULL);
        gl_sqlite_finish_close(s); /* now, or when the thread that did start has ended */
        return err;
    }
    *ret = &s->calls.port;
    return 0;
}
