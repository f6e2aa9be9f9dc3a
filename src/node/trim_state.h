/* trim_state.h - the memory of trim*.c, shared by them and by nobody else.
 *
 * One thing is under way at a time, and each part hands on when it has ended:
 *
 *   count ─► measure ─► page ─► jobs ─► (pause) ─► page ... ─► flows ─► rest ─► files ─► answer
 *
 * A part that fails ends the pass (gl_trim_fail): the next one begins again from the start. */
#ifndef GL_NODE_TRIM_STATE_H
#define GL_NODE_TRIM_STATE_H

#include "model/job.h"
#include "node/node_state.h"
#include "node/trim.h"

enum {
    GL_TRIM_HANDFUL = 50, /* jobs removed together */
    /* The same under a load of short jobs: each of its rounds waits its turn beside the load, so a
     * round must take more with it than has ended meanwhile. */
    GL_TRIM_ARMFUL = 400,
    GL_TRIM_FLYING = 8,   /* transactions under way */
    GL_TRIM_WRITES = 256, /* of one transaction */
    GL_TRIM_PAGE = 200,   /* ids read at a time */
    GL_TRIM_BEGUN = 0,    /* where those stand in the index "ended" that have begun to go */
};

struct gl_trim_tally {
    uint64_t jobs_n, flows_n, blobs_n, work_n;
    uint64_t bytes; /* of files */
};

/* A job that is to go. */
struct gl_trim_going {
    struct gl_trim *trim;
    gl_str id;
    struct gl_job_record r;
    uint64_t rev;
    uint64_t run_rev, dedupe_rev, request_rev;
    uint64_t retried_rev; /* of the record of its last retry, on a shared store */
    gl_str retried_by;
    uint64_t retried_token;
    bool is_over;                /* removed, or left for another time */
    const struct gl_trim_tx *tx; /* the one under way that it is in; NULL: none */
    bool is_removed;
    bool is_headless; /* there is no such job, only what it has left */
    bool is_doubtful; /* it has not ended, and nobody has it: is its flow there? */
    bool is_damaged;  /* its record is, or its flow, and somebody wants to be rid of it */
    gl_str owner;     /* who had such a job, if that was another session */
    const char *kind; /* what is listed of it: "step", then "signal", ... */
    struct gl_store_req req;
    struct gl_listing listing;
    struct gl_range range;
    gl_str *ids; /* found; in the arena */
    size_t ids_n;
    bool more; /* of them */
    int64_t log_from;
};

/* A transaction that removes some of them. */
struct gl_trim_tx {
    struct gl_trim *trim;
    struct gl_store_req req;
    struct gl_tx tx;
    struct gl_guard guards[GL_TRIM_WRITES];
    struct gl_write writes[GL_TRIM_WRITES];
};

/* A flow or a blob that seems to be named by nobody. */
struct gl_trim_doomed {
    gl_str hash;
    bool is_ours;    /* condemned by us, in this pass */
    bool is_going;   /* in the transaction under way */
    uint32_t pieces; /* of a blob */
};

struct gl_trim_ask {
    struct gl_link link;
    struct gl_node *node;
    struct gl_request *rq;
    char job[GL_ULID_BYTES + 1]; /* REMOVE */
};

struct gl_trim {
    struct gl_node *node;
    struct gl_keep keep;
    struct gl_tidy *tidy;
    gl_ms due; /* the next pass, or the end of a pause */
    bool is_busy, is_paused, is_stopped;
    bool is_counted;
    int64_t ended_n; /* jobs that have ended and are still there */
    gl_ms flows_due, files_due, rest_due;
    uint64_t condemned_n;    /* passes that have condemned something */
    bool seek_begun;         /* there may be jobs of which only a part is gone */
    bool seek_orphans;       /* there may be files of jobs that are gone */
    uint64_t removed_n;      /* jobs, since flows were last looked through */
    bool again;              /* something else may be found then */
    struct gl_link asks;     /* struct gl_trim_ask: waiting */
    struct gl_link naming;   /* struct gl_trim_ask: which job is meant? */
    struct gl_link pins;     /* jobs that are being retried: trim_jobs.c */
    struct gl_trim_ask *ask; /* the one this pass serves; NULL: none */
    struct gl_map damaged;   /* jobs whose flow is not known: trim_damaged.c */
    uint64_t damaged_look;
    struct gl_map reserved; /* flows that one of them may name; in its arena */
    struct gl_arena reserved_arena;
    bool reserve_all;  /* until all flows have been listed once */
    bool is_reserving; /* a list of all flows has begun since */

    /* The pass. */
    gl_ms keep_ms;
    int64_t keep_jobs;
    struct gl_trim_tally tally;
    uint64_t store_bytes, store_bytes_before, files_bytes;
    uint64_t young_bytes; /* of files that will go soon, as far as known */
    int64_t by_size_n;    /* how many of the next page go only because of their size */
    bool has_shrunk;      /* some have gone because of it */
    int64_t after_score;
    char after_id[GL_ULID_BYTES + 1];
    struct gl_range range;
    struct gl_store_req req;
    struct gl_tidy_req tidy_req;
    struct gl_arena arena; /* of the part under way */

    /* jobs */
    struct {
        struct gl_trim_going items[GL_TRIM_ARMFUL];
        size_t n, reading_n;
        bool is_single; /* one per transaction, after a conflict */
        struct gl_key keys[4 * GL_TRIM_ARMFUL];
        struct gl_trim_tx txs[GL_TRIM_FLYING];
        size_t flying_n;
        bool has_conflict;
        struct gl_why broken; /* code != 0: one of them could not be carried out */
        gl_str removed[GL_TRIM_ARMFUL];
        size_t removed_n;
        struct gl_why why; /* the last one that stays, stays */
    } jobs;

    /* flows */
    struct {
        bool is_under_way;
        uint64_t submits_until; /* number of the last request when it began */
        struct gl_arena arena;
        struct gl_map used, named, blobs; /* by hash, all in the arena */
        struct gl_listing listing;
        gl_str *kept;
        size_t kept_n, kept_cap, kept_at;
        struct gl_key keys[GL_TRIM_PAGE];
        size_t going_n;
        struct gl_tx tx;
        struct gl_guard guard;
        struct gl_write writes[GL_TRIM_WRITES];

        /* On a shared store: what is condemned, flows first and then blobs. */
        void (*looked)(struct gl_trim *t); /* when all jobs have been looked through */
        struct suspect *suspects;          /* trim_damaged.c */
        struct gl_trim_doomed *doomed;
        size_t doomed_n, doomed_cap, at, batch;
        uint64_t token;      /* with our session, of all that this pass condemns */
        struct gl_map known; /* flows whose blobs are in `blobs` */
        struct gl_guard guards[GL_TRIM_WRITES];
        int64_t scores[GL_TRIM_PAGE / 2]; /* trim_rest.c, which borrows all this */
    } flows;

    /* files */
    struct {
        gl_str *names;
        size_t names_n, at;
        gl_str *going;
        size_t going_n;
        struct gl_key *keys;
        size_t keys_n;
        bool is_work; /* attempts; else jobs */
        bool again;
    } files;
};

/* ---- trim.c ---- */
void gl_trim_fail(struct gl_trim *t, int code, const char *why); /* the pass ends */
void gl_trim_jobs_over(struct gl_trim *t);
void gl_trim_flows_over(struct gl_trim *t);
void gl_trim_files_over(struct gl_trim *t);
/* Prepare t->req; the caller then makes the call. */
struct gl_store_req *gl_trim_call(struct gl_trim *t, gl_store_done *done);
/* True if the answer can be used; else the pass has ended, or the node is stopping. */
bool gl_trim_answered(struct gl_trim *t, const struct gl_store_req *req);
struct gl_tidy_req *gl_trim_tidy(struct gl_trim *t, gl_tidy_done *done);
bool gl_trim_tidied(struct gl_trim *t, const struct gl_tidy_req *req);
/* Nothing is allowed to be lost by it, so it carries no number: it may be repeated. */
void gl_trim_commit(struct gl_trim *t, struct gl_tx *tx, gl_store_done *done);
bool gl_trim_read_job(struct gl_trim *t, gl_str value, struct gl_job_record *ret);
/* The same as answered, of a transaction that may be refused. */
bool gl_trim_landed(struct gl_trim *t, const struct gl_store_req *req, bool *ret_refused);
static inline bool gl_trim_is_shared(const struct gl_trim *t)
{
    return t->node->ports.store->ops->shared;
}

/* ---- trim_jobs.c ---- */
/* Remove these; t->jobs.items[..].id and .r.ended_at have been set, n as well. */
void gl_trim_jobs_begin(struct gl_trim *t);
/* The next page of what belongs to it, and then gl_trim_drop_next(). */
void gl_trim_jobs_list(struct gl_trim_going *g);
bool gl_trim_jobs_is_pinned(const struct gl_trim *t, gl_str job);
/* This one stays; `code` and the sentence in t->jobs.why have been set. */
static inline void gl_trim_leave(struct gl_trim_going *g, int code)
{
    GL_ASSERT(code != 0);
    g->is_over = true;
}
/* Somebody is about to rely on it: it stays, if it is not on its way out of the store already. */
void gl_trim_jobs_pin(struct gl_trim *t, gl_str job);
void gl_trim_jobs_unpin(struct gl_trim *t, bool all);

/* ---- trim_drop.c ---- */
/* Of those that are left, as many as go now; in the end their files, and gl_trim_jobs_over(). */
void gl_trim_drop_next(struct gl_trim *t);

/* ---- trim_flows.c ---- */
void gl_trim_flows_begin(struct gl_trim *t);
void gl_trim_flows_on_time(struct gl_trim *t);
void gl_trim_flows_end(struct gl_trim *t); /* forget it, however far it is */

void gl_trim_flows_use(struct gl_trim *t, gl_str hash); /* a job names it */
void gl_trim_flows_look(struct gl_trim *t, void (*looked)(struct gl_trim *t));
bool gl_trim_flows_is_named(struct gl_trim *t, gl_str hash);
void gl_trim_flows_keep(struct gl_trim *t, gl_str hash);
void gl_trim_flows_doom(struct gl_trim *t, gl_str hash);
void gl_trim_flows_note_blobs(struct gl_trim *t, gl_str text);
void gl_trim_flows_read_kept(struct gl_trim *t); /* for their blobs, and then those go */

/* ---- trim_damaged.c: begin, note each job that cannot be read, settle ---- */
void gl_trim_damaged_begin(struct gl_trim *t);
void gl_trim_damaged_note(struct gl_trim *t, const struct gl_record *r);
void gl_trim_damaged_settle(struct gl_trim *t); /* and then flows.looked() */
/* All flows are being listed, from the first on; or have been. */
void gl_trim_damaged_list(struct gl_trim *t, bool is_begin);
bool gl_trim_damaged_reserves(struct gl_trim *t, gl_str flow); /* a flow that is listed */
void gl_trim_damaged_free(struct gl_trim *t);

/* ---- trim_condemn.c: flows of a shared store ---- */
void gl_trim_condemn_begin(struct gl_trim *t);
struct gl_guard gl_trim_condemn_guard(const struct gl_trim *t, gl_str kind, gl_str id);

/* ---- trim_blobs.c: blobs in a shared store ---- */
void gl_trim_blobs_begin(struct gl_trim *t);

/* ---- trim_rest.c ---- */
void gl_trim_rest_begin(struct gl_trim *t);
void gl_trim_rest_over(struct gl_trim *t);

/* ---- trim_files.c ---- */
void gl_trim_files_begin(struct gl_trim *t, bool orphans, bool work);

#endif
