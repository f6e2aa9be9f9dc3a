/* err.h - error codes, and the sentence for people that travels with them.
 *
 * A function returns 0 or a negative GL_E_*. The sentence goes into a `struct gl_why`
 * the caller may pass (or NULL): it names what is wrong and, where known, what to do.
 * Foreign codes (errno, SQLite, libevent, ...) are translated once, by the adapter that
 * met them. */
#ifndef GL_BASE_ERR_H
#define GL_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#define GL_ERRORS(X)                                                           \
    X(GL_E_CONFLICT, -1, "conflict", "someone else changed the record first")  \
    X(GL_E_LIMIT, -2, "limit", "a limit was reached")                          \
    X(GL_E_GONE, -3, "gone", "the peer or process is gone")                    \
    X(GL_E_IO, -4, "io", "the operating system refused")                       \
    X(GL_E_INVALID, -5, "invalid", "the input is not valid")                   \
    X(GL_E_NOT_FOUND, -6, "not_found", "there is no such thing")               \
    X(GL_E_EXISTS, -7, "exists", "it exists already")                          \
    X(GL_E_DENIED, -8, "denied", "not allowed")                                \
    X(GL_E_UNAVAILABLE, -9, "unavailable", "the store or node is unavailable") \
    X(GL_E_UNKNOWN, -10, "unknown", "the outcome is not known")                \
    X(GL_E_STALE, -11, "stale", "an old token, attempt or start-by time")      \
    X(GL_E_STATE, -12, "state", "not possible in this state")                  \
    X(GL_E_DAMAGED, -13, "damaged", "stored data is damaged")                  \
    X(GL_E_VERSION, -14, "version", "written by a newer release")              \
    X(GL_E_BUSY, -15, "busy", "held by someone else")                          \
    X(GL_E_NOT_OWNER, -16, "not_owner", "someone else has it, or nobody")

enum gl_error {
    GL_OK = 0,
#define X(name, value, word, text) name = value,
    GL_ERRORS(X)
#undef X
};

enum { GL_WHY_BYTES = 1024 };

struct gl_why {
    int code;
    bool needs_help; /* asking again does not help before somebody has done something, as making
                        room on a disk; gl_why() says no, the adapter that knows it says yes */
    char text[GL_WHY_BYTES];
};

/* The short stable word of a code ("conflict"), as used in JSON. "ok" for 0. */
const char *gl_err_word(int code);

/* What a code means in general, for people. */
const char *gl_err_text(int code);

/* The code of a word; GL_E_UNKNOWN if there is none. */
int gl_err_from_word(const char *word);

/* Write the sentence (if `why` is given) and return `code`, so that a failing function
 * can `return gl_why(why, GL_E_INVALID, "...")`. Truncates, never fails. */
int gl_why(struct gl_why *why, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "prefix: " before the sentence; returns the code in it. */
int gl_why_prefix(struct gl_why *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
