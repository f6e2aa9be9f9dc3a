/* sim_checks.h - the checkers of the invariants, one file each.
 *
 * A checker is a table of functions over its own state. It is called for every committed write
 * before it is applied, for every real start and end of a process, for every answer to a client,
 * and at the end of the history. It only judges: it changes nothing, and fails the world with a
 * sentence that names the job. */
#ifndef GL_SIM_SIM_CHECKS_H
#define GL_SIM_SIM_CHECKS_H

#include "api/request.h"
#include "sim/facts.h"
#include "sim/sim_disk.h"
#include "sim/sim_flows.h"
#include "sim/sim_keeper.h"
#include "sim/world.h"

struct sim_checks;

enum { SIM_MACHINES_MAX = 20 };

struct sim_check {
    const char *name;
    size_t state_bytes; /* zeroed at the start */
    bool sees_torn;     /* also judges jobs of which a failover has undone writes */
    /* Each may be NULL. `me` is the checker's own state. */
    void (*on_change)(struct sim_checks *c, void *me, const struct sim_change *ch);
    void (*on_log)(struct sim_checks *c, void *me, const struct sim_change *ch,
                   const struct gl_write *w);
    void (*on_start)(struct sim_checks *c, void *me, struct sim_fact_job *j,
                     struct sim_fact_step *st, const struct sim_process *p);
    void (*on_end)(struct sim_checks *c, void *me, struct sim_fact_job *j, struct sim_fact_step *st,
                   const struct sim_process *p);
    /* Another record of the job is written, or (after->rev is 0) deleted. */
    void (*on_record)(struct sim_checks *c, void *me, const struct sim_change *ch,
                      const struct gl_record *before, const struct gl_record *after);
    /* A client requests something concerning this job. */
    void (*on_ask)(struct sim_checks *c, void *me, const struct gl_request *rq,
                   struct sim_fact_job *j);
    /* A client's request has succeeded. `job` is the job's id. */
    void (*on_answer)(struct sim_checks *c, void *me, const struct gl_request *rq,
                      struct sim_fact_job *j);
    /* A client's request has failed, and rq has the reason. */
    void (*on_refused)(struct sim_checks *c, void *me, const struct gl_request *rq,
                       struct sim_fact_job *j);
    /* An ended job is being removed. */
    void (*on_removed)(struct sim_checks *c, void *me, struct sim_fact_job *j);
    /* Any write to any record. */
    void (*on_any)(struct sim_checks *c, void *me, const struct gl_tx *tx,
                   const struct gl_record *before, const struct gl_record *after);
    /* A session has been renewed; it already shows what its node publishes now. */
    void (*on_renewed)(struct sim_checks *c, void *me, const struct sim_disk_session *session);
    /* This node's session was past its deadline and has been declared dead. */
    void (*on_declared)(struct sim_checks *c, void *me, gl_str node);
    /* A failover has undone writes of this job; the facts show the disk as it is now. */
    void (*on_torn)(struct sim_checks *c, void *me, struct sim_fact_job *j);
    /* The history is over; everything should be idle. */
    void (*at_end)(struct sim_checks *c, void *me);
    void (*done)(void *me);
};

#define SIM_CHECKS(X) \
    X(approvals)      \
    X(attempts)       \
    X(bodies)         \
    X(counted)        \
    X(damage)         \
    X(effects)        \
    X(elsewhere)      \
    X(events)         \
    X(forgotten)      \
    X(full)           \
    X(gates)          \
    X(given)          \
    X(inputs)         \
    X(items)          \
    X(leader)         \
    X(ledger)         \
    X(limits)         \
    X(messages)       \
    X(names)          \
    X(overlap)        \
    X(outages)        \
    X(owner)          \
    X(patches)        \
    X(paused)         \
    X(pools)          \
    X(promises)       \
    X(relays)         \
    X(retention)      \
    X(reuse)          \
    X(rules)          \
    X(said)           \
    X(sent)           \
    X(services)       \
    X(signals)        \
    X(sleeps)         \
    X(slots)          \
    X(stale)          \
    X(states)         \
    X(terminal)       \
    X(unsafe)

#define X(name) extern const struct sim_check sim_check_##name;
SIM_CHECKS(X)
#undef X

enum {
#define X(name) SIM_CHECK_##name,
    SIM_CHECKS(X)
#undef X
        SIM_CHECK_COUNT
};

struct sim_checks {
    struct sim_world *world;
    struct sim_disk *disk;
    struct sim_keeper *keepers[SIM_MACHINES_MAX];
    size_t keepers_n;
    struct sim_pools pools[SIM_MACHINES_MAX]; /* of each machine */
    struct sim_facts facts;
    void *states[SIM_CHECK_COUNT];
    uint64_t changes_n;
    /* The transaction being applied. */
    struct gl_arena arena;
    struct sim_change change;
    struct gl_job_record job_now;
};

/* Observes the disk and the keeper from now on. */
void sim_checks_init(struct sim_checks *c, struct sim_world *w, struct sim_disk *disk,
                     struct sim_keeper *keeper, const struct sim_pools *pools);
void sim_checks_done(struct sim_checks *c);
/* Adds another machine. */
void sim_checks_add_keeper(struct sim_checks *c, struct sim_keeper *keeper,
                           const struct sim_pools *pools);
uint32_t sim_pools_slots(const struct sim_pools *pools, gl_str pool);
/* Slots of that pool on the machine that runs this process. */
uint32_t sim_checks_slots(const struct sim_checks *c, const struct sim_process *p, gl_str pool);
/* The keeper that runs this process. */
struct sim_keeper *sim_checks_keeper(const struct sim_checks *c, const struct sim_process *p);
/* A client sends this request about a known job. */
void sim_checks_ask(struct sim_checks *c, const struct gl_request *rq, gl_str job_id);
/* A client got this answer, about the job job_id. */
void sim_checks_answer(struct sim_checks *c, const struct gl_request *rq, gl_str job_id);
/* A record is being deleted. */
void sim_checks_removed(struct sim_checks *c, const struct gl_record *before);
/* The same, for the rule about which records may be deleted (check_promises.c). */
void sim_check_promises_removed(struct sim_checks *c, const struct gl_record *before);
/* Does any live node still report that the store is full? (check_full.c) */
bool sim_check_full_is_over(const struct sim_checks *c);
void sim_checks_end(struct sim_checks *c);
/* Nothing is wrong at the moment, and these machines (numbers from 0) have a node that runs steps:
 * does a step wait for slots that are free (check_elsewhere.c)? */
void sim_check_elsewhere_calm(struct sim_checks *c, const bool *has_node, size_t n);

#endif
