/* conn.h - one TCP connection on the loop, with TLS if wanted: bytes in, bytes out, and why it
 * ended. What it means belongs to its owner.
 *
 * What is sent within one turn of the loop leaves together. TCP_NODELAY always. Names are looked
 * up beside the loop, which never waits for a name server. */
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
    /* It could not be opened, or it is over. Called once, never after gl_conn_close(), and never
     * from inside another call; the connection must still be closed. */
    void (*ended)(void *owner, const struct gl_why *why);
};

struct gl_conn_target { /* borrowed for the call, but for `tls` */
    gl_str host;
    uint16_t port;
    gl_ms timeout_ms;              /* until it is open, with everything that belongs to that */
    const struct gl_conn_tls *tls; /* NULL: plain; borrowed until the connection is closed */
};

/* Begin. What goes wrong comes by `ended`. */
struct gl_conn *gl_conn_open(struct gl_loop *loop, const struct gl_conn_target *target,
                             const struct gl_conn_events *events);
void gl_conn_send(struct gl_conn *c, gl_str bytes); /* copied */
size_t gl_conn_unsent(const struct gl_conn *c);     /* bytes that still wait here */
/* What was not sent is dropped. Fine from inside `opened`, `received` and `ended`. NULL is fine. */
void gl_conn_close(struct gl_conn *c);

#endif
