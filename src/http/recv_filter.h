/* recv_filter.h - checks the bytes of a connection on their way to libmicrohttpd.
 *
 * libmicrohttpd has no hook between the socket and its parser. The build therefore renames the
 * recv() it calls to gl_recv_filter_recv(); the rest of the program is not affected. Each
 * connection has a filter, found by its descriptor. Only the HTTP thread of the listener calls
 * these functions.
 *
 * Headers are delivered when they are complete and valid. In place of invalid headers libmicrohttpd
 * gets a dummy request, which reaches the handler after all requests sent before it;
 * gl_recv_filter_begin() then has it answered with 400. Nothing after it is read. If a body that is
 * already being read is invalid, this file sends the 400. */
#ifndef GL_HTTP_RECV_FILTER_H
#define GL_HTTP_RECV_FILTER_H

#include <sys/types.h>

#include "base/str.h"
#include "http/framing.h"

struct gl_listener;

struct gl_recv_filter {
    struct gl_framing framing;
    int fd;
    uint64_t calls_n;   /* requests that have reached the handler */
    bool is_ended;      /* nothing more is delivered */
    bool was_in_head;   /* is_in_head when bytes last arrived */
    struct gl_buf held; /* bytes received and not yet delivered */
    size_t head_n;      /* the last of these bytes: incomplete headers */
};

void gl_recv_filter_open(struct gl_listener *listener, struct gl_recv_filter *in, int fd);
void gl_recv_filter_close(struct gl_listener *listener, struct gl_recv_filter *in);
/* A request has reached the handler. Returns why it must be refused, or NULL. */
const char *gl_recv_filter_begin(struct gl_recv_filter *in);
/* Send an answer, bypassing libmicrohttpd, to a client whose connection is about to be closed. */
void gl_recv_filter_answer(int fd, const char *status, const char *code, const char *message);

/* recv() for libmicrohttpd. */
ssize_t gl_recv_filter_recv(int fd, void *bytes, size_t n, int flags);

#endif
