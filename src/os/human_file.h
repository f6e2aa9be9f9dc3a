/* human_file.h - questions that the workers of a bundle ask, and their answers: the file
 * human.jsonl in the folder of a run.
 *
 *     {"type": "human_input_requested", "payload": {"request_id", "prompt", "allowed_decisions",
 * ...}}
 *     {"type": "human_input_received", "payload": {"request_id", "decision", "reviewer", ...}}
 *
 * A request may set a deadline (`timeout_seconds` after its `timestamp`, or `expires_at`) and
 * the decision that counts after it (`default_decision`). Later answers are refused; the node
 * appends the default as the answer, with GL_HUMAN_FILE_TIMEOUT as the reviewer
 * (os/human_timeouts.h), when the core says so (core/agents/human_requests.h).
 *
 * If several lines ask with the same request_id, the last one counts. An answer belongs to the
 * question before it.
 *
 * Workers may write anything into the file. Lines that are neither of the two, or incomplete,
 * are skipped. What exceeds a limit is reported by gl_human_file_problems(). A default that the
 * request itself does not allow is never written. */
#ifndef GL_OS_HUMAN_FILE_H
#define GL_OS_HUMAN_FILE_H

#include "base/err.h"
#include "base/json.h"
#include "port/questions.h"

struct gl_human_file {
    struct gl_question *requests; /* in the order in which they were first asked, each once */
    size_t n;
    gl_ms changed_at; /* 0: there is no file */
    uint64_t bytes;   /* bytes read */
    /* What was skipped: */
    const char *is_other; /* "a folder": not a regular file; NULL: a file, or none */
    bool is_cut;          /* the file is larger than BYTES_MAX: its beginning was skipped */
    size_t dropped_n;     /* requests beyond GL_HUMAN_FILE_MAX */
    size_t strange_n;     /* requests that are too long, or whose id is too long */
};

enum {
    GL_HUMAN_FILE_BYTES_MAX = 16 << 20, /* bytes read of a file, from its end */
    GL_HUMAN_FILE_LINE_MAX = 1 << 20,
    GL_HUMAN_FILE_MAX = 10000, /* requests of one file */
    GL_HUMAN_FILE_ID_MAX = 512,
};

/* All results are allocated in `a`. A missing file has no requests. */
int gl_human_file_read(const char *root, gl_str run_id, struct gl_arena *a,
                       struct gl_human_file *ret, struct gl_why *reterr_why);

/* The job of the run is on another node: can this file, if both nodes see the same disk, hold its
 * questions? The job's status says since when its workers have been running (RFC 3339; "" :
 * none). */
bool gl_human_file_is_current(const char *root, gl_str run_id, gl_str since);

struct gl_human_file_answer {
    gl_str request_id, decision, reviewer, reason;
    gl_str output; /* JSON; "" : none */
    gl_ms now;
    gl_str at;    /* the same, RFC 3339 */
    gl_str ended; /* how the job of the run ended; "" : it has not, or is unknown */
};

bool gl_human_file_is_expired(const struct gl_question *r, gl_ms now);

/* Append an answer, durably. Of two concurrent answers one is refused. GL_E_NOT_FOUND: no such
 * request; GL_E_STATE: it is answered or expired, or its job has ended; GL_E_INVALID: the request
 * does not allow this decision; GL_E_BUSY: another process holds a lock on the file. */
int gl_human_file_respond(const char *root, gl_str run_id,
                          const struct gl_human_file_answer *answer, struct gl_arena *a,
                          struct gl_why *reterr_why);

/* When the first open request that has a default expires; INT64_MAX: there is none. */
gl_ms gl_human_file_next_timeout(const struct gl_human_file *f);

/* Answer all expired requests with their defaults, durably, as GL_HUMAN_FILE_TIMEOUT, in a single
 * write. *ret_n: the number of answers; if there are very many, some are left for the next call.
 * Does not wait for a lock: GL_E_BUSY. */
#define GL_HUMAN_FILE_TIMEOUT "timeout"
int gl_human_file_expire(const char *root, gl_str run_id, gl_ms now, size_t *ret_n,
                         struct gl_why *reterr_why);

/* What is wrong with the file, in one sentence without a full stop; "" : nothing. */
gl_str gl_human_file_problems(const struct gl_human_file *f, struct gl_arena *a);

#endif
