/* sim_exec.h - one node's connection to the simulated keeper, behind port/exec.h.
 *
 * Requests and what the keeper tells travel in order, with delays; the connection may break,
 * requests may be dropped or answered "unavailable" though they were carried out, an `ended` may
 * come twice, late, or only when asked for. A dead node's last requests may still be on their way
 * and arrive long after its successor's. */
#ifndef GL_SIM_SIM_EXEC_H
#define GL_SIM_SIM_EXEC_H

#include "port/exec.h"
#include "sim/sim_fuse.h"
#include "sim/sim_keeper.h"
#include "sim/world.h"

struct sim_exec {
    struct gl_exec port; /* what the node gets */
    struct gl_link link; /* among the keeper's clients */
    const char *name;    /* whose it is; borrowed */
    uint64_t incarnation;
    gl_ms offset;        /* of its clock against true time */
    gl_ms session_until; /* true time: how long its node has a session, as it has told */
    struct sim_world *world;
    struct sim_keeper *keeper;
    struct sim_gate *gate;
    struct sim_fuse *fuse;
    struct gl_exec_events events;
    struct gl_rng rng;
    bool connected, closing;
    struct gl_link ops;                /* requests under way */
    struct gl_link notes;              /* what the keeper has told and the node has not heard yet */
    gl_ms last_arrival, last_delivery; /* nothing overtakes */
    struct sim_call connect;
    struct sim_call closed_call;
    void (*closed)(void *owner);
    void *closed_owner;
};

/* Set before: name, incarnation, offset, gate, fuse, events. Connects by itself, soon; `events.up`
 * tells. */
void sim_exec_open(struct sim_exec *x, struct sim_world *w, struct sim_keeper *k);

/* The connection breaks and comes back after `away_ms`. */
void sim_exec_break(struct sim_exec *x, gl_ms away_ms);

/* The node is dead: it hears nothing any more; some of its last requests arrive, maybe late. The
 * handle is gone. */
void sim_exec_crash(struct sim_exec *x);

#endif
