/* sim_client.h - the clients: people and programs that submit jobs, pause, resume and cancel them,
 * answer questions and query. They do not know which node is the right one: they ask any that is
 * awake, and repeat a request that gets no answer.
 *
 * In phase two the same client is a steward: it resumes paused jobs and answers all questions, so
 * that everything can end. */
#ifndef GL_SIM_SIM_CLIENT_H
#define GL_SIM_SIM_CLIENT_H

#include "sim/sim_checks.h"
#include "sim/sim_node.h"

struct sim_order { /* a job that a client wants done */
    struct sim_client *client;
    struct sim_call call; /* submits it until it is accepted */
    char run_id[32];      /* "": the job's id */
    char dedupe_key[32];  /* "": none */
    char request_key[32]; /* "": none */
    struct gl_buf flow;
    struct sim_given given;
    bool accepted; /* answered: the job exists, or can never exist */
    char job_id[GL_ULID_BYTES + 1];
};

enum { SIM_RETRIES_MAX = 8 };

struct sim_retry { /* a job that a client wants to retry */
    struct sim_client *client;
    struct sim_call call; /* repeats the request */
    char job[GL_ULID_BYTES + 1], from[16];
    char run_id[32];      /* "": the job's id */
    char request_key[32]; /* "" as the run id: requested only once */
    bool had_ended;       /* when it was requested */
    bool open;            /* its outcome is not known yet */
};

struct sim_client {
    struct sim_world *world;
    struct sim_checks *checks;
    struct gl_rng rng;
    struct gl_link *nodes; /* struct sim_node.link: all live nodes, borrowed */
    struct sim_order *orders;
    size_t orders_n;
    struct sim_retry retries[SIM_RETRIES_MAX];
    size_t retries_n;
    struct sim_call meddle; /* commands and queries at random times */
    struct sim_call tend;   /* the steward's next round */
    bool steward;
    uint64_t asked_n, answered_n, accepted_n, signals_n, sent_n, huge_n;
    struct { /* a dead letter that a client has read, to redrive it */
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
/* Submits the next job to this node, now. */
void sim_client_visit(struct sim_client *cl, struct sim_node *node);
/* From now on, makes sure that everything can end. */
void sim_client_steward(struct sim_client *cl);
/* Sends a request about a job, whose answer the checkers see. */
struct sim_ask *sim_client_about(enum gl_verb verb, gl_str job_id);
/* Any node that is awake; NULL: none. */
struct sim_node *sim_client_node(struct sim_client *cl);
void sim_client_send(struct sim_client *cl, struct sim_node *node, struct sim_ask *ask);
/* A submission was refused for lack of a pool, and a fault excuses that. */
bool sim_client_may_lack(const struct sim_client *cl, const struct sim_ask *ask);
bool sim_client_job_id(gl_str body, char ret[static GL_ULID_BYTES + 1]);
/* Has every submission been accepted, and has every job ended? */
bool sim_client_satisfied(const struct sim_client *cl);

#endif
