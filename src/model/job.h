/* job.h - the records of a job and of its steps: what survives a restart.
 *
 * A job is kind "job", id = its ULID; it is owned by a session. A step is kind "step", id =
 * "<job>/<step id>". A step has no record before its first parent has ended (or, for a root, before
 * the job has reached it): until then it is pending, and the flow describes it completely. The
 * `live` flag of a step's record is set while it still has something to do, which includes updating
 * its children after its end.
 *
 * Index "wake": one entry per live job, at the time when it must be looked at next:
 *     GL_WAKE_RUNNING   it has attempts running, or agents that keep their slots between two
 * attempts: a node that takes over asks for them first, and counts their slots GL_WAKE_READY     it
 * has work that waits for nothing but slots a time            its earliest timer GL_WAKE_NEVER it
 * waits for a person Index "ended": ended jobs at the time they ended, for retention. Index
 * "retry/<job>": live jobs that retry that one, which is not removed until they have ended. A step
 * with foreach has the status `waiting` while its instances, the steps "<step id>[0]" and so on,
 * run. They are ordinary steps, but have no children: their step is updated when they end. A signal
 * that no step waits for yet is kept as kind "signal", id "<job>/<number>". The inputs of a job are
 * kind "inputs", id = the job's. Log "events"/<job>: one entry per transaction, numbered by its
 * last event, of newline-separated JSON events. */
#ifndef GL_MODEL_JOB_H
#define GL_MODEL_JOB_H

#include "model/schema.h"

enum { GL_WAKE_RUNNING = 0, GL_WAKE_READY = 1 };
#define GL_WAKE_NEVER (INT64_MAX - 1)
/* The place in the index "ended" of jobs that have been partly removed. */
enum { GL_ENDED_BEGUN = 0 };
#define GL_WAKE_NONE (-1) /* not in the index: a terminal job */

/* When its own record, or that of its flow, cannot be used. */
#define GL_JOB_DAMAGED_ADVICE \
    "repair it (a backup may have it), or remove the job, which stops its running attempts"

/*   pending ──► running ──► completed
 *                │  ▲  └──► failed
 *       pausing ◄┘  │
 *          └──► paused        (cancelling from any that is not terminal ──► cancelled) */
#define GL_JOB_STATUSES(X)         \
    X(PENDING, "pending", 0)       \
    X(RUNNING, "running", 0)       \
    X(PAUSING, "pausing", 0)       \
    X(PAUSED, "paused", 0)         \
    X(CANCELLING, "cancelling", 0) \
    X(COMPLETED, "completed", 1)   \
    X(FAILED, "failed", 1)         \
    X(CANCELLED, "cancelled", 1)

enum gl_job_status {
#define X(name, word, terminal) GL_JOB_##name,
    GL_JOB_STATUSES(X)
#undef X
        GL_JOB_STATUS_COUNT
};

/*   PENDING ──► READY ──► QUEUED ──► RUNNING ──► COMPLETED | PARTIAL | SKIPPED | FAILED
 *      │          ▲▲         │        │ │ │
 *      │          │└─ pause ─┘        │ │ └──► BLOCKED (review) ──► READY or an end
 *      │          └─ RETRY_WAIT ◄─────┘ │       RETRY_WAIT also ends, if what it waited for was
 *      │                                │       the end of a surplus attempt
 *      └► SKIPPED └──── lost, paused ───┘        WAITING is kept for controllers that wait at a
 * checkpoint. */
#define GL_STEP_STATUSES(X)        \
    X(PENDING, "pending", 0)       \
    X(READY, "ready", 0)           \
    X(QUEUED, "queued", 0)         \
    X(RUNNING, "running", 0)       \
    X(RETRY_WAIT, "retry_wait", 0) \
    X(BLOCKED, "blocked", 0)       \
    X(WAITING, "waiting", 0)       \
    X(COMPLETED, "completed", 1)   \
    X(PARTIAL, "partial", 1)       \
    X(SKIPPED, "skipped", 1)       \
    X(FAILED, "failed", 1)

enum gl_step_status {
#define X(name, word, terminal) GL_STEP_##name,
    GL_STEP_STATUSES(X)
#undef X
        GL_STEP_STATUS_COUNT
};

#define GL_OUTCOMES(X)    \
    X(NONE, "none")       \
    X(SUCCESS, "success") \
    X(FAILED, "failed")   \
    X(SKIPPED, "skipped") \
    X(PARTIAL, "partial") \
    X(MAPPED, "mapped") /* its instances take its place */

enum gl_outcome {
#define X(name, word) GL_OUTCOME_##name,
    GL_OUTCOMES(X)
#undef X
};

/* Why a step is blocked. */
#define GL_BLOCKS(X)            \
    X(NONE, "none")             \
    X(DEPENDENCY, "dependency") \
    X(APPROVAL, "approval")     \
    X(SIGNAL, "signal")         \
    X(TIMER, "timer")           \
    X(LIMIT, "limit")           \
    X(REVIEW, "review")

enum gl_block {
#define X(name, word) GL_BLOCK_##name,
    GL_BLOCKS(X)
#undef X
};

/* Why a running attempt is being stopped. */
#define GL_STOPS(X)           \
    X(NONE, "none")           \
    X(PAUSE, "pause")         \
    X(JOB_ENDS, "job_ends")   \
    X(HEARTBEAT, "heartbeat") \
    X(DEADLINE, "deadline")

enum gl_stop {
#define X(name, word) GL_STOP_##name,
    GL_STOPS(X)
#undef X
};

/* How the job will end once its last attempt has stopped. */
#define GL_VERDICTS(X)        \
    X(NONE, "none")           \
    X(FAILED, "failed")       \
    X(CANCELLED, "cancelled") \
    X(COMPLETED, "completed") /* a bundle: the attempts that still run are no longer needed */

enum gl_verdict {
#define X(name, word) GL_VERDICT_##name,
    GL_VERDICTS(X)
#undef X
};

/* Why a job is paused. */
#define GL_HOLDS(X)     \
    X(NONE, "none")     \
    X(PERSON, "person") \
    X(REVIEW, "review")

enum gl_hold {
#define X(name, word) GL_HOLD_##name,
    GL_HOLDS(X)
#undef X
};

struct gl_job_record {
    gl_str job_id, run_id, name;
    gl_str flow; /* SHA-256 of the compiled flow: record kind "flow" */
    uint8_t status, verdict, hold;
    bool is_strayed;    /* paused by a node other than the one that knows its attempts */
    gl_str reason;      /* of the verdict or the pause */
    gl_str failed_step; /* whose failure ended the job */
    gl_str stack, env_scope, dedupe_key;
    gl_str request_key; /* names the submission that created the job; "" : none */
    gl_ms submitted_at, updated_at, started_at, ended_at;
    int64_t last_seq; /* of the event log */
    int64_t wake;     /* its time in the index "wake" */
    uint32_t steps_n, completed_n, partial_n, skipped_n, failed_n;
    uint32_t roots_spread; /* roots that have been reached */
    uint32_t items_n;      /* instances made for `foreach` so far, by all steps */
    gl_str retry_of;       /* the ended job whose completed outputs this one reuses */
    gl_str retry_from;     /* "" : reuse all completed steps; else none from this step on */
    int64_t signals_n;     /* signals received so far */
    /* On a shared store, as in "default:2,gpu:1" (core/cluster/node_pools.h). */
    gl_str pools;      /* what the steps of its flow need; "" : of an earlier release */
    gl_str pools_next; /* what its next owner needs first; "" : `pools` */

    /* Of a bundle. */
    uint64_t letters_n; /* messages so far: the number of the last one */
    uint32_t waiting_n; /* ... that are waiting or being handled */
    uint32_t dead_n;    /* ... that could not be delivered */
    uint32_t turns_n;   /* messages whose handling has begun, of all agents */
    uint32_t seeds_n;   /* of the flow's seeds, those that have been sent */
    uint64_t graph_revision;
    uint32_t patches_n;
    gl_str result;     /* JSON: {agent_id, output}, or {step_id, agent_id, error} */
    gl_str error;      /* JSON: why it failed (model/bundle/error_envelope.h) */
    gl_str completion; /* JSON: a result that waits for the last steps */
    gl_str recovery_status;
    bool recovery_requires_review;
};

struct gl_step_record {
    gl_str step_id;
    uint8_t status, terminal_outcome, blocked_on, stopping;
    uint32_t attempt_count; /* attempts so far; the number of the current one */
    uint32_t counted;       /* those that `retry` counts */
    uint32_t up_ended, up_success, up_failed, up_accepted; /* parents */
    uint32_t spread;       /* children that have been updated after the end */
    gl_str epoch;          /* the executor's, when the current attempt was decided */
    gl_str node;           /* whose executor that is; "" : of an earlier release, ours */
    gl_ms orphan_grace_ms; /* that executor's, on a shared store; 0: of an earlier release */
    bool is_elsewhere;     /* running: the attempt was offered to that node (model/offer.h) */
    bool is_given_up;      /* it waits for the end of its last attempt, and then fails */
    gl_ms started_at, attempt_at, deadline_at, retry_at, ended_at;
    gl_ms lost_at_1, lost_at_2, lost_at_3; /* the latest losses, newest first */
    int64_t exit_code;
    gl_str terminal_reason, last_error;
    gl_str output;               /* JSON */
    uint64_t output_bytes;       /* its size, if a reader left it out; never stored */
    gl_str decision, decided_by; /* of a person */
    gl_ms decided_at;
    uint32_t gate;     /* GL_GATE_*: what was decided before its first attempt */
    gl_ms queued_at;   /* when its current or last wait for slots began */
    uint32_t seat;     /* of that key on a shared store, from 1: the record "limit/<key>/<seat>" */
    gl_str limit_key;  /* of `concurrency`, with its references resolved */
    gl_ms due_at;      /* blocked: when its timeout or its sleep ends */
    gl_str asked;      /* approval: the question for the person ... */
    gl_str choices;    /* ... and the allowed answers: "approve,reject" */
    uint32_t items_n;  /* foreach: how many instances, ... */
    uint32_t items_at; /* ... the number of the first among the job's, ... */
    uint32_t items_made, items_ended, items_failed; /* ... and their progress */
    uint32_t up_reused; /* parents that are unchanged from an earlier job */
    gl_str reused_from; /* the earlier job that ran it */

    /* Of a bundle. A unit's `output` is the agent's state. */
    uint64_t letter;       /* unit: the message it handles; ledger: the one it would get again */
    uint64_t processed;    /* unit: messages handled */
    uint32_t tries;        /* unit: immediate attempts of this message that failed */
    bool keeps_slots;      /* unit: between two of them it keeps the slots of its lease */
    uint32_t mail_attempt; /* unit: the attempt of the ledger's step it works for; 0: none */
    uint32_t more_needs;   /* ledger: parents beyond the flow's, after a scatter */
    uint32_t map_index;    /* ledger: of an instance */
    gl_ms beacon_at;       /* time of its last beacon */
    gl_ms heartbeat_at;    /* ledger: when its next beacon is due */
    gl_str policy_state;   /* unit: JSON: when it was restarted */
    gl_str waits_for;      /* unit: the step its message is for */
};

/* `gate`: decided once, and never changed. */
enum {
    GL_GATE_OPEN = 1,    /* `when` was true; it is not evaluated again */
    GL_GATE_SPREAD = 2,  /* foreach: its instances are being created */
    GL_GATE_REUSED = 4,  /* completed by an earlier job */
    GL_GATE_SAME = 16,   /* skipped, and nothing that led to it has changed since the earlier job */
    GL_GATE_LIMITED = 8, /* waits for a concurrency or rate limit, as last written */
};

/* Jobs of a stack or env scope have their own index: "wake/<stack>/<env_scope>". On a
 * store that is not shared all jobs are in "wake". */
gl_str gl_job_index(struct gl_arena *a, const char *name, gl_str stack, gl_str env_scope);

extern const struct gl_schema gl_job_schema, gl_step_schema;
extern const char *const gl_job_status_words[],
    *const gl_step_status_words[], *const gl_outcome_words[], *const gl_block_words[],
                                                                  *const gl_stop_words[];

/* Steps that have ended, with any outcome. */
static inline uint64_t gl_job_ended_steps(const struct gl_job_record *r)
{
    return (uint64_t)r->completed_n + r->partial_n + r->skipped_n + r->failed_n;
}

bool gl_job_status_is_terminal(uint8_t status);
bool gl_step_status_is_terminal(uint8_t status);
/* Blocked until a person decides: review or approval. */
bool gl_step_asks_a_person(const struct gl_step_record *r);
/* Paused because one of its records cannot be used; its reason names the record. Until that is
 * repaired, the job accepts no command except cancel. */
bool gl_job_is_paused_for_damage(const struct gl_job_record *r);
/* May a step change from one status to the other? The only table of allowed changes. */
bool gl_step_may_move(uint8_t from, uint8_t to);
bool gl_agent_unit_may_move(uint8_t from, uint8_t to); /* the same for a bundle's units, ... */
bool gl_agent_step_may_move(uint8_t from, uint8_t to); /* ... and for its ledger */
bool gl_job_may_move(uint8_t from, uint8_t to);

#endif
