/* client.h - connections to the keeper's socket.
 *
 * One node at a time: the last that said hello is the one that counts, and its predecessors are cut
 * off, whatever they still had to say. Others may be connected without having said hello, for a few
 * seconds.
 *
 * Words are taken in as they come, at most a handful per turn, and answers go out when the turn is
 * settled. A caller that does not read is not read either. */
#ifndef GL_KEEPER_CLIENT_H
#define GL_KEEPER_CLIENT_H

#include "keeper/keeper.h"

struct gl_attempt;

struct gl_client {
    struct gl_link link;
    struct gl_watch watch;
    struct gl_timer hello_timer; /* until it has said hello */
    struct gl_buf in, out;
    size_t in_used;   /* of `in`, already dealt with */
    bool closing;     /* when all of `out` is written */
    uint32_t events;  /* what its watch is set for */
    uint64_t version; /* of the protocol, as agreed */
};

int gl_client_listen(struct gl_keeper *k, struct gl_why *reterr_why);

/* Queue a message for this caller. */
void gl_client_send(struct gl_client *c, const struct gl_keeper_msg *m);
/* ... for the node, if there is one and it listens: only for what may be missed. */
void gl_client_notify(struct gl_keeper *k, const struct gl_keeper_msg *m);
/* The end of an attempt: an event, or (with `req`) the answer to ATTACH. Whatever it has said comes
 * before it. */
void gl_client_send_end(struct gl_client *c, struct gl_attempt *a, uint64_t req);
/* There is a node, and it takes what workers say. */
bool gl_client_takes_lines(const struct gl_keeper *k);
/* Answer with REFUSED and cut it off. */
void gl_client_refuse(struct gl_client *c, int status, const char *text);
/* It has said hello: it is the node from now on. */
void gl_client_activate(struct gl_keeper *k, struct gl_client *c);

/* Frames that were left over from the last turn. */
void gl_client_resume(struct gl_keeper *k);
/* The turn is settled: report ends, write what is queued, forget who is gone. */
void gl_client_flush(struct gl_keeper *k);
void gl_client_close_all(struct gl_keeper *k);

#endif
