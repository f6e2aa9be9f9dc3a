/* retention_state.h - the memory of retention; a part of the core's memory. */
#ifndef GL_CORE_RETENTION_RETENTION_STATE_H
#define GL_CORE_RETENTION_RETENTION_STATE_H

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "core/core.h"
#include "model/job.h"

struct gl_event;

/* What the answers of a stage may be (retention.c deals with the rest). */
enum {
    GL_ANSWER_REFUSED = 1, /* another node was faster: that is no failure */
    GL_ANSWER_FREES = 2,   /* files have been removed: `bytes` counts */
    GL_ANSWERS_MANY = 4,   /* several calls are under way */
};

/* Where a pass is, and what takes its answers; in those without one nothing is under way. */
#define GL_RETENTION_STAGES(X)                                                             \
    X(IDLE, "idle", 0, gl_retention_on_nothing)                                            \
    X(PAUSE, "pause", 0, gl_retention_on_nothing)                                          \
    X(SUBMISSIONS, "submissions", 0, gl_retention_on_nothing)                              \
    X(COUNT, "count", 0, gl_retention_on_counted)                                          \
    X(MEASURE, "measure", 0, gl_retention_on_measured)                                     \
    X(MEASURE_FILES, "measure_files", 0, gl_retention_on_measured)                         \
    X(MEASURE_AGAIN, "measure_again", 0, gl_retention_on_measured)                         \
    X(MEASURE_AFTER, "measure_after", 0, gl_retention_on_measured)                         \
    X(PAGE, "page", 0, gl_retention_on_page)                                               \
    X(JOBS, "jobs", 0, gl_ended_on_jobs)                                                   \
    X(BEGUN, "begun", 0, gl_ended_on_begun)                                                \
    X(FLOW, "flow", 0, gl_ended_on_flow)                                                   \
    X(NAMES, "names", 0, gl_ended_on_names)                                                \
    X(BELONGINGS, "belongings", GL_ANSWERS_MANY, gl_ended_on_belongings)                   \
    X(DROP, "drop", GL_ANSWERS_MANY, gl_drop_on_done)                                      \
    X(JOB_FILES, "job_files", GL_ANSWER_FREES, gl_drop_on_files)                           \
    X(MARK, "mark", 0, gl_garbage_on_marks)                                                \
    X(SUSPECTS, "suspects", 0, gl_reserved_on_flows)                                       \
    X(CANDIDATES, "candidates", 0, gl_garbage_on_candidates)                               \
    X(HEADS, "heads", 0, gl_garbage_on_heads)                                              \
    X(CONDEMN, "condemn", GL_ANSWERS_MANY, gl_garbage_on_condemned)                        \
    X(REMOVE, "remove", GL_ANSWER_REFUSED, gl_garbage_on_removed)                          \
    X(SPARE, "spare", GL_ANSWER_REFUSED, gl_garbage_on_spared)                             \
    X(BLOB_FILES, "blob_files", GL_ANSWER_FREES, gl_garbage_on_files)                      \
    X(LEFT_LIST, "left_list", 0, gl_left_on_list)                                          \
    X(LEFT_CHECK, "left_check", 0, gl_left_on_check)                                       \
    X(LEFT_REMOVE, "left_remove", GL_ANSWER_REFUSED | GL_ANSWER_FREES, gl_left_on_removed) \
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
    GL_TRIM_HANDFUL = 50, /* jobs removed together */
    /* The same under a load of short jobs: each round waits its turn beside the load, so it must
     * take more with it than has ended meanwhile. */
    GL_TRIM_ARMFUL = 400,
    GL_TRIM_FLYING = 8,                   /* transactions under way */
    GL_TRIM_WRITES = 256,                 /* of one transaction */
    GL_TRIM_PAGE = 200,                   /* ids read at a time */
    GL_TRIM_REST_MS = 6 * 60 * 60 * 1000, /* between two looks at small records */
};

/* A job that is to go. */
struct gl_leaving {
    gl_str id;
    struct gl_job_record r; /* some of its fields: gl_leaving_schema */
    uint64_t rev, run_rev, dedupe_rev, request_rev;
    uint64_t retried_rev; /* of the record of its last retry, on a shared store */
    gl_str retried_by;
    uint64_t retried_token;
    uint64_t call; /* under way for it; of a transaction several share one; 0: none */
    bool is_over;  /* removed, or left for another time */
    bool is_removed;
    bool is_headless; /* there is no such job, only what it has left */
    bool is_doubtful; /* it has not ended, and nobody has it: is its flow there? */
    bool is_damaged;  /* its record is, or its flow, and somebody wants to be rid of it */
    bool is_retried;  /* the call under way asks whether it is */
    bool has_more;    /* belongings than `ids` */
    gl_str owner;     /* who had such a job, if that was another session */
    uint32_t kind;    /* of belongings: ended.c */
    struct gl_strs ids;
    int64_t log_from; /* entries of its log below this are gone */
};

/* A flow or blob that nothing seems to name, on a shared store; or, of either kind of store, what
 * may have stayed behind. */
struct gl_doomed {
    gl_str id;
    uint64_t rev;
    gl_str owner;
    uint64_t token;
    int64_t score;   /* in its index */
    gl_str value;    /* of a blob: what its record says while it is condemned */
    uint32_t pieces; /* of a blob */
    bool was_whole;
    bool is_ours; /* condemned by us, in this pass; or it goes */
    uint64_t call;
};

struct gl_suspect { /* a damaged job that seems to name this flow */
    gl_str job, flow;
};

struct gl_retention_pass {
    uint8_t stage; /* enum gl_retention_stage */
    uint8_t chore; /* enum gl_chore */
    uint64_t call; /* under way; 0: none, or several */
    uint32_t calls_n;
    int64_t broken; /* one of several has failed: the pass ends with this code when all are there */
    gl_str broken_why; /* belongs to the pool */

    /* For whom, and what is to be kept. */
    bool is_asked, is_removal;
    uint64_t request;
    gl_str job; /* belongs to the pool */
    gl_ms keep_ms;
    int64_t keep_jobs;

    uint64_t jobs_n, flows_n, blobs_n, work_n; /* removed */
    uint64_t freed;                            /* bytes of files */
    uint64_t store_bytes, store_bytes_before, files_bytes;
    int64_t by_size_n; /* jobs of the next page that go only because of their size */
    bool has_shrunk;   /* some have gone because of it */
    int64_t after_score;
    gl_str after; /* the last id of the page before; belongs to the pool */
    bool has_swept, has_rest, has_copies, has_orphans, has_work; /* it does this: chores.c */

    /* A handful of jobs; texts live in `arena`. */
    struct gl_leaving *jobs;
    size_t jobs_n_now;
    size_t gone_n;  /* of the handful */
    bool is_single; /* one per transaction, after a conflict */
    bool has_conflict;
    bool is_part;     /* the transaction under way removes a part of a large one */
    int64_t why_code; /* the last one that stays, stays for this; a reason */
    gl_str why;       /* belongs to the pool */

    /* A chore: the same. */
    bool is_second_look;
    uint64_t token;     /* with our session, of all that this pass condemns */
    struct gl_map used; /* what roots name, and submissions since: gl_str */
    struct gl_doomed *doomed;
    size_t doomed_n, doomed_cap, at, batch;
    struct gl_suspect *suspects;
    size_t suspects_n, suspects_cap;
    gl_ms began_at; /* submissions that were under way then are waited for */
    bool is_full;   /* list again when these are gone */

    struct gl_arena arena;
};

struct gl_retention_state {
    struct gl_keep keep;
    bool has_files;
    gl_ms due; /* the next pass, or the end of a pause */
    gl_ms flows_due, files_due, rest_due;
    bool is_ready, is_counted;
    int64_t ended_n;      /* jobs that have ended and are still there */
    bool seek_begun;      /* there may be jobs of which only a part is gone */
    bool seek_orphans;    /* there may be files of jobs that are gone */
    bool again;           /* something else may be found when flows are next looked through */
    uint64_t removed_n;   /* jobs, since they were last looked through */
    uint64_t condemned_n; /* sweeps that have condemned something */
    uint64_t young_bytes; /* of files that will go soon, as far as known */
    struct gl_link asks;  /* requests that wait: retention.c */
    struct gl_link pins;  /* jobs that are being retried: ended.c */

    /* reserved.c */
    struct gl_map damaged; /* jobs whose flow is not known */
    uint64_t damaged_look;
    struct gl_map reserved; /* flows that one of them may name: gl_str */
    bool reserve_all;       /* until all flows have been listed once */
    bool is_reserving;      /* a list of all flows has begun since */

    struct gl_retention_pass pass;
};

#endif
