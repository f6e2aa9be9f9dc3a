/* taken_parts.h - what the files of taken.h share. Private to taken*.c. */
#ifndef GL_CORE_CLUSTER_TAKEN_PARTS_H
#define GL_CORE_CLUSTER_TAKEN_PARTS_H

#include "core/cluster/taken.h"
#include "model/offer.h"

enum gl_taken_phase {
    GL_TAKEN_QUEUED,       /* waits for slots */
    GL_TAKEN_TAKING,       /* has them; the transaction that takes it is to be sent, or in flight */
    GL_TAKEN_RUNNING_HERE, /* taken, and with the executor */
    GL_TAKEN_OVER,         /* ended in some way; its record says so, or is to be written */
};

/* What a scan reads, in this order: first what was taken, then what is offered. */
enum gl_taken_stage {
    GL_TAKEN_LIST,    /* a page of the index "taken" ... */
    GL_TAKEN_RECORDS, /* ... and its records */
    GL_TAKEN_OFFERS,  /* a page of the index "offers" ... */
    GL_TAKEN_STEPS,   /* ... and the records of the steps */
    GL_TAKEN_JOBS,    /* the records of jobs not known yet */
    GL_TAKEN_FLOWS,   /* their flows */
};

/* What is known of a job of which attempts run here. */
struct gl_taken_job {
    struct gl_link idle; /* in taken->idle while `attempts_n` is 0 */
    gl_str id, run_id, flow;
    gl_ms submitted_at;
    uint64_t token;       /* the highest of its owners' that is known here */
    struct gl_spec *spec; /* NULL: its flow is being read */
    uint32_t attempts_n;
};

struct gl_taken {
    struct gl_heap_item timer, check;
    struct gl_link link; /* in taken->to_take or to_write */
    struct gl_taken_job *job;
    struct gl_wait *wait; /* QUEUED */
    gl_str id;            /* "<job>/<attempt>" */
    gl_str attempt, step_id;
    uint32_t number, of;
    int64_t item;
    uint8_t phase; /* enum gl_taken_phase */
    int64_t pool;  /* -1: not configured any more */
    uint32_t slots;
    bool has_slots;
    uint64_t step_rev;
    gl_str owner; /* the session that owned the job when the step was read */
    uint64_t token;
    gl_str epoch;
    gl_ms at;          /* the score in the indexes */
    uint64_t rev;      /* of its record */
    uint64_t call;     /* the commit or check in flight; 0: none */
    bool is_alone;     /* its commit is not combined with others: a combined one was refused */
    bool is_unwanted;  /* RUNNING: its record is gone, and it is being ended */
    bool is_written;   /* OVER: the record says so */
    bool is_inherited; /* OVER: an earlier session has written it; only its record has the result */
    uint64_t starting;
    gl_ms taken_at;
    gl_ms due;                    /* of `timer`: INT64_MAX: none */
    gl_ms heartbeat_at, probe_at; /* 0: none */
    gl_ms check_at;               /* of `check` */
    uint8_t stopping;             /* enum gl_stop: why it is being stopped */
    struct gl_taken_record end;   /* OVER; its strings belong to the pool */
};

/* An entry of an index, and what has been read for it. */
struct gl_taken_entry {
    struct gl_link link;
    gl_str id;
    gl_ms score;
    bool is_taken;  /* of the index "taken"; else of "offers" */
    bool is_wanted; /* it becomes a struct gl_taken once its job is known */
    uint64_t rev, token;
    gl_str owner, epoch;
    gl_ms queued_at;
    uint8_t state; /* enum gl_taken_state */
    bool is_found; /* in a snapshot: it is in taken->found, else in taken->stale */
};

/* ---- taken.c ---- */

struct gl_taken *gl_taken_find(struct gl_core *c, gl_str job, gl_str attempt);
struct gl_taken *gl_taken_new(struct gl_core *c, gl_str id, struct gl_taken_job *job);
void gl_taken_drop(struct gl_core *c, struct gl_taken *t);
void gl_taken_set_due(struct gl_core *c, struct gl_taken *t); /* from its timers */
void gl_taken_set_check(struct gl_core *c, struct gl_taken *t, gl_ms at);
/* Its record is to be written. */
void gl_taken_write(struct gl_core *c, struct gl_taken *t);
struct gl_taken_job *gl_taken_job_new(struct gl_core *c, gl_str id);
void gl_taken_job_drop(struct gl_core *c, struct gl_taken_job *j);
void gl_taken_job_trim(struct gl_core *c);

/* What was taken is not known any more: it is read from the beginning. A scan under way may have
 * passed it already. */
void gl_taken_read_again(struct gl_core *c);

/* ---- taken_checks.c ---- */

enum {
    GL_TAKEN_CHECK_MS = 5000,   /* between two checks of an attempt that runs, ... */
    GL_TAKEN_CONSUMED_MS = 300, /* ... and of one whose result has been written: the first, ... */
    GL_TAKEN_CONSUMED_LATER_MS = 2000, /* ... and the others */
};

void gl_taken_send_checks(struct gl_core *c);
void gl_taken_on_checks(struct gl_core *c, const struct gl_event *ev);
void gl_taken_send_clean(struct gl_core *c);
/* The keeper has seen a higher token than ours: that of the job's owner is read. */
void gl_taken_ask_token(struct gl_core *c, const struct gl_taken_job *j);
void gl_taken_on_token(struct gl_core *c, const struct gl_event *ev);

/* ---- taken_scan.c ---- */

void gl_taken_scan(struct gl_core *c);
void gl_taken_on_scanned(struct gl_core *c, const struct gl_event *ev);
void gl_taken_entries_drop(struct gl_core *c, struct gl_link *list);
extern const struct gl_schema gl_taken_entry_schema;

/* ---- taken_attempts.c ---- */

void gl_taken_start(struct gl_core *c, struct gl_taken *t);
void gl_taken_attach(struct gl_core *c, struct gl_taken *t);
void gl_taken_stop(struct gl_core *c, struct gl_taken *t, enum gl_stop why);
/* The process is certainly gone: its slots are free, and its record is to say so. */
void gl_taken_end(struct gl_core *c, struct gl_taken *t, enum gl_taken_state state);
/* Its record is gone: the owner has accepted the result, or does not want it. */
void gl_taken_on_gone(struct gl_core *c, struct gl_taken *t);
void gl_taken_on_timer(struct gl_core *c, struct gl_taken *t);

#endif
