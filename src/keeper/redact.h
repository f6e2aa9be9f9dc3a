/* redact.h - removes secrets from the output of a step.
 *
 * Every byte that belongs to an occurrence of a secret is removed, and each run of such bytes
 * becomes "***". This is exact however the text was split on its way: bytes that may still turn out
 * to be the beginning of a secret are held back until that is decided.
 *
 * What is searched for: the value of each secret; if it has several lines, also each line of at
 * least four bytes (without surrounding white space); and the JSON string encoding of all these,
 * with non-ASCII characters both as they are and as \uXXXX. Other encodings (base64, URLs) are not
 * recognised.
 *
 * A redactor is an Aho-Corasick automaton: the cost per byte does not depend on the number of
 * secrets. It never changes, and attempts with the same secrets share one.
 *
 * Call order: gl_redact_get(); for each text gl_redact_feed() and gl_redact_end(); then
 * gl_redact_done() and gl_redact_put(). */
#ifndef GL_KEEPER_REDACT_H
#define GL_KEEPER_REDACT_H

#include "base/map.h"
#include "base/str.h"

struct gl_redactor;

/* A redactor for these secrets ("NAME=value", as checked by gl_keeper_check_start()); `all` holds
 * those in use. NULL: there are no secrets. */
struct gl_redactor *gl_redact_get(struct gl_map *all, const gl_str *secrets, size_t n);
void gl_redact_put(struct gl_map *all, struct gl_redactor *r); /* NULL is fine */

struct gl_redact_span {
    uint64_t from, to;
    bool written; /* its "***" is written; only its end may still move */
};

/* One text that arrives in pieces. A new one is all zero except for `redactor`. */
struct gl_redact {
    const struct gl_redactor *redactor; /* borrowed */
    uint32_t state;
    uint64_t seen;                /* bytes received */
    uint64_t done;                /* of these, written or removed */
    struct gl_buf held;           /* the bytes in between */
    struct gl_redact_span *spans; /* occurrences that end after `done`, in order, not overlapping */
    size_t spans_n, spans_cap;
    bool replaced; /* something was removed */
};

/* Append to `out` what cannot be part of a secret any more. */
void gl_redact_feed(struct gl_redact *x, gl_str text, struct gl_buf *out);
/* The text is complete: append the rest. The next text may begin. */
void gl_redact_end(struct gl_redact *x, struct gl_buf *out);
void gl_redact_done(struct gl_redact *x);

/* Redact a whole text. False: nothing was found, and `text` is unchanged. */
bool gl_redact_text(const struct gl_redactor *r, struct gl_buf *text);

/* Repair a JSON document after redaction: where "***" stands outside a string (the secret was a
 * number) or in the middle of an escape, make the document valid again if possible. */
void gl_redact_repair_json(struct gl_buf *text);

#endif
