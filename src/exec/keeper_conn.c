#include "exec/keeper_conn.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "os/failpoint.h"
#include "os/fs.h"
#include "os/sock.h"

enum {
    PAUSE_MS_MIN = 10,
    PAUSE_MS_MAX = 2000,
    GREETING_MS = 15000, /* give up on a keeper that does not answer HELLO for this long */
    STARTING_MS = 15000,
    READ_BYTES = 256 << 10,
    PINGS_PER_GRACE = 3,
};

/* The only writer of c->state. */
static void set_state(struct gl_keeper_conn *c, enum gl_keeper_conn_state next)
{
    static const uint32_t allowed[] = {
#define X(name, to) [GL_CONN_##name] = (to),
        GL_KEEPER_CONN_STATES(X)
#undef X
    };
    GL_ASSERT(allowed[c->state] & GL_BIT(next));
    c->state = next;
}

static void set_timer(struct event *timer, gl_ms ms)
{
    struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    (void)event_add(timer, &tv);
}

/* ---- ending a connection ---- */

static void drop_event(struct event **e)
{
    if (*e != NULL) {
        event_free(*e);
        *e = NULL;
    }
}

/* The process that starts a keeper exits at once by itself. */
static void reap_launcher(struct gl_keeper_conn *c, int how)
{
    if (c->launcher > 0) {
        (void)waitpid(c->launcher, NULL, how);
        c->launcher = 0;
    }
}

static void drop_connection(struct gl_keeper_conn *c)
{
    drop_event(&c->readable);
    drop_event(&c->writable);
    drop_event(&c->ready);
    gl_fs_closep(&c->fd);
    gl_fs_closep(&c->ready_fd);
    gl_buf_reset(&c->in);
    gl_buf_reset(&c->out);
    c->in_used = 0;
    (void)event_del(c->timer);
    (void)event_del(c->ping);
    reap_launcher(c, WNOHANG);
}

/* The connection, or an attempt to open it, has failed: report that once, and retry later. */
static void connection_failed(struct gl_keeper_conn *c, const char *text)
{
    struct gl_why why;
    (void)gl_why(&why, GL_E_UNAVAILABLE, "%s",
                 text); /* `text` may be in a buffer that is reset below */
    drop_connection(c);
    set_state(c, GL_CONN_CONNECTING);
    set_timer(c->timer, c->pause_ms);
    c->pause_ms = c->pause_ms * 2 < PAUSE_MS_MAX ? c->pause_ms * 2 : PAUSE_MS_MAX;
    if (!c->reported_down) {
        c->reported_down = true;
        c->events.down(c->events.owner, why.text);
    }
}

/* ---- the node's session ---- */

static gl_ms now(const struct gl_keeper_conn *c)
{
    struct gl_clock *clock = gl_loop_clock(c->loop);
    return clock->now(clock);
}

/* A keeper of an earlier release takes any message of ours as a sign of life for all of its steps.
 * So without a session, send it nothing: it then stops all of them in time, even unsafe ones. */
static bool must_not_ping(const struct gl_keeper_conn *c)
{
    return c->orphan_grace_ms > 0 && c->version != 0 && c->version < GL_KEEPER_VERSION_SESSIONS &&
           c->session_until != 0 && now(c) >= c->session_until;
}

/* While the connection is up, nothing else uses the timer. */
static void watch_session(struct gl_keeper_conn *c)
{
    if (c->state != GL_CONN_UP || c->version >= GL_KEEPER_VERSION_SESSIONS ||
        c->orphan_grace_ms == 0 || c->session_until == 0) {
        return;
    }
    gl_ms left = c->session_until - now(c);
    set_timer(c->timer, left > 0 ? left : 0);
}

/* ---- messages ---- */

static void on_welcome(struct gl_keeper_conn *c, const struct gl_keeper_msg *m)
{
    if (m->version_min < GL_KEEPER_VERSION_MIN || m->version_min > GL_KEEPER_VERSION_MAX ||
        m->start.epoch.n == 0) {
        connection_failed(c, "invalid WELCOME from the keeper");
        return;
    }
    set_state(c, GL_CONN_UP);
    c->version = m->version_min;
    c->pid = m->pid;
    c->reported_down = false;
    c->pause_ms = PAUSE_MS_MIN;
    (void)event_del(c->timer);
    watch_session(c);
    if (c->orphan_grace_ms > 0) {
        set_timer(c->ping, c->orphan_grace_ms / PINGS_PER_GRACE + 1);
    }
    c->events.up(c->events.owner, m->start.epoch);
}

static void on_message(struct gl_keeper_conn *c, struct gl_keeper_msg *m)
{
    if (m->type == GL_KEEPER_REFUSED) {
        connection_failed(
            c, gl_str_fmt(&c->scratch, "keeper refused this node: %.*s", GL_STR_ARG(m->text)).p);
    } else if (c->state == GL_CONN_UP) {
        c->events.message(c->events.owner, m, &c->scratch);
    } else if (m->type == GL_KEEPER_WELCOME) {
        on_welcome(c, m);
    } else {
        connection_failed(c, "unexpected reply to HELLO from the keeper");
    }
}

/* Handle all complete messages. Any of them may end the connection or close this object. */
static void take_messages(struct gl_keeper_conn *c)
{
    struct gl_why why;
    while (c->fd >= 0) {
        gl_str rest = {.p = c->in.p + c->in_used, .n = c->in.n - c->in_used};
        gl_str message;
        size_t used = 0;
        struct gl_keeper_msg m;
        if (gl_keeper_frame(rest, &message, &used, &why) < 0) {
            connection_failed(c, why.text);
            return;
        }
        if (used == 0) {
            break;
        }
        c->in_used += used;
        GL_FAILPOINT("exec.received");
        gl_arena_reset(&c->scratch);
        if (gl_keeper_decode(&m, message, &c->scratch, &why) < 0) {
            connection_failed(c, why.text);
            return;
        }
        on_message(c, &m);
    }
    if (c->fd >= 0 && c->in_used > 0) {
        c->in.n -= c->in_used;
        memmove(c->in.p, c->in.p + c->in_used, c->in.n);
        c->in_used = 0;
    }
}

/* ---- bytes ---- */

static void on_readable(evutil_socket_t fd, short what, void *owner)
{
    struct gl_keeper_conn *c = owner;
    char bytes[READ_BYTES];
    (void)what;
    ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        connection_failed(c, "the keeper closed the connection");
        return;
    }
    gl_buf_add(&c->in, bytes, (size_t)n);
    take_messages(c);
}

/* Send what is queued, as far as possible without blocking. */
static bool send_out(struct gl_keeper_conn *c)
{
    size_t at = 0;
    while (at < c->out.n) {
        ssize_t n = send(c->fd, c->out.p + at, c->out.n - at, MSG_DONTWAIT | MSG_NOSIGNAL);
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
        c->out.n -= at;
        memmove(c->out.p, c->out.p + at, c->out.n);
    }
    return true;
}

static void flush(struct gl_keeper_conn *c)
{
    if (c->fd < 0) {
        return;
    }
    GL_FAILPOINT("exec.before_send");
    if (!send_out(c)) {
        connection_failed(c, "the keeper closed the connection");
    } else if (c->out.n > 0) {
        (void)event_add(c->writable, NULL);
    }
    GL_FAILPOINT("exec.after_send");
}

static void on_flush(evutil_socket_t fd, short what, void *owner)
{
    (void)fd;
    (void)what;
    flush(owner);
}

void gl_keeper_conn_send(struct gl_keeper_conn *c, const struct gl_keeper_msg *m)
{
    GL_ASSERT(c->state == GL_CONN_UP);
    if (c->out.n == 0) { /* otherwise a flush is scheduled already */
        event_active(c->flush, EV_TIMEOUT, 0);
    }
    gl_keeper_encode(m, &c->out);
}

void gl_keeper_conn_terminate(struct gl_keeper_conn *c)
{
    uid_t uid = 0;
    pid_t pid = 0;
    GL_ASSERT(c->state == GL_CONN_UP);
    /* The process that listens must be the one that answered: never signal anything else. */
    if (gl_sock_peer(c->fd, &uid, &pid, NULL) == 0 && pid > 1 && (uint64_t)pid == c->pid) {
        (void)kill(pid, SIGTERM);
    }
}

static void on_ping(evutil_socket_t fd, short what, void *owner)
{
    struct gl_keeper_conn *c = owner;
    struct gl_keeper_msg m = {.type = GL_KEEPER_PING, .session_until = c->session_until};
    (void)fd;
    (void)what;
    if (c->state == GL_CONN_UP && !must_not_ping(c)) {
        gl_keeper_conn_send(c, &m);
    }
}

void gl_keeper_conn_session(struct gl_keeper_conn *c, gl_ms until)
{
    c->session_until = until;
    on_ping(-1, 0, c);
    watch_session(c);
}

/* ---- connecting ---- */

static void send_hello(struct gl_keeper_conn *c, int fd)
{
    struct timespec boot;
    struct gl_clock *clock = gl_loop_clock(c->loop);
    (void)clock_gettime(CLOCK_BOOTTIME, &boot);
    gl_ms boot_ms = (gl_ms)boot.tv_sec * 1000 + boot.tv_nsec / 1000000;
    struct gl_keeper_msg m = {
        .type = GL_KEEPER_HELLO,
        .version_min = GL_KEEPER_VERSION_MIN,
        .version_max = GL_KEEPER_VERSION_MAX,
        .incarnation = c->incarnation,
        .orphan_grace_ms = c->orphan_grace_ms,
        .clock_offset_ms = clock->now(clock) - boot_ms,
    };
    set_state(c, GL_CONN_GREETING);
    c->fd = fd;
    c->readable = event_new(gl_loop_base(c->loop), fd, EV_READ | EV_PERSIST, on_readable, c);
    c->writable = event_new(gl_loop_base(c->loop), fd, EV_WRITE, on_flush, c);
    (void)event_add(c->readable, NULL);
    set_timer(c->timer, GREETING_MS);
    gl_keeper_encode(&m, &c->out);
    flush(c);
}

static void try_connect(struct gl_keeper_conn *c);

static void on_ready(evutil_socket_t fd, short what, void *owner)
{
    struct gl_keeper_conn *c = owner;
    char bytes[GL_WHY_BYTES];
    (void)what;
    ssize_t n = read(fd, bytes, sizeof(bytes));
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n > 0 && c->ready_text.n < GL_WHY_BYTES) {
        gl_buf_add(&c->ready_text, bytes, (size_t)n);
    }
    bool ok = gl_str_is(gl_buf_view(&c->ready_text), "ok");
    if (!ok && n > 0) {
        return; /* a reason, perhaps incomplete */
    }
    reap_launcher(c, 0);
    if (!ok) {
        gl_buf_char(&c->ready_text, 0);
        connection_failed(c, c->ready_text.n > 1 ? c->ready_text.p
                                                 : "the keeper exited while starting");
        return;
    }
    drop_connection(c);
    set_state(c, GL_CONN_CONNECTING);
    try_connect(c);
}

static void start_keeper(struct gl_keeper_conn *c)
{
    struct gl_why why;
    gl_buf_reset(&c->ready_text);
    if (gl_keeper_spawn(&c->spawn, &c->launcher, &c->ready_fd, &why) < 0) {
        c->launcher = 0;
        connection_failed(c, why.text);
        return;
    }
    c->spawn.is_restart = true;
    set_state(c, GL_CONN_STARTING);
    c->ready = event_new(gl_loop_base(c->loop), c->ready_fd, EV_READ | EV_PERSIST, on_ready, c);
    (void)event_add(c->ready, NULL);
    set_timer(c->timer, STARTING_MS);
}

static void try_connect(struct gl_keeper_conn *c)
{
    struct gl_why why;
    int fd = -1;
    GL_ASSERT(c->state == GL_CONN_CONNECTING);
    int r = gl_sock_connect(c->sock_path, &fd, &why);
    if (r == 0) {
        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
        send_hello(c, fd);
    } else if (r == GL_E_NOT_FOUND || r == GL_E_GONE) {
        start_keeper(c);
    } else {
        connection_failed(c, why.text);
    }
}

static void on_timer(evutil_socket_t fd, short what, void *owner)
{
    struct gl_keeper_conn *c = owner;
    (void)fd;
    (void)what;
    if (c->state == GL_CONN_CONNECTING && must_not_ping(c)) {
        set_timer(c->timer, PAUSE_MS_MAX);
    } else if (c->state == GL_CONN_UP && must_not_ping(c)) {
        connection_failed(
            c,
            "this node has no session, and the keeper, from an earlier release, cannot tell which "
            "steps need one: not connecting until there is a session again");
    } else if (c->state == GL_CONN_UP) {
        watch_session(c);
    } else if (c->state == GL_CONN_CONNECTING) {
        try_connect(c);
    } else if (c->state == GL_CONN_GREETING || c->state == GL_CONN_STARTING) {
        connection_failed(c, "the keeper does not respond");
    }
}

void gl_keeper_conn_connect(struct gl_keeper_conn *c, uint64_t incarnation)
{
    GL_ASSERT(c->state == GL_CONN_OFF);
    c->incarnation = incarnation;
    set_state(c, GL_CONN_CONNECTING);
    set_timer(c->timer, 0); /* `down` must not be called from inside this call */
}

/* ---- life ---- */

int gl_keeper_conn_init(struct gl_keeper_conn *c, struct gl_why *reterr_why)
{
    struct event_base *base = gl_loop_base(c->loop);
    c->fd = c->ready_fd = -1;
    c->pause_ms = PAUSE_MS_MIN;
    c->timer = event_new(base, -1, 0, on_timer, c);
    c->flush = event_new(base, -1, 0, on_flush, c);
    c->ping = event_new(base, -1, EV_PERSIST, on_ping, c);
    if (c->timer == NULL || c->flush == NULL || c->ping == NULL) {
        return gl_why(reterr_why, GL_E_IO, "cannot make the events of a connection");
    }
    return 0;
}

void gl_keeper_conn_close(struct gl_keeper_conn *c)
{
    if (c->state == GL_CONN_UP) {
        (void)send_out(c); /* what is not sent is lost; attach finds out what happened */
    }
    drop_connection(c);
    set_state(c, GL_CONN_CLOSED);
}

void gl_keeper_conn_done(struct gl_keeper_conn *c)
{
    drop_event(&c->readable);
    drop_event(&c->writable);
    drop_event(&c->ready);
    drop_event(&c->timer);
    drop_event(&c->flush);
    drop_event(&c->ping);
    gl_fs_closep(&c->fd);
    gl_fs_closep(&c->ready_fd);
    gl_buf_done(&c->in);
    gl_buf_done(&c->out);
    gl_buf_done(&c->ready_text);
    gl_arena_done(&c->scratch);
}
