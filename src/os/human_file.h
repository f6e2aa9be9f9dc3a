/* human_file.h - questions that the workers of a bundle ask in the file human.jsonl of their run's
 * folder, and the answers that are appended to it.
 *
 *     {"type": "human_input_requested", "payload": {"request_id", "prompt", "allowed_decisions",
 * ...}}
 *     {"type": "human_input_received", "payload": {"request_id", "decision", "reviewer", ...}}
 *
 * A request may say until when an answer is awaited (`timeout_seconds` after its `timestamp`, or
 * `expires_at`), and which decision counts then (`default_decision`). Answers that come later are
 * refused; the node writes the default down as the answer, in the name of the time-out
 * (os/human_timeouts.h).
 *
 * The last line that asks counts for its request_id; an answer counts for the question before it.
 *
 * Workers write the file as they like: lines that are no such thing, or half written, are passed
 * over. What is beyond a limit is told (gl_human_file_problems). A default that is not among the
 * decisions of its request is never written. */
#ifndef GL_OS_HUMAN_FILE_H
#define GL_OS_HUMAN_FILE_H

#include "base/err.h"
#include "base/json.h"
#include "port/asks.h"

struct gl_human_file {
    struct gl_ask *requests; /* in the order first asked, each once */
    size_t n;
    gl_ms changed_at; /* 0: there is no file */
    uint64_t bytes;   /* of what was read of it */
    /* What is not taken: */
    const char *is_other; /* "a folder": what stands there and is no file; NULL: it is, or none */
    bool is_cut;          /* the file is larger than what is read of it */
    size_t dropped_n;     /* lines that ask, beyond GL_HUMAN_FILE_MAX */
    size_t strange_n;     /* ... and such that are too long, or whose id is */
};

enum {
    GL_HUMAN_FILE_BYTES_MAX = 16 << 20, /* read of a file, from its end */
    GL_HUMAN_FILE_LINE_MAX = 1 << 20,
    GL_HUMAN_FILE_MAX = 10000, /* requests of one file */
    GL_HUMAN_FILE_ID_MAX = 512,
};

/* Everything lives in `a`. A file that is not there has no requests. */
int gl_human_file_read(const char *root, gl_str run_id, struct gl_arena *a,
                       struct gl_human_file *ret, struct gl_why *reterr_why);

/* Another node has the run's job (its status tells since when its workers are at work, RFC 3339,
 * "" : none is): can this file, on a disk that both may see, hold what they ask? */
bool gl_human_file_is_current(const char *root, gl_str run_id, gl_str since);

struct gl_human_file_answer {
    gl_str request_id, decision, reviewer, reason;
    gl_str output; /* JSON; "" : none */
    gl_ms now;
    gl_str at;    /* the same, RFC 3339 */
    gl_str ended; /* how the run's job has ended; "" : it has not, or it is not known */
};

bool gl_human_file_is_expired(const struct gl_ask *r, gl_ms now);

/* Append an answer, durably. Of two at once one is refused. GL_E_NOT_FOUND: nobody has asked that;
 * GL_E_STATE: it is answered, or its time or its job is over; GL_E_INVALID: not one of the
 * decisions it allows; GL_E_BUSY: somebody else holds a lock on the file for seconds. */
int gl_human_file_respond(const char *root, gl_str run_id,
                          const struct gl_human_file_answer *answer, struct gl_arena *a,
                          struct gl_why *reterr_why);

/* When the first open request that names a default is over; INT64_MAX: there is none. */
gl_ms gl_human_file_next_timeout(const struct gl_human_file *f);

/* The time of these is over, and nobody has answered: their defaults become the answers, durably,
 * by GL_HUMAN_FILE_TIMEOUT, in one write. *ret_n: how many; of very many some are left for the next
 * time. Waits for no lock: GL_E_BUSY. */
#define GL_HUMAN_FILE_TIMEOUT "timeout"
int gl_human_file_expire(const char *root, gl_str run_id, gl_ms now, size_t *ret_n,
                         struct gl_why *reterr_why);

/* Of which questions there is something to tell, in one sentence without a full stop; "" : none. */
gl_str gl_human_file_problems(const struct gl_human_file *f, struct gl_arena *a);

/* "approve, reject" */
gl_str gl_human_file_decisions(const struct gl_ask *r, const char *between, struct gl_arena *a);

#endif
