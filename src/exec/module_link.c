#include "exec/module_link.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/json.h"
#include "base/mem.h"
#include "exec/module_spawn.h"
#include "exec/module_wire.h"
#include "os/fs.h"

enum {
    SENT_MAX = 64,        /* calls sent to the host at a time */
    SENT_BYTES = 1 << 20, /* stop sending while this much is queued */
    READ_BYTES = 256 << 10,
    START_MS_MAX = 10000,
    PAUSE_MS_MIN = 100, /* before the second start in a row; doubles */
    PAUSE_MS_MAX = 5000,
};

struct gl_module_pending {
    struct gl_link link;
    void *owner; /* NULL: dropped */
    uint64_t id;
    gl_ms timeout_ms;
    bool is_sent;
    gl_str input;
    char text[];
};

static struct gl_module_pending *first_call(struct gl_module_link *l)
{
    struct gl_link *first = gl_list_first(&l->calls);
    return first != NULL ? GL_CONTAINER(first, struct gl_module_pending, link) : NULL;
}

static void set_timer(struct gl_module_link *l, gl_ms ms)
{
    struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    (void)evtimer_add(l->timer, &tv);
}

/* The timeout of the first call starts once all calls before it are answered. */
static void watch_first(struct gl_module_link *l)
{
    struct gl_module_pending *t = first_call(l);
    (void)evtimer_del(l->timer);
    if (t != NULL && t->is_sent && t->timeout_ms > 0) {
        set_timer(l, t->timeout_ms);
    }
}

static void end_call(struct gl_module_link *l, struct gl_module_pending *t,
                     const struct gl_exec_result *result)
{
    void *owner = t->owner;
    gl_list_remove(&t->link);
    l->sent_n -= t->is_sent ? 1 : 0;
    gl_mem_free(t);
    if (owner != NULL) {
        l->events.ended(l->events.owner, owner, result);
    }
}

/* ---- the process ---- */

static void start(struct gl_module_link *l);

/* Returns its exit status. Calls sent but not answered will be sent again. */
static int stop_process(struct gl_module_link *l)
{
    int status = l->pid > 0 ? gl_module_end(l->pid) : 0;
    l->pid = 0;
    if (l->fd >= 0) {
        (void)event_del(l->readable);
        (void)event_del(l->writable);
        event_free(l->readable);
        event_free(l->writable);
        l->readable = l->writable = NULL;
        (void)close(l->fd);
        l->fd = -1;
    }
    if (l->exited != NULL) {
        event_free(l->exited);
        l->exited = NULL;
    }
    gl_fs_closep(&l->pidfd);
    (void)evtimer_del(l->timer);
    gl_buf_reset(&l->in);
    gl_buf_reset(&l->out);
    for (struct gl_link *i = l->calls.next; i != &l->calls; i = i->next) {
        GL_CONTAINER(i, struct gl_module_pending, link)->is_sent = false;
    }
    l->sent_n = 0;
    l->state = GL_LINK_OFF;
    return status;
}

static void restart(struct gl_module_link *l)
{
    if (gl_list_empty(&l->calls)) {
        return; /* the next call starts it again */
    }
    if (l->deaths <= 1) {
        start(l);
        return;
    }
    gl_ms pause = PAUSE_MS_MIN;
    for (unsigned i = 2; i < l->deaths && pause < PAUSE_MS_MAX; i++) {
        pause *= 2;
    }
    l->state = GL_LINK_PAUSED;
    set_timer(l, pause < PAUSE_MS_MAX ? pause : PAUSE_MS_MAX);
}

/* The module cannot be used at all: fail every waiting call. */
static void fail_all(struct gl_module_link *l, const char *why)
{
    struct gl_exec_result result = {.end = GL_EXEC_NOT_EXECUTED};
    struct gl_why text;
    struct gl_module_pending *t;
    (void)gl_why(&text, GL_E_UNAVAILABLE, "module %.*s cannot be used: %s", GL_STR_ARG(l->name),
                 why);
    result.error = gl_str_of(text.text);
    (void)stop_process(l);
    l->deaths++;
    /* Callbacks may make new calls: those are for the next process. */
    struct gl_link now;
    gl_list_init(&now);
    while ((t = first_call(l)) != NULL) {
        gl_list_remove(&t->link);
        gl_list_push(&now, &t->link);
    }
    while (!gl_list_empty(&now)) {
        end_call(l, GL_CONTAINER(gl_list_first(&now), struct gl_module_pending, link), &result);
    }
}

/* The process died, or was killed because it misbehaved. */
static void on_death(struct gl_module_link *l, bool is_late, const char *fault)
{
    bool was_up = l->state == GL_LINK_UP;
    struct gl_module_pending *t = first_call(l);
    bool was_sent = t != NULL && t->is_sent;
    gl_ms timeout_ms = t != NULL ? t->timeout_ms : 0;
    int status = stop_process(l);
    struct gl_exec_result result = {.end = GL_EXEC_EXITED, .exit_code = 1};
    struct gl_why text;
    if (!was_up) {
        fail_all(l, fault != NULL ? fault : "its process exited before it was ready");
        return;
    }
    if (is_late) {
        result = (struct gl_exec_result){.end = GL_EXEC_TIMEOUT, .signal = SIGKILL};
        (void)gl_why(&text, GL_E_STATE,
                     "module %.*s took longer than %lld ms: its process was killed",
                     GL_STR_ARG(l->name), (long long)timeout_ms);
    } else if (fault != NULL) {
        (void)gl_why(&text, GL_E_STATE, "module %.*s: %s", GL_STR_ARG(l->name), fault);
    } else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) {
        result = (struct gl_exec_result){.end = GL_EXEC_SIGNALED, .signal = WTERMSIG(status)};
        (void)gl_why(&text, GL_E_STATE, "module host died: %.*s ended with signal %d (%s)",
                     GL_STR_ARG(l->name), WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else {
        (void)gl_why(&text, GL_E_STATE,
                     "module host died: the process of %.*s exited or was killed",
                     GL_STR_ARG(l->name));
    }
    l->deaths++;
    result.error = gl_str_of(text.text);
    if (was_sent) {
        end_call(l, t, &result);
    }
    if (l->state == GL_LINK_OFF) { /* otherwise a callback made a new call and started it */
        restart(l);
    }
}

/* ---- sending ---- */

static void send_some(struct gl_module_link *l)
{
    if (l->state != GL_LINK_UP) {
        return;
    }
    bool was_idle = l->sent_n == 0;
    for (struct gl_link *i = l->calls.next; i != &l->calls && l->sent_n < SENT_MAX; i = i->next) {
        struct gl_module_pending *t = GL_CONTAINER(i, struct gl_module_pending, link);
        if (l->out.n > SENT_BYTES) {
            break;
        }
        if (!t->is_sent) {
            gl_module_frame_add(&l->out, GL_MODULE_CALL, t->id, t->input);
            t->is_sent = true;
            l->sent_n++;
        }
    }
    if (was_idle) {
        watch_first(l);
    }
    if (l->out.n > 0) {
        event_active(l->flush, EV_TIMEOUT, 0);
    }
}

static void on_flush(evutil_socket_t fd, short what, void *owner)
{
    struct gl_module_link *l = owner;
    (void)fd;
    (void)what;
    if (l->fd < 0 || l->out.n == 0) {
        return;
    }
    ssize_t n = send(l->fd, l->out.p, l->out.n, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        return; /* reading reports it, after its last output */
    }
    if (n > 0) {
        memmove(l->out.p, l->out.p + n, l->out.n - (size_t)n);
        l->out.n -= (size_t)n;
    }
    if (l->out.n > 0) {
        (void)event_add(l->writable, NULL);
    }
}

/* ---- receiving ---- */

static void on_answer(struct gl_module_link *l, const struct gl_module_head *head, gl_str text)
{
    struct gl_exec_result result = {.end = GL_EXEC_EXITED};
    struct gl_module_pending *t = first_call(l);
    struct gl_why why;
    struct gl_json j;
    if (head->type == GL_MODULE_DONE) {
        gl_arena_reset(&l->scratch);
        if (gl_json_parse(&j, text, GL_MODULE_FRAME_BYTES_MAX, &l->scratch, &why) == 0 &&
            gl_json_is(gl_json_root(&j), GL_JSON_OBJECT)) {
            result.output = text;
        } else {
            result.exit_code = 1;
            (void)gl_why(&why, GL_E_STATE,
                         "module %.*s: its process did not reply with a JSON object",
                         GL_STR_ARG(l->name));
            result.error = gl_str_of(why.text);
        }
    } else {
        text.n = text.n < GL_REASON_BYTES_MAX ? text.n : GL_REASON_BYTES_MAX;
        result.exit_code = 1;
        (void)gl_why(&why, GL_E_STATE, "module %.*s: %.*s", GL_STR_ARG(l->name), GL_STR_ARG(text));
        result.error = gl_str_of(why.text);
    }
    l->deaths = 0;
    end_call(l, t, &result);
    watch_first(l);
}

/* Returns NULL, or what is wrong with the frame. */
static const char *on_frame(struct gl_module_link *l, const struct gl_module_head *head,
                            gl_str text)
{
    if (l->state == GL_LINK_STARTING) {
        if (head->type != GL_MODULE_READY) {
            return "its process speaks another protocol";
        }
        if (text.n == 0) {
            l->state = GL_LINK_UP;
            (void)evtimer_del(l->timer);
        }
        return NULL;
    }
    struct gl_module_pending *t = first_call(l);
    if (t == NULL || !t->is_sent || t->id != head->id ||
        (head->type != GL_MODULE_DONE && head->type != GL_MODULE_FAILED &&
         head->type != GL_MODULE_REFUSED)) {
        return "its process sent an unexpected reply (protocol out of sync)";
    }
    on_answer(l, head, text);
    return NULL;
}

/* Handle all complete frames. False: the process is gone now. */
static bool read_frames(struct gl_module_link *l)
{
    struct gl_module_head head;
    size_t at = 0, used = 0;
    gl_str text;
    const char *fault = NULL;
    while (fault == NULL) {
        gl_str rest = {.p = l->in.p + at, .n = l->in.n - at};
        if (gl_module_frame_read(rest, &head, &text, &used) != 0) {
            fault = "its process sent a reply that is too large";
            break;
        }
        if (used == 0) {
            break;
        }
        at += used;
        if (l->state == GL_LINK_STARTING && head.type == GL_MODULE_READY && text.n > 0) {
            GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
            fail_all(l, gl_str_c(&a, text));
            return false;
        }
        fault = on_frame(l, &head, text);
    }
    if (fault != NULL) {
        on_death(l, false, fault);
        return false;
    }
    if (at > 0) {
        memmove(l->in.p, l->in.p + at, l->in.n - at);
        l->in.n -= at;
    }
    return true;
}

/* Returns 1: data arrived; 0: none; -1: the process is gone now. */
static int receive(struct gl_module_link *l)
{
    ssize_t n = recv(l->fd, gl_buf_reserve(&l->in, READ_BYTES), READ_BYTES, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    if (n <= 0) {
        on_death(l, false, NULL);
        return -1;
    }
    l->in.n += (size_t)n;
    return read_frames(l) ? 1 : -1;
}

static void on_readable(evutil_socket_t fd, short what, void *owner)
{
    struct gl_module_link *l = owner;
    (void)fd;
    (void)what;
    if (receive(l) > 0) {
        send_some(l);
    }
}

/* The process died. `fd` need not show that, because a child forked by the module may hold the
 * other end. Answers sent before it died count. */
static void on_process_exit(evutil_socket_t fd, short what, void *owner)
{
    struct gl_module_link *l = owner;
    int received;
    (void)fd;
    (void)what;
    while ((received = receive(l)) > 0) {
    }
    if (received == 0) {
        on_death(l, false, NULL);
    }
}

/* ---- starting and timers ---- */

static void start(struct gl_module_link *l)
{
    const char *const args[] = {"--run", l->path, NULL};
    struct gl_why why;
    l->state = GL_LINK_STARTING;
    set_timer(l, START_MS_MAX);
    if (gl_module_spawn(l->program, args, &l->pid, &l->fd, &why) != 0) {
        l->pid = 0;
        l->fd = -1;
        set_timer(l, 0); /* reported by the timer: no callback from inside a call */
        return;
    }
    struct event_base *base = gl_loop_base(l->loop);
    l->readable = event_new(base, l->fd, EV_READ | EV_PERSIST, on_readable, l);
    l->writable = event_new(base, l->fd, EV_WRITE, on_flush, l);
    GL_ASSERT(l->readable != NULL);
    GL_ASSERT(l->writable != NULL);
    (void)event_add(l->readable, NULL);
    l->pidfd = (int)syscall(SYS_pidfd_open, l->pid, 0);
    if (l->pidfd >= 0) {
        l->exited = event_new(base, l->pidfd, EV_READ, on_process_exit, l);
        GL_ASSERT(l->exited != NULL);
        (void)event_add(l->exited, NULL);
    }
}

static void on_timer(evutil_socket_t fd, short what, void *owner)
{
    struct gl_module_link *l = owner;
    (void)fd;
    (void)what;
    switch (l->state) {
    case GL_LINK_STARTING:
        on_death(l, false,
                 l->fd < 0 ? "its process could not be started"
                           : "its process was not ready within 10 s");
        break;
    case GL_LINK_UP:
        on_death(l, true, NULL);
        break;
    case GL_LINK_PAUSED:
        start(l);
        break;
    case GL_LINK_OFF:
        break;
    }
}

int gl_module_link_init(struct gl_module_link *l, struct gl_why *reterr_why)
{
    struct event_base *base = gl_loop_base(l->loop);
    l->fd = l->pidfd = -1;
    gl_list_init(&l->calls);
    l->timer = evtimer_new(base, on_timer, l);
    l->flush = event_new(base, -1, 0, on_flush, l);
    if (l->timer == NULL || l->flush == NULL) {
        return gl_why(reterr_why, GL_E_IO, "cannot create the events of a module");
    }
    return 0;
}

void gl_module_link_done(struct gl_module_link *l)
{
    struct gl_module_pending *t;
    (void)stop_process(l);
    while ((t = first_call(l)) != NULL) {
        gl_list_remove(&t->link);
        gl_mem_free(t);
    }
    if (l->timer != NULL) {
        event_free(l->timer);
    }
    if (l->flush != NULL) {
        event_free(l->flush);
    }
    gl_buf_done(&l->in);
    gl_buf_done(&l->out);
    gl_arena_done(&l->scratch);
}

struct gl_module_pending *gl_module_link_call(struct gl_module_link *l, void *call_owner,
                                              gl_str input, gl_ms timeout_ms)
{
    struct gl_module_pending *t = gl_mem_alloc(sizeof(*t) + input.n);
    memcpy(t->text, input.p, input.n);
    t->input = (gl_str){.p = t->text, .n = input.n};
    t->owner = call_owner;
    t->id = ++l->last_id;
    t->timeout_ms = timeout_ms;
    gl_list_init(&t->link);
    gl_list_push(&l->calls, &t->link);
    if (l->state == GL_LINK_OFF) {
        restart(l);
    } else {
        send_some(l);
    }
    return t;
}

void gl_module_link_drop(struct gl_module_link *l, struct gl_module_pending *t, gl_ms grace_ms)
{
    t->owner = NULL;
    if (!t->is_sent) {
        gl_list_remove(&t->link);
        gl_mem_free(t);
        return;
    }
    t->timeout_ms = grace_ms > 0 ? grace_ms : 1;
    if (t == first_call(l)) {
        watch_first(l);
    }
}
