/* core_state.h - the core's memory, shared by its rooms and by nobody else.
 *
 * How a step of the core goes: the handler of the event changes jobs (gl_txn_touch), then every
 * touched job is reconciled, free slots are given out, and each touched job's changes leave as one
 * transaction with the effects that wait for it (gl_txn_flush). So transitions that become possible
 * together share a transaction. */
#ifndef GL_CORE_CORE_STATE_H
#define GL_CORE_CORE_STATE_H

#include "base/check.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/claims/claim.h"
#include "core/cluster/cluster_state.h"
#include "core/core.h"
#include "core/retention/retention_state.h"
#include "model/bundle/agent.h"
#include "model/job.h"

struct gl_letter;
struct gl_wait;
struct gl_slot_hold;
struct gl_quotas;

enum { GL_STEP_PAGE = 64 };

/* A live step of a job in memory. */
struct gl_step {
    struct gl_step_record r; /* its strings belong to the core's pool, but step_id: the spec's */
    struct gl_job *job;
    uint32_t number;           /* in the flow; of an instance: behind the flow's steps, and another
                                  one if the transaction that made it fails: see gl_step_place() */
    uint32_t of;               /* the step of the flow that says what it does: mostly itself */
    int32_t item;              /* of an instance: which item of its foreach; else -1 */
    struct gl_link live;       /* in job->live */
    struct gl_link dirty;      /* in job->dirty: its record must be written */
    struct gl_link work;       /* in job->spread, job->ready or job->making */
    struct gl_heap_item timer; /* in job->timers, at `due` */
    gl_ms due;
    gl_ms heartbeat_at;        /* 0: no heartbeat is expected */
    gl_ms probe_at;            /* 0: no question to the executor is due */
    struct gl_wait *wait;      /* queued for slots */
    struct gl_slot_hold *hold; /* slots it has */
    bool is_listed;            /* in the index "human" */
    bool resolving;            /* its gate waits for facts */
    bool was_skipped;          /* in the job that is retried; only while its gate is opened */
    uint64_t starting;         /* number of the START whose answer has not come; 0: none */
    struct gl_mailbox *mail;   /* of a bundle's steps, once there was a message; NULL: none yet */
};

/* A large body of messages (agents/bodies.c). */
struct gl_body {
    struct gl_job *job;
    uint64_t number, bytes; /* of the letter that brought it; how large it is */
    uint32_t refs;          /* letters that have it */
    bool is_kept;           /* a dead letter has it, or may have */
    gl_str key;             /* belongs to the pool */
};

/* Messages at a step of a bundle: a unit's inbox, or what the ledger holds back. */
struct gl_mailbox {
    struct gl_step *unit;   /* whose it is */
    struct gl_link letters; /* struct gl_letter, in order */
    uint32_t n;
    struct gl_link counted; /* unit of an aggregator: what it has got, in order */
    uint32_t counted_n;
    struct gl_letter *now; /* unit: the one it handles; ledger: the one kept to be given again */
    struct gl_link due;    /* unit: in job->mailed, it may have something to do */
    struct gl_link idle;   /* unit: in core->idle, its record can be dropped from memory */
    bool is_pressed;       /* unit: backpressure has begun */
    bool is_fetched;       /* unit: its record is known, or there was none */
    uint64_t asked;        /* unit: the question whose answer is being read for it; 0: none */
    uint32_t beacons_n;    /* unit: signs of life its runner has told of this worker, ... */
    gl_ms heard_at;        /* ... and when the worker itself gave one; 0: not yet */
};

enum gl_job_memory {
    GL_MEM_HOT,     /* `r` and the live steps are as in the store, plus what is in flight */
    GL_MEM_FAILED,  /* a transaction failed: waiting for the others in flight to fail, too */
    GL_MEM_LOADING, /* a LOAD is under way, or will be when `due` comes */
};

struct gl_job {
    gl_str id; /* in `id_text` */
    char id_text[GL_ULID_BYTES + 1];
    uint8_t memory;         /* enum gl_job_memory */
    struct gl_job_record r; /* strings belong to the core's pool */
    struct gl_spec *spec;
    uint64_t rev; /* of the last transaction given out; 0: not yet created */
    gl_str owner; /* session; belongs to the pool */
    uint64_t token;
    struct gl_step ***pages; /* [number / GL_STEP_PAGE][number % GL_STEP_PAGE] */
    size_t pages_n;
    struct gl_link live, dirty, spread, ready;
    struct gl_link making;                /* steps with foreach whose instances are not all made */
    uint32_t count[GL_STEP_STATUS_COUNT]; /* live steps by status, ... */
    uint32_t bound[GL_STEP_STATUS_COUNT]; /* ... those of them that are a bundle's ledger, ... */
    uint32_t units[GL_STEP_STATUS_COUNT]; /* ... and its units */
    struct gl_link mailed;                /* units that may have something to do */
    uint32_t asked_n;                     /* units for which something is being read */
    struct gl_map bodies;                 /* struct gl_body, by their key: agents/bodies.c */
    struct gl_map seen;                   /* what aggregators have counted: "<unit> <sender>" */
    struct gl_graph *graph; /* patches of its flow: agents/patch_apply.c; NULL: none */
    uint8_t *known;         /* one bit for each unit: it has a record; NULL: nobody knows */
    uint32_t reviews_n;     /* of the blocked ones, those that wait for review */
    uint32_t items_live;    /* instances among them, ended ones not counted */
    struct gl_link signals; /* received, and nobody has waited for them yet */
    uint32_t signals_n;
    struct gl_heap timers;     /* steps by `due` */
    struct gl_heap_item timer; /* in core->timers, at `due` */
    gl_ms due;
    uint32_t inflight_n; /* transactions given out and not answered */
    uint64_t last_op;
    uint32_t load_tries;
    gl_ms hot_at;           /* since when it is in memory: what has just come is not given away */
    bool is_created;        /* the store has it: known from a commit or a load */
    bool token_in_flight;   /* a takeover has been given out and not answered */
    bool has_names;         /* its run id and dedupe key are taken; given back once */
    bool is_suspect;        /* to be forgotten and loaded again */
    uint64_t outbid;        /* the executor has seen this token: ours must rise above it; 0: none */
    bool is_damaged;        /* a record of it cannot be used: held, without its steps */
    bool is_deferred;       /* starts under limits have been left for the next step */
    bool releases;          /* given away with this transaction: another node has room */
    bool lacks;             /* a queued step wants a pool that is not here: cluster/node_pools.h */
    bool confirms;          /* this transaction must be on a replica before it counts */
    bool is_adopted;        /* counted in core->adopting_n until it is hot */
    struct gl_link holds;   /* slots, by attempt */
    struct gl_link lru;     /* in core->lru while hot */
    struct gl_link touched; /* in core->touched while a step of the core is under way */
    struct gl_link busy;    /* in core->busy: has more to do than fits one transaction */
    struct gl_link parked;  /* events that wait until it is hot */
    size_t parked_n;
    bool changed;           /* its record must be written */
    struct gl_buf log;      /* events of this transaction */
    struct gl_write *extra; /* further writes of this transaction, in its arena */
    size_t extra_n, extra_cap;
    struct gl_guard *demands; /* further guards of it, in the same arena */
    size_t demands_n, demands_cap;
    struct gl_effects pend; /* effects that wait for this transaction */
};

struct gl_core_pool_state {
    gl_str name;
    uint32_t slots, in_use;
    uint32_t others_free; /* slots of that name that other nodes had free when last heard of */
    struct gl_heap queue; /* struct gl_wait: see scheduling/slots.h */
};

struct gl_core {
    gl_str context;
    struct gl_trace *trace;
    struct gl_pool mem;
    gl_ms now;
    struct gl_effects *out; /* of the step under way */
    struct gl_spec *left;   /* flows that jobs have left in it (agents/patch_apply.c) */
    struct {                /* the large body that it sent last: `text` is the same */
        struct gl_body *body;
        gl_str text, sha256;
    } lately;
    gl_str session; /* "" : none yet */
    gl_str epoch;   /* of the executor */
    bool exec_up, stopping;
    bool ending;        /* the node asks nothing of the store any more */
    bool passive;       /* commands only: nothing is looked for, nothing starts */
    bool shared, guest; /* see core.h, as the next three */
    gl_str node, stack, env_scope;
    gl_ms orphan_grace_ms;
    uint32_t body_bytes;
    /* cluster/node_pools.h: sets of pools that other live nodes offer, one per line. */
    gl_str offers;
    bool offers_heard;         /* false: nothing is known of the others yet */
    bool offers_unknown;       /* another live node does not say what it offers */
    gl_ms lacks_due;           /* when to look again for jobs that lack a pool */
    gl_str wake_index;         /* the name of our scope's index "wake" */
    struct gl_map quarantined; /* job ids: held until a person resumes them */
    uint64_t last_op, last_start;
    size_t inflight_n;

    struct gl_map jobs;               /* by id */
    const struct gl_job *just_loaded; /* by this step: what has waited for it is dealt with */
    struct gl_map specs;              /* by hash */
    size_t jobs_hot, hot_max, jobs_loading;
    struct gl_link lru, touched, busy;
    struct gl_heap timers; /* jobs by `due` */

    struct gl_core_pool_state pools[GL_POOLS_MAX];
    size_t pools_n;
    struct gl_map waits;    /* by job and step number */
    struct gl_link granted; /* waits that have slots and whose job is being loaded */
    uint64_t wait_seq;
    struct gl_quotas *quotas; /* concurrency and rates: see scheduling/quotas.h */
    struct gl_link idle;      /* agents without work whose memory can go: the oldest first */
    size_t idle_n;
    size_t running_n;
    struct gl_core_counts counts;

    /* Looking through the index "wake": see recovery/sweep.c. */
    struct {
        bool under_way;
        bool asked;  /* a FIND is on its way */
        bool first;  /* the one after the start, which also takes what waits for slots */
        int64_t max; /* scores above this are not looked at, whatever the time */
        int64_t after_score;
        gl_str after_id;
        /* The regular ones take turns: running jobs, those that wait for slots, those that are due.
         */
        uint32_t turn;
        bool page_only;  /* stop after this page; the next one of its kind goes on behind it */
        gl_str ready_id; /* where that is */
        /* On a shared store: parts of the index to be looked through soon, because somebody has
         * died or given work away. */
        uint32_t hunts; /* GL_ORPHAN_SCAN_* */
        gl_ms hunt_due;
        bool is_hunt;     /* the one under way */
        bool left;        /* it has left something for want of room */
        bool passed_over; /* something was left to nodes that offer the pools it needs */
    } sweep;
    gl_ms cold_due;   /* earliest timer of a job that is not in memory, as far as known */
    gl_ms active_due; /* when to look again for running jobs nobody has in memory */
    gl_ms list_due;   /* when to compare with the executor's list */
    bool listing;
    /* Attempts that outlived an earlier life of this node take their slots before anything new
     * starts. */
    bool adoption_over;
    size_t adopting_n;

    /* Of the components (component.h). */
    uint64_t last_call;
    struct gl_renewal_state renewal;
    struct gl_store_full_state room;
    struct gl_membership_state peers;
    struct gl_leader_state leader;
    struct gl_inbox_state inbox;
    struct gl_outbox_state outbox;
    struct {
        struct gl_link under_way; /* struct gl_claim_work */
        struct gl_claim_counts counts;
    } claims;
    struct gl_retention_state retention;
    struct {                /* agents/human_requests.h */
        struct gl_map runs; /* by job */
        struct gl_heap queue;
        struct gl_link under_way;
        size_t calls_n;
    } human;
};

/* An event that was parked, now that its job is in memory (core.c). */
void gl_core_dispatch(struct gl_core *c, const struct gl_event *ev);

/* ---- jobs and steps in memory (job_memory.c) ---- */

struct gl_job *gl_job_find(struct gl_core *c, gl_str id);
struct gl_job *gl_job_new(struct gl_core *c, gl_str id);
/* Forget all of the job's state but its identity, holds and parked events. */
void gl_job_clear(struct gl_core *c, struct gl_job *j);
void gl_job_drop(struct gl_core *c, struct gl_job *j);           /* out of memory altogether */
struct gl_step *gl_step_find(struct gl_job *j, uint32_t number); /* NULL: not live */
struct gl_step *gl_step_get(struct gl_core *c, struct gl_job *j,
                            uint32_t number); /* made if absent */
/* The instance of step `of` for one item, under the job-wide number of an instance. */
struct gl_step *gl_step_item(struct gl_core *c, struct gl_job *j, uint32_t of, uint32_t item,
                             uint32_t instance);
/* By id, also "step[n]"; NULL: unknown, or not live. */
struct gl_step *gl_step_by_id(struct gl_job *j, gl_str id);
/* What outlives a job's memory names its steps by this: see gl_flow_place(). */
uint32_t gl_step_place(const struct gl_step *st);
struct gl_step *gl_step_at(struct gl_job *j, uint32_t place); /* NULL: not live */
/* "step[n]" -> the number of the step and n; a plain id -> its number and -1; false: no such step.
 */
bool gl_step_split_id(const struct gl_flow *flow, gl_str id, uint32_t *ret_of, int32_t *ret_item);
void gl_step_free(struct gl_core *c, struct gl_step *st);
/* The job is about to get another flow, with the same steps and more: their ids are that flow's. */
void gl_step_rename(struct gl_job *j, const struct gl_flow *flow);
void gl_step_set_due(struct gl_core *c, struct gl_step *st); /* from its timers */
const struct gl_step_spec *gl_step_spec_of(const struct gl_step *st);
/* Take the fields of `src` that the schema names over into `dst`. Strings are copied into the
 * core's pool, and those that `dst` had there are given back; fields marked GL_FF_LENT stay as they
 * are. */
void gl_core_adopt(struct gl_core *c, const struct gl_schema *schema, void *dst, const void *src);
/* Give the strings of an object back to the pool, and empty them. */
void gl_core_disown(struct gl_core *c, const struct gl_schema *schema, void *object);
/* Replace a string that belongs to the core's pool. */
void gl_core_set(struct gl_core *c, gl_str *dst, gl_str value);

static inline bool gl_job_is_mine(const struct gl_core *c, const struct gl_job *j)
{
    return gl_str_eq(j->owner, c->session);
}

/* Steps of that status that are not a bundle's ledger: those have no process, and no queue. */
static inline uint32_t gl_job_count(const struct gl_job *j, enum gl_step_status s)
{
    GL_ASSERT(s < GL_STEP_STATUS_COUNT);
    GL_ASSERT(j->count[s] >= j->bound[s]);
    return j->count[s] - j->bound[s];
}

/* Attempts that run, or will once their transaction commits. */
static inline uint32_t gl_job_running(const struct gl_job *j)
{
    return gl_job_count(j, GL_STEP_RUNNING);
}

static inline bool gl_step_is_unit(const struct gl_step *st);
static inline bool gl_step_is_bound(const struct gl_step *st);

/* Its status is about to change: the counts follow. */
static inline void gl_job_recount(const struct gl_step *st, uint8_t next)
{
    struct gl_job *j = st->job;

    GL_ASSERT(next < GL_STEP_STATUS_COUNT);
    GL_ASSERT(j->count[st->r.status] > 0);
    j->count[st->r.status]--;
    j->count[next]++;
    if (gl_step_is_bound(st)) {
        j->bound[st->r.status]--;
        j->bound[next]++;
    } else if (gl_step_is_unit(st)) {
        j->units[st->r.status]--;
        j->units[next]++;
    }
}

static inline bool gl_step_is_unit(const struct gl_step *st)
{
    return gl_flow_is_unit(st->job->spec->flow, st->of);
}

static inline bool gl_step_is_bound(const struct gl_step *st)
{
    return gl_step_spec_of(st)->is_bound;
}

/* How many parents tell it of their ends. */
static inline uint32_t gl_step_needs(const struct gl_step *st)
{
    return gl_step_spec_of(st)->needs_n + st->r.more_needs;
}

#endif
