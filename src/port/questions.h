/* questions.h - worker questions: what the workers of bundles ask a person, as last read.
 *
 * The questions are in files (os/human_file.h) that the control thread does not read. A background
 * task reads them now and then; this interface returns what it found. Of a run only the first
 * questions are returned, with their texts cut off; the number of open questions is always
 * complete. */
#ifndef GL_PORT_QUESTIONS_H
#define GL_PORT_QUESTIONS_H

#include "base/err.h"
#include "base/list.h"
#include "base/times.h"
#include "model/schema.h"

enum {
    GL_QUESTIONS_RUNS_MAX = 1000,  /* runs returned; for the rest only the number of questions */
    GL_QUESTIONS_TOLD_MAX = 10,    /* questions returned per run, ... */
    GL_QUESTION_PROMPT_BYTES = 512 /* ... each prompt cut off here */
};

struct gl_question {
    gl_str request_id, prompt;
    struct gl_strs decisions; /* empty: approve and reject */
    gl_ms expires_at;         /* 0: never */
    gl_str default_decision;  /* applied at expiry; "" : none given */
    bool is_refused;          /* the default is not among the decisions and will not be applied */
    uint32_t again_n;         /* how often it was asked again after an answer */
    bool is_answered;
    gl_str decision, reviewer, answered_at; /* if answered */
};

/* Can a job that began at `since` (INT64_MAX: no job) have written a file last changed at
 * `changed_at`? The clocks of the disk and the node may differ a little. */
static inline bool gl_question_is_since(gl_ms changed_at, gl_ms since)
{
    enum { SLACK_MS = 2000 };

    return since != INT64_MAX && since <= changed_at + SLACK_MS;
}

struct gl_questions_run {
    gl_str run_id;
    gl_str job_id;   /* owner of the run folder; "" : unknown */
    gl_ms asked_at;  /* when the file was last written; no question is newer */
    uint64_t open_n; /* unanswered questions ... */
    struct gl_question *open;
    size_t n;       /* ... and the first of them */
    gl_str trouble; /* what could not be read or was rejected, for people; "" : nothing */
};

struct gl_questions {
    void *owner;
    /* The questions of one run, allocated in `a`; NULL: none are open, or the run is unknown. */
    const struct gl_questions_run *(*find)(void *owner, gl_str run_id, struct gl_arena *a);
    /* All runs, with at most `limit` questions in total; their jobs may have ended meanwhile.
     * *ret_n: number of runs; *ret_open_n: number of open questions in all of them. */
    struct gl_questions_run *(*all)(void *owner, size_t limit, struct gl_arena *a, size_t *ret_n,
                                    uint64_t *ret_open_n);
};

/* Writes the default answers of expired requests. */
struct gl_ask_expiry {
    struct gl_link link; /* the writer's */
    gl_str job;          /* borrowed until `done` */
    gl_ms now;           /* requests that have expired by this time get their default decision */
    void (*done)(struct gl_ask_expiry *x);
    void *owner;
    int status; /* 0, or why nothing was written; GL_E_BUSY: another process holds a lock on the
                   file */
    struct gl_why why;
    size_t n; /* answers written */
};

struct gl_ask_writer {
    /* `done` runs later, on the control thread; never if the writer stops before. */
    void (*expire)(struct gl_ask_writer *w, struct gl_ask_expiry *x);
};

#endif
