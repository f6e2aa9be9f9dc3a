/* httpc.h - a small HTTP client for measuring: many connections, one thread, nothing copied twice.
 *
 * Connections are kept alive and carry one request at a time. An answer comes as a whole through
 * `on_reply`; with `on_text` set, the body comes in parts as it arrives, and `on_reply` gets "".
 * From inside either, the next request may be sent. Anything unexpected ends the process: a figure
 * from a run in which something went wrong is worth nothing. */
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
    void (*on_text)(struct httpc_conn *conn, gl_str text); /* NULL: gather it */
    void *owner;
    size_t number; /* the caller's */
    double asked_at;

    bool is_busy;
    bool is_writing; /* the kernel has not taken all of `out` yet */
    struct gl_buf out, in, body;
    size_t sent, taken; /* of `out`; of `in` */
    int status;         /* 0: the head of the answer is not there yet */
    bool is_chunked;
    size_t left; /* of the body, or of the chunk */
};

double httpc_now(void); /* in seconds, of a clock that never jumps */
void httpc_fail(const char *what, gl_str detail) __attribute__((noreturn));

void httpc_init(struct httpc *c);
void httpc_done(struct httpc *c);
void httpc_run(struct httpc *c); /* until is_done */

/* Fill in on_reply, on_text, owner and number, then open. */
void httpc_open(struct httpc *c, struct httpc_conn *conn);
void httpc_close(struct httpc_conn *conn);
void httpc_ask(struct httpc_conn *conn, const char *method, const char *path, const char *headers,
               gl_str body);
/* One request, and its answer, before anything else; the answer must be 2xx. */
void httpc_once(struct httpc *c, const char *method, const char *path, gl_str body,
                struct gl_buf *ret);

#endif
