/* sim_node.h - one incarnation of a node in the simulated world: the production node over simulated
 * ports.
 *
 * A machine has one data folder (keeper, and disk unless that is shared) and one wall clock. An
 * incarnation reads that clock when it starts and from then on moves by itself, as port/clock.h
 * says. It can be killed between any two calls, put to sleep, and woken. */
#ifndef GL_SIM_SIM_NODE_H
#define GL_SIM_SIM_NODE_H

#include "node/node.h"
#include "sim/sim_blobs.h"
#include "sim/sim_exec.h"
#include "sim/sim_flows.h"
#include "sim/sim_record.h"
#include "sim/sim_store.h"

struct sim_node {
    struct gl_link link; /* for whoever keeps a list of them */
    struct sim_world *world;
    char name[32];    /* in the trace: "n1.2" is the second incarnation */
    char machine[16]; /* "n1" */
    struct sim_tracer tracer;
    struct sim_gate gate;
    struct sim_fuse fuse;
    struct sim_store store;
    struct sim_keeper *keeper;
    struct sim_blobs blobs; /* its way to the machine's folder, if that has one */
    struct sim_exec exec;
    bool has_exec; /* it has been opened */
    struct gl_clock clock;
    struct gl_entropy entropy;
    struct gl_rng chance; /* behind the entropy port */
    gl_ms offset;         /* what its clock adds to true time */
    struct sim_call alarm;
    struct gl_node *node;
    struct gl_rng whim; /* when its core is renewed; apart, so that nothing else changes */
    uint32_t renew;     /* how often, per million events */
    struct sim_record record;
    bool has_record;
    bool ready;             /* it takes requests */
    bool lost;              /* it has learned that its session is gone */
    bool stopping, stopped; /* in order */
    struct gl_link asks;    /* struct sim_ask.link: requests it has not answered */
    void (*on_lost)(void *owner, struct sim_node *n);
    void *owner;
};

struct sim_node_options {
    uint32_t machine; /* 0: the only one, "n1" */
    uint32_t incarnation;
    gl_ms session_ttl_ms, orphan_grace_ms; /* on a shared disk; 0: as the node thinks */
    const char *stack;                     /* NULL: none */
    bool guest;                            /* see node.h */
    struct sim_pools pools;
    uint32_t hot_jobs_max;
    uint32_t renew; /* its core is saved and restored before an event, per million */
    struct gl_keep keep;
    struct gl_blob *blob; /* NULL: the folder of the machine, or none */
    bool record;          /* what happens is recorded and replayed */
    bool round_trip;      /* every event goes through its text before it is used */
    void (*on_lost)(void *owner, struct sim_node *n);
    void *owner;
};

/* Start it. */
struct sim_node *sim_node_new(struct sim_world *w, struct sim_disk *disk, struct sim_keeper *keeper,
                              const struct sim_node_options *options);
/* kill -9, and its memory is gone. What it had asked of store and keeper may still happen. */
void sim_node_kill(struct sim_node *n);
/* Stop it in order: `stopped` tells when it may be freed (by sim_node_kill, like any other). */
void sim_node_stop(struct sim_node *n);
void sim_node_sleep(struct sim_node *n);
void sim_node_wake(struct sim_node *n);

/* ---- requests ---- */

/* A request of a client outside. Everything in it lives in `arena` until it is freed. */
struct sim_ask {
    struct gl_link link;
    struct gl_request rq;
    struct gl_arena arena;
    /* Answered, or (answered = false) its node has died and nobody knows. Frees nothing; the ask is
     * freed after it. */
    void (*done)(void *owner, struct sim_ask *ask, bool answered);
    void *owner;
    uint64_t tag;   /* the client's own */
    gl_ms asked_at; /* true time */
};

struct sim_ask *sim_ask_new(enum gl_verb verb);
void sim_ask_free(struct sim_ask *ask);
/* Takes the ask. */
void sim_node_ask(struct sim_node *n, struct sim_ask *ask);

#endif
