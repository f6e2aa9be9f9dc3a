/* err.h - error codes, stable reasons, and the sentence for people that accompanies them.
 *
 * A function returns 0 or a negative GL_E_*. The sentence goes into a `struct gl_why` that the
 * caller may pass (or NULL): it names what is wrong and, where known, what to do. Foreign codes
 * (errno, SQLite, libevent, ...) are translated once, by the adapter that received them.
 *
 * A code is the kind of failure, and programs act on it. A reason (reasons.def) is the exact
 * failure: it belongs to one code, and its word never changes, whatever becomes of the sentence.
 * Where gl_why() and its relatives take a code they also take a reason, GL_R_*, which stands for
 * both; what they return, and what they store in `code`, is always the plain code. */
#ifndef GL_BASE_ERR_H
#define GL_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GL_ERRORS(X)                                                            \
    X(GL_E_CONFLICT, -1, "conflict", "someone else changed the record first")   \
    X(GL_E_LIMIT, -2, "limit", "a limit was reached")                           \
    X(GL_E_GONE, -3, "gone", "the peer or process is gone")                     \
    X(GL_E_IO, -4, "io", "the operating system refused")                        \
    X(GL_E_INVALID, -5, "invalid", "the input is invalid")                      \
    X(GL_E_NOT_FOUND, -6, "not_found", "it does not exist")                     \
    X(GL_E_EXISTS, -7, "exists", "it already exists")                           \
    X(GL_E_DENIED, -8, "denied", "not allowed")                                 \
    X(GL_E_UNAVAILABLE, -9, "unavailable", "the store or node is unavailable")  \
    X(GL_E_UNKNOWN, -10, "unknown", "the outcome is unknown")                   \
    X(GL_E_STALE, -11, "stale", "an outdated token, attempt or start deadline") \
    X(GL_E_STATE, -12, "state", "not possible in this state")                   \
    X(GL_E_DAMAGED, -13, "damaged", "stored data is damaged")                   \
    X(GL_E_VERSION, -14, "version", "written by a newer release")               \
    X(GL_E_BUSY, -15, "busy", "held by someone else")                           \
    X(GL_E_NOT_OWNER, -16, "not_owner", "not held by the caller")

enum gl_error {
    GL_OK = 0,
#define X(name, value, word, text) name = value,
    GL_ERRORS(X)
#undef X
};

enum gl_reason {
    GL_REASON_NONE = 0,
#define REASON(name, code, word, meaning) GL_REASON_##name,
#include "base/reasons.def"
    GL_REASON_COUNT
};

/* Why a job or a step is in its state; accompanies the sentences of api/reason.h. */
enum gl_why_code {
    GL_BECAUSE_NONE = 0,
#define WHY_CODE(name, word, meaning) GL_BECAUSE_##name,
#include "base/reasons.def"
    GL_BECAUSE_COUNT
};

enum { GL_REASON_STEP = 1 << 12 }; /* codes are smaller */

/* A reason combined with its code. */
enum gl_reasoned {
    GL_R_NONE = 0,
#define REASON(name, code, word, meaning) \
    GL_R_##name = GL_E_##code - (int)GL_REASON_##name * GL_REASON_STEP,
#include "base/reasons.def"
};

enum { GL_WHY_BYTES = 1024 };

struct gl_why {
    int code;
    enum gl_reason reason; /* GL_REASON_NONE: only a code */
    bool needs_help; /* a retry does not help until someone has acted, for example by freeing disk
                        space; gl_why() clears it, the adapter that knows sets it */
    char text[GL_WHY_BYTES];
};

/* The short stable word of a code ("conflict"), as used in JSON. "ok" for 0. */
/* Is it 0 or the code of an error, without a reason? For codes from outside. */
bool gl_err_is_plain(int64_t code);
const char *gl_err_word(int code);

/* The general meaning of a code, for people. */
const char *gl_err_text(int code);

/* The code of a word; GL_E_UNKNOWN if there is none. */
int gl_err_from_word(const char *word);

/* The two halves of what gl_why() takes, and their combination. */
int gl_err_code(int code);
enum gl_reason gl_err_reason(int code);
int gl_err_join(int code, enum gl_reason reason);

/* The word of a reason ("no_such_job"), its code, and its meaning; "" and 0 for none. */
const char *gl_reason_word(enum gl_reason reason);
int gl_reason_code(enum gl_reason reason);
const char *gl_reason_meaning(enum gl_reason reason);
enum gl_reason gl_reason_from_word(const char *word); /* GL_REASON_NONE: unknown word */

/* The word of a why code ("waits_for_steps"), and its meaning; "" for none. */
const char *gl_why_code_word(enum gl_why_code code);
const char *gl_why_code_meaning(enum gl_why_code code);

/* Write the sentence (if `why` is given) and return the plain code, so that a failing function can
 * `return gl_why(why, GL_R_NO_SUCH_JOB, "...")`. Truncates; never fails. */
int gl_why(struct gl_why *why, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The code and reason in `why`, combined, for code that passes the sentence on as text. */
int gl_why_whole(const struct gl_why *why);

/* Prepend "prefix: " to the sentence; returns its code. */
int gl_why_prefix(struct gl_why *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
