#include "httpc.h"

#include "base/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    READ_BYTES = 64 << 10,
    EVENTS_MAX = 256,
};

double httpc_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void httpc_fail(const char *what, gl_str detail)
{
    fprintf(stderr, "http_bench: %s: %.*s\n", what, (int)(detail.n < 500 ? detail.n : 500),
            detail.p != NULL ? detail.p : "");
    exit(1);
}

static void fail_errno(const char *what)
{
    httpc_fail(what, gl_str_of(strerror(errno)));
}

/* ---- connections ---- */

void httpc_init(struct httpc *c)
{
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    c->is_done = false;
    if (c->epoll < 0) {
        fail_errno("epoll");
    }
}

void httpc_done(struct httpc *c)
{
    close(c->epoll);
}

static int dial(const struct httpc *c)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in net = {.sin_family = AF_INET,
                              .sin_port = htons(c->port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(c->port != 0 ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (c->port == 0) {
        (void)snprintf(local.sun_path, sizeof(local.sun_path), "%s", c->socket);
    }
    if (fd < 0 || (c->port != 0 ? connect(fd, (struct sockaddr *)&net, sizeof(net))
                                : connect(fd, (struct sockaddr *)&local, sizeof(local))) < 0) {
        fail_errno("connect");
    }
    return fd;
}

static void watch(struct httpc_conn *conn, int op, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = conn};

    if (epoll_ctl(conn->client->epoll, op, conn->fd, &e) < 0) {
        fail_errno("epoll_ctl");
    }
}

void httpc_open(struct httpc *c, struct httpc_conn *conn)
{
    conn->client = c;
    conn->fd = dial(c);
    watch(conn, EPOLL_CTL_ADD, EPOLLIN);
}

void httpc_close(struct httpc_conn *conn)
{
    close(conn->fd);
    gl_buf_done(&conn->out);
    gl_buf_done(&conn->in);
    gl_buf_done(&conn->body);
}

/* ---- requests ---- */

static void push(struct httpc_conn *conn)
{
    while (conn->sent < conn->out.n) {
        ssize_t n = send(conn->fd, conn->out.p + conn->sent, conn->out.n - conn->sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EAGAIN) {
            break;
        }
        if (n < 0) {
            fail_errno("send");
        }
        conn->sent += (size_t)n;
    }
    if (conn->is_writing != (conn->sent < conn->out.n)) {
        conn->is_writing = !conn->is_writing;
        watch(conn, EPOLL_CTL_MOD, EPOLLIN | (conn->is_writing ? (uint32_t)EPOLLOUT : 0));
    }
}

void httpc_ask(struct httpc_conn *conn, const char *method, const char *path, const char *headers,
               gl_str body)
{
    const struct httpc *c = conn->client;

    GL_ASSERT(!conn->is_busy);
    conn->is_busy = true;
    conn->status = 0;
    conn->asked_at = httpc_now();
    gl_buf_reset(&conn->out);
    gl_buf_reset(&conn->body);
    gl_buf_fmt(&conn->out, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s", method, path, headers);
    if (c->port != 0) {
        gl_buf_fmt(&conn->out, "Authorization: Bearer %s\r\n", c->token);
    }
    if (body.n > 0) {
        gl_buf_fmt(&conn->out, "Content-Length: %zu\r\n", body.n);
    }
    gl_buf_c(&conn->out, "\r\n");
    gl_buf_str(&conn->out, body);
    conn->sent = 0;
    push(conn);
}

/* ---- answers ---- */

static gl_str rest(const struct httpc_conn *conn)
{
    return (gl_str){.p = conn->in.p + conn->taken, .n = conn->in.n - conn->taken};
}

static bool take_head(struct httpc_conn *conn)
{
    gl_str s = rest(conn);
    const char *end = s.n > 0 ? memmem(s.p, s.n, "\r\n\r\n", 4) : NULL;
    const char *length;

    if (end == NULL) {
        return false;
    }
    s.n = (size_t)(end - s.p) + 4;
    conn->taken += s.n;
    if (s.n < 12 || memcmp(s.p, "HTTP/1.1 ", 9) != 0) {
        httpc_fail("not HTTP", s);
    }
    conn->status = atoi(s.p + 9);
    length = memmem(s.p, s.n, "Content-Length: ", 16);
    conn->is_chunked = length == NULL;
    conn->left = length != NULL ? strtoul(length + 16, NULL, 10) : 0;
    return true;
}

static void give(struct httpc_conn *conn, gl_str text)
{
    if (conn->on_text != NULL) {
        conn->on_text(conn, text);
    } else {
        gl_buf_str(&conn->body, text);
    }
}

/* One chunk: its length in hex, a line end, its bytes, a line end. False: incomplete. */
static bool take_chunk(struct httpc_conn *conn, bool *ret_last)
{
    gl_str s = rest(conn);
    const char *end = s.n > 0 ? memmem(s.p, s.n, "\r\n", 2) : NULL;
    size_t head, n;

    if (end == NULL) {
        return false;
    }
    head = (size_t)(end - s.p) + 2;
    n = strtoul(s.p, NULL, 16);
    if (s.n < head + n + 2) {
        return false;
    }
    conn->taken += head + n + 2;
    *ret_last = n == 0;
    if (n > 0) {
        give(conn, (gl_str){.p = s.p + head, .n = n});
    }
    return true;
}

static bool take_body(struct httpc_conn *conn)
{
    gl_str s = rest(conn);
    bool is_last = false;

    while (conn->is_chunked) {
        if (!take_chunk(conn, &is_last)) {
            return false;
        }
        if (is_last) {
            return true;
        }
    }
    s.n = s.n < conn->left ? s.n : conn->left;
    conn->taken += s.n;
    conn->left -= s.n;
    if (s.n > 0) {
        give(conn, s);
    }
    return conn->left == 0;
}

static void digest(struct httpc_conn *conn)
{
    if ((conn->status == 0 && !take_head(conn)) || !take_body(conn)) {
        if (conn->taken > 0) { /* the rest is incomplete */
            memmove(conn->in.p, conn->in.p + conn->taken, conn->in.n - conn->taken);
            conn->in.n -= conn->taken;
            conn->taken = 0;
        }
        return;
    }
    conn->is_busy = false;
    gl_buf_reset(&conn->in);
    conn->taken = 0;
    conn->on_reply(conn, conn->status, gl_buf_view(&conn->body));
}

static void on_readable(struct httpc_conn *conn)
{
    ssize_t n = recv(conn->fd, gl_buf_reserve(&conn->in, READ_BYTES), READ_BYTES, MSG_DONTWAIT);

    if (n < 0 && errno == EAGAIN) {
        return;
    }
    if (n <= 0) {
        httpc_fail("the node has closed a connection", gl_buf_view(&conn->in));
    }
    conn->in.n += (size_t)n;
    digest(conn);
}

static void tick(struct httpc *c)
{
    double now;

    if (c->tick_ms > 0 && (now = httpc_now()) - c->ticked_at >= c->tick_ms / 1e3) {
        c->ticked_at = now;
        c->on_tick(c);
    }
}

void httpc_run(struct httpc *c)
{
    struct epoll_event events[EVENTS_MAX];

    c->is_done = false;
    while (!c->is_done) {
        int n = epoll_wait(c->epoll, events, EVENTS_MAX, c->tick_ms > 0 ? c->tick_ms : 60000);

        if (n == 0 && c->tick_ms == 0) {
            httpc_fail("the node", GL_S("no answer for a minute"));
        }
        for (int i = 0; i < n; i++) {
            struct httpc_conn *conn = events[i].data.ptr;

            if (conn->is_writing) {
                push(conn);
            }
            on_readable(conn);
        }
        tick(c);
    }
}

static void on_once(struct httpc_conn *conn, int status, gl_str body)
{
    if (status < 200 || status > 299) {
        httpc_fail("refused", body);
    }
    conn->client->is_done = true;
}

void httpc_once(struct httpc *c, const char *method, const char *path, gl_str body,
                struct gl_buf *ret)
{
    struct httpc one = {.socket = c->socket, .port = c->port, .token = c->token};
    struct httpc_conn conn = {.on_reply = on_once};

    httpc_init(&one);
    httpc_open(&one, &conn);
    httpc_ask(&conn, method, path, "", body);
    httpc_run(&one);
    if (ret != NULL) {
        gl_buf_reset(ret);
        gl_buf_str(ret, gl_buf_view(&conn.body));
    }
    httpc_close(&conn);
    httpc_done(&one);
}
