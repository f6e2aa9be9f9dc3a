/* sim_story.h - histories told by hand: the same world, nodes and checkers as the swarm, nothing
 * left to chance, and the trace as the oracle.
 *
 * A story submits, kills, waits; each sim_story_expect() lets time pass until as many lines have
 * been traced as it names, and compares them to the letter. Jobs are called A, B, ... in the order
 * of their first appearance, nodes n1.1, n1.2, ... by incarnation, and times are milliseconds since
 * the beginning. A process lasts a second and succeeds unless told otherwise.
 *
 * With several machines these share one store. Whatever is done is done at one of them: the first,
 * until sim_story_at() says otherwise. */
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
    uint32_t machines;     /* 0 or 1: one, with a store of its own; else so many share one */
    uint32_t slots;        /* of the pool "default"; 0: 8 */
    uint32_t gpu_at;       /* only this machine has the pool "gpu"; 0: all have */
    bool is_split;         /* ... and that machine has no other */
    uint32_t store_ms;     /* delay of the store: 0 to this */
    uint32_t hot_jobs_max; /* 0: no limit but the node's own */
    bool guests;           /* every node is one, see node.h */
    const char *stack;     /* of the nodes that start from now on; NULL: none */
    struct gl_keep keep;   /* which ended jobs stay */
    gl_ms graces[SIM_STORY_MACHINES_MAX]; /* the machines' orphan graces; 0: ten seconds */
    const char *kinds; /* traced lines that count: "job step exec owner" by default */
};

struct sim_story_process { /* what an attempt does, instead of the usual */
    char attempt[64];      /* "step:attempt:n" or "step", for every attempt of it */
    struct sim_behaviour behaviour;
};

struct sim_story_machine {
    struct sim_keeper keeper;
    struct sim_pools pools;
    struct sim_node *node;    /* the newest incarnation; NULL: killed */
    struct sim_node *sleeper; /* an earlier one, asleep or awake again */
    uint32_t incarnations;
    gl_ms wall; /* its clock is right */
};

struct sim_story {
    struct sim_world world;
    struct sim_disk disk;
    struct sim_story_machine machines[SIM_STORY_MACHINES_MAX];
    size_t machines_n;
    struct sim_story_machine *at; /* where things are done */
    struct sim_checks checks;
    struct sim_pools pools;
    struct sim_story_options options;
    struct gl_link nodes;
    char jobs[SIM_STORY_JOBS_MAX][GL_ULID_BYTES + 1];
    size_t jobs_n;
    struct sim_story_process processes[SIM_STORY_PROCESSES_MAX];
    size_t processes_n;
    uint64_t signals_n;  /* sent so far */
    struct gl_buf lines; /* traced and not expected yet */
    size_t lines_n;
    int answer;                /* code of the last answer; 1: none since the last request */
    struct gl_buf body;        /* of the last answer, or its sentence */
    char text[SIM_STORY_TEXT]; /* of a failed expectation */
};

void sim_story_begin(struct sim_story *s, const struct sim_story_options *options);
/* False: a checker objected; the sentence is in world.failure. */
bool sim_story_end(struct sim_story *s);

/* What the attempt "step:attempt:n" (or every attempt of "step") does. */
void sim_story_process(struct sim_story *s, const char *attempt, gl_ms lasts_ms, int exit_code);

/* Submit the flow (see sim_flows_plain) under a run id; the answer comes when time passes. */
void sim_story_submit(struct sim_story *s, const char *run_id, const char *flow, uint32_t attempts);
/* ... it is an agent's module, and says this; borrowed until the end. */
void sim_story_says(struct sim_story *s, const char *attempt, const char *document);
/* The same with a flow in its compiled form, a bundle's, say. */
void sim_story_compiled(struct sim_story *s, const char *run_id, const char *text);
/* The same with a flow as a user writes it, in JSON. */
void sim_story_flow(struct sim_story *s, const char *run_id, const char *json);
/* "pause", "resume", "cancel", "status", "respond" with step and decision, "signal" with its name,
 * "retry" with the step to begin with, or "send" with an agent and a message. */
void sim_story_ask(struct sim_story *s, const char *verb, const char *run_id, const char *step,
                   const char *decision);

/* Remove ended jobs but the newest so many. */
void sim_story_trim(struct sim_story *s, int64_t keep_jobs);

/* What follows is done at this machine; numbers begin with 1. */
void sim_story_at(struct sim_story *s, uint32_t machine);
/* The machine is cut off from the store for so long; or nobody reaches it. */
void sim_story_cut(struct sim_story *s, gl_ms span);
void sim_story_outage(struct sim_story *s, gl_ms span);
/* How many processes have really run, on all machines. */
size_t sim_story_ran(const struct sim_story *s);

void sim_story_kill(struct sim_story *s);  /* the node */
void sim_story_start(struct sim_story *s); /* the next incarnation */
void sim_story_sleep(struct sim_story *s); /* the node sleeps; the next one may start beside it */
void sim_story_wake(struct sim_story *s);
void sim_story_run(struct sim_story *s, gl_ms span);

/* Let time pass (at most an hour) until the lines of `text` have been traced. NULL: they are what
 * was traced. Else both, for the reader. */
const char *sim_story_expect(struct sim_story *s, const char *text);
/* Forget the lines traced so far. */
void sim_story_skip(struct sim_story *s);

#endif
