/* attempt.h - the attempts a keeper knows, and the lowest token it accepts for each job.
 *
 * The keeper knows an attempt from the moment its process was started (or could not be) until its
 * result is acknowledged.
 *
 *     RUNNING ──process ended──► CLEARING ──no descendant left──► ENDING ──synced──► ENDED
 *        └───────────────── it could not be executed ─────────────────►┘
 *
 * A floor is the highest token seen for a job: requests with a lower one are refused. It is kept
 * while the job has attempts here, and afterwards as long as there is room.
 *
 * Call gl_attempt_raise_floor() before gl_attempt_new(); change the state with gl_attempt_move()
 * only. gl_attempt_remove() defers the free to the end of the turn. */
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

enum { GL_ATTEMPT_BYTES = 512 /* estimate for one journal record without its output */ };

/* A job, as far as the keeper knows it. */
struct gl_floor {
    struct gl_link link; /* in floors_idle while attempts_n == 0 */
    uint64_t token;
    size_t attempts_n;
    bool has_folder;      /* the job's folder exists */
    bool has_files;       /* it holds something besides cached attempt folders */
    uint32_t cached_n;    /* how many of those: see dir_cache.h */
    struct gl_link empty; /* in floors_empty while another job may take the folder */
    gl_str key;           /* "context/job" */
    char text[];
};

struct gl_attempt;

/* A child process of the keeper. */
struct gl_proc {
    pid_t pid;
    struct gl_attempt *attempt; /* NULL: a stray, owner unknown */
    struct gl_link link;        /* in the attempt's `adopted`; unused for its own process */
    bool direct;                /* the attempt's own process, not an adopted descendant */
};

struct gl_attempt {
    struct gl_link link; /* in clearing, ending, unreported, reported or removed */
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
    struct gl_worker_lines *worker; /* output of a worker; NULL: an ordinary step */
    struct gl_redactor *redactor;   /* while it runs, if it has secrets */

    struct gl_timer timer;
    gl_ms deadline, kill_at, beacon_at, clear_at; /* INT64_MAX: none */
    gl_ms grace_ms, beacon_ms;
    uint64_t incarnation;  /* of the last node that started it or asked about it ... */
    gl_ms contact_at;      /* ... and that node's last message, if another node has come since */
    gl_ms orphan_grace_ms; /* as that node asked for: others rely on it */
    bool needs_session;    /* messages count only while the node has a session */
    bool stopping;         /* SIGTERM was sent because of ... */
    enum gl_exec_end why;  /* ... this: TIMEOUT, STOPPED or ORPHANED */
    bool lost;             /* the keeper is shutting down: no result is recorded */

    struct gl_exec_result result; /* without its texts */
    int output_source;
    struct gl_buf output;
    struct gl_buf error;
    bool has_files;      /* it keeps its folder: the folder was not put into the cache */
    uint64_t journal_at; /* journal offset after its end record; 0: not written yet */
    char text[];
};

/* Compare with the job's floor and raise it. GL_E_STALE: the token is lower. */
int gl_attempt_raise_floor(struct gl_keeper *k, const struct gl_attempt_key *key, uint64_t token,
                           struct gl_why *reterr_why);

struct gl_attempt *gl_attempt_find(struct gl_keeper *k, const struct gl_attempt_key *key);
/* The key must be valid and unknown, and its floor raised. */
struct gl_attempt *gl_attempt_new(struct gl_keeper *k, const struct gl_attempt_key *key,
                                  uint64_t token, enum gl_attempt_state state);
/* Forget it. The memory is freed at the end of the turn: events of this turn may still name it. */
void gl_attempt_remove(struct gl_keeper *k, struct gl_attempt *a);
void gl_attempt_free_removed(struct gl_keeper *k);
void gl_attempt_free_all(struct gl_keeper *k);

/* The job's folder has changed: update whether another job may take it. */
void gl_attempt_update_job_folder(struct gl_keeper *k, struct gl_floor *f);

/* The only writer of a->state. */
void gl_attempt_move(struct gl_keeper *k, struct gl_attempt *a, enum gl_attempt_state next);

/* Approximate size of its end record in the journal. */
size_t gl_attempt_bytes(const struct gl_attempt *a);

/* The journal record of its start; borrows from both. */
struct gl_keeper_msg gl_attempt_begun(const struct gl_keeper *k, const struct gl_attempt *a);
/* The ENDED message of an attempt whose result is complete; borrows from it. */
struct gl_keeper_msg gl_attempt_ended(const struct gl_attempt *a);

#endif
