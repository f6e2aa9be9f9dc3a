/* conn.h - one TCP connection on the event loop, with optional TLS: bytes in, bytes out, and the
 * reason it ended. The protocol belongs to the owner.
 *
 * Order of calls: gl_conn_open(); then `opened`, after which gl_conn_send() is allowed; `received`
 * any number of times; `ended` at most once; gl_conn_close() always.
 *
 * Everything sent in one turn of the loop leaves together, with TCP_NODELAY. Host names are
 * resolved on a separate thread, so the loop never waits for a name server. */
#ifndef GL_STORE_CONN_H
#define GL_STORE_CONN_H

#include "base/err.h"
#include "base/str.h"
#include "base/times.h"

struct gl_loop;
struct gl_conn;
struct gl_conn_tls;

struct gl_conn_events {
    void *owner;
    void (*opened)(void *owner);
    void (*received)(void *owner, gl_str bytes); /* borrowed for the call */
    /* The connection failed to open, or has ended. Called once, never after gl_conn_close(), and
     * never from inside another call. The owner must still call gl_conn_close(). */
    void (*ended)(void *owner, const struct gl_why *why);
};

struct gl_conn_target { /* borrowed for the call, except `tls` */
    gl_str host;
    uint16_t port;
    gl_ms timeout_ms;              /* from the start to `opened`, including name lookup and TLS */
    const struct gl_conn_tls *tls; /* NULL: no TLS; borrowed until the connection is closed */
};

/* Start connecting. Failures are reported through `ended`. */
struct gl_conn *gl_conn_open(struct gl_loop *loop, const struct gl_conn_target *target,
                             const struct gl_conn_events *events);
void gl_conn_send(struct gl_conn *c, gl_str bytes); /* copied */
size_t gl_conn_unsent(const struct gl_conn *c);     /* bytes not yet handed to the kernel */
/* Unsent bytes are dropped. May be called from inside `opened`, `received` and `ended`, and with
 * NULL. */
void gl_conn_close(struct gl_conn *c);

#endif
