/* client.h - connections to the keeper's socket.
 *
 * One node at a time: the last one to send HELLO is active, and its predecessors are disconnected
 * and their unread messages dropped. Connections that have not sent HELLO are tolerated for a few
 * seconds.
 *
 * Each turn handles at most a few frames per connection; replies are sent after the journal was
 * written (gl_client_flush). The keeper stops reading from a client that does not read. */
#ifndef GL_KEEPER_CLIENT_H
#define GL_KEEPER_CLIENT_H

#include "keeper/keeper.h"

struct gl_attempt;

struct gl_client {
    struct gl_link link;
    struct gl_watch watch;
    struct gl_timer hello_timer; /* until it has sent HELLO */
    struct gl_buf in, out;
    size_t in_used;   /* bytes of `in` already handled */
    bool closing;     /* disconnect once all of `out` is written */
    uint32_t events;  /* that its watch is set for */
    uint64_t version; /* of the protocol, as agreed */
};

int gl_client_listen(struct gl_keeper *k, struct gl_why *reterr_why);

/* Queue a message for this client. */
void gl_client_send(struct gl_client *c, const struct gl_keeper_msg *m);
/* Queue a message for the active node; dropped if there is none or it reads too slowly. */
void gl_client_notify(struct gl_keeper *k, const struct gl_keeper_msg *m);
/* The end of an attempt: an event, or (with `req`) the reply to ATTACH. Pending lines of a worker
 * are sent before it. */
void gl_client_send_end(struct gl_client *c, struct gl_attempt *a, uint64_t req);
/* Is a node connected that accepts LINE messages? */
bool gl_client_takes_lines(const struct gl_keeper *k);
/* Reply REFUSED, then disconnect. */
void gl_client_refuse(struct gl_client *c, int status, const char *text);
/* It has sent HELLO: it is the active node from now on. */
void gl_client_activate(struct gl_keeper *k, struct gl_client *c);

/* Handle frames that were left over from the last turn. */
void gl_client_resume(struct gl_keeper *k);
/* After the journal was written: report ends, send what is queued, free closed connections. */
void gl_client_flush(struct gl_keeper *k);
void gl_client_close_all(struct gl_keeper *k);

#endif
