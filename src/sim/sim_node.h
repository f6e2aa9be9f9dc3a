/* sim_node.h - one incarnation of a node in the simulated world: the production node over simulated
 * ports.
 *
 * A machine has one data folder (with its keeper, and its disk unless that is shared) and one wall
 * clock. An incarnation reads that clock when it starts; from then on its time advances
 * independently, as port/clock.h says. It can be killed between any two calls, put to sleep, and
 * woken. */
#ifndef GL_SIM_SIM_NODE_H
#define GL_SIM_SIM_NODE_H

#include "node/node.h"
#include "sim/sim_blobs.h"
#include "sim/sim_exec.h"
#include "sim/sim_flows.h"
#include "sim/sim_record.h"
#include "sim/sim_store.h"

struct sim_node {
    struct gl_link link; /* for a list of nodes */
    struct sim_world *world;
    char name[32];    /* in the trace: "n1.2" is the second incarnation */
    char machine[16]; /* "n1" */
    struct sim_tracer tracer;
    struct sim_gate gate;
    struct sim_fuse fuse;
    struct sim_store store;
    struct sim_keeper *keeper;
    struct sim_blobs blobs; /* its handle on the machine's folder, if there is one */
    struct sim_exec exec;
    bool has_exec; /* it has been opened */
    struct gl_clock clock;
    struct gl_entropy entropy;
    struct gl_rng chance; /* of the entropy port */
    gl_ms offset;         /* offset of its clock against true time */
    struct sim_call alarm;
    struct gl_node *node;
    struct gl_rng whim; /* when its core is renewed; separate, so that other draws do not change */
    uint32_t renew;     /* how often, per million events */
    struct sim_record record;
    bool has_record;
    bool ready;             /* it accepts requests */
    bool lost;              /* it knows that its session is lost */
    bool stopping, stopped; /* stopped in order */
    struct gl_link asks;    /* struct sim_ask.link: unanswered requests */
    void (*on_lost)(void *owner, struct sim_node *n);
    void *owner;
};

struct sim_node_options {
    uint32_t machine; /* 0: the only one, "n1" */
    uint32_t incarnation;
    gl_ms session_ttl_ms, orphan_grace_ms; /* on a shared disk; 0: the node's default */
    const char *stack;                     /* NULL: none */
    bool guest;                            /* see node.h */
    struct sim_pools pools;
    uint32_t hot_jobs_max;
    uint32_t renew; /* its core is saved and restored before an event, per million */
    struct gl_keep keep;
    struct gl_blob *blob; /* NULL: the machine's folder, or none */
    struct gl_logs *logs; /* NULL: logs are not copied into the store; else up to ... */
    uint64_t log_bytes;   /* ... so much of each */
    bool record;          /* events are recorded and replayed */
    bool round_trip;      /* every event is converted to text and back before it is used */
    void (*on_lost)(void *owner, struct sim_node *n);
    void *owner;
};

/* Starts it. */
struct sim_node *sim_node_new(struct sim_world *w, struct sim_disk *disk, struct sim_keeper *keeper,
                              const struct sim_node_options *options);
/* kill -9; its memory is lost. Its requests to store and keeper may still be executed. */
void sim_node_kill(struct sim_node *n);
/* Stops it in order: when `stopped` is called it may be freed (with sim_node_kill, as always). */
void sim_node_stop(struct sim_node *n);
void sim_node_sleep(struct sim_node *n);
void sim_node_wake(struct sim_node *n);

/* ---- requests ---- */

/* A client's request. It and everything in it is allocated in `arena` until it is freed. */
struct sim_ask {
    struct gl_link link;
    struct gl_request rq;
    struct gl_arena arena;
    /* Called when it is answered, or (answered = false) when its node has died and the outcome is
     * unknown. Frees nothing; the ask is freed afterwards. */
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
