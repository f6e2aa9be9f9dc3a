/* sim_machine.h - one of several machines: its keeper, its wall clock, and its nodes, one after
 * another (or at the same time, if one of them sleeps). */
#ifndef GL_SIM_SIM_MACHINE_H
#define GL_SIM_SIM_MACHINE_H

#include "sim/sim_checks.h"
#include "sim/sim_node.h"

struct sim_cluster;

/* What may happen to a machine, or to the store. */
#define SIM_TROUBLE(X) \
    X(kill)            \
    X(machine_crash)   \
    X(zombie)          \
    X(pause)           \
    X(partition)       \
    X(cycle)           \
    X(keeper_crash)    \
    X(outage)          \
    X(failover)

enum sim_trouble {
#define X(name) SIM_TROUBLE_##name,
    SIM_TROUBLE(X)
#undef X
        SIM_TROUBLES
};

struct sim_machine {
    struct sim_cluster *cluster;
    uint32_t number;   /* from 1 */
    gl_ms wall;        /* offset of its clock against true time */
    const char *stack; /* whose jobs its node looks after; NULL: there are no stacks ... */
    bool is_astray;    /* ... but for now its node is in the other stack */
    bool is_guest;     /* looks only after jobs that began on it */
    struct sim_pools pools;
    struct sim_keeper keeper;
    struct sim_node *current; /* NULL: there is no node at the moment */
    struct sim_node *sleeper; /* an earlier one, asleep or awake again */
    bool is_gone;             /* and it never will have a node again */
    uint32_t incarnations;
    struct sim_call start;  /* the next incarnation */
    struct sim_call rouse;  /* the sleeper wakes up, or the paused node continues */
    struct sim_call bury;   /* a node that lost its session, or was a sleeper, dies */
    struct sim_call finish; /* a dying node is dead by now */
    bool dies;              /* `finish` waits for it */
    bool was_idle;          /* its node has been idle since everything ended */
};

void sim_machine_init(struct sim_machine *m, struct sim_cluster *cluster, uint32_t number);
void sim_machine_done(struct sim_machine *m);
/* False: the trouble cannot happen here. */
bool sim_machine_trouble(struct sim_machine *m, enum sim_trouble what);
/* Faults end here: no sleepers, and a node unless the machine is gone. */
void sim_machine_heal(struct sim_machine *m, bool restart);
/* Will there be another machine that looks after all jobs of its stack? */
bool sim_machine_may_go(const struct sim_machine *m);
/* It dies permanently, with everything on it. */
void sim_machine_lose(struct sim_machine *m);
/* Checks whether a dying node is dead. */
void sim_machine_after_step(struct sim_machine *m);

#endif
