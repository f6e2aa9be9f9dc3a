/* sim_swarm.h - one history: a machine, its nodes, one after another or at the same time, and every
 * fault that happens to them.
 *
 * Phase one, safety: crashes at any step, sleepers that wake up beside their successor, a keeper
 * that dies, a store that is unavailable or ends commits unknown, clocks that jump. Nothing has to
 * finish, but no checker may fail. Phase two, liveness: faults end, a steward answers and resumes,
 * and everything must end. */
#ifndef GL_SIM_SIM_SWARM_H
#define GL_SIM_SIM_SWARM_H

#include "sim/sim_checks.h"
#include "sim/sim_client.h"
#include "sim/sim_damage.h"
#include "sim/sim_full.h"
#include "sim/sim_node.h"

struct sim_swarm_options {
    uint64_t seed;
    gl_ms minutes;   /* of phase one; 0: drawn, 10 or more */
    size_t jobs_n;   /* 0: drawn, 30 or more */
    uint32_t renew;  /* cores are saved and restored before events, per million */
    bool agents;     /* bundles among the jobs */
    bool record;     /* events are recorded and replayed; every eighth seed does so anyway */
    const char *set; /* "name=value,name=value": options set by hand; NULL: none */
    void (*print)(void *owner, const char *line); /* every line of the trace; NULL: none */
    void *owner;
};

struct sim_swarm {
    struct sim_world world;
    struct sim_disk disk;
    struct sim_keeper keeper;
    struct sim_checks checks;
    struct sim_client client;
    struct sim_damage damage;
    struct sim_full full;
    struct gl_rng rng;
    struct sim_pools pools;
    uint32_t renew;
    bool record;
    struct gl_link nodes;     /* struct sim_node.link: all live nodes */
    struct sim_node *current; /* NULL: the machine has no node at the moment */
    uint32_t incarnations;
    struct sim_call start;    /* the next incarnation */
    struct sim_call trouble;  /* a fault of keeper, store or connection */
    struct sim_call rouse;    /* the sleeper wakes up */
    struct sim_call bury;     /* a node that must stop, or a sleeper that has woken up, dies */
    struct sim_node *sleeper; /* beside `current` */
    gl_ms phase_one_ends;
    uint64_t crash_at_calls; /* by the number of steps of the world */
    gl_ms crash_at;          /* by time */
    uint32_t crashes_left, crashes_n, zombies_n, keeper_crashes_n, outages_n, cycles_n, jumps_n;
    bool doomed; /* the fuse of `current` is lit */
    uint64_t doomed_calls;
    gl_ms patience; /* until when `current` may take to stop in order */
    bool ended;     /* phase two has ended */
};

/* Draws the options, so that they can be printed before the history begins. */
void sim_swarm_init(struct sim_swarm *s, const struct sim_swarm_options *options);
/* Further draws if there are agents: first their faults. */
void sim_swarm_draw_agents(struct sim_world *w, const struct sim_swarm_options *options);
void sim_swarm_agents(struct sim_world *w, const struct sim_swarm_options *options,
                      struct sim_pools *pools);
/* Runs both phases. False: world.failed is set, with a sentence in world.failure. */
bool sim_swarm_run(struct sim_swarm *s);
void sim_swarm_done(struct sim_swarm *s);

#endif
