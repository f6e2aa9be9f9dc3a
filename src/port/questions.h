/* asks.h - questions of bundles' workers that wait for a person, as they were last read.
 *
 * They stand in files (os/human_file.h), which the control thread does not read: somebody else
 * does, every now and then, and tells what was found. Only the first questions of a run are told,
 * with texts that are cut; how many there are is told of all. */
#ifndef GL_PORT_QUESTIONS_H
#define GL_PORT_QUESTIONS_H

#include "base/err.h"
#include "base/list.h"
#include "base/times.h"
#include "model/schema.h"

enum {
    GL_QUESTIONS_RUNS_MAX =
        1000,                   /* runs of which is told; of others how many questions there are */
    GL_QUESTIONS_TOLD_MAX = 10, /* questions of one run that are told, ... */
    GL_QUESTION_PROMPT_BYTES = 512 /* ... cut off there */
};

struct gl_question {
    gl_str request_id, prompt;
    struct gl_strs decisions; /* none: approve and reject */
    gl_ms expires_at;         /* 0: never */
    gl_str default_decision;  /* what counts then; "" : it does not say */
    bool is_refused;          /* the default is none of the decisions, and will not be written */
    uint32_t again_n;         /* how often it was asked anew after an answer */
    bool is_answered;
    gl_str decision, reviewer, answered_at; /* then */
};

/* May who began at `since` (INT64_MAX: nobody) have written a file that was last changed then? The
 * clock of a disk, and that of a node, differ a little. */
static inline bool gl_question_is_since(gl_ms changed_at, gl_ms since)
{
    enum { SLACK_MS = 2000 };

    return since != INT64_MAX && since <= changed_at + SLACK_MS;
}

struct gl_questions_run {
    gl_str run_id;
    gl_str job_id;   /* that has the run's folder; "" : it cannot be told */
    gl_ms asked_at;  /* when the file was last written: no question is later */
    uint64_t open_n; /* questions that nobody has answered ... */
    struct gl_question *open;
    size_t n;       /* ... and the first of them */
    gl_str trouble; /* what of the file is not read or not taken, for people; "" : nothing */
};

struct gl_questions {
    void *owner;
    /* Of one run, in `a`; NULL: nothing is open there, or it is not known. */
    const struct gl_questions_run *(*find)(void *owner, gl_str run_id, struct gl_arena *a);
    /* Of all, with at most `limit` questions; they may be of jobs that have ended meanwhile.
     * *ret_n: how many runs; *ret_open_n: how many questions there are altogether. */
    struct gl_questions_run *(*all)(void *owner, size_t limit, struct gl_arena *a, size_t *ret_n,
                                    uint64_t *ret_open_n);
};

/* Writes the answers that nobody gave in time. */
struct gl_ask_expiry {
    struct gl_link link; /* the writer's */
    gl_str job;          /* borrowed until `done` */
    gl_ms now;           /* the requests whose time is over by then get their default decision */
    void (*done)(struct gl_ask_expiry *x);
    void *owner;
    int status; /* 0, or why nothing was written; GL_E_BUSY: somebody holds a lock on the file */
    struct gl_why why;
    size_t n; /* answers written */
};

struct gl_ask_writer {
    /* `done` runs later, on the control thread; never if the writer stops before. */
    void (*expire)(struct gl_ask_writer *w, struct gl_ask_expiry *x);
};

#endif
