/*   OFF ──connect()──► CONNECTING ──► GREETING ──► UP
 *                     ready ▲  │ ▲          │        │
 *                           │  │ └──pause◄──┴─broken─┘
 *                       STARTING (nobody listens)
 *
 * CONNECTING is left within one call, or waited in for the pause between two tries. */
#include "exec/keeper_exec.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/json.h"
#include "base/list.h"
#include "base/mem.h"
#include "exec/keeper_spawn.h"
#include "os/failpoint.h"
#include "os/fs.h"
#include "os/sock.h"
#include "port/keep.h"

enum {
    PAUSE_MS_MIN = 10,
    PAUSE_MS_MAX = 2000,
    GREETING_MS = 15000, /* a keeper that does not answer hello for so long is given up */
    STARTING_MS = 15000,
    READ_BYTES = 256 << 10,
    OUT_BYTES_MAX = 64 << 20, /* the keeper reads too slowly: refuse more */
    DEFAULTS_MAX = 4,
    PINGS_PER_GRACE = 3,
};

#define STATES(X)                                                                            \
    X(OFF, GL_BIT(CONNECTING) | GL_BIT(CLOSED))                                              \
    X(CONNECTING, GL_BIT(STARTING) | GL_BIT(GREETING) | GL_BIT(CONNECTING) | GL_BIT(CLOSED)) \
    X(STARTING, GL_BIT(CONNECTING) | GL_BIT(CLOSED))                                         \
    X(GREETING, GL_BIT(UP) | GL_BIT(CONNECTING) | GL_BIT(CLOSED))                            \
    X(UP, GL_BIT(CONNECTING) | GL_BIT(CLOSED))                                               \
    X(CLOSED, 0)

enum state {
#define X(name, next) name,
    STATES(X)
#undef X
};

struct keeper_exec {
    struct gl_exec exec;
    struct gl_exec_events events;
    struct gl_loop *loop;
    struct gl_arena config_arena;
    struct gl_keeper_spawn spawn;
    const char *sock_path;
    gl_str defaults[DEFAULTS_MAX]; /* PATH, HOME, LANG, TZ as we have them: "NAME=value" */
    size_t defaults_n;
    gl_ms orphan_grace_ms;
    uint64_t incarnation;

    enum state state;
    bool told_down; /* `down` was the last thing we said about it */
    gl_ms pause_ms;
    pid_t launcher; /* to be waited for; 0: none */
    int fd, ready_fd;
    struct event *readable, *writable, *ready, *timer, *later, *ping;
    struct gl_buf in, out, ready_text;
    size_t in_used;

    struct gl_link asked;  /* sent, not answered; in the order sent */
    struct gl_link failed; /* answered at once, not yet told */
    uint64_t req;
    struct gl_arena scratch; /* of one message */

    struct gl_arena infos_arena; /* of the list under way */
    struct gl_exec_info *infos;
    size_t infos_n, infos_cap;

    void (*closed)(void *owner);
    void *closed_owner;
};

/* Our part of a request. */
struct pending {
    struct gl_link link;
    uint64_t req;
};

static_assert(sizeof(struct pending) <= sizeof(((struct gl_exec_req *)0)->maker),
              "the maker's part of a request is large enough");

static struct keeper_exec *of(struct gl_exec *x)
{
    return GL_CONTAINER(x, struct keeper_exec, exec);
}

static struct pending *pending_of(struct gl_exec_req *req)
{
    return (struct pending *)(void *)req->maker;
}

static struct gl_exec_req *req_of(struct gl_link *l)
{
    return GL_CONTAINER(GL_CONTAINER(l, struct pending, link), struct gl_exec_req, maker);
}

/* The only writer of x->state. */
static void move(struct keeper_exec *x, enum state next)
{
    static const uint32_t allowed[] = {
#define X(name, to) [name] = (to),
        STATES(X)
#undef X
    };
    GL_ASSERT(allowed[x->state] & GL_BIT(next));
    x->state = next;
}

static void try_connect(struct keeper_exec *x);

/* ---- time ---- */

static void set_timer(struct keeper_exec *x, gl_ms ms)
{
    struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    (void)event_add(x->timer, &tv);
}

/* ---- ending a connection ---- */

static void finish(struct gl_exec_req *req, int status, const char *text)
{
    gl_list_remove(&pending_of(req)->link);
    req->status = status;
    if (status < 0) {
        (void)gl_why(&req->why, status, "%s", text);
    }
    req->done(req);
}

static void drop_event(struct event **e)
{
    if (*e != NULL) {
        event_free(*e);
        *e = NULL;
    }
}

/* The process that starts a keeper ends at once, by itself. */
static void reap_launcher(struct keeper_exec *x, int how)
{
    if (x->launcher > 0) {
        (void)waitpid(x->launcher, NULL, how);
        x->launcher = 0;
    }
}

static void hang_up(struct keeper_exec *x)
{
    drop_event(&x->readable);
    drop_event(&x->writable);
    drop_event(&x->ready);
    gl_fs_closep(&x->fd);
    gl_fs_closep(&x->ready_fd);
    gl_buf_reset(&x->in);
    gl_buf_reset(&x->out);
    x->in_used = 0;
    if (x->ping != NULL) {
        (void)event_del(x->timer);
        (void)event_del(x->ping);
    }
    reap_launcher(x, WNOHANG);
}

static void fail_asked(struct keeper_exec *x, const char *why)
{
    /* Only those that are there now: `done` may ask for more. */
    struct gl_link all;
    gl_list_init(&all);
    while (!gl_list_empty(&x->asked)) {
        struct gl_link *l = gl_list_first(&x->asked);
        gl_list_remove(l);
        gl_list_push(&all, l);
    }
    while (!gl_list_empty(&all)) {
        finish(req_of(gl_list_first(&all)), GL_E_UNAVAILABLE, why);
    }
}

/* The connection, or the try to get one, has failed: say so once, and try again after a pause. */
static void broken(struct keeper_exec *x, const char *text)
{
    char why[GL_WHY_BYTES];
    memcpy(why, text,
           strnlen(text, sizeof(why) - 1) + 1); /* it may stand in what we are about to reset */
    why[sizeof(why) - 1] = 0;
    hang_up(x);
    move(x, CONNECTING);
    set_timer(x, x->pause_ms);
    x->pause_ms = x->pause_ms * 2 < PAUSE_MS_MAX ? x->pause_ms * 2 : PAUSE_MS_MAX;
    if (!x->told_down) {
        x->told_down = true;
        x->events.down(x->events.owner, why);
    }
    fail_asked(x, why);
}

/* ---- results ---- */

/* A document, or nothing. The slice is of the value alone, without space around it. */
static int check_json(struct keeper_exec *x, gl_str text, gl_str *ret, struct gl_why *why)
{
    struct gl_json j;
    int r = gl_json_parse(&j, text, GL_OUTPUT_BYTES_MAX, &x->scratch, why);
    if (r == 0) {
        *ret = gl_json_raw(&j, gl_json_root(&j));
    }
    return r;
}

static void check_output(struct keeper_exec *x, struct gl_keep_msg *m)
{
    struct gl_why why;
    gl_str text = m->result.output;
    m->result.output = (gl_str){0};
    if (m->output_source == GL_KEEP_NO_OUTPUT ||
        check_json(x, text, &m->result.output, &why) == 0) {
        return;
    }
    bool succeeded = m->result.end == GL_EXEC_EXITED && m->result.exit_code == 0;
    if (m->output_source == GL_KEEP_FROM_FILE && succeeded && m->result.error.n == 0) {
        m->result.error = gl_str_fmt(&x->scratch, "the output is not valid JSON: %s", why.text);
    }
}

/* ---- messages ---- */

static void on_welcome(struct keeper_exec *x, const struct gl_keep_msg *m)
{
    if (m->version_min < GL_KEEP_VERSION_MIN || m->version_min > GL_KEEP_VERSION_MAX ||
        m->start.epoch.n == 0) {
        broken(x, "the keeper's welcome makes no sense");
        return;
    }
    move(x, UP);
    x->told_down = false;
    x->pause_ms = PAUSE_MS_MIN;
    (void)event_del(x->timer);
    if (x->orphan_grace_ms > 0) {
        gl_ms ms = x->orphan_grace_ms / PINGS_PER_GRACE + 1;
        struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
        (void)event_add(x->ping, &tv);
    }
    x->events.up(x->events.owner, m->start.epoch);
}

static struct gl_exec_req *find_asked(struct keeper_exec *x, uint64_t number)
{
    for (struct gl_link *l = x->asked.next; l != &x->asked; l = l->next) {
        if (GL_CONTAINER(l, struct pending, link)->req == number) {
            return req_of(l);
        }
    }
    return NULL;
}

static void on_info(struct keeper_exec *x, const struct gl_keep_msg *m)
{
    struct gl_arena *a = &x->infos_arena;
    if (x->infos_n == x->infos_cap) {
        size_t cap = x->infos_cap > 0 ? x->infos_cap * 2 : 64;
        struct gl_exec_info *more = GL_NEW_ARRAY(a, struct gl_exec_info, cap);
        if (x->infos_n > 0) {
            memcpy(more, x->infos, x->infos_n * sizeof(*more));
        }
        x->infos = more;
        x->infos_cap = cap;
    }
    x->infos[x->infos_n++] = (struct gl_exec_info){
        .key = {gl_str_dup(a, m->start.key.context), gl_str_dup(a, m->start.key.job),
                gl_str_dup(a, m->start.key.attempt)},
        .token = m->start.token,
        .state = (enum gl_exec_state)m->state,
    };
}

static void on_reply(struct keeper_exec *x, struct gl_keep_msg *m)
{
    struct gl_exec_req *req = find_asked(x, m->req);
    if (req == NULL) {
        return; /* nobody waits for it */
    }
    check_output(x, m);
    req->state = (enum gl_exec_state)m->state;
    req->result = m->result;
    req->infos = x->infos;
    req->infos_n = x->infos_n;
    finish(req, m->status, gl_str_c(&x->scratch, m->text));
    gl_arena_reset(&x->infos_arena);
    x->infos = NULL;
    x->infos_n = x->infos_cap = 0;
}

static void on_refused(struct keeper_exec *x, const struct gl_keep_msg *m)
{
    broken(x, gl_str_fmt(&x->scratch, "the keeper refuses this node: %.*s", GL_STR_ARG(m->text)).p);
}

static void on_message(struct keeper_exec *x, struct gl_keep_msg *m)
{
    if (m->type == GL_KEEP_REFUSED) {
        on_refused(x, m);
    } else if (x->state == GREETING) {
        if (m->type == GL_KEEP_WELCOME) {
            on_welcome(x, m);
        } else {
            broken(x, "the keeper does not answer a greeting with a welcome");
        }
    } else if (m->type == GL_KEEP_REPLY) {
        on_reply(x, m);
    } else if (m->type == GL_KEEP_INFO) {
        on_info(x, m);
    } else if (m->type == GL_KEEP_ENDED) {
        check_output(x, m);
        x->events.ended(x->events.owner, &m->start.key, m->start.token, &m->result);
    } else if (m->type == GL_KEEP_BEACON) {
        x->events.beacon(x->events.owner, &m->start.key, m->start.token);
    }
    /* Anything else is news of a newer keeper that this release does not need. */
}

/* Deal with the whole messages that are there. Any of them may end the connection or close us. */
static void take_messages(struct keeper_exec *x)
{
    struct gl_why why;
    while (x->fd >= 0) {
        gl_str rest = {.p = x->in.p + x->in_used, .n = x->in.n - x->in_used};
        gl_str message;
        size_t used = 0;
        struct gl_keep_msg m;
        if (gl_keep_frame(rest, &message, &used, &why) < 0) {
            broken(x, why.text);
            return;
        }
        if (used == 0) {
            break;
        }
        x->in_used += used;
        GL_FAILPOINT("exec.received");
        gl_arena_reset(&x->scratch);
        if (gl_keep_decode(&m, message, &x->scratch, &why) < 0) {
            broken(x, why.text);
            return;
        }
        on_message(x, &m);
    }
    if (x->fd >= 0 && x->in_used > 0) {
        x->in.n -= x->in_used;
        memmove(x->in.p, x->in.p + x->in_used, x->in.n);
        x->in_used = 0;
    }
}

/* ---- bytes ---- */

static void on_readable(evutil_socket_t fd, short what, void *owner)
{
    struct keeper_exec *x = owner;
    char bytes[READ_BYTES];
    (void)what;
    ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        broken(x, "the keeper has gone");
        return;
    }
    gl_buf_add(&x->in, bytes, (size_t)n);
    take_messages(x);
}

/* Send what is queued; what the socket does not take waits until it can be written to. */
static bool send_out(struct keeper_exec *x)
{
    size_t at = 0;
    while (at < x->out.n) {
        ssize_t n = send(x->fd, x->out.p + at, x->out.n - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno != EAGAIN) {
            return false;
        }
        if (n < 0) {
            break;
        }
        at += (size_t)n;
    }
    if (at > 0) {
        x->out.n -= at;
        memmove(x->out.p, x->out.p + at, x->out.n);
    }
    return true;
}

static void flush(struct keeper_exec *x)
{
    if (x->fd < 0) {
        return;
    }
    GL_FAILPOINT("exec.before_send");
    if (!send_out(x)) {
        broken(x, "the keeper has gone");
    } else if (x->out.n > 0) {
        (void)event_add(x->writable, NULL);
    }
    GL_FAILPOINT("exec.after_send");
}

static void on_writable(evutil_socket_t fd, short what, void *owner)
{
    (void)fd;
    (void)what;
    flush(owner);
}

static void free_exec(struct keeper_exec *x)
{
    hang_up(x);
    drop_event(&x->timer);
    drop_event(&x->later);
    drop_event(&x->ping);
    gl_buf_done(&x->in);
    gl_buf_done(&x->out);
    gl_buf_done(&x->ready_text);
    gl_arena_done(&x->scratch);
    gl_arena_done(&x->infos_arena);
    gl_arena_done(&x->config_arena);
    gl_mem_free(x);
}

/* What a call may not do at once: answer, send (one send for all calls of an event), close. */
static void on_later(evutil_socket_t fd, short what, void *owner)
{
    struct keeper_exec *x = owner;
    struct gl_link all;
    (void)fd;
    (void)what;
    gl_list_init(&all);
    while (!gl_list_empty(&x->failed)) {
        struct gl_link *l = gl_list_first(&x->failed);
        gl_list_remove(l);
        gl_list_push(&all, l);
    }
    while (!gl_list_empty(&all)) {
        struct gl_exec_req *req = req_of(gl_list_first(&all));
        gl_list_remove(&pending_of(req)->link);
        req->done(req);
    }
    if (x->state != CLOSED) {
        flush(x);
        return;
    }
    fail_asked(x, "the executor was closed");
    if (!gl_list_empty(&x->failed)) { /* asked from inside one of these answers */
        event_active(x->later, EV_TIMEOUT, 0);
        return;
    }
    void (*closed)(void *) = x->closed;
    void *closed_owner = x->closed_owner;
    free_exec(x);
    closed(closed_owner);
}

static void send_later(struct keeper_exec *x, const struct gl_keep_msg *m)
{
    if (x->out.n == 0) {
        event_active(x->later, EV_TIMEOUT, 0);
    }
    gl_keep_encode(m, &x->out);
}

static void on_ping(evutil_socket_t fd, short what, void *owner)
{
    struct keeper_exec *x = owner;
    (void)fd;
    (void)what;
    if (x->state == UP) {
        struct gl_keep_msg m = {.type = GL_KEEP_PING};
        send_later(x, &m);
    }
}

/* ---- connecting ---- */

static void greet(struct keeper_exec *x, int fd)
{
    struct timespec boot;
    struct gl_clock *clock = gl_loop_clock(x->loop);
    (void)clock_gettime(CLOCK_BOOTTIME, &boot);
    struct gl_keep_msg m = {
        .type = GL_KEEP_HELLO,
        .version_min = GL_KEEP_VERSION_MIN,
        .version_max = GL_KEEP_VERSION_MAX,
        .incarnation = x->incarnation,
        .orphan_grace_ms = x->orphan_grace_ms,
        .clock_offset_ms = clock->now(clock) - ((gl_ms)boot.tv_sec * 1000 + boot.tv_nsec / 1000000),
    };
    move(x, GREETING);
    x->fd = fd;
    x->readable = event_new(gl_loop_base(x->loop), fd, EV_READ | EV_PERSIST, on_readable, x);
    x->writable = event_new(gl_loop_base(x->loop), fd, EV_WRITE, on_writable, x);
    (void)event_add(x->readable, NULL);
    set_timer(x, GREETING_MS);
    gl_keep_encode(&m, &x->out);
    flush(x);
}

static void on_ready(evutil_socket_t fd, short what, void *owner)
{
    struct keeper_exec *x = owner;
    char bytes[GL_WHY_BYTES];
    (void)what;
    ssize_t n = read(fd, bytes, sizeof(bytes));
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n > 0 && x->ready_text.n < GL_WHY_BYTES) {
        gl_buf_add(&x->ready_text, bytes, (size_t)n);
        if (!gl_str_is(gl_buf_view(&x->ready_text), "ok")) {
            return; /* a reason, perhaps not all of it */
        }
    }
    bool ok = gl_str_is(gl_buf_view(&x->ready_text), "ok");
    reap_launcher(x, 0);
    gl_buf_char(&x->ready_text, 0);
    if (!ok) {
        broken(x, x->ready_text.n > 1 ? x->ready_text.p : "the keeper ended while starting");
        return;
    }
    hang_up(x);
    move(x, CONNECTING);
    try_connect(x);
}

static void start_keeper(struct keeper_exec *x)
{
    struct gl_why why;
    gl_buf_reset(&x->ready_text);
    if (gl_keeper_spawn(&x->spawn, &x->launcher, &x->ready_fd, &why) < 0) {
        x->launcher = 0;
        broken(x, why.text);
        return;
    }
    x->spawn.again = true;
    move(x, STARTING);
    x->ready = event_new(gl_loop_base(x->loop), x->ready_fd, EV_READ | EV_PERSIST, on_ready, x);
    (void)event_add(x->ready, NULL);
    set_timer(x, STARTING_MS);
}

static void try_connect(struct keeper_exec *x)
{
    struct gl_why why;
    int fd = -1;
    GL_ASSERT(x->state == CONNECTING);
    int r = gl_sock_connect(x->sock_path, &fd, &why);
    if (r == 0) {
        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
        greet(x, fd);
    } else if (r == GL_E_NOT_FOUND || r == GL_E_GONE) {
        start_keeper(x);
    } else {
        broken(x, why.text);
    }
}

static void on_timer(evutil_socket_t fd, short what, void *owner)
{
    struct keeper_exec *x = owner;
    (void)fd;
    (void)what;
    if (x->state == CONNECTING) {
        try_connect(x);
    } else if (x->state == GREETING || x->state == STARTING) {
        broken(x, "the keeper does not answer");
    }
}

/* ---- the port ---- */

/* Answer later, without asking anyone. */
static void fail(struct keeper_exec *x, struct gl_exec_req *req, int status, const char *text)
{
    req->status = status;
    (void)gl_why(&req->why, status, "%s", text);
    gl_list_init(&pending_of(req)->link);
    gl_list_push(&x->failed, &pending_of(req)->link);
    event_active(x->later, EV_TIMEOUT, 0);
}

static void ask(struct keeper_exec *x, struct gl_exec_req *req, struct gl_keep_msg *m)
{
    GL_ASSERT(req->done != NULL);
    if (x->state != UP) {
        fail(x, req, GL_E_UNAVAILABLE, "the keeper is not there");
    } else if (x->out.n > OUT_BYTES_MAX) {
        fail(x, req, GL_E_UNAVAILABLE, "the keeper does not keep up");
    } else {
        m->req = pending_of(req)->req = ++x->req;
        gl_list_init(&pending_of(req)->link);
        gl_list_push(&x->asked, &pending_of(req)->link);
        send_later(x, m);
    }
}

static bool has_variable(const struct gl_exec_start *s, gl_str variable)
{
    gl_str ignored;
    gl_str name = gl_str_cut(variable, '=', &ignored);
    name.n++; /* with the '=' */
    for (size_t i = 0; i < s->env_n; i++) {
        if (gl_str_starts(s->env[i], name)) {
            return true;
        }
    }
    return false;
}

/* Steps see PATH, HOME, LANG and TZ as this node does, where they have none of their own. */
static void add_defaults(struct keeper_exec *x, struct gl_arena *a, struct gl_exec_start *s)
{
    gl_str *env = GL_NEW_ARRAY(a, gl_str, s->env_n + x->defaults_n);
    size_t n = s->env_n;
    if (n > 0) {
        memcpy(env, s->env, n * sizeof(*env));
    }
    for (size_t i = 0; i < x->defaults_n; i++) {
        if (!has_variable(s, x->defaults[i])) {
            env[n++] = x->defaults[i];
        }
    }
    s->env = env;
    s->env_n = n;
}

static void exec_start(struct gl_exec *port, struct gl_exec_req *req,
                       const struct gl_exec_start *start)
{
    struct keeper_exec *x = of(port);
    struct gl_why why;
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_keep_msg m = {.type = GL_KEEP_START, .start = *start};
    add_defaults(x, &a, &m.start);
    int r = gl_keep_check_start(&m.start, &why);
    if (r < 0) {
        fail(x, req, r, why.text);
        return;
    }
    ask(x, req, &m);
}

static void exec_attach(struct gl_exec *port, struct gl_exec_req *req,
                        const struct gl_attempt_key *key, uint64_t token, gl_str epoch)
{
    struct gl_keep_msg m = {.type = GL_KEEP_ATTACH,
                            .start = {.key = *key, .token = token, .epoch = epoch}};
    ask(of(port), req, &m);
}

static void exec_stop(struct gl_exec *port, struct gl_exec_req *req,
                      const struct gl_attempt_key *key, uint64_t token)
{
    struct gl_keep_msg m = {.type = GL_KEEP_STOP, .start = {.key = *key, .token = token}};
    ask(of(port), req, &m);
}

static void exec_ack(struct gl_exec *port, const struct gl_attempt_key *key, uint64_t token)
{
    struct keeper_exec *x = of(port);
    struct gl_keep_msg m = {.type = GL_KEEP_ACK, .start = {.key = *key, .token = token}};
    if (x->state == UP) { /* else it is offered again, and acknowledged again */
        send_later(x, &m);
    }
}

static void exec_list(struct gl_exec *port, struct gl_exec_req *req)
{
    struct gl_keep_msg m = {.type = GL_KEEP_LIST};
    ask(of(port), req, &m);
}

static void exec_close(struct gl_exec *port, void (*closed)(void *owner), void *owner)
{
    struct keeper_exec *x = of(port);
    if (x->state == UP) {
        (void)send_out(x); /* acknowledgements, as far as they go without waiting */
    }
    hang_up(x);
    move(x, CLOSED);
    x->closed = closed;
    x->closed_owner = owner;
    event_active(x->later, EV_TIMEOUT, 0);
}

static const struct gl_exec_ops ops = {
    .name = "keeper",
    .start = exec_start,
    .attach = exec_attach,
    .stop = exec_stop,
    .ack = exec_ack,
    .list = exec_list,
    .close = exec_close,
};

/* ---- opening ---- */

static void read_defaults(struct keeper_exec *x)
{
    static const char *const names[DEFAULTS_MAX] = {"PATH", "HOME", "LANG", "TZ"};
    for (size_t i = 0; i < GL_COUNT(names); i++) {
        const char *value = getenv(names[i]);
        if (value != NULL) {
            x->defaults[x->defaults_n++] = gl_str_fmt(&x->config_arena, "%s=%s", names[i], value);
        }
    }
}

static int make_events(struct keeper_exec *x, struct gl_why *why)
{
    struct event_base *base = gl_loop_base(x->loop);
    x->timer = event_new(base, -1, 0, on_timer, x);
    x->later = event_new(base, -1, 0, on_later, x);
    x->ping = event_new(base, -1, EV_PERSIST, on_ping, x);
    if (x->timer == NULL || x->later == NULL || x->ping == NULL) {
        return gl_why(why, GL_E_IO, "cannot make the events of the executor");
    }
    return 0;
}

int gl_keeper_exec_open(struct gl_exec **ret, const struct gl_keeper_exec_config *config,
                        struct gl_loop *loop, const struct gl_exec_events *events,
                        struct gl_why *reterr_why)
{
    GL_ASSERT(config->data_dir != NULL);
    GL_ASSERT(events->up != NULL && events->down != NULL);
    struct keeper_exec *x = gl_mem_alloc(sizeof(*x));
    struct gl_arena *a = &x->config_arena;
    x->exec.ops = &ops;
    x->events = *events;
    x->loop = loop;
    x->fd = x->ready_fd = -1;
    x->pause_ms = PAUSE_MS_MIN;
    x->orphan_grace_ms = config->orphan_grace_ms;
    gl_list_init(&x->asked);
    gl_list_init(&x->failed);
    x->spawn.data_dir = gl_str_c(a, gl_str_of(config->data_dir));
    x->spawn.idle_ms = config->idle_ms;
    x->sock_path = gl_str_fmt(a, "%s/keeper/sock", config->data_dir).p;
    read_defaults(x);
    int r = make_events(x, reterr_why);
    if (r == 0 && config->keeper_path != NULL) {
        x->spawn.program = gl_str_c(a, gl_str_of(config->keeper_path));
    } else if (r == 0) {
        r = gl_keeper_spawn_find(a, &x->spawn.program, reterr_why);
    }
    if (r < 0) {
        free_exec(x);
        return r;
    }
    *ret = &x->exec;
    return 0;
}

void gl_keeper_exec_connect(struct gl_exec *port, uint64_t incarnation)
{
    struct keeper_exec *x = of(port);
    GL_ASSERT(port->ops == &ops);
    GL_ASSERT(x->state == OFF);
    x->incarnation = incarnation;
    move(x, CONNECTING);
    set_timer(x, 0); /* `down` must not come from inside this call */
}
