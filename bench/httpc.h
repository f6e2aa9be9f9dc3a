/* httpc.h - a small HTTP client for benchmarks: many connections, one thread, nothing copied twice.
 *
 * Connections are kept alive and carry one request at a time. A response arrives as a whole in
 * `on_reply`; with `on_text` set, the body arrives in parts, and `on_reply` gets "". Both may send
 * the next request. Anything unexpected exits the process, because a figure from a faulty run is
 * worthless.
 *
 * Call order: httpc_init(), httpc_open() per connection, httpc_ask() and httpc_run(),
 * httpc_close(), httpc_done(). */
#ifndef GL_BENCH_HTTPC_H
#define GL_BENCH_HTTPC_H

#include "base/str.h"

#include <netinet/in.h>

struct httpc {
    const char *socket; /* path of the unix socket, */
    uint16_t port;      /* or, if not 0, the port on the loopback, */
    const char *token;  /* and what is presented there */
    int epoll;
    bool is_done;                     /* set it to leave httpc_run() */
    int tick_ms;                      /* 0: no ticks */
    void (*on_tick)(struct httpc *c); /* at most every tick_ms */
    void *owner;
    double ticked_at;
};

struct httpc_conn {
    struct httpc *client;
    int fd;
    void (*on_reply)(struct httpc_conn *conn, int status, gl_str body);
    void (*on_text)(struct httpc_conn *conn, gl_str text); /* NULL: collect the body */
    void *owner;
    size_t number; /* the caller's */
    double asked_at;

    bool is_busy;
    bool is_writing; /* the kernel has not accepted all of `out` yet */
    struct gl_buf out, in, body;
    size_t sent, taken; /* of `out`; of `in` */
    int status;         /* 0: the response headers are incomplete */
    bool is_chunked;
    size_t left; /* of the body, or of the chunk */
};

double httpc_now(void); /* in seconds, of a monotonic clock */
void httpc_fail(const char *what, gl_str detail) __attribute__((noreturn));

void httpc_init(struct httpc *c);
void httpc_done(struct httpc *c);
void httpc_run(struct httpc *c); /* until is_done */

/* Fill in on_reply, on_text, owner and number, then open. */
void httpc_open(struct httpc *c, struct httpc_conn *conn);
void httpc_close(struct httpc_conn *conn);
void httpc_ask(struct httpc_conn *conn, const char *method, const char *path, const char *headers,
               gl_str body);
/* Send one request and wait for its response, which must be 2xx. */
void httpc_once(struct httpc *c, const char *method, const char *path, gl_str body,
                struct gl_buf *ret);

#endif
