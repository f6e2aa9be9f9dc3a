/* sim_cluster.h - one history of several machines on one store: nodes that start and end, and every
 * fault between them and the store.
 *
 * Each machine has its own keeper and wall clock, and its own nodes, one after another. The store
 * is reached over a network. One machine may be cut off from it, or all of them; another server may
 * become the primary, without the newest transactions and with another clock. As in sim_swarm.h,
 * there is first a phase of faults, in which no checker may fail, and then one in which everything
 * must end. */
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
    struct sim_full full;
    struct gl_rng rng;
    struct sim_pools pools;
    uint32_t renew;
    bool record, has_agents;
    struct gl_link nodes; /* struct sim_node.link: all live nodes, on any machine */
    struct sim_machine machines[SIM_MACHINES_MAX];
    uint32_t machines_n;
    struct sim_call trouble;
    gl_ms phase_one_ends;
    uint32_t left[SIM_TROUBLES]; /* how many troubles of each kind may still happen */
    uint32_t had[SIM_TROUBLES];
    /* A failover is due: it happens when this many transactions are only on the primary, or at this
     * time. */
    size_t failover_tail; /* 0: none is due */
    gl_ms failover_at;
    /* Phase two. */
    gl_ms kill_at;              /* one more machine is lost, with no other fault; INT64_MAX: none */
    struct sim_machine *victim; /* that machine */
    gl_ms killed_at;
    bool ended;
};

/* Draws the options, so that they can be printed before the history begins. */
void sim_cluster_init(struct sim_cluster *s, const struct sim_swarm_options *options);
/* Runs both phases. False: world.failed is set, with a sentence in world.failure. */
bool sim_cluster_run(struct sim_cluster *s);
void sim_cluster_done(struct sim_cluster *s);
/* What was drawn, and what has happened. */
void sim_cluster_head(const struct sim_cluster *s, struct gl_buf *out);
void sim_cluster_tail(const struct sim_cluster *s, struct gl_buf *out);

#endif
