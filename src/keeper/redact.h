/* redact.h - keeping secrets out of what a step says.
 *
 * Every byte that belongs to an occurrence of a secret is left out, and each run of such bytes
 * becomes "***". This is exact, however the text was cut into pieces on its way: bytes that may
 * still turn out to be the beginning of a secret are held back until it is known.
 *
 * What is looked for: the value of each secret; if it has several lines, also each line of at least
 * four bytes (white space around it does not count); and of all these what JSON makes of them
 * inside a string, with characters beyond ASCII as they are and as \uXXXX. Other encodings (base64,
 * URLs) are not known.
 *
 * A redactor is an Aho-Corasick automaton: the cost of a byte does not depend on the number of
 * secrets. It never changes, and attempts with the same secrets share one. */
#ifndef GL_KEEPER_REDACT_H
#define GL_KEEPER_REDACT_H

#include "base/map.h"
#include "base/str.h"

struct gl_redactor;

/* Get one for these secrets ("NAME=value", as checked by gl_keeper_check_start()); `all` holds
 * those in use. None for no secrets: NULL. */
struct gl_redactor *gl_redact_get(struct gl_map *all, const gl_str *secrets, size_t n);
void gl_redact_put(struct gl_map *all, struct gl_redactor *r); /* NULL is fine */

struct gl_redact_span {
    uint64_t from, to;
    bool written; /* its "***" is written; only its end may still move */
};

/* One text that comes in pieces. All-zero but for `redactor` is a new one. */
struct gl_redact {
    const struct gl_redactor *redactor; /* borrowed */
    uint32_t state;
    uint64_t seen;                /* bytes that came */
    uint64_t done;                /* of these, written or left out */
    struct gl_buf held;           /* the bytes between */
    struct gl_redact_span *spans; /* occurrences that end behind `done`, in order, apart */
    size_t spans_n, spans_cap;
    bool replaced; /* something was left out */
};

/* Append to `out` what is certain. */
void gl_redact_feed(struct gl_redact *x, gl_str text, struct gl_buf *out);
/* There is no more: append the rest. The next text may begin. */
void gl_redact_end(struct gl_redact *x, struct gl_buf *out);
void gl_redact_done(struct gl_redact *x);

/* A whole text. False: nothing was found, and `text` is as it was. */
bool gl_redact_text(const struct gl_redactor *r, struct gl_buf *text);

/* A JSON document after redaction: where "***" stands outside of a string (the secret was a number)
 * or in the middle of an escape, make it a document again if possible. */
void gl_redact_repair_json(struct gl_buf *text);

#endif
