#include "cli/connect/http_client.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "os/fs.h"
#include "os/sock.h"
#include "os/tcp.h"

enum {
    READ_BYTES = 64 << 10,
    HEAD_BYTES_MAX = 64 << 10,
    BODY_BYTES_MAX = 1 << 30,
};

void gl_http_client_init(struct gl_http_client *c, const char *path)
{
    *c = (struct gl_http_client){.path = path, .fd = -1};
}

void gl_http_client_init_tcp(struct gl_http_client *c, const char *address, const char *token)
{
    *c = (struct gl_http_client){.path = address, .fd = -1, .is_tcp = true, .token = token};
}

void gl_http_client_done(struct gl_http_client *c)
{
    gl_http_client_disconnect(c);
    gl_buf_done(&c->out);
    gl_buf_done(&c->in);
}

void gl_http_client_disconnect(struct gl_http_client *c)
{
    gl_fs_closep(&c->fd);
}

/* Connect to the first address that answers; -1 with errno: none does. */
static int connect_any(const struct addrinfo *all)
{
    int on = 1;

    errno = EADDRNOTAVAIL;
    for (const struct addrinfo *i = all; i != NULL; i = i->ai_next) {
        GL_CLEANUP(gl_fs_closep) int fd = socket(i->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd >= 0 && connect(fd, i->ai_addr, i->ai_addrlen) == 0) {
            /* A request is written in two parts: without TCP_NODELAY, the second would wait for an
             * acknowledgement. */
            (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
            return gl_fs_take(&fd);
        }
    }
    return -1;
}

static int connect_tcp(struct gl_http_client *c, struct gl_why *reterr_why)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *all = NULL;
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    uint16_t port = 0;
    gl_str host = {0};
    int err;

    if (!gl_tcp_split(gl_str_of(c->path), &host, &port)) {
        return gl_why(reterr_why, GL_E_INVALID, "%s is not the address of a node", c->path);
    }
    err = getaddrinfo(gl_str_c(&a, host), gl_str_fmt(&a, "%u", port).p, &hints, &all);
    if (err != 0) {
        return gl_why(reterr_why, GL_E_UNAVAILABLE, "cannot find %s: %s", c->path,
                      gai_strerror(err));
    }
    c->fd = connect_any(all);
    freeaddrinfo(all);
    return c->fd >= 0 ? 0
                      : gl_why(reterr_why, GL_E_GONE, "cannot connect to %s: %s", c->path,
                               strerror(errno));
}

int gl_http_client_connect(struct gl_http_client *c, struct gl_why *reterr_why)
{
    if (c->fd >= 0) {
        return 0;
    }
    return c->is_tcp ? connect_tcp(c, reterr_why) : gl_sock_connect(c->path, &c->fd, reterr_why);
}

static int broken(struct gl_http_client *c, struct gl_why *reterr_why)
{
    gl_http_client_disconnect(c);
    return gl_why(reterr_why, GL_E_GONE, "the connection to the node was lost");
}

/* Wait until the connection can be read or written. */
static int wait_ready(struct gl_http_client *c, short events, struct gl_why *reterr_why)
{
    struct pollfd fd = {.fd = c->fd, .events = events};
    int n;

    if (c->silence_ms <= 0) {
        return 0;
    }
    do {
        n = poll(&fd, 1, c->silence_ms);
    } while (n < 0 && errno == EINTR);
    if (n != 0) {
        return 0; /* the next call reports the error */
    }
    c->is_silent = true;
    gl_http_client_disconnect(c); /* a late reply would be taken for that of the next call */
    return gl_why(reterr_why, GL_E_UNAVAILABLE, "no answer for %d s", c->silence_ms / 1000);
}

static int send_all(struct gl_http_client *c, gl_str bytes, struct gl_why *reterr_why)
{
    while (bytes.n > 0) {
        int err = wait_ready(c, POLLOUT, reterr_why);
        ssize_t n;

        if (err != 0) {
            return err;
        }
        n = send(c->fd, bytes.p, bytes.n, MSG_NOSIGNAL | (c->silence_ms > 0 ? MSG_DONTWAIT : 0));
        if (n < 0 && (errno == EINTR || (errno == EAGAIN && c->silence_ms > 0))) {
            continue;
        }
        if (n <= 0) {
            return broken(c, reterr_why);
        }
        bytes.p += n;
        bytes.n -= (size_t)n;
    }
    return 0;
}

static int receive(struct gl_http_client *c, struct gl_why *reterr_why)
{
    int err = c->wait != NULL ? c->wait(c->owner, c->fd) : wait_ready(c, POLLIN, reterr_why);
    ssize_t n;

    if (c->is_silent) {
        return err;
    }

    if (err != 0) {
        gl_http_client_disconnect(c); /* a late reply would be taken for that of the next call */
        return gl_why(reterr_why, err, "given up");
    }
    do {
        n = recv(c->fd, gl_buf_reserve(&c->in, READ_BYTES), READ_BYTES, 0);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) {
        return broken(c, reterr_why);
    }
    c->in.n += (size_t)n;
    return 0;
}

/* Read up to the empty line after the headers; *ret_n is the offset of the body. */
static int receive_head(struct gl_http_client *c, size_t *ret_n, struct gl_why *reterr_why)
{
    for (;;) {
        const char *end = c->in.n > 0 ? memmem(c->in.p, c->in.n, "\r\n\r\n", 4) : NULL;
        int err;

        if (end != NULL) {
            *ret_n = (size_t)(end + 4 - c->in.p);
            return 0;
        }
        if (c->in.n > HEAD_BYTES_MAX) {
            return broken(c, reterr_why);
        }
        err = receive(c, reterr_why);
        if (err != 0) {
            return err;
        }
    }
}

/* "HTTP/1.1 200 OK" */
static bool read_status(gl_str head, unsigned *ret)
{
    gl_str rest;
    uint64_t status;

    if (!gl_str_starts(gl_str_cut(head, ' ', &rest), GL_S("HTTP/1."))) {
        return false;
    }
    if (rest.n < 3 || !gl_str_u64((gl_str){.p = rest.p, .n = 3}, &status)) {
        return false;
    }
    *ret = (unsigned)status;
    return true;
}

gl_str gl_http_client_header(const struct gl_http_client_reply *r, const char *name)
{
    gl_str rest = r->headers;
    size_t n = strlen(name);

    while (rest.n > 0) {
        gl_str line = gl_str_cut(rest, '\n', &rest);

        if (line.n > n && line.p[n] == ':' && strncasecmp(line.p, name, n) == 0) {
            return gl_str_trim((gl_str){.p = line.p + n + 1, .n = line.n - n - 1});
        }
    }
    return (gl_str){0};
}

static void write_request(struct gl_http_client *c, const char *method, const char *path,
                          gl_str body)
{
    gl_buf_reset(&c->out);
    gl_buf_fmt(&c->out, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, path,
               c->is_tcp ? c->path : "glia");
    if (c->token != NULL) {
        gl_buf_fmt(&c->out, "Authorization: Bearer %s\r\n", c->token);
    }
    gl_buf_fmt(&c->out, "Content-Length: %zu\r\n\r\n", body.n);
}

static int read_reply(struct gl_http_client *c, struct gl_http_client_reply *ret,
                      struct gl_why *reterr_why)
{
    size_t head = 0;
    uint64_t length = 0;
    int err = receive_head(c, &head, reterr_why);

    if (err != 0) {
        return err;
    }
    ret->headers = (gl_str){.p = c->in.p, .n = head};
    if (!read_status(ret->headers, &ret->status) ||
        !gl_str_u64(gl_http_client_header(ret, "Content-Length"), &length) ||
        length > BODY_BYTES_MAX) {
        gl_http_client_disconnect(c);
        return gl_why(reterr_why, GL_E_INVALID, "the server at %s is not a glia node", c->path);
    }
    while (c->in.n < head + length) {
        err = receive(c, reterr_why);
        if (err != 0) {
            return err;
        }
    }
    ret->headers = (gl_str){.p = c->in.p, .n = head}; /* the buffer may have moved */
    ret->body = (gl_str){.p = c->in.p + head, .n = (size_t)length};
    return 0;
}

int gl_http_client_call(struct gl_http_client *c, const char *method, const char *path, gl_str body,
                        struct gl_http_client_reply *ret, struct gl_why *reterr_why)
{
    int err = gl_http_client_connect(c, reterr_why);

    c->is_silent = false;
    if (err != 0) { /* GL_E_NOT_FOUND is reserved for replies of the node */
        return err == GL_E_NOT_FOUND ? GL_E_GONE : err;
    }
    gl_buf_reset(&c->in);
    write_request(c, method, path, body);
    err = send_all(c, gl_buf_view(&c->out), reterr_why);
    if (err == 0) {
        err = send_all(c, body, reterr_why);
    }
    if (err == 0) {
        err = read_reply(c, ret, reterr_why);
    }
    if (err == 0 && gl_str_is(gl_http_client_header(ret, "Connection"), "close")) {
        gl_http_client_disconnect(c);
    }
    return err;
}
