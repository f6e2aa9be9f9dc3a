/* sim_story.h - histories written by hand: the same world, nodes and checkers as the swarm, no
 * chance, and the trace as the oracle.
 *
 * A story submits, kills and waits. Each sim_story_expect() advances time until the number of lines
 * it names has been traced, and compares them exactly. Jobs are called A, B, ... in order of
 * appearance, nodes n1.1, n1.2, ... by incarnation, and times are milliseconds since the beginning.
 * By default a process runs for one second and succeeds.
 *
 * Several machines share one store. Actions apply to one of them: the first, until sim_story_at()
 * selects another. */
#ifndef GL_SIM_SIM_STORY_H
#define GL_SIM_SIM_STORY_H

#include "sim/sim_checks.h"
#include "sim/sim_node.h"

enum {
    SIM_STORY_JOBS_MAX = 26,
    SIM_STORY_PROCESSES_MAX = 32,
    SIM_STORY_MACHINES_MAX = 4,
    SIM_STORY_TEXT = 4096
};

struct sim_story_options {
    uint32_t machines;     /* 0 or 1: one, with its own store; else this many share one */
    uint32_t slots;        /* of the pool "default"; 0: 8 */
    uint32_t gpu_at;       /* only this machine has the pool "gpu"; 0: all have */
    bool is_split;         /* ... and that machine has no other */
    uint32_t store_ms;     /* delay of the store: 0 to this */
    uint32_t hot_jobs_max; /* 0: no limit but the node's own */
    bool guests;           /* every node is a guest, see node.h */
    const char *stack;     /* of the nodes that start from now on; NULL: none */
    struct gl_keep keep;   /* which ended jobs are kept */
    gl_ms graces[SIM_STORY_MACHINES_MAX]; /* the machines' orphan graces; 0: ten seconds */
    const char *kinds; /* traced lines that count: "job step exec owner" by default */
};

struct sim_story_process { /* what an attempt does, instead of the default */
    char attempt[64];      /* "step:attempt:n" or "step", for every attempt of it */
    struct sim_behaviour behaviour;
};

struct sim_story_machine {
    struct sim_keeper keeper;
    struct sim_pools pools;
    struct sim_node *node;    /* the newest incarnation; NULL: killed */
    struct sim_node *sleeper; /* an earlier one, asleep or awake again */
    uint32_t incarnations;
    gl_ms wall; /* its wall clock is correct */
};

struct sim_story {
    struct sim_world world;
    struct sim_disk disk;
    struct sim_story_machine machines[SIM_STORY_MACHINES_MAX];
    size_t machines_n;
    struct sim_story_machine *at; /* where actions apply */
    struct sim_checks checks;
    struct sim_pools pools;
    struct sim_story_options options;
    struct gl_link nodes;
    char jobs[SIM_STORY_JOBS_MAX][GL_ULID_BYTES + 1];
    size_t jobs_n;
    struct sim_story_process processes[SIM_STORY_PROCESSES_MAX];
    size_t processes_n;
    uint64_t signals_n;  /* sent so far */
    struct gl_buf lines; /* traced but not yet expected */
    size_t lines_n;
    int answer;                /* code of the last answer; 1: none since the last request */
    enum gl_reason reason;     /* of the last answer */
    struct gl_buf body;        /* of the last answer; its sentence if it failed */
    char text[SIM_STORY_TEXT]; /* of a failed expectation */
};

void sim_story_begin(struct sim_story *s, const struct sim_story_options *options);
/* False: a checker failed; the sentence is in world.failure. */
bool sim_story_end(struct sim_story *s);

/* What the attempt "step:attempt:n" (or every attempt of "step") does. */
void sim_story_process(struct sim_story *s, const char *attempt, gl_ms lasts_ms, int exit_code);

/* Submits the flow (see sim_flows_plain) under a run id; the answer arrives as time advances. */
void sim_story_submit(struct sim_story *s, const char *run_id, const char *flow, uint32_t attempts);
/* ... it is an agent's module, and returns this; borrowed until the end. */
void sim_story_says(struct sim_story *s, const char *attempt, const char *document);
/* The same with a flow in its compiled form, such as a bundle. */
void sim_story_compiled(struct sim_story *s, const char *run_id, const char *text);
/* The same with a flow as a user writes it, in JSON. */
void sim_story_flow(struct sim_story *s, const char *run_id, const char *json);
/* "pause", "resume", "cancel", "status", "respond" with step and decision, "signal" with its name,
 * "retry" with the step to begin with, or "send" with an agent and a message. */
void sim_story_ask(struct sim_story *s, const char *verb, const char *run_id, const char *step,
                   const char *decision);

/* Removes ended jobs, except the newest ones. */
void sim_story_trim(struct sim_story *s, int64_t keep_jobs);

/* Selects the machine for the actions that follow; numbers begin with 1. */
void sim_story_at(struct sim_story *s, uint32_t machine);
/* Cuts the machine off from the store for this long; or all machines. */
void sim_story_cut(struct sim_story *s, gl_ms span);
void sim_story_outage(struct sim_story *s, gl_ms span);
/* How many processes have really run, on all machines. */
size_t sim_story_ran(const struct sim_story *s);

void sim_story_kill(struct sim_story *s);  /* the node */
void sim_story_start(struct sim_story *s); /* the next incarnation */
void sim_story_sleep(struct sim_story *s); /* the node sleeps; the next one may start beside it */
void sim_story_wake(struct sim_story *s);
void sim_story_run(struct sim_story *s, gl_ms span);

/* Advances time (by at most an hour) until the lines of `text` have been traced. NULL: the trace
 * matches. Else both texts, for the reader. */
const char *sim_story_expect(struct sim_story *s, const char *text);
/* Forgets the lines traced so far. */
void sim_story_skip(struct sim_story *s);

#endif
