/* sim_machine.h - one of several machines: its keeper, its wall clock, and its nodes one after
 * another (and beside each other, when one of them sleeps). */
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
    uint32_t number;   /* from 1 on */
    gl_ms wall;        /* offset of its clock against true time */
    const char *stack; /* it looks after the jobs of this one; NULL: of none ... */
    bool is_astray;    /* ... but its node, for now, after those of the other */
    bool is_guest;     /* it looks after no jobs but those that were begun on it */
    struct sim_pools pools;
    struct sim_keeper keeper;
    struct sim_node *current; /* NULL: it has no node at the moment */
    struct sim_node *sleeper; /* an earlier one, asleep or awake again */
    bool is_gone;             /* and it will never have one again */
    uint32_t incarnations;
    struct sim_call start;  /* the next incarnation */
    struct sim_call rouse;  /* the sleeper wakes up, or the one that was paused goes on */
    struct sim_call bury;   /* what has lost its session, or has been a sleeper, dies */
    struct sim_call finish; /* a node that is dying is dead by now */
    bool dies;              /* `finish` waits for it */
    bool was_idle;          /* its node, since everything has ended */
};

void sim_machine_init(struct sim_machine *m, struct sim_cluster *cluster, uint32_t number);
void sim_machine_done(struct sim_machine *m);
/* False: there is nothing here that it could happen to. */
bool sim_machine_trouble(struct sim_machine *m, enum sim_trouble what);
/* Nothing goes wrong here any more: no sleepers, and a node unless it is gone. */
void sim_machine_heal(struct sim_machine *m, bool restart);
/* Another machine that looks after all jobs of its stack will be there. */
bool sim_machine_may_go(const struct sim_machine *m);
/* It dies for good, with everything on it. */
void sim_machine_lose(struct sim_machine *m);
/* Look whether a node that was dying is dead. */
void sim_machine_after_step(struct sim_machine *m);

#endif
