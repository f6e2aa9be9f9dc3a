/* core_state.h - the core's memory. Private to src/core.
 *
 * A step of the core, in order:
 *   1. the event's handler changes jobs, each marked by gl_txn_touch()
 *   2. every touched job is reconciled: what has become possible happens (gl_ledger_settle)
 *   3. free slots are granted
 *   4. each touched job's changes leave as one transaction, with the effects that wait for it
 *      (gl_txn_flush)
 * So changes that become possible together share a transaction, and between two steps no job is
 * half changed.
 *
 * Ownership: strings in a record belong to the core's pool (gl_core_set, gl_core_adopt) unless
 * a comment says otherwise; pointers between jobs, steps, waits and holds are borrowed. */
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

struct gl_offer;
struct gl_queued_message;
struct gl_wait;
struct gl_slot_hold;
struct gl_quotas;

enum { GL_STEP_PAGE = 64 };

/* A live step of a job in memory. */
struct gl_step {
    struct gl_step_record r; /* step_id belongs to the spec, but to the pool for an instance */
    struct gl_job *job;
    uint32_t number;      /* in the flow; instances follow the flow's steps. An instance gets
                             another number if the transaction that made it fails: to name it
                             for longer than that, see gl_step_place() */
    uint32_t of;          /* the step of the flow that specifies it: an instance's foreach step,
                             else the step itself */
    int32_t item;         /* of an instance: its item's index; else -1 */
    struct gl_link live;  /* in job->live */
    struct gl_link dirty; /* in job->dirty: its record must be written */
    struct gl_link work;  /* in job->spread, job->ready or job->making */
    struct gl_heap_item timer; /* in job->timers, at `due` */
    gl_ms due;
    gl_ms heartbeat_at;        /* 0: no heartbeat is expected */
    gl_ms probe_at;            /* when to ask the executor about it; 0: never */
    struct gl_wait *wait;      /* queued for slots */
    struct gl_slot_hold *hold; /* the slots it holds */
    struct gl_offer *offer;    /* its attempt runs elsewhere: see cluster/offers.h */
    bool is_orphaned;          /* ... on a node that is dead */
    bool is_listed;            /* in the index "human" */
    bool resolving;            /* its gate waits for facts from the store */
    bool was_skipped;          /* in the job that is retried; valid only while its gate is opened */
    uint64_t starting;         /* number of the START that has not been answered; 0: none */
    struct gl_mailbox *mailbox; /* of a bundle's step; NULL until its first message */
};

/* A large body of messages (agents/bodies.c). */
struct gl_body {
    struct gl_job *job;
    uint64_t number, bytes; /* the number of the message that brought it; its size */
    uint32_t refs;          /* messages that refer to it */
    bool is_kept;           /* a dead letter refers to it, or may */
    gl_str key;             /* belongs to the pool */
};

/* The messages of one step of a bundle: a unit's inbox, or those that the ledger defers. */
struct gl_mailbox {
    struct gl_step *unit;    /* the step it belongs to */
    struct gl_link messages; /* struct gl_queued_message, in the order in which they came */
    struct gl_heap inbox;    /* unit: these messages, in the order in which it handles them */
    uint32_t n;
    struct gl_link counted; /* unit of an aggregator: the messages collected, in order */
    uint32_t counted_n;
    struct gl_queued_message *now; /* unit: the one it handles; ledger: the one to deliver again */
    struct gl_link due;            /* unit: in job->due_units, it may have something to do */
    struct gl_link idle;           /* unit: in core->idle, its record can be dropped from memory */
    bool is_pressed;               /* unit: backpressure has begun */
    bool is_fetched;               /* unit: its record has been read, or does not exist */
    uint64_t asked;                /* unit: number of the read in progress for it; 0: none */
    uint32_t beacons_n;            /* unit: beacons of this worker, as reported by its runner */
    gl_ms heard_at;                /* unit: when the worker itself last sent one; 0: never */
};

enum gl_job_memory {
    GL_MEM_HOT,     /* `r` and the live steps are as in the store, plus transactions in flight */
    GL_MEM_FAILED,  /* a transaction failed: waiting for the others in flight, which fail as well */
    GL_MEM_LOADING, /* a LOAD is in flight, or will be sent at `due` */
};

struct gl_job {
    gl_str id; /* in `id_text` */
    char id_text[GL_ULID_BYTES + 1];
    uint8_t memory;         /* enum gl_job_memory */
    struct gl_job_record r; /* strings belong to the core's pool */
    struct gl_spec *spec;
    uint64_t rev; /* of the last transaction sent; 0: not yet created */
    gl_str owner; /* a session; "": none */
    uint64_t token;
    struct gl_step ***pages; /* [number / GL_STEP_PAGE][number % GL_STEP_PAGE] */
    size_t pages_n;
    struct gl_link live, dirty, spread, ready;
    struct gl_link making;                /* steps with foreach whose instances are not all made */
    uint32_t count[GL_STEP_STATUS_COUNT]; /* live steps by status; among them ... */
    uint32_t bound[GL_STEP_STATUS_COUNT]; /* ... the ledger's steps of a bundle */
    uint32_t units[GL_STEP_STATUS_COUNT]; /* ... and the units of its agents */
    struct gl_link due_units;             /* units that may have something to do */
    uint32_t asked_n;                     /* units with a read in progress */
    gl_ms last_message_at;                /* created_at of its newest message since the load */
    struct gl_map bodies;                 /* struct gl_body, by their key: agents/bodies.c */
    struct gl_map seen;                   /* senders aggregators have counted: "<unit> <sender>" */
    struct gl_graph *graph; /* patches of its flow: agents/patch_apply.c; NULL: none */
    uint8_t *known;         /* one bit per unit: it has a record; NULL: unknown */
    uint32_t reviews_n;     /* blocked steps that wait for a review */
    uint32_t items_live;    /* live instances that have not ended */
    struct gl_link signals; /* received, and not yet consumed by a step */
    uint32_t signals_n;
    struct gl_heap timers;     /* steps by `due` */
    struct gl_heap_item timer; /* in core->timers, at `due` */
    gl_ms due;
    uint32_t inflight_n; /* transactions sent and not answered */
    uint64_t last_op;
    uint32_t load_tries;
    gl_ms hot_at;           /* since when it is in memory: see SETTLED_MS in cluster/rebalance.c */
    bool is_created;        /* the store has it, as a commit or a load has shown */
    bool token_in_flight;   /* the transaction that raises its token is not answered yet */
    bool has_names;         /* its run id and dedupe key are taken, and to be freed at its end */
    bool is_suspect;        /* outdated: dropped at the end of this step, and loaded again */
    uint64_t outbid;        /* the executor has seen this token: ours must rise above it; 0: none */
    bool is_damaged;        /* a record of it cannot be used: paused, without its steps */
    bool is_deferred;       /* starts under limits have been left for the next step */
    bool releases;          /* this transaction leaves it without an owner */
    bool lacks;             /* a queued step wants a pool that is not here: cluster/node_pools.h */
    bool confirms;          /* this transaction must reach a replica before it counts */
    bool is_adopted;        /* counted in core->adopting_n until it is hot */
    gl_str wakes;           /* the word that this transaction sends, in its arena; "": none */
    struct gl_link holds;   /* slots, by attempt */
    struct gl_link lru;     /* in core->lru while hot */
    struct gl_link touched; /* in core->touched while a step of the core is under way */
    struct gl_link busy;    /* in core->busy: it has more to do than fits one transaction */
    struct gl_link parked;  /* events to replay when it is hot */
    size_t parked_n;
    bool changed;           /* its record must be written */
    struct gl_buf log;      /* events of this transaction */
    struct gl_write *extra; /* further writes of this transaction, in its arena */
    size_t extra_n, extra_cap;
    struct gl_guard *demands; /* further guards of this transaction, in the same arena */
    size_t demands_n, demands_cap;
    struct gl_effects pend; /* effects that wait for this transaction */
};

/* Where the steps of a queue may run. */
enum gl_slots_where {
    GL_WHERE_ANY,
    GL_WHERE_HERE, /* on this node only */
    GL_WHERE_AWAY, /* on another node only: this one cannot run it */
    GL_WHERE_COUNT,
};

struct gl_core_pool_state {
    gl_str name;
    uint32_t slots, in_use; /* slots 0: other nodes have the pool, this one has not */
    uint32_t others_free;   /* jobs to return for the free slots that other nodes last reported */
    struct gl_heap queues[GL_WHERE_COUNT]; /* struct gl_wait: see scheduling/slots.h */
};

struct gl_core {
    gl_str context;
    struct gl_trace *trace;
    struct gl_pool mem;
    gl_ms now;
    struct gl_effects *out; /* of the step under way */
    struct gl_spec *left;   /* flows replaced by a patch in it, freed at its end */
    struct { /* the large body sent last in it: sending the same text again is cheap */
        struct gl_body *body;
        gl_str text, sha256;
    } lately;
    gl_str session; /* "" : none yet */
    gl_str epoch;   /* of the executor */
    bool exec_up, stopping;
    bool ending;        /* no further calls of the store */
    bool passive;       /* commands only: no scans, no starts */
    bool shared, guest; /* see core.h, as the next three */
    gl_str node, labels, stack, env_scope;
    gl_ms orphan_grace_ms;
    uint32_t body_bytes;
    /* cluster/node_pools.h: the sets of pools that other live nodes offer, one per line. */
    gl_str offers;
    bool offers_heard;         /* false: the other nodes have not been listed yet */
    bool offers_unknown;       /* another live node does not publish its pools */
    gl_ms lacks_due;           /* when to consider jobs that lack a pool */
    gl_str wake_index;         /* the name of our scope's index "wake" */
    struct gl_map quarantined; /* ids of jobs that wait until a person resumes them */
    uint64_t last_op, last_start;
    size_t inflight_n;

    struct gl_map jobs;               /* by id */
    const struct gl_job *just_loaded; /* while its parked events are replayed; else NULL */
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
    struct gl_link idle;      /* agents without work that can be evicted, oldest first */
    size_t idle_n;
    size_t running_n;
    struct gl_core_counts counts;

    /* Scans of the index "wake": see recovery/sweep.c. */
    struct {
        bool under_way;
        bool asked;  /* a FIND is in flight */
        bool first;  /* the sweep after the start, which reads the whole index */
        int64_t max; /* the highest score to read, whatever the time */
        int64_t after_score;
        gl_str after_id;
        /* Regular scans take turns: running jobs, jobs that wait for slots, jobs with a timer. */
        uint32_t turn;
        bool page_only;  /* stop after this page; the next scan of this part continues after it */
        gl_str ready_id; /* the last id of that page */
        /* Orphan scans, on a shared store: parts to scan soon, because a node has died or returned
         * jobs. */
        uint32_t orphan_parts; /* GL_ORPHAN_SCAN_* */
        gl_ms orphans_due;
        bool is_orphan_scan; /* the scan under way is one */
        bool left;           /* it left jobs behind for lack of free slots */
        bool passed_over;    /* jobs were left to nodes that offer the pools they need */
    } sweep;
    gl_ms cold_due;   /* earliest known timer of a job that is not in memory */
    gl_ms active_due; /* the next regular scan */
    gl_ms list_due;   /* when to ask the executor for its attempts */
    bool listing;     /* a LIST is in flight */
    /* Attempts that outlived an earlier life of this node get their slots before anything new
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
    struct gl_other_nodes_state others;
    struct gl_offers_state made;
    struct gl_taken_attempts taken;
    struct {
        struct gl_link under_way; /* struct gl_claim_op */
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

/* Handle an event from inside the core: a parked one, or a command from the inbox (core.c). */
void gl_core_dispatch(struct gl_core *c, const struct gl_event *ev);

/* ---- jobs and steps in memory (job_memory.c) ---- */

struct gl_job *gl_job_find(struct gl_core *c, gl_str id);
struct gl_job *gl_job_new(struct gl_core *c, gl_str id);
/* Drop all of the job's memory but its identity, slots and parked events. */
void gl_job_clear(struct gl_core *c, struct gl_job *j);
void gl_job_drop(struct gl_core *c, struct gl_job *j);           /* free it altogether */
struct gl_step *gl_step_find(struct gl_job *j, uint32_t number); /* NULL: not live */
struct gl_step *gl_step_get(struct gl_core *c, struct gl_job *j,
                            uint32_t number); /* made if absent */
/* The instance of step `of` for one item, under the job-wide number of an instance. */
struct gl_step *gl_step_item(struct gl_core *c, struct gl_job *j, uint32_t of, uint32_t item,
                             uint32_t instance);
/* By id, also "step[n]"; NULL: unknown, or not live. */
struct gl_step *gl_step_by_id(struct gl_job *j, gl_str id);
/* The step's stable number, for whatever outlives the job's memory: see gl_flow_place(). */
uint32_t gl_step_place(const struct gl_step *st);
struct gl_step *gl_step_at(struct gl_job *j, uint32_t place); /* NULL: not live */
/* "step[n]" -> the number of the step and n; a plain id -> its number and -1; false: no such step.
 */
bool gl_step_split_id(const struct gl_flow *flow, gl_str id, uint32_t *ret_of, int32_t *ret_item);
void gl_step_free(struct gl_core *c, struct gl_step *st);
/* The job is about to get another flow, with the same steps and more: ids then belong to that one.
 */
void gl_step_rename(struct gl_job *j, const struct gl_flow *flow);
void gl_step_set_due(struct gl_core *c, struct gl_step *st); /* from its timers */
const struct gl_step_spec *gl_step_spec_of(const struct gl_step *st);
/* Copy the fields named by the schema from `src` to `dst`. Strings are copied into the core's pool,
 * and those that `dst` had there are freed. Fields marked GL_FF_LENT are left alone. */
void gl_core_adopt(struct gl_core *c, const struct gl_schema *schema, void *dst, const void *src);
/* Free the strings of an object, and empty them. */
void gl_core_disown(struct gl_core *c, const struct gl_schema *schema, void *object);
/* Replace a string that belongs to the core's pool. */
void gl_core_set(struct gl_core *c, gl_str *dst, gl_str value);

static inline bool gl_job_is_mine(const struct gl_core *c, const struct gl_job *j)
{
    return gl_str_eq(j->owner, c->session);
}

/* Steps of that status, without the ledger's steps of a bundle: those have no process and never
 * queue. */
static inline uint32_t gl_job_count(const struct gl_job *j, enum gl_step_status s)
{
    GL_ASSERT(s < GL_STEP_STATUS_COUNT);
    GL_ASSERT(j->count[s] >= j->bound[s]);
    return j->count[s] - j->bound[s];
}

/* Attempts that run, or will run once their transaction has committed. */
static inline uint32_t gl_job_running(const struct gl_job *j)
{
    return gl_job_count(j, GL_STEP_RUNNING);
}

static inline bool gl_step_is_unit(const struct gl_step *st);
static inline bool gl_step_is_bound(const struct gl_step *st);

/* Update the job's counts for a step whose status is about to change. */
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

/* How many parents must end before it may run. */
static inline uint32_t gl_step_needs(const struct gl_step *st)
{
    return gl_step_spec_of(st)->needs_n + st->r.more_needs;
}

#endif
