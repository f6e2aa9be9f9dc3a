/* core.h - the control plane as one function: an event in, effects out.
 *
 * It never touches a clock, socket, file, process, thread or random source. The real node and the
 * simulator run the same object code.
 *
 * Memory is a cache of the store. It changes at once, before the store has confirmed: each
 * transaction of a job is guarded on the revision that its predecessor wrote, so the successors of
 * a failed transaction fail with it. Any failure evicts the job, which is loaded again when it is
 * needed. Loading is the only recovery path: a restart, a failed commit and an eviction all go
 * through core/recovery/load.c.
 *
 * Called: gl_core_new(); an event SESSION, after which the core may own jobs; then gl_core_step()
 * for every event, and a TICK no later than gl_core_next_due(). The caller executes the effects in
 * their order and reports their outcome by events. gl_core_free() at the end, between two steps. */
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

/* Which ended jobs, and files they leave behind, are kept. 0: no limit. */
struct gl_keep {
    gl_ms job_ms;  /* keep an ended job this long */
    int64_t jobs;  /* keep at most this many ended jobs */
    int64_t bytes; /* of store, logs, working folders and blobs; the oldest ended jobs go first */
    gl_ms work_ms; /* keep the working folder of a failed attempt this long after its last change */
};

struct gl_core_config {
    gl_str context;
    const struct gl_core_pool *pools;
    size_t pools_n;
    uint32_t hot_jobs_max;
    bool passive;              /* execute commands only: no starts, no scans */
    bool shared;               /* other nodes use the store as well */
    bool guest;                /* on a shared store: takes over only jobs of its own node */
    gl_str node;               /* our identity, the same after a restart */
    gl_str labels;             /* of this node, as in GLIA_LABELS */
    gl_str stack, env_scope;   /* our scope: only jobs of these are taken over */
    uint32_t body_bytes;       /* larger message bodies are stored apart; 0: GL_BODY_BYTES_MAX */
    gl_ms ttl_ms;              /* of our session; 0: no renewals, and no other nodes */
    gl_ms orphan_grace_ms;     /* after this a dead node's attempts have certainly ended */
    const gl_str *quarantined; /* jobs that wait until a person resumes them */
    size_t quarantined_n;
    struct gl_keep keep;
    bool has_files;   /* the node can remove files that jobs leave outside the store */
    bool has_logs;    /* on a shared store: nodes copy logs into it (model/log_state.h) */
    bool may_be_half; /* the store may contain half removed jobs: finish removing them first */
    struct gl_trace *trace; /* borrowed */
};

struct gl_core *gl_core_new(const struct gl_core_config *config); /* strings are copied */
void gl_core_free(struct gl_core *c);

/* Consume one event. Append what must happen to `out`, in order (see effect.h). */
void gl_core_step(struct gl_core *c, const struct gl_event *ev, struct gl_effects *out);

/* When the core needs a TICK at the latest; INT64_MAX: no timer is set. */
gl_ms gl_core_next_due(const struct gl_core *c);

/* Is nothing in progress: no running attempt, queued step, transaction, scan or loading job? */
bool gl_core_idle(const struct gl_core *c);

/* What does this queued step wait for? Appends a sentence that starts with its verb, without a full
 * stop; GL_BECAUSE_NONE: unknown. */
enum gl_why_code gl_core_explain(struct gl_core *c, gl_str job, uint32_t number,
                                 struct gl_buf *out);

bool gl_core_is_quarantined(const struct gl_core *c, gl_str job);

/* Is this flow in memory already, so that LOADED need not carry it? */
bool gl_core_knows_flow(const struct gl_core *c, gl_str hash);

/* The flow, if it is in memory, until gl_spec_unref(*ret). It does not change. */
const struct gl_flow *gl_core_ref_flow(struct gl_core *c, gl_str hash, struct gl_spec **ret);

/* When a running step's attempt last sent a heartbeat, and when the next one is due; 0: not known,
 * or none is required. Heartbeats are not written to the store, so only the job's owner knows.
 * False: this node does not. */
bool gl_core_heard(const struct gl_core *c, gl_str job, uint32_t number, gl_ms *ret_beacon_at,
                   gl_ms *ret_heartbeat_at);

/* Is this job in memory, and ours? */
bool gl_core_owns(const struct gl_core *c, gl_str job);

/* Is this session of another node known to be alive? Known to be dead? */
bool gl_core_lives(const struct gl_core *c, gl_str session);
bool gl_core_is_dead(const struct gl_core *c, gl_str session);
/* Is this node the leader? */
bool gl_core_leads(const struct gl_core *c);
/* Is a removal that a client asked for in progress? If so, how many jobs has it removed so far? */
bool gl_core_is_cleaning(const struct gl_core *c, uint64_t *ret_removed);
/* Does the store refuse writes for lack of space? Since when, and with which error? */
bool gl_core_is_shut(const struct gl_core *c, gl_ms *ret_since, gl_str *ret_why);

/* Counters since this core was created. */
struct gl_core_counts {
    uint64_t jobs_submitted, jobs_completed, jobs_failed, jobs_cancelled;
    uint64_t attempts_started, attempts_succeeded, attempts_failed, attempts_lost;
    uint64_t reviews_asked, approvals_asked;             /* questions to persons */
    uint64_t offers_made, offers_withdrawn, offers_lost; /* of attempts of this node's jobs */
    uint64_t offers_taken, offers_refused;               /* by this node; refused to it */
    struct gl_histogram schedule_to_start, run;
};

const struct gl_core_counts *gl_core_counts(const struct gl_core *c);

struct gl_claim_counts; /* claims/claim.h */
const struct gl_claim_counts *gl_core_claim_counts(const struct gl_core *c);

struct gl_core_metrics {
    size_t quarantined;
    size_t jobs_hot, jobs_loading, ops_in_flight, attempts_running, steps_waiting;
    size_t attempts_elsewhere; /* of our jobs, on other nodes */
    size_t attempts_taken;     /* of other nodes' jobs, here, until their owner has the result */
    size_t offers_waiting;     /* of other nodes, that wait here for slots; not in steps_waiting */
    size_t pools_n;
    struct {
        gl_str name;
        uint32_t slots, in_use, waiting;
    } pools[GL_POOLS_MAX];
};

void gl_core_metrics(const struct gl_core *c, struct gl_core_metrics *ret);

/* The nodes on which steps of this node's jobs may run, as placement.h judges them. */
struct gl_place_node;
struct gl_core_places {
    struct gl_place_node *nodes; /* this node first */
    size_t nodes_n;
    bool is_placing; /* steps are offered to the others */
};

/* Copies what the core knows into `a`. */
void gl_core_places(const struct gl_core *c, struct gl_arena *a, struct gl_core_places *ret);
/* May this step run on a node other than its job's owner? */
bool gl_core_may_run_elsewhere(const struct gl_step_spec *spec);

/* The step that has waited longest for slots of this node, priority counted as waiting time. False:
 * none waits. The strings are borrowed until the next step of the core. */
struct gl_core_waiting {
    gl_str job, pool;
    gl_str step; /* "": the job is not in memory */
    gl_ms since; /* 0: the same */
};

bool gl_core_longest_waiting(const struct gl_core *c, struct gl_core_waiting *ret);

/* The slots of a pool in use by attempts taken from each owner: calls `each` once per attempt. */
void gl_core_taken(const struct gl_core *c,
                   void (*each)(void *arg, gl_str pool, gl_str owner, uint32_t slots), void *arg);

/* ---- compiled flows, shared by jobs and by starts in progress ---- */

struct gl_spec {
    uint32_t refs;
    uint32_t jobs; /* jobs in the core's memory that use it. The core decides by this, not by
                      `refs`: a recording does not show who else holds references */
    struct gl_arena arena;
    struct gl_flow *flow;
    struct gl_spec *
        shared; /* of a patched flow (agents/patch_apply.c): the flow it was made from; else NULL */
    struct gl_spec *left; /* in core->left: the next flow replaced in this step */
    bool is_stored;       /* its record is known to be in the store */
    gl_str hash, text;    /* in the arena */
};

/* Compile the canonical text. The caller gets one reference. */
int gl_spec_new(gl_str hash, gl_str text, struct gl_spec **ret, struct gl_why *reterr_why);
void gl_spec_ref(struct gl_spec *s);
void gl_spec_unref(struct gl_spec *s);

#endif
