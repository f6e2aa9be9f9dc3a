/* facts.h - what the disk says, remembered from one transaction to the next, so that a checker can
 * compare.
 *
 * Made only from committed transactions, as the disk applies them, and from the keeper's ledger:
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
    struct gl_step_record r; /* as committed last; its strings are not kept */
    bool known;              /* it has a record */
    gl_str output;           /* as committed; in the job's arena */
    gl_str limit_key;        /* likewise */
    bool was_ready;          /* its gate was reached */
    bool had_started;        /* ... or ended, before its job's flow was changed last */
    bool left_pending;       /* its rule has been satisfied, or cannot be */
    bool is_settled;         /* ... and all steps that its references name had ended then */
    gl_str asked[4];         /* decisions that somebody has sent for it */
    uint32_t asked_n;
    struct sim_fact_step *group;  /* of an instance of foreach: the step of the flow; else NULL */
    uint32_t item;                /* of an instance: which item */
    struct sim_fact_step **items; /* of a step with foreach: its instances that have been written */
    uint32_t items_n, items_cap;  /* by item; NULL: not written yet */
    uint32_t reruns;              /* how often a person said "rerun" */
    bool done_by_person;          /* a person said "done" or "failed" */
    uint64_t *tokens; /* by attempt number: the token it was decided under; [0] is attempt 1 */
    uint32_t tokens_n, tokens_cap;
    const struct sim_process *last; /* the newest process of this step; NULL: none yet */
    uint32_t processes_n;
    uint32_t reruns_at_last;     /* `reruns` when it started */
    gl_ms decided_at_last;       /* when a person had decided last then; 0: never */
    gl_ms losses[GL_LOSSES_MAX]; /* when lost attempts were given another try, newest first */
};

struct sim_fact_job {
    struct gl_arena arena;
    gl_str id, run_id, dedupe_key, request_key;
    gl_str flow_hash, inputs, retry_of, retry_from;
    struct gl_job_record r; /* as committed last; its strings are not kept */
    bool known;
    uint64_t rev, token;
    struct gl_buf owner;
    struct gl_flow *flow, *first_flow; /* as it is now, and as it was submitted */
    const struct gl_flow *flow_before; /* the transaction being applied; NULL: it changes nothing */
    struct sim_fact_step *steps;       /* by number; they stay where they are */
    uint32_t steps_room;
    gl_ms changed_at; /* true time of its last transaction */
    bool promised;    /* a caller was told that it exists */
    bool removed;     /* it had ended, and has been taken away */
    bool torn;        /* a change of primary has undone something of it */
    bool lost;        /* ... all of it */
    bool spoilt;      /* a record of it is damaged now (sim_damage.h): which, ... */
    char spoilt_name[112];
    gl_ms spoilt_until;   /* ... and until when one was, last; 0: never */
    uint32_t freed_n;     /* how often it was paused and went on */
    uint32_t free_asks_n; /* how often somebody asked for that */
};

/* A record of it has been damaged: who loads it then holds it, and what runs of it runs on, counted
 * by nobody, until a person has looked at it. */
static inline bool sim_fact_was_spoilt(const struct sim_fact_job *j)
{
    return j->spoilt || j->spoilt_until != 0;
}

/* One write of a transaction to a job or a step, before it is made. */
struct sim_change {
    const struct gl_tx *tx;
    struct sim_fact_job *job;            /* before this transaction */
    const struct gl_job_record *job_now; /* as this transaction writes it */
    gl_str owner_now;
    uint64_t token_now, rev_now;
    bool job_live_now;
    struct sim_fact_step *step;            /* NULL: the write of the job itself */
    const struct gl_step_record *step_now; /* NULL likewise */
    bool step_live_now;
};

struct sim_facts {
    struct gl_map jobs; /* id -> struct sim_fact_job */
};

void sim_facts_init(struct sim_facts *f);
void sim_facts_done(struct sim_facts *f);
struct sim_fact_job *sim_facts_job(const struct sim_facts *f, gl_str id); /* NULL: unknown */
/* Also "step[n]", which is made if it is new: NULL if the flow has no such step. */
struct sim_fact_step *sim_facts_step(struct sim_fact_job *job, gl_str step_id);
/* Every step of the job, and every instance behind its step: begin with *pos = 0. */
struct sim_fact_pos {
    uint32_t step, item;
};
struct sim_fact_step *sim_facts_next(const struct sim_fact_job *job, struct sim_fact_pos *pos);
/* The job, made if it is new, with its flow. NULL if the flow cannot be read. */
struct sim_fact_job *sim_facts_job_make(struct sim_facts *f, gl_str id, gl_str flow_text);
/* Its flow has been changed: `record` is what its record "patch" says. False: it cannot be. */
bool sim_facts_grow(struct sim_fact_job *job, gl_str record);
/* Every step of a transaction is remembered; the job's own write comes last. */
void sim_facts_settle(struct sim_fact_job *job);
/* Remember the change (after the checkers have seen it). */
void sim_facts_apply(const struct sim_change *ch, gl_ms now);
void sim_facts_started(struct sim_fact_step *st, const struct sim_process *p);
/* Look again: what was known of its records has been undone. `scratch` is used for reading. */
void sim_facts_reload(struct sim_fact_job *job, const struct sim_disk *d, struct gl_arena *scratch);
/* The token under which an attempt was decided; 0: it never was. */
uint64_t sim_facts_token_of(const struct sim_fact_step *st, uint32_t attempt);

#endif
