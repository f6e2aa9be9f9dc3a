/* facts.h - the committed state, remembered from one transaction to the next, so that a checker can
 * compare.
 *
 * Built only from committed transactions, as the disk applies them, and from the keeper's ledger:
 * never from anything a node believes. */
#ifndef GL_SIM_FACTS_H
#define GL_SIM_FACTS_H

#include "base/arena.h"
#include "base/map.h"
#include "model/flow/flow.h"
#include "model/job.h"
#include "sim/sim_disk.h"
#include "sim/sim_keeper.h"

struct sim_fact_step {
    const struct gl_step_spec *spec;
    struct gl_step_record r; /* as last committed; its strings are not kept */
    bool known;              /* it has a record */
    gl_str output;           /* as committed; in the job's arena */
    gl_str limit_key;        /* likewise */
    bool was_ready;          /* its gate has been reached */
    bool had_started;        /* ... or had ended, before the last change of its job's flow */
    bool left_pending;       /* its rule is satisfied, or can no longer be */
    bool is_settled;         /* ... and all steps that its references name had ended by then */
    gl_str asked[4];         /* decisions that clients have sent for it */
    uint32_t asked_n;
    struct sim_fact_step *group;  /* of an instance of foreach: the step of the flow; else NULL */
    uint32_t item;                /* of an instance: which item */
    struct sim_fact_step **items; /* of a step with foreach: its instances that have a record */
    uint32_t items_n, items_cap;  /* by item; NULL: no record yet */
    uint32_t reruns;              /* how often a person decided "rerun" */
    bool done_by_person;          /* a person decided "done" or "failed" */
    uint64_t *tokens; /* by attempt number: the token that decided it; [0] is attempt 1 */
    uint32_t tokens_n, tokens_cap;
    const struct sim_process *last; /* the newest process of this step; NULL: none yet */
    uint32_t processes_n;
    uint32_t reruns_at_last;     /* `reruns` when that process started */
    gl_ms decided_at_last;       /* when a person had last decided by then; 0: never */
    gl_ms losses[GL_LOSSES_MAX]; /* when it was rerun after a lost attempt, newest first */
    gl_ms fits_since;            /* it waits since then for slots that are free; 0: it does not */
};

struct sim_fact_job {
    struct gl_arena arena;
    gl_str id, run_id, dedupe_key, request_key;
    gl_str flow_hash, inputs, retry_of, retry_from;
    struct gl_job_record r; /* as last committed; its strings are not kept */
    bool known;
    uint64_t rev, token;
    struct gl_buf owner;
    struct gl_flow *flow, *first_flow; /* now, and when it was submitted */
    const struct gl_flow
        *flow_before; /* before the transaction being applied; NULL: it does not change the flow */
    struct sim_fact_step *steps; /* by number; never moved */
    uint32_t steps_room;
    gl_ms changed_at; /* true time of its last transaction */
    bool promised;    /* a client has been told that it exists */
    bool removed;     /* it had ended, and was removed */
    bool torn;        /* a failover has undone some of its writes */
    bool lost;        /* ... all of it */
    bool spoilt;      /* one of its records is damaged now (sim_damage.h): which one, ... */
    char spoilt_name[112];
    gl_ms spoilt_until;   /* ... and until when one was, most recently; 0: never */
    uint32_t freed_n;     /* how often it continued after a pause */
    uint32_t free_asks_n; /* how often a client requested that */
};

/* Has a record of it been damaged? A node that loads it then pauses it. Its running attempts
 * continue, and their slots are not counted, until a person has decided. */
static inline bool sim_fact_was_spoilt(const struct sim_fact_job *j)
{
    return j->spoilt || j->spoilt_until != 0;
}

/* One write of a transaction to a job or a step, before it is applied. */
struct sim_change {
    const struct gl_tx *tx;
    struct sim_fact_job *job;            /* before this transaction */
    const struct gl_job_record *job_now; /* as this transaction writes it */
    gl_str owner_now;
    uint64_t token_now, rev_now;
    bool job_live_now;
    struct sim_fact_step *step;            /* NULL: the write of the job itself */
    const struct gl_step_record *step_now; /* NULL: likewise */
    bool step_live_now;
};

struct sim_facts {
    struct gl_map jobs; /* id -> struct sim_fact_job */
};

void sim_facts_init(struct sim_facts *f);
void sim_facts_done(struct sim_facts *f);
struct sim_fact_job *sim_facts_job(const struct sim_facts *f, gl_str id); /* NULL: unknown */
/* Accepts "step[n]", too, and creates the instance if it is new. NULL: the flow has no such step.
 */
struct sim_fact_step *sim_facts_step(struct sim_fact_job *job, gl_str step_id);
/* Iterates over every step of the job, with the instances after their step: begin with *pos = 0. */
struct sim_fact_pos {
    uint32_t step, item;
};
struct sim_fact_step *sim_facts_next(const struct sim_fact_job *job, struct sim_fact_pos *pos);
/* The job, created if it is new, with its flow. NULL: the flow cannot be read. */
struct sim_fact_job *sim_facts_job_make(struct sim_facts *f, gl_str id, gl_str flow_text);
/* The flow of the job has changed: `record` is the value of its record "patch". False: it is
 * invalid. */
bool sim_facts_grow(struct sim_fact_job *job, gl_str record);
/* All steps of a transaction have been applied; the job's own write comes last. */
void sim_facts_settle(struct sim_fact_job *job);
/* Applies the change, after the checkers have seen it. */
void sim_facts_apply(const struct sim_change *ch, gl_ms now);
void sim_facts_started(struct sim_fact_step *st, const struct sim_process *p);
/* Reads the job's records again, because some were undone. `scratch` is used for reading. */
void sim_facts_reload(struct sim_fact_job *job, const struct sim_disk *d, struct gl_arena *scratch);
/* The token under which an attempt was decided; 0: it never was. */
uint64_t sim_facts_token_of(const struct sim_fact_step *st, uint32_t attempt);

#endif
