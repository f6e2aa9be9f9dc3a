/* json.c - access to a parsed document. The parser has validated everything, so nothing here can
 * fail on malformed text. */
#include "base/json.h"

#include "base/check.h"

void gl_json_place_in(gl_str source, size_t at, unsigned *ret_line, unsigned *ret_column)
{
    unsigned line = 1, column = 1;
    if (at > source.n) {
        at = source.n;
    }
    size_t mark =
        gl_str_starts(source, GL_S("\xef\xbb\xbf")) ? 3 : 0; /* a byte order mark is invisible */
    for (size_t i = mark; i < at; i++) {
        unsigned char c = (unsigned char)source.p[i];
        if (c == '\n') {
            line++;
            column = 1;
        } else if ((c & 0xc0) != 0x80) {
            column++;
        }
    }
    *ret_line = line;
    *ret_column = column;
}

/* The value of four hex digits, already validated. */
static uint32_t hex4(const char *p)
{
    uint32_t v = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint32_t c = (unsigned char)p[i];
        v = v * 16 + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return v;
}

/* Write the character of the (valid) escape at *p as UTF-8, and advance *p. */
static size_t unescape(const char **p, char out[static 4])
{
    const char *e = *p;
    if (e[1] != 'u') {
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        out[0] = to[strchr(from, e[1]) - from];
        *p = e + 2;
        return 1;
    }
    uint32_t c = hex4(e + 2);
    *p = e + 6;
    if (c >= 0xd800 && c <= 0xdbff) {
        c = 0x10000 + ((c - 0xd800) << 10) + (hex4(e + 8) - 0xdc00);
        *p = e + 12;
    }
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

gl_str gl_json_unescape(gl_str raw, struct gl_arena *a)
{
    char *out = gl_arena_alloc(a, raw.n + 4);
    size_t n = 0;
    for (const char *p = raw.p, *end = raw.p + raw.n; p < end;) {
        if (*p == '\\') {
            n += unescape(&p, out + n);
        } else {
            out[n++] = *p++;
        }
    }
    return (gl_str){.p = out, .n = n};
}

bool gl_json_is(gl_jnode n, enum gl_json_type type)
{
    return n && n->type == type;
}

const char *gl_json_type_name(gl_jnode n)
{
    static const char *const names[] = {"null",     "false",    "true",     "a number",
                                        "a string", "an array", "an object"};
    return n ? names[n->type] : "nothing";
}

/* Compare without decoding into memory: most keys have no escapes. */
static bool key_is(const struct gl_json *j, gl_jnode key, gl_str name)
{
    gl_str raw = {j->text.p + key->start + 1, key->end - key->start - 2};
    if (!key->escaped) {
        return gl_str_eq(raw, name);
    }
    size_t at = 0;
    for (const char *p = raw.p, *end = raw.p + raw.n; p < end;) {
        char piece[4] = {*p};
        size_t n = 1;
        if (*p == '\\') {
            n = unescape(&p, piece);
        } else {
            p++;
        }
        if (name.n - at < n || memcmp(name.p + at, piece, n) != 0) {
            return false;
        }
        at += n;
    }
    return at == name.n;
}

gl_jnode gl_json_get(const struct gl_json *j, gl_jnode obj, const char *key)
{
    if (!gl_json_is(obj, GL_JSON_OBJECT)) {
        return NULL;
    }
    gl_str name = gl_str_of(key);
    gl_jnode k = obj + 1;
    for (uint32_t i = 0; i < obj->count; i++, k = &j->nodes[k[1].next]) {
        if (key_is(j, k, name)) {
            return k + 1;
        }
    }
    return NULL;
}

gl_jnode gl_json_first(const struct gl_json *j, gl_jnode container)
{
    (void)j;
    bool holds = gl_json_is(container, GL_JSON_ARRAY) || gl_json_is(container, GL_JSON_OBJECT);
    return holds && container->count ? container + 1 : NULL;
}

gl_jnode gl_json_after(const struct gl_json *j, gl_jnode container, gl_jnode n)
{
    uint32_t next = n->is_key ? n[1].next : n->next;
    return next == container->next ? NULL : &j->nodes[next];
}

gl_jnode gl_json_value(gl_jnode key)
{
    GL_ASSERT(key->is_key);
    return key + 1;
}

gl_str gl_json_raw(const struct gl_json *j, gl_jnode n)
{
    return n ? (gl_str){j->text.p + n->start, n->end - n->start} : (gl_str){0};
}

gl_str gl_json_str(const struct gl_json *j, gl_jnode n, struct gl_arena *a)
{
    if (!gl_json_is(n, GL_JSON_STRING)) {
        return (gl_str){0};
    }
    gl_str raw = {j->text.p + n->start + 1, n->end - n->start - 2};
    return n->escaped ? gl_json_unescape(raw, a) : raw;
}

bool gl_json_i64(const struct gl_json *j, gl_jnode n, int64_t *ret)
{
    return gl_json_is(n, GL_JSON_NUMBER) && gl_str_i64(gl_json_raw(j, n), ret);
}

bool gl_json_u64(const struct gl_json *j, gl_jnode n, uint64_t *ret)
{
    return gl_json_is(n, GL_JSON_NUMBER) && gl_str_u64(gl_json_raw(j, n), ret);
}

bool gl_json_bool(gl_jnode n, bool *ret)
{
    if (!gl_json_is(n, GL_JSON_TRUE) && !gl_json_is(n, GL_JSON_FALSE)) {
        return false;
    }
    *ret = n->type == GL_JSON_TRUE;
    return true;
}

void gl_json_place(const struct gl_json *j, gl_jnode n, unsigned *ret_line, unsigned *ret_column)
{
    gl_json_place_in(j->source, n->at, ret_line, ret_column);
}
