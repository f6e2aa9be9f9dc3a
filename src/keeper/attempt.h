/* attempt.h - the attempts in the keeper's charge, and the floor under the tokens of each job.
 *
 * An attempt is in charge from the moment its process starts (or could not) until its result is
 * acknowledged.
 *
 *     RUNNING ──process ended──► CLEARING ──no descendant left──► ENDING ──synced──► ENDED
 *        └───────────────── it could not be executed ─────────────────►┘
 *
 * A floor is the highest token anyone came with for a job: lower ones are refused. It is remembered
 * as long as the job has attempts here, and then while there is room. */
#ifndef GL_KEEPER_ATTEMPT_H
#define GL_KEEPER_ATTEMPT_H

#include "keeper/capture.h"
#include "keeper/keeper.h"
#include "keeper/worker_lines.h"

#define GL_ATTEMPT_STATES(X)                                                       \
    X(RUNNING, "running", GL_BIT(GL_ATTEMPT_CLEARING) | GL_BIT(GL_ATTEMPT_ENDING)) \
    X(CLEARING, "clearing", GL_BIT(GL_ATTEMPT_ENDING))                             \
    X(ENDING, "ending", GL_BIT(GL_ATTEMPT_ENDED))                                  \
    X(ENDED, "ended", 0)

enum gl_attempt_state {
#define X(name, word, next) GL_ATTEMPT_##name,
    GL_ATTEMPT_STATES(X)
#undef X
};

enum { GL_ATTEMPT_BYTES = 512 /* of a record of one attempt, without its output; a guess */ };

struct gl_floor {
    struct gl_link link; /* in floors_idle while attempts_n == 0 */
    uint64_t token;
    size_t attempts_n;
    bool has_folder;      /* its folder is there */
    bool has_files;       /* something is in it besides folders on the shelf */
    uint32_t cached_n;    /* those: see dir_cache.h */
    struct gl_link empty; /* in floors_empty while its folder can be given away */
    gl_str key;           /* "context/job" */
    char text[];
};

struct gl_attempt;

/* A process we are the parent of. */
struct gl_proc {
    pid_t pid;
    struct gl_attempt *attempt; /* NULL: nobody knows whose it is */
    struct gl_link link; /* in the charge's `adopted`; unused for the attempt's own process */
    bool direct;         /* the attempt's own process, not an orphaned descendant */
};

struct gl_attempt {
    struct gl_link link; /* in clearing, ending, unsaid, said or buried */
    enum gl_attempt_state state;
    struct gl_attempt_key key;
    gl_str id; /* "context/job/attempt" */
    uint64_t token;
    struct gl_floor *floor;

    struct gl_proc proc;
    struct gl_link adopted; /* struct gl_proc: descendants that lost their parent */
    uint64_t mark;          /* inherited by all descendants; 0: none */
    uint64_t ticks_min, ticks_max;
    int wait_status;
    struct gl_capture capture;
    struct gl_worker_lines *worker; /* of a worker; else NULL */
    struct gl_redactor *redactor;   /* while it runs, if it has secrets */

    struct gl_timer timer;
    gl_ms deadline, kill_at, beacon_at, clear_at; /* INT64_MAX: none */
    gl_ms grace_ms, beacon_ms;
    uint64_t incarnation;  /* of the last node that has started it or asked about it, ... */
    gl_ms contact_at;      /* ... and when that was last heard, if another has come since */
    gl_ms orphan_grace_ms; /* as that node wanted it: others count on it */
    bool needs_session;    /* a word counts only as long as the node has a session */
    bool stopping;         /* SIGTERM was sent because of ... */
    enum gl_exec_end why;  /* ... this: TIMEOUT, STOPPED or ORPHANED */
    bool lost;             /* the keeper itself is leaving: no result is recorded */

    struct gl_exec_result result; /* without its texts */
    int output_source;
    struct gl_buf output;
    struct gl_buf error;
    bool has_files;      /* its folder is its own: it has not been put on the shelf */
    uint64_t journal_at; /* where its end stands in the journal; 0: nowhere yet */
    char text[];
};

/* Compare with the floor of the job and raise it. GL_E_STALE: the token is lower. */
int gl_attempt_raise_floor(struct gl_keeper *k, const struct gl_attempt_key *key, uint64_t token,
                           struct gl_why *reterr_why);

struct gl_attempt *gl_attempt_find(struct gl_keeper *k, const struct gl_attempt_key *key);
/* The key must be valid, unknown, and its floor raised. */
struct gl_attempt *gl_attempt_new(struct gl_keeper *k, const struct gl_attempt_key *key,
                                  uint64_t token, enum gl_attempt_state state);
/* Forget it. Freed when the turn is over. */
void gl_attempt_remove(struct gl_keeper *k, struct gl_attempt *a);
void gl_attempt_free_removed(struct gl_keeper *k);
void gl_attempt_free_all(struct gl_keeper *k);

/* Something about the job's folder has changed: can it be given away? */
void gl_attempt_update_job_folder(struct gl_keeper *k, struct gl_floor *f);

/* The only writer of a->state. */
void gl_attempt_move(struct gl_keeper *k, struct gl_attempt *a, enum gl_attempt_state next);

/* About what the record of its end takes in the journal. */
size_t gl_attempt_bytes(const struct gl_attempt *a);

/* The journal's record of its beginning; borrows from both. */
struct gl_keeper_msg gl_attempt_begun(const struct gl_keeper *k, const struct gl_attempt *a);
/* The ENDED message of a charge whose result is complete; borrows from it. */
struct gl_keeper_msg gl_attempt_ended(const struct gl_attempt *a);

#endif
