/* sim_exec.h - one node's connection to the simulated keeper, behind port/exec.h.
 *
 * Requests and the keeper's messages travel in order, with delays. The connection may break,
 * requests may be dropped or answered "unavailable" although they were executed, and an `ended` may
 * arrive twice, late, or only when asked for. A dead node's last requests may still be in flight
 * and arrive long after its successor's. */
#ifndef GL_SIM_SIM_EXEC_H
#define GL_SIM_SIM_EXEC_H

#include "port/exec.h"
#include "sim/sim_fuse.h"
#include "sim/sim_keeper.h"
#include "sim/world.h"

struct sim_exec {
    struct gl_exec port; /* given to the node */
    struct gl_link link; /* among the keeper's clients */
    const char *name;    /* the keeper; borrowed */
    uint64_t incarnation;
    gl_ms offset; /* of its clock against true time */
    gl_ms
        session_until; /* true time: until when its node has a session, as the node has reported */
    struct sim_world *world;
    struct sim_keeper *keeper;
    struct sim_gate *gate;
    struct sim_fuse *fuse;
    struct gl_exec_events events;
    struct gl_rng rng;
    bool connected, closing;
    struct gl_link ops;                /* requests in flight */
    struct gl_link notes;              /* sent by the keeper, not yet received by the node */
    gl_ms last_arrival, last_delivery; /* earlier messages arrive first */
    struct sim_call connect;
    struct sim_call closed_call;
    void (*closed)(void *owner);
    void *closed_owner;
};

/* Set before the call: name, incarnation, offset, gate, fuse, events. Connects by itself soon, and
 * then calls `events.up`. */
void sim_exec_open(struct sim_exec *x, struct sim_world *w, struct sim_keeper *k);

/* Breaks the connection, for `away_ms`. */
void sim_exec_break(struct sim_exec *x, gl_ms away_ms);

/* The node is dead: it receives nothing any more; some of its last requests arrive, maybe late. The
 * handle is invalid afterwards. */
void sim_exec_crash(struct sim_exec *x);

#endif
