/* recv_filter.h - the bytes of a connection, checked on their way to libmicrohttpd.
 *
 * libmicrohttpd has no hook between the socket and its parser. The build therefore renames the
 * recv() it calls to gl_recv_filter_recv(); the rest of the program is not affected. Each
 * connection has an intake, found by its descriptor. All of them belong to the HTTP thread of their
 * listener, which is the only one that calls anything here.
 *
 * Headers are delivered when they are complete and good. Instead of refused ones libmicrohttpd gets
 * a request without meaning, which comes to the handler in its turn, after those that were sent
 * before it; gl_recv_filter_begin() has it answered with 400. Nothing that follows is ever read. If
 * the fault is in a body that is being read, the 400 is sent from here. */
#ifndef GL_HTTP_RECV_FILTER_H
#define GL_HTTP_RECV_FILTER_H

#include <sys/types.h>

#include "base/str.h"
#include "http/framing.h"

struct gl_listener;

struct gl_recv_filter {
    struct gl_framing framing;
    int fd;
    uint64_t calls_n;   /* requests that have come to the handler */
    bool is_ended;      /* nothing more is delivered */
    bool was_in_head;   /* when bytes came last */
    struct gl_buf held; /* what has come and is not delivered */
    size_t head_n;      /* the last bytes of it: headers that are not complete */
};

void gl_recv_filter_open(struct gl_listener *listener, struct gl_recv_filter *in, int fd);
void gl_recv_filter_close(struct gl_listener *listener, struct gl_recv_filter *in);
/* A request has come to the handler: why it must be refused, or NULL. */
const char *gl_recv_filter_begin(struct gl_recv_filter *in);
/* An answer to a client whose connection is about to be closed, past libmicrohttpd. */
void gl_recv_filter_answer(int fd, const char *status, const char *code, const char *message);

/* recv() for libmicrohttpd. */
ssize_t gl_recv_filter_recv(int fd, void *bytes, size_t n, int flags);

#endif
