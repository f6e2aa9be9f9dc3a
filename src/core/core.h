/* core.h - the control plane, as one function: an event in, effects out.
 *
 * It never touches a clock, socket, file, process, thread or random source. The real node and the
 * simulator drive this same object code.
 *
 * Memory is a cache of the store. It advances at step time; each transaction of a job guards on the
 * revision its predecessor wrote, so pipelined successors of a failed one fail with it; any failure
 * evicts the job, and what is needed of it is loaded again. Loading is the only recovery path: a
 * restart, a failed commit and an eviction all come back through core/recovery/load.c. */
#ifndef GL_CORE_CORE_H
#define GL_CORE_CORE_H

#include "base/histogram.h"
#include "base/trace.h"
#include "core/effect.h"
#include "core/event.h"
#include "model/flow/flow.h"

struct gl_core;

struct gl_core_pool {
    gl_str name;
    uint32_t slots;
};

/* Which ended jobs, and what they leave behind, are kept. 0: no bound. */
struct gl_keep {
    gl_ms job_ms;  /* ended jobs, since they ended */
    int64_t jobs;  /* this many ended jobs */
    int64_t bytes; /* store, logs, working folders and blobs together; the oldest ended jobs go */
    gl_ms work_ms; /* working folders of attempts that failed, since they were last touched */
};

struct gl_core_config {
    gl_str context;
    const struct gl_core_pool *pools;
    size_t pools_n;
    uint32_t hot_jobs_max;
    bool passive;              /* carry out commands; start nothing, look for nothing */
    bool shared;               /* other nodes use the store, too */
    bool guest;                /* of a shared store: looks for no work but its own node's */
    gl_str node;               /* our identity, stable over restarts */
    gl_str stack, env_scope;   /* only jobs of these are looked for */
    uint32_t body_bytes;       /* a larger body is not in its message; 0: GL_BODY_BYTES_MAX */
    gl_ms ttl_ms;              /* of our session; 0: nobody keeps it, nor looks for others */
    gl_ms orphan_grace_ms;     /* after it a dead node's attempts have surely ended */
    const gl_str *quarantined; /* jobs that are held until a person resumes them */
    size_t quarantined_n;
    struct gl_keep keep;
    bool has_files;   /* the node can remove what jobs leave outside the store */
    bool may_be_half; /* the store may have jobs that are removed in part: finish that first */
    struct gl_trace *trace; /* borrowed */
};

struct gl_core *gl_core_new(const struct gl_core_config *config); /* strings are copied */
void gl_core_free(struct gl_core *c);

/* Consume one event. Append what must happen to `out`, in order (see effect.h). */
void gl_core_step(struct gl_core *c, const struct gl_event *ev, struct gl_effects *out);

/* When the core wants a TICK at the latest; INT64_MAX: only when something happens. */
gl_ms gl_core_next_due(const struct gl_core *c);

/* Nothing in memory that is under way: no running attempt, no queued step, no transaction, no
 * loading job. */
bool gl_core_idle(const struct gl_core *c);

/* What does this queued step wait for? A sentence that begins with its verb, without a full stop;
 * GL_BECAUSE_NONE: nothing is known. */
enum gl_why_code gl_core_explain(struct gl_core *c, gl_str job, uint32_t number,
                                 struct gl_buf *out);

bool gl_core_is_quarantined(const struct gl_core *c, gl_str job);

/* Is this flow in memory already, so that LOADED need not carry it? */
bool gl_core_knows_flow(const struct gl_core *c, gl_str hash);

/* The flow, if it is in memory, until gl_spec_unref(*ret). It does not change. */
const struct gl_flow *gl_core_hold_flow(struct gl_core *c, gl_str hash, struct gl_spec **ret);

/* When an attempt of a running step was last heard of, and by when it must be heard of again; 0:
 * not known, or it need not be. Heartbeats are not written to the store, so only the node that owns
 * the job knows. False: it does not. */
bool gl_core_heard(const struct gl_core *c, gl_str job, uint32_t number, gl_ms *ret_beacon_at,
                   gl_ms *ret_heartbeat_at);

/* Is this job in memory, and ours? */
bool gl_core_owns(const struct gl_core *c, gl_str job);

/* A session of another node that is known to live; one that is known to be dead. */
bool gl_core_lives(const struct gl_core *c, gl_str session);
bool gl_core_is_dead(const struct gl_core *c, gl_str session);
/* Does this node do what only one node of the store should do? */
bool gl_core_leads(const struct gl_core *c);
/* Is a removal under way that a client asked for? Then how many jobs has it removed so far? */
bool gl_core_is_cleaning(const struct gl_core *c, uint64_t *ret_removed);
/* Has the store no room, since when, and what did it say? */
bool gl_core_is_shut(const struct gl_core *c, gl_ms *ret_since, gl_str *ret_why);

/* What has happened since this core was made. */
struct gl_core_counts {
    uint64_t jobs_submitted, jobs_completed, jobs_failed, jobs_cancelled;
    uint64_t attempts_started, attempts_succeeded, attempts_failed, attempts_lost;
    uint64_t reviews_asked, approvals_asked; /* of persons */
    struct gl_histogram schedule_to_start, run;
};

const struct gl_core_counts *gl_core_counts(const struct gl_core *c);

struct gl_claim_counts; /* claims/claim.h */
const struct gl_claim_counts *gl_core_claim_counts(const struct gl_core *c);

struct gl_core_figures {
    size_t quarantined;
    size_t jobs_hot, jobs_loading, ops_in_flight, attempts_running, steps_waiting;
    size_t pools_n;
    struct {
        gl_str name;
        uint32_t slots, in_use, waiting;
    } pools[GL_POOLS_MAX];
};

void gl_core_figures(const struct gl_core *c, struct gl_core_figures *ret);

/* ---- compiled flows, shared by jobs and by starts under way ---- */

struct gl_spec {
    uint32_t refs;
    uint32_t jobs; /* in the core's memory that use it: what the core decides by, because what
                      others hold a recording does not tell */
    struct gl_arena arena;
    struct gl_flow *flow;
    struct gl_spec
        *shared; /* of a job's own flow (agents/patch_apply.c): the one it was; else NULL */
    struct gl_spec *left; /* the next one that its job has left in this step */
    bool is_stored;       /* its record is known to be in the store */
    gl_str hash, text;    /* in the arena */
};

/* Compile from the canonical text. One reference for the caller. */
int gl_spec_new(gl_str hash, gl_str text, struct gl_spec **ret, struct gl_why *reterr_why);
void gl_spec_ref(struct gl_spec *s);
void gl_spec_unref(struct gl_spec *s);

#endif
