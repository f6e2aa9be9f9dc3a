/* module_json.h - reads and writes JSON in a module, for when a library would be too much.
 *
 * The reader relies on the runtime's promise that the text is valid JSON; do not use it for
 * anything else. A value is a slice of the text it is part of; "" means absent. */
#ifndef GLIA_MODULE_JSON_H
#define GLIA_MODULE_JSON_H

#include <glia/module.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- reading ---- */

static inline struct glia_text glia_json_trim(struct glia_text t)
{
    while (t.length > 0 && (unsigned char)t.bytes[0] <= ' ') {
        t.bytes++;
        t.length--;
    }
    return t;
}

static inline struct glia_text glia_json_from(struct glia_text t, size_t n)
{
    return n < t.length ? glia_text_n(t.bytes + n, t.length - n) : glia_text_n("", 0);
}

/* The length of the value that `t` begins with. */
static inline size_t glia_json_length(struct glia_text t)
{
    size_t depth = 0, i = 0;
    for (; i < t.length; i++) {
        char c = t.bytes[i];
        if (c == '"') {
            for (i++; i < t.length && t.bytes[i] != '"'; i++) {
                i += t.bytes[i] == '\\';
            }
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            if (depth == 0) {
                return i; /* the enclosing value ends: so does a number or a word */
            }
            depth--;
        } else if (depth > 0 || (c != ',' && c != ':' && (unsigned char)c > ' ')) {
            continue;
        } else {
            return i;
        }
        if (depth == 0) {
            return i + 1 < t.length ? i + 1 : t.length;
        }
    }
    return t.length;
}

static inline struct glia_text glia_json_value(struct glia_text t)
{
    t = glia_json_trim(t);
    return glia_text_n(t.bytes, glia_json_length(t));
}

/* The elements of a list, or keys and values of an object in turn:
 *
 *     for (struct glia_text e = glia_json_first(list); e.length > 0; e = glia_json_next(list, e))
 */
static inline struct glia_text glia_json_first(struct glia_text list)
{
    list = glia_json_trim(list);
    if (list.length == 0 || (list.bytes[0] != '[' && list.bytes[0] != '{')) {
        return glia_text_n("", 0);
    }
    return glia_json_value(glia_json_from(list, 1));
}

static inline struct glia_text glia_json_next(struct glia_text list, struct glia_text element)
{
    size_t at = (size_t)(element.bytes - list.bytes) + element.length;
    struct glia_text rest = glia_json_trim(glia_json_from(list, at));
    if (rest.length == 0 || (rest.bytes[0] != ',' && rest.bytes[0] != ':')) {
        return glia_text_n("", 0);
    }
    return glia_json_value(glia_json_from(rest, 1));
}

/* The member of an object; keys with escapes in them are not found. */
static inline struct glia_text glia_json_get(struct glia_text object, const char *key)
{
    size_t n = strlen(key);
    struct glia_text k = glia_json_trim(object);
    if (k.length == 0 || k.bytes[0] != '{') {
        return glia_text_n("", 0);
    }
    for (k = glia_json_first(object); k.length > 0;) {
        struct glia_text value = glia_json_next(object, k);
        if (k.length == n + 2 && memcmp(k.bytes + 1, key, n) == 0) {
            return value;
        }
        k = glia_json_next(object, value);
    }
    return glia_text_n("", 0);
}

/* The value as a number; `otherwise` if it is not one. */
static inline double glia_json_number(struct glia_text value, double otherwise)
{
    char text[64];
    if (value.length == 0 || value.length >= sizeof(text) ||
        strchr("-0123456789", value.bytes[0]) == NULL) {
        return otherwise;
    }
    memcpy(text, value.bytes, value.length);
    text[value.length] = 0;
    return strtod(text, NULL);
}

/* The value as a string without its quotes, escapes unchanged; `otherwise` if it is not one. */
static inline struct glia_text glia_json_string(struct glia_text value, const char *otherwise)
{
    if (value.length < 2 || value.bytes[0] != '"') {
        return glia_text(otherwise);
    }
    return glia_text_n(value.bytes + 1, value.length - 2);
}

/* ---- writing ---- */

/* All zero is an empty writer. Running out of memory aborts the process, which the runtime
 * survives. */
struct glia_writer {
    char *bytes;
    size_t length, capacity;
};

static inline void glia_write(struct glia_writer *w, struct glia_text t)
{
    if (w->capacity - w->length < t.length) {
        size_t capacity = 2 * w->capacity + t.length + 64;
        char *bytes = (char *)realloc(w->bytes, capacity);
        if (bytes == NULL) {
            abort();
        }
        w->bytes = bytes;
        w->capacity = capacity;
    }
    if (t.length > 0) {
        memcpy(w->bytes + w->length, t.bytes, t.length);
        w->length += t.length;
    }
}

static inline void glia_write_c(struct glia_writer *w, const char *json)
{
    glia_write(w, glia_text(json));
}

static inline void glia_write_int(struct glia_writer *w, long long v)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%lld", v);
    glia_write(w, glia_text_n(text, (size_t)n));
}

/* A string with quotes; control characters, quotes and backslashes are escaped. */
static inline void glia_write_string(struct glia_writer *w, struct glia_text t)
{
    char text[8];
    glia_write_c(w, "\"");
    for (size_t i = 0; i < t.length; i++) {
        unsigned char c = (unsigned char)t.bytes[i];
        if (c >= ' ' && c != '"' && c != '\\') {
            glia_write(w, glia_text_n(t.bytes + i, 1));
        } else {
            (void)snprintf(text, sizeof(text), "\\u%04x", c);
            glia_write_c(w, text);
        }
    }
    glia_write_c(w, "\"");
}

static inline struct glia_text glia_written(const struct glia_writer *w)
{
    return glia_text_n(w->length > 0 ? w->bytes : "", w->length);
}

static inline void glia_writer_done(struct glia_writer *w)
{
    free(w->bytes);
    memset(w, 0, sizeof(*w));
}

#endif
