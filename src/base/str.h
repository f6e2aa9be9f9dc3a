/* str.h - slices of text, and a growing buffer.
 *
 * A gl_str borrows its bytes and need not end in NUL. An empty slice may have p == NULL. A gl_buf
 * owns its bytes; free it with gl_buf_done(). */
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
/* Cut at the first `sep`: returns the part before it; *rest is what follows ("" if there is no
 * `sep`). */
gl_str gl_str_cut(gl_str s, char sep, gl_str *rest);
bool gl_str_u64(gl_str s, uint64_t *ret); /* all digits, no overflow */
bool gl_str_i64(gl_str s, int64_t *ret);
/* 1..GL_ID_BYTES_MAX bytes of A-Z a-z 0-9 _ . - and not starting with '.' or '-'. */
bool gl_str_is_id(gl_str s);
/* Also accepts "@agent" and, for steps of bundles, ':'. */
bool gl_str_is_step_id(gl_str s);
/* Split the id of a step, "fetch", or of an instance, "fetch[3]", into the name and 3, or -1. */
bool gl_str_split_step(gl_str s, gl_str *ret_name, int64_t *ret_item);
bool gl_str_is_utf8(gl_str s, size_t *ret_bad_at); /* strict: no surrogates, no overlongs */
size_t gl_str_utf8_at(gl_str s); /* size of the code point at the front; 0: empty, or not UTF-8 */
uint64_t gl_str_hash(gl_str s);  /* stable across runs and machines */

gl_str gl_str_dup(struct gl_arena *a, gl_str s); /* followed by a NUL */
const char *gl_str_c(struct gl_arena *a, gl_str s);
gl_str gl_str_fmt(struct gl_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A growing heap buffer. All-zero is valid and empty. */
struct gl_buf {
    char *p;
    size_t n, cap;
};

void gl_buf_done(struct gl_buf *b);
void gl_buf_reset(struct gl_buf *b); /* n = 0, keeps the memory */
/* Make room for `n` more bytes and return the end of the content: write there, then add the number
 * of bytes written to b->n. */
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
