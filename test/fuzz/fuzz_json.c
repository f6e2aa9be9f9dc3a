/* fuzz_json - the JSON reader against jansson, and the writer against the reader.
 *
 * Both are strict, so they must accept and refuse the same bytes. Known differences, which are left
 * out here:
 *   - jansson refuses integers of more than 63 bits; we keep any number as its text.
 *   - jansson refuses numbers that are too small for a double only on some platforms; we accept
 * them.
 *   - jansson takes a NUL byte between tokens for the end of the document; we refuse it.
 *   - nesting: we stop at 64, jansson at 2048.
 *   - jansson compares keys as C strings, but with JSON_ALLOW_NUL it refuses a key with U+0000; we
 *     allow it like any other character. */
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "base/json.h"
#include "base/limits.h"

enum { BYTES_MAX = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool has_long_integer(const struct gl_json *j)
{
    for (size_t i = 0; i < j->nodes_n; i++) {
        gl_str raw = gl_json_raw(j, &j->nodes[i]);
        int64_t v;
        if (j->nodes[i].type == GL_JSON_NUMBER && !gl_json_i64(j, &j->nodes[i], &v) &&
            !memchr(raw.p, '.', raw.n) && !memchr(raw.p, 'e', raw.n) &&
            !memchr(raw.p, 'E', raw.n)) {
            return true;
        }
    }
    return false;
}

static bool has_nul_key(const struct gl_json *j, struct gl_arena *a)
{
    for (size_t i = 0; i < j->nodes_n; i++) {
        gl_str s = gl_json_str(j, &j->nodes[i], a);
        if (j->nodes[i].is_key && s.n && memchr(s.p, 0, s.n)) {
            return true;
        }
    }
    return false;
}

/* The two readers must see the same value. */
static void compare(const struct gl_json *j, gl_jnode n, const json_t *theirs, struct gl_arena *a)
{
    switch ((enum gl_json_type)n->type) {
    case GL_JSON_NULL:
        GL_ASSERT(json_is_null(theirs));
        return;
    case GL_JSON_FALSE:
    case GL_JSON_TRUE:
        GL_ASSERT(json_is_true(theirs) == (n->type == GL_JSON_TRUE));
        GL_ASSERT(json_is_boolean(theirs));
        return;
    case GL_JSON_NUMBER: {
        int64_t v;
        GL_ASSERT(json_is_number(theirs));
        GL_ASSERT(!gl_json_i64(j, n, &v) || json_integer_value(theirs) == v);
        return;
    }
    case GL_JSON_STRING: {
        gl_str s = gl_json_str(j, n, a);
        GL_ASSERT(json_string_length(theirs) == s.n);
        GL_ASSERT(s.n == 0 || memcmp(json_string_value(theirs), s.p, s.n) == 0);
        return;
    }
    case GL_JSON_ARRAY: {
        size_t i = 0;
        GL_ASSERT(json_array_size(theirs) == n->count);
        for (gl_jnode e = gl_json_first(j, n); e; e = gl_json_after(j, n, e)) {
            compare(j, e, json_array_get(theirs, i++), a);
        }
        GL_ASSERT(i == n->count);
        return;
    }
    case GL_JSON_OBJECT:
        GL_ASSERT(json_object_size(theirs) == n->count);
        for (gl_jnode k = gl_json_first(j, n); k; k = gl_json_after(j, n, k)) {
            const char *key = gl_str_c(a, gl_json_str(j, k, a));
            GL_ASSERT(gl_json_get(j, n, key) == gl_json_value(k));
            compare(j, gl_json_value(k), json_object_get(theirs, key), a);
        }
        return;
    }
    GL_UNREACHABLE();
}

static void write_value(const struct gl_json *j, gl_jnode n, struct gl_jw *w, struct gl_arena *a)
{
    if (n->type == GL_JSON_STRING) {
        gl_jw_str(w, gl_json_str(j, n, a));
    } else if (n->type == GL_JSON_ARRAY) {
        gl_jw_array(w);
        for (gl_jnode e = gl_json_first(j, n); e; e = gl_json_after(j, n, e)) {
            write_value(j, e, w, a);
        }
        gl_jw_end(w);
    } else if (n->type == GL_JSON_OBJECT) {
        gl_jw_object(w);
        for (gl_jnode k = gl_json_first(j, n); k; k = gl_json_after(j, n, k)) {
            gl_jw_key_str(w, gl_json_str(j, k, a));
            write_value(j, gl_json_value(k), w, a);
        }
        gl_jw_end(w);
    } else {
        gl_jw_raw(w, gl_json_raw(j, n));
    }
}

/* What the writer makes of it is read back as the same tape, and written again as the same bytes.
 */
static void write_and_read(const struct gl_json *j, struct gl_arena *a)
{
    struct gl_buf out[2] = {{0}, {0}};
    struct gl_json back = *j;
    for (int i = 0; i < 2; i++) {
        struct gl_jw w;
        gl_jw_init(&w, &out[i]);
        write_value(&back, gl_json_root(&back), &w, a);
        GL_ASSERT(gl_json_parse(&back, gl_buf_view(&out[i]), SIZE_MAX, a, NULL) == 0);
        GL_ASSERT(back.nodes_n == j->nodes_n);
        GL_ASSERT(back.depth == j->depth);
    }
    GL_ASSERT(gl_str_eq(gl_buf_view(&out[0]), gl_buf_view(&out[1])));
    gl_buf_done(&out[0]);
    gl_buf_done(&out[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gl_arena a = {0};
    struct gl_json j;
    struct gl_why why = {0};
    gl_str text = {gl_arena_copy(&a, data, size), size}; /* its end is guarded under ASan */
    int rc = gl_json_parse(&j, text, BYTES_MAX, &a, &why);
    json_error_t error;
    json_t *theirs = json_loadb((const char *)data, size,
                                JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (rc == 0) {
        GL_ASSERT(theirs || has_long_integer(&j) || has_nul_key(&j, &a));
        if (theirs) {
            compare(&j, gl_json_root(&j), theirs, &a);
        }
        write_and_read(&j, &a);
    } else {
        GL_ASSERT(why.text[0]);
        GL_ASSERT(!theirs || rc == GL_E_LIMIT || memchr(data, 0, size));
    }
    json_decref(theirs);
    gl_arena_done(&a);
    return 0;
}
