/* http_client.h - a small HTTP/1.1 client over a unix socket or TCP, for talking to a node.
 *
 * One call at a time, on one connection that is kept open. A caller that must do something while it
 * waits supplies a `wait` function. */
#ifndef GL_CLI_CONNECT_HTTP_CLIENT_H
#define GL_CLI_CONNECT_HTTP_CLIENT_H

#include "base/err.h"
#include "base/str.h"

struct gl_http_client_reply {
    unsigned status;
    gl_str headers; /* as received */
    gl_str body;    /* both are valid until the next call */
};

struct gl_http_client {
    const char *path; /* path of the socket, or "host:port" if `is_tcp`; borrowed */
    bool is_tcp;
    const char *token; /* NULL: none; borrowed */
    int fd;            /* negative: not connected */
    struct gl_buf out, in;
    /* Called before each blocking read: return 0 when `fd` can be read, or a negative code to abort
     * the call. */
    int (*wait)(void *owner, int fd);
    void *owner;
    /* Timeout for reading or writing a byte; 0: none. Not used with `wait`, which decides for
     * itself. */
    int silence_ms;
    bool is_silent; /* the last call hit that timeout: GL_E_UNAVAILABLE */
};

void gl_http_client_init(struct gl_http_client *c, const char *path);
/* `token` authenticates to the node; all arguments are borrowed. */
void gl_http_client_init_tcp(struct gl_http_client *c, const char *address, const char *token);
void gl_http_client_done(struct gl_http_client *c);

/* Does nothing if connected. GL_E_NOT_FOUND, GL_E_GONE: nobody is listening. */
int gl_http_client_connect(struct gl_http_client *c, struct gl_why *reterr_why);
void gl_http_client_disconnect(struct gl_http_client *c);

/* Returns 0 for any reply, whatever its status. GL_E_GONE: the connection broke; the node may or
 * may not have received the request. */
int gl_http_client_call(struct gl_http_client *c, const char *method, const char *path, gl_str body,
                        struct gl_http_client_reply *ret, struct gl_why *reterr_why);

/* The value of a header; "" if absent. */
gl_str gl_http_client_header(const struct gl_http_client_reply *r, const char *name);

#endif
