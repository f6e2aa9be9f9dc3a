/* json.h - a strict JSON reader that does not copy the text, and a writer.
 *
 * The reader produces a tape: one node per value (and one per object key, directly before its
 * value), in document order. A node knows its slice of the JSON text, so a value can be passed on
 * without being encoded again, and its position in the source, so an error can point at it. For a
 * YAML source (model/text/yaml.h) the text is JSON generated from it, and `at` points into the
 * YAML.
 *
 * Strict (RFC 8259): no comments, trailing commas, NaN, leading zeros, lone surrogates, duplicate
 * keys, control characters in strings, or bytes after the document. Depth, size and node count are
 * limited. Errors give line, column and byte offset. Numbers must be finite as a double; integers
 * are exact within 64 bits. */
#ifndef GL_BASE_JSON_H
#define GL_BASE_JSON_H

#include "base/err.h"
#include "base/str.h"

enum gl_json_type {
    GL_JSON_NULL,
    GL_JSON_FALSE,
    GL_JSON_TRUE,
    GL_JSON_NUMBER,
    GL_JSON_STRING,
    GL_JSON_ARRAY,
    GL_JSON_OBJECT,
};

struct gl_json_node {
    uint32_t start, end; /* the value's slice of `text`; strings with their quotes */
    uint32_t at;         /* byte offset in `source` */
    uint32_t next;       /* index of the node after this value and all it holds */
    uint32_t count;      /* members of an object, elements of an array */
    uint8_t type;        /* enum gl_json_type */
    uint8_t escaped;     /* a string with backslashes: its value is not its slice */
    uint8_t is_key;
};

struct gl_json {
    gl_str text;      /* JSON; borrowed */
    gl_str source;    /* what the user wrote: same as `text` unless it is YAML; borrowed */
    const char *name; /* name of the source, for errors; NULL: none */
    const struct gl_json_node *nodes; /* nodes[0] is the document */
    size_t nodes_n;
    unsigned depth; /* nesting: 0 for a scalar. A value that will be wrapped into a record must
                       leave room for that: GL_VALUE_DEPTH_MAX */
};

typedef const struct gl_json_node *gl_jnode; /* NULL means "absent" everywhere below */

/* Parse one document of at most `bytes_max` bytes. Nodes live in `a`; the text is borrowed.
 * On failure *ret is untouched and the sentence reads "line 3, column 7 (byte 41): ...". */
int gl_json_parse(struct gl_json *ret, gl_str text, size_t bytes_max, struct gl_arena *a,
                  struct gl_why *reterr_why);

/* The same for JSON generated from something else (YAML): node k corresponds to byte places[k] of
 * `source`, and errors refer to that position. */
int gl_json_parse_made(struct gl_json *ret, gl_str text, gl_str source, const uint32_t *places,
                       size_t places_n, struct gl_arena *a, struct gl_why *reterr_why);

static inline gl_jnode gl_json_root(const struct gl_json *j)
{
    return &j->nodes[0];
}

bool gl_json_is(gl_jnode n, enum gl_json_type type); /* false for NULL */
const char *gl_json_type_name(gl_jnode n);           /* "an object", "a number", ... */
/* The member of an object; NULL if absent, or if `obj` is not an object (or NULL). */
gl_jnode gl_json_get(const struct gl_json *j, gl_jnode obj, const char *key);
/* Iterate: for (gl_jnode e = gl_json_first(j, arr); e; e = gl_json_after(j, arr, e)). In an object
 * the iteration visits keys, and gl_json_value(key) is the value of that key. */
gl_jnode gl_json_first(const struct gl_json *j, gl_jnode container);
gl_jnode gl_json_after(const struct gl_json *j, gl_jnode container, gl_jnode n);
gl_jnode gl_json_value(gl_jnode key);

gl_str gl_json_raw(const struct gl_json *j, gl_jnode n); /* the JSON text of the value */
/* The decoded value of a string (NULL or another type: the empty slice). Not copied when it has no
 * escapes. */
gl_str gl_json_str(const struct gl_json *j, gl_jnode n, struct gl_arena *a);
/* The same for a valid slice without its quotes. */
gl_str gl_json_unescape(gl_str raw, struct gl_arena *a);
/* False: not written as an integer (1.0 and 1e3 are not), or out of range. */
bool gl_json_i64(const struct gl_json *j, gl_jnode n, int64_t *ret);
bool gl_json_u64(const struct gl_json *j, gl_jnode n, uint64_t *ret);
bool gl_json_bool(gl_jnode n, bool *ret);

/* The position of a node (or byte) in the source, counted from 1; columns count code points. */
void gl_json_place(const struct gl_json *j, gl_jnode n, unsigned *ret_line, unsigned *ret_column);
void gl_json_place_in(gl_str source, size_t at, unsigned *ret_line, unsigned *ret_column);

/* The writer adds commas and escapes; nesting is up to the caller (asserted at the end).
 *   struct gl_jw w; gl_jw_init(&w, &buf);
 *   gl_jw_object(&w); gl_jw_put_str(&w, "id", id); gl_jw_end(&w); */
struct gl_jw {
    struct gl_buf *out;
    uint64_t has_items; /* bit per depth: a comma is due */
    uint64_t is_object; /* bit per depth */
    int depth;
    bool after_key;
};

void gl_jw_init(struct gl_jw *w, struct gl_buf *out);
void gl_jw_object(struct gl_jw *w);
void gl_jw_array(struct gl_jw *w);
void gl_jw_end(struct gl_jw *w); /* closes the innermost object or array */
void gl_jw_key(struct gl_jw *w, const char *key);
void gl_jw_key_str(struct gl_jw *w, gl_str key);
void gl_jw_name(struct gl_jw *w, const char *name); /* a key of letters, digits and _ */
void gl_jw_str(struct gl_jw *w, gl_str s);          /* invalid UTF-8 becomes U+FFFD */
void gl_jw_c(struct gl_jw *w, const char *s);
void gl_jw_i64(struct gl_jw *w, int64_t v);
void gl_jw_u64(struct gl_jw *w, uint64_t v);
void gl_jw_bool(struct gl_jw *w, bool v);
void gl_jw_null(struct gl_jw *w);
void gl_jw_raw(struct gl_jw *w, gl_str json); /* a value that is JSON already */

/* A member of an object: its key, and its value or what begins the value. */
void gl_jw_put_str(struct gl_jw *w, const char *key, gl_str value);
void gl_jw_put_c(struct gl_jw *w, const char *key, const char *value);
void gl_jw_put_i64(struct gl_jw *w, const char *key, int64_t value);
void gl_jw_put_u64(struct gl_jw *w, const char *key, uint64_t value);
void gl_jw_put_bool(struct gl_jw *w, const char *key, bool value);
void gl_jw_put_raw(struct gl_jw *w, const char *key, gl_str json); /* "" : null */
void gl_jw_put_object(struct gl_jw *w, const char *key);
void gl_jw_put_array(struct gl_jw *w, const char *key);
void gl_jw_put_texts(struct gl_jw *w, const char *key, const gl_str *texts, size_t n);

#endif
