/* sim_cluster.h - one history of several machines on one store: nodes that come and go, and
 * everything that goes wrong between them and the store.
 *
 * Each machine has a keeper, a wall clock and nodes of its own, one after another. The store is
 * reached over a network: one machine is cut off from it, or all are; another server becomes the
 * primary, has not got the newest transactions, and has another clock. As in sim_swarm.h a phase of
 * faults comes first, in which no checker may object, and then one in which everything must end. */
#ifndef GL_SIM_SIM_CLUSTER_H
#define GL_SIM_SIM_CLUSTER_H

#include "sim/sim_machine.h"
#include "sim/sim_swarm.h"

struct sim_cluster {
    struct sim_world world;
    struct sim_disk disk;
    struct sim_checks checks;
    struct sim_client client;
    struct sim_damage damage;
    struct gl_rng rng;
    struct sim_pools pools;
    uint32_t renew;
    bool record;
    struct gl_link nodes; /* struct sim_node.link: all that live, on whatever machine */
    struct sim_machine machines[SIM_MACHINES_MAX];
    uint32_t machines_n;
    struct sim_call trouble;
    gl_ms phase_one_ends;
    uint32_t left[SIM_TROUBLES]; /* how often each kind of trouble may still come */
    uint32_t had[SIM_TROUBLES];
    /* A failover is near: it comes when so many transactions are only on the primary, or then. */
    size_t failover_tail; /* 0: none is near */
    gl_ms failover_at;
    /* Phase two. */
    gl_ms kill_at;              /* one more machine is lost, while all is well; INT64_MAX: none */
    struct sim_machine *victim; /* that one */
    gl_ms killed_at;
    bool ended;
};

/* Draws the options, so that they can be printed before the history begins. */
void sim_cluster_init(struct sim_cluster *s, const struct sim_swarm_options *options);
/* Both phases. False: world.failed, with the sentence in world.failure. */
bool sim_cluster_run(struct sim_cluster *s);
void sim_cluster_done(struct sim_cluster *s);
/* What was drawn; and what has happened. */
void sim_cluster_head(const struct sim_cluster *s, struct gl_buf *out);
void sim_cluster_tail(const struct sim_cluster *s, struct gl_buf *out);

#endif
