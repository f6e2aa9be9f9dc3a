/* retention_state.h - the state of retention, embedded in struct gl_core.
 *
 * Only the files of this folder read or write it. Names of fields, stages and chores are keys and
 * words of snapshots and recordings: they may not change. */
#ifndef GL_CORE_RETENTION_RETENTION_STATE_H
#define GL_CORE_RETENTION_RETENTION_STATE_H

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "core/core.h"
#include "model/job.h"

struct gl_event;

/* Which answers a stage accepts; retention.c handles all others as failures of the pass. */
enum {
    GL_ANSWER_REFUSED = 1, /* a guard refused it: another node was first */
    GL_ANSWER_FREES = 2,   /* files were removed: `bytes` counts as freed */
    GL_ANSWERS_MANY = 4,   /* several calls are in flight */
};

/* Where a pass is: the stage, its word in snapshots, the answers it accepts and their handler. In
 * the stages up to SUBMISSIONS no call is in flight: they end with time, not with an answer. */
#define GL_RETENTION_STAGES(X)                                                                  \
    X(IDLE, "idle", 0, gl_retention_on_unexpected)                                              \
    X(PAUSE, "pause", 0, gl_retention_on_unexpected)                                            \
    X(SUBMISSIONS, "submissions", 0, gl_retention_on_unexpected)                                \
    X(COUNT, "count", 0, gl_retention_on_counted)                                               \
    X(MEASURE, "measure", 0, gl_retention_on_measured)                                          \
    X(MEASURE_FILES, "measure_files", 0, gl_retention_on_measured)                              \
    X(MEASURE_AGAIN, "measure_again", 0, gl_retention_on_measured)                              \
    X(MEASURE_AFTER, "measure_after", 0, gl_retention_on_measured)                              \
    X(PAGE, "page", 0, gl_retention_on_page)                                                    \
    X(JOBS, "jobs", 0, gl_ended_on_jobs)                                                        \
    X(BEGUN, "begun", 0, gl_ended_on_begun)                                                     \
    X(FLOW, "flow", 0, gl_ended_on_flow)                                                        \
    X(NAMES, "names", 0, gl_ended_on_names)                                                     \
    X(BELONGINGS, "belongings", GL_ANSWERS_MANY, gl_ended_on_belongings)                        \
    X(DROP, "drop", GL_ANSWERS_MANY, gl_drop_on_done)                                           \
    X(JOB_FILES, "job_files", GL_ANSWER_FREES, gl_drop_on_files)                                \
    X(MARK, "mark", 0, gl_garbage_on_marks)                                                     \
    X(SUSPECTS, "suspects", 0, gl_reserved_on_flows)                                            \
    X(CANDIDATES, "candidates", 0, gl_garbage_on_candidates)                                    \
    X(HEADS, "heads", 0, gl_garbage_on_heads)                                                   \
    X(CONDEMN, "condemn", GL_ANSWERS_MANY, gl_garbage_on_condemned)                             \
    X(REMOVE, "remove", GL_ANSWER_REFUSED, gl_garbage_on_removed)                               \
    X(SPARE, "spare", GL_ANSWER_REFUSED, gl_garbage_on_spared)                                  \
    X(BLOB_FILES, "blob_files", GL_ANSWER_FREES, gl_garbage_on_files)                           \
    X(LEFT_LIST, "left_list", 0, gl_leftovers_on_list)                                          \
    X(LEFT_CHECK, "left_check", 0, gl_leftovers_on_check)                                       \
    X(LEFT_REMOVE, "left_remove", GL_ANSWER_REFUSED | GL_ANSWER_FREES, gl_leftovers_on_removed) \
    X(COPIES, "copies", GL_ANSWER_FREES, gl_chores_on_copies)

enum gl_retention_stage {
#define X(name, word, how, handler) GL_STAGE_##name,
    GL_RETENTION_STAGES(X)
#undef X
        GL_STAGES
};

/* What a pass does after its jobs, in this order (chores.c). */
#define GL_CHORES(X)      \
    X(NONE, "none")       \
    X(FLOWS, "flows")     \
    X(BLOBS, "blobs")     \
    X(RATES, "rates")     \
    X(ANSWERS, "answers") \
    X(INBOX, "inbox")     \
    X(COPIES, "copies")   \
    X(ORPHANS, "orphans") \
    X(WORK, "work")       \
    X(MEASURE, "measure")

enum gl_chore {
#define X(name, word) GL_CHORE_##name,
    GL_CHORES(X)
#undef X
        GL_CHORE_COUNT
};

enum {
    GL_TRIM_BATCH = 50, /* jobs of a batch */
    /* The same under a load of short jobs: each batch competes with the load for the store, so it
     * must remove more jobs than end in the meantime. */
    GL_TRIM_BATCH_MAX = 400,
    GL_TRIM_IN_FLIGHT = 8,                   /* transactions in flight */
    GL_TRIM_WRITES = 256,                    /* writes of one transaction */
    GL_TRIM_PAGE = 200,                      /* ids read at a time */
    GL_TRIM_RECORDS_MS = 6 * 60 * 60 * 1000, /* between two scans for small records */
};

/* A job to be removed. */
struct gl_trim_job {
    gl_str id;
    struct gl_job_record r; /* the fields that gl_trim_job_schema has */
    /* Revisions of its record and of the records of its names; 0: not there, or not its own. */
    uint64_t rev, run_rev, dedupe_rev, request_rev;
    uint64_t log_rev;     /* of the record of its logs; every write of a log raises it */
    uint64_t retried_rev; /* shared store: the record of its last retry */
    gl_str retried_by;
    uint64_t retried_token;
    uint64_t call; /* in flight for it, 0: none; jobs of one transaction share it */
    bool is_over;  /* decided: removed, or kept for now */
    bool is_removed;
    bool is_headless; /* its record is gone; only what belongs to it is left */
    bool is_doubtful; /* not ended and in no node's memory: does its flow exist? */
    bool is_damaged;  /* its record or flow is damaged, and a client asked to remove it */
    bool is_retried;  /* the call in flight asks for jobs that retry it */
    bool has_more;    /* more belongs to it than `ids` */
    gl_str owner;     /* damaged or doubtful: the session that owned it, if not ours */
    uint32_t kind;    /* which kind of belongings was listed last: ended.c */
    struct gl_strs ids;
    /* The first of `ids` are of kind `ids_kind`. Heads and chunks of logs may follow; they begin at
     * these places. */
    uint32_t ids_kind, logs_at, chunks_at;
    bool is_adding;   /* the listing in flight adds to `ids` */
    int64_t log_from; /* entries of its log below this number are removed */
};

/* A candidate for removal by a chore: a flow or blob that no root names, or a leftover record or
 * file. */
struct gl_candidate {
    gl_str id;
    uint64_t rev;
    gl_str owner;
    uint64_t token;
    int64_t score;   /* in its index */
    gl_str value;    /* of a blob: its record's value while it is condemned */
    uint32_t pieces; /* of a blob */
    bool was_whole;  /* of a blob: WHOLE before it was condemned */
    bool is_ours;    /* flow or blob: condemned by us in this pass; leftover: to be removed */
    bool is_damaged; /* flow: its text is lost, so it is never made WHOLE again */
    uint64_t call;
};

struct gl_suspect { /* a damaged job, and the flow it seems to name */
    gl_str job, flow;
};

struct gl_retention_pass {
    uint8_t stage;    /* enum gl_retention_stage */
    uint8_t chore;    /* enum gl_chore */
    uint64_t call;    /* in flight; 0: none, or several */
    uint32_t calls_n; /* in flight, in stages with GL_ANSWERS_MANY */
    /* One of several calls failed. The pass fails with this code once all have been answered. */
    int64_t broken;
    gl_str broken_why; /* belongs to the pool */

    /* The client's request, if there is one, and what to keep. */
    bool is_asked;   /* a client waits for the answer */
    bool is_removal; /* of the one job `job` */
    uint64_t request;
    gl_str job;        /* belongs to the pool */
    gl_ms keep_ms;     /* remove jobs older than this; -1: age does not matter */
    int64_t keep_jobs; /* remove the oldest beyond this number; -1: no limit */

    uint64_t jobs_n, flows_n, blobs_n, work_n; /* removed */
    uint64_t freed;                            /* bytes of files */
    uint64_t store_bytes, store_bytes_before, files_bytes;
    int64_t by_size_n;   /* jobs of the next page to remove only to free space */
    bool has_shrunk;     /* some were removed to free space */
    int64_t after_score; /* where the next page starts, with `after` */
    gl_str after;        /* the last id of the page before; belongs to the pool */
    bool has_swept, has_rest, has_copies, has_orphans, has_work; /* chores of this pass: chores.c */

    /* The batch of jobs; everything it points to lives in `arena`. */
    struct gl_trim_job *jobs;
    size_t jobs_n_now; /* how many; `jobs_n` above counts those of the whole pass */
    size_t gone_n;     /* removed */
    bool is_single;    /* one job per transaction, because one of several was refused */
    bool has_conflict; /* ... which has just happened */
    bool is_part;      /* the transaction in flight removes a part of a large job */
    int64_t why_code;  /* why the last job that is kept is kept: a reason, ... */
    gl_str why;        /* ... and its sentence, which belongs to the pool */

    /* The chore under way; the same. */
    bool is_second_look; /* shared store: marking again, after condemning */
    uint64_t token;      /* owns, with our session, all that this chore condemns */
    struct gl_map used;  /* what the roots name, and submissions since: gl_str */
    struct gl_candidate *candidates;
    size_t candidates_n, candidates_cap;
    size_t at;    /* the first of them that has not been handled */
    size_t batch; /* the end of those being handled; while removing: how many at once */
    struct gl_suspect *suspects;
    size_t suspects_n, suspects_cap;
    gl_ms began_at; /* the sweep waits for submissions that were in flight then */
    bool is_full;   /* the list was cut off: list again when these are removed */

    struct gl_arena arena;
};

struct gl_retention_state {
    struct gl_keep keep;
    bool has_files;
    bool has_logs; /* jobs may have records "log" and "logchunk" */
    gl_ms due;     /* the next pass, or the end of a pause; INT64_MAX while a call is in flight */
    gl_ms flows_due, files_due, rest_due; /* chores: chores.c */
    bool is_ready;                        /* there was a session and an executor */
    bool is_counted;                      /* `ended_n` is known */
    int64_t ended_n;                      /* ended jobs in the store */
    bool seek_begun;                      /* there may be jobs that are only partly removed */
    bool seek_orphans;                    /* there may be files of jobs that are removed */
    bool again;           /* the next sweep of flows may find something, whatever `removed_n` is */
    uint64_t removed_n;   /* jobs removed since the last sweep */
    uint64_t condemned_n; /* sweeps that condemned something */
    uint64_t young_bytes; /* of unused files that are too young to remove, as far as known */
    struct gl_link asks;  /* requests that wait: struct gl_clean */
    struct gl_link pins;  /* jobs that are being retried: struct gl_pin */

    /* reserved.c */
    struct gl_map damaged;  /* jobs whose flow is not known: struct gl_damaged_job */
    uint64_t damaged_look;  /* number of the scan of all jobs */
    struct gl_map reserved; /* flows that one of them may name: gl_str */
    bool reserve_all;       /* reserve every flow, until all have been listed once */
    bool is_reserving;      /* such a list has begun since */

    struct gl_retention_pass pass;
};

#endif
