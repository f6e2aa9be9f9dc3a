/* sim_client.h - the people and programs outside: they submit jobs, pause, resume and cancel them,
 * decide what waits for a decision, and look. They do not know which node is right: they ask any
 * that is awake, and when no answer comes they ask again.
 *
 * In phase two the same client is a steward: it resumes what is paused and decides what waits, so
 * that everything can end. */
#ifndef GL_SIM_SIM_CLIENT_H
#define GL_SIM_SIM_CLIENT_H

#include "sim/sim_checks.h"
#include "sim/sim_node.h"

struct sim_order { /* one job somebody wants done */
    struct sim_client *client;
    struct sim_call call; /* submits it, until it is accepted */
    char run_id[32];      /* "": the job's id */
    char dedupe_key[32];  /* "": none */
    char request_key[32]; /* "": none */
    struct gl_buf flow;
    struct sim_given given;
    bool accepted; /* answered: it is a job, exists already, or can never be one */
    char job_id[GL_ULID_BYTES + 1];
};

enum { SIM_RETRIES_MAX = 8 };

struct sim_retry { /* a job somebody wants to have done once more */
    struct sim_client *client;
    struct sim_call call; /* asks again */
    char job[GL_ULID_BYTES + 1], from[16];
    char run_id[32];      /* "": the job's id */
    char request_key[32]; /* "" as the run id: asked for once only */
    bool had_ended;       /* when it was asked for */
    bool open;            /* nobody knows yet what became of it */
};

struct sim_client {
    struct sim_world *world;
    struct sim_checks *checks;
    struct gl_rng rng;
    struct gl_link *nodes; /* struct sim_node.link: all that live, borrowed */
    struct sim_order *orders;
    size_t orders_n;
    struct sim_retry retries[SIM_RETRIES_MAX];
    size_t retries_n;
    struct sim_call meddle; /* commands and questions at random times */
    struct sim_call tend;   /* the steward's round */
    bool steward;
    uint64_t asked_n, answered_n, accepted_n, signals_n, posts_n, huge_n;
    struct { /* a dead letter that somebody has read, to send it again */
        char job[GL_ULID_BYTES + 1];
        uint64_t number;
        struct gl_buf message; /* "" : none */
    } found;
};

enum { SIM_CLIENT_JOBS_MIN = 30 };

/* Plans `jobs_n` submissions over the next `span_ms`. */
void sim_client_init(struct sim_client *cl, struct sim_checks *checks, struct gl_link *nodes,
                     const struct sim_pools *pools, size_t jobs_n, gl_ms span_ms);
void sim_client_done(struct sim_client *cl);
/* Somebody submits the next job to this very node, at this very moment. */
void sim_client_visit(struct sim_client *cl, struct sim_node *node);
/* From now on see to it that everything can end. */
void sim_client_steward(struct sim_client *cl);
/* A request about a job, whose answer the checkers hear. */
struct sim_ask *sim_client_about(enum gl_verb verb, gl_str job_id);
/* Any node that is awake; NULL: none. */
struct sim_node *sim_client_node(struct sim_client *cl);
void sim_client_send(struct sim_client *cl, struct sim_node *node, struct sim_ask *ask);
/* A submission was refused for want of a pool, and trouble excuses that. */
bool sim_client_may_lack(const struct sim_client *cl, const struct sim_ask *ask);
bool sim_client_job_id(gl_str body, char ret[static GL_ULID_BYTES + 1]);
/* Every order has been accepted, and every job has ended. */
bool sim_client_satisfied(const struct sim_client *cl);

#endif
