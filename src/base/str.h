/* str.h - slices of text, and a growing buffer.
 *
 * A gl_str borrows its bytes and need not end in NUL. An empty slice may have p == NULL. */
#ifndef GL_BASE_STR_H
#define GL_BASE_STR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"

struct gl_str {
    const char *p;
    size_t n;
};
typedef struct gl_str gl_str;

#define GL_S(literal) ((gl_str){.p = (literal), .n = sizeof(literal) - 1})
#define GL_STR_ARG(s) (int)(s).n, (s).p ? (s).p : "" /* for "%.*s" */

gl_str gl_str_of(const char *cstr); /* NULL gives the empty slice */
bool gl_str_eq(gl_str a, gl_str b);
bool gl_str_is(gl_str a, const char *cstr);
int gl_str_cmp(gl_str a, gl_str b); /* bytewise; shorter first */
bool gl_str_starts(gl_str s, gl_str prefix);
bool gl_str_ends(gl_str s, gl_str suffix);
gl_str gl_str_trim(gl_str s); /* ASCII white space at both ends */
/* Cut at the first `sep`: the part before it is returned, *rest is what follows ("" if none). */
gl_str gl_str_cut(gl_str s, char sep, gl_str *rest);
bool gl_str_u64(gl_str s, uint64_t *ret); /* all digits, no overflow */
bool gl_str_i64(gl_str s, int64_t *ret);
/* 1..GL_ID_BYTES_MAX bytes of A-Z a-z 0-9 _ . - and not starting with '.' or '-'. */
bool gl_str_is_id(gl_str s);
/* Also "@agent" and, in steps of bundles, ':'. */
bool gl_str_is_step_id(gl_str s);
/* The id of a step, "fetch", or of one of its instances, "fetch[3]": the name, and 3 or -1. */
bool gl_str_split_step(gl_str s, gl_str *ret_name, int64_t *ret_item);
bool gl_str_is_utf8(gl_str s, size_t *ret_bad_at); /* strict: no surrogates, no overlongs */
size_t gl_str_utf8_at(gl_str s); /* bytes of the code point at the front; 0: not UTF-8, or empty */
uint64_t gl_str_hash(gl_str s);  /* stable over runs and machines */

gl_str gl_str_dup(struct gl_arena *a, gl_str s); /* also NUL-terminated behind the slice */
const char *gl_str_c(struct gl_arena *a, gl_str s);
gl_str gl_str_fmt(struct gl_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A heap buffer that grows. All-zero is a valid empty one. */
struct gl_buf {
    char *p;
    size_t n, cap;
};

void gl_buf_done(struct gl_buf *b);
void gl_buf_reset(struct gl_buf *b); /* n = 0, memory kept */
/* Room for `n` more bytes, behind the last: write there, then add what was written to b->n. */
char *gl_buf_reserve(struct gl_buf *b, size_t n);
void gl_buf_add(struct gl_buf *b, const void *bytes, size_t n);
void gl_buf_str(struct gl_buf *b, gl_str s);
void gl_buf_c(struct gl_buf *b, const char *cstr);
void gl_buf_char(struct gl_buf *b, char c);
void gl_buf_u64(struct gl_buf *b, uint64_t v);
void gl_buf_i64(struct gl_buf *b, int64_t v);
void gl_buf_fmt(struct gl_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
gl_str gl_buf_view(const struct gl_buf *b); /* valid until the next change */

#endif
