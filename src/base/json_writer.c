/* json_writer.c - the writer of json.h. Bits per nesting level replace a stack. Strings are copied
 * eight bytes at a time as long as nothing needs an escape. */
#include "base/check.h"
#include "base/json.h"
#include "base/limits.h"

void gl_jw_init(struct gl_jw *w, struct gl_buf *out)
{
    *w = (struct gl_jw){.out = out};
}

static uint64_t level_bit(const struct gl_jw *w)
{
    return (uint64_t)1 << (w->depth - 1);
}

/* What comes before a value: a comma, if one is due. */
static void before_value(struct gl_jw *w)
{
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    if (w->depth == 0) {
        return;
    }
    uint64_t bit = level_bit(w);
    GL_ASSERT(!(w->is_object & bit)); /* in an object a key comes first */
    if (w->has_items & bit) {
        gl_buf_char(w->out, ',');
    }
    w->has_items |= bit;
}

static void open_level(struct gl_jw *w, bool is_object)
{
    before_value(w);
    GL_ASSERT(w->depth < GL_JSON_DEPTH_MAX);
    w->depth++;
    uint64_t bit = level_bit(w);
    w->has_items &= ~bit;
    w->is_object = is_object ? w->is_object | bit : w->is_object & ~bit;
    gl_buf_char(w->out, is_object ? '{' : '[');
}

void gl_jw_object(struct gl_jw *w)
{
    open_level(w, true);
}

void gl_jw_array(struct gl_jw *w)
{
    open_level(w, false);
}

void gl_jw_end(struct gl_jw *w)
{
    GL_ASSERT(w->depth > 0);
    GL_ASSERT(!w->after_key);
    gl_buf_char(w->out, w->is_object & level_bit(w) ? '}' : ']');
    w->depth--;
}

/* Does any of these eight bytes need an escape or a UTF-8 check? */
static bool is_special(uint64_t w)
{
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    uint64_t quote = w ^ (ones * '"'), slash = w ^ (ones * '\\');
    uint64_t hit = (w - ones * 0x20) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash) | w;
    return (hit & highs) != 0;
}

/* The number of bytes at the front that can be copied unchanged. */
static size_t clean_prefix(gl_str s)
{
    size_t i = 0;
    uint64_t word;
    while (s.n - i >= 8 && (memcpy(&word, s.p + i, 8), !is_special(word))) {
        i += 8;
    }
    /* signed: non-ASCII is negative */
    while (i < s.n && (signed char)s.p[i] >= 0x20 && s.p[i] != '"' && s.p[i] != '\\') {
        i++;
    }
    return i;
}

/* Write the character at the front, which needs an escape or a check; returns its size. */
static size_t put_special(struct gl_buf *out, gl_str s)
{
    unsigned char c = (unsigned char)s.p[0];
    if (c == '"' || c == '\\') {
        char pair[2] = {'\\', (char)c};
        gl_buf_add(out, pair, 2);
        return 1;
    }
    if (c < 0x20) {
        static const char from[] = "\b\f\n\r\t", to[] = "bfnrt";
        const char *hit = c ? strchr(from, c) : NULL;
        char escape[6] = {'\\', 'u', '0', '0', (char)('0' + (c >> 4)), "0123456789abcdef"[c & 15]};
        if (hit) {
            escape[1] = to[hit - from];
        }
        gl_buf_add(out, escape, hit ? 2 : 6);
        return 1;
    }
    size_t n = gl_str_utf8_at(s);
    if (n == 0) {
        gl_buf_c(out, "\xef\xbf\xbd");
        return 1;
    }
    gl_buf_add(out, s.p, n);
    return n;
}

static void put_text(struct gl_buf *out, gl_str s)
{
    size_t clean = clean_prefix(s);
    char *at = gl_buf_reserve(out, clean + 2);
    at[0] = '"';
    if (clean) {
        memcpy(at + 1, s.p, clean);
    }
    if (clean == s.n) {
        at[clean + 1] = '"';
        out->n += clean + 2;
        return;
    }
    out->n += clean + 1;
    s.p += clean;
    s.n -= clean;
    while (s.n) {
        size_t n = put_special(out, s);
        s.p += n;
        s.n -= n;
        n = clean_prefix(s);
        gl_buf_add(out, s.p, n);
        s.p += n;
        s.n -= n;
    }
    gl_buf_char(out, '"');
}

void gl_jw_key(struct gl_jw *w, const char *key)
{
    gl_jw_key_str(w, gl_str_of(key));
}

void gl_jw_key_str(struct gl_jw *w, gl_str key)
{
    GL_ASSERT(w->depth > 0);
    uint64_t bit = level_bit(w);
    GL_ASSERT(w->is_object & bit);
    GL_ASSERT(!w->after_key);
    if (w->has_items & bit) {
        gl_buf_char(w->out, ',');
    }
    w->has_items |= bit;
    put_text(w->out, key);
    gl_buf_char(w->out, ':');
    w->after_key = true;
}

void gl_jw_name(struct gl_jw *w, const char *name)
{
    uint64_t bit = level_bit(w);
    size_t n = strlen(name);
    char *at = gl_buf_reserve(w->out, n + 4), *start = at;

    GL_ASSERT(w->depth > 0 && (w->is_object & bit) && !w->after_key);
    if (w->has_items & bit) {
        *at++ = ',';
    }
    w->has_items |= bit;
    *at++ = '"';
    memcpy(at, name, n);
    at += n;
    *at++ = '"';
    *at++ = ':';
    w->out->n += (size_t)(at - start);
    w->after_key = true;
}

void gl_jw_str(struct gl_jw *w, gl_str s)
{
    before_value(w);
    put_text(w->out, s);
}

void gl_jw_c(struct gl_jw *w, const char *s)
{
    gl_jw_str(w, gl_str_of(s));
}

void gl_jw_i64(struct gl_jw *w, int64_t v)
{
    before_value(w);
    gl_buf_i64(w->out, v);
}

void gl_jw_u64(struct gl_jw *w, uint64_t v)
{
    before_value(w);
    gl_buf_u64(w->out, v);
}

void gl_jw_bool(struct gl_jw *w, bool v)
{
    before_value(w);
    gl_buf_str(w->out, v ? GL_S("true") : GL_S("false"));
}

void gl_jw_null(struct gl_jw *w)
{
    before_value(w);
    gl_buf_str(w->out, GL_S("null"));
}

void gl_jw_raw(struct gl_jw *w, gl_str json)
{
    GL_ASSERT(json.n > 0);
    before_value(w);
    gl_buf_str(w->out, json);
}

void gl_jw_put_str(struct gl_jw *w, const char *key, gl_str value)
{
    gl_jw_key(w, key);
    gl_jw_str(w, value);
}

void gl_jw_put_c(struct gl_jw *w, const char *key, const char *value)
{
    gl_jw_key(w, key);
    gl_jw_c(w, value);
}

void gl_jw_put_i64(struct gl_jw *w, const char *key, int64_t value)
{
    gl_jw_key(w, key);
    gl_jw_i64(w, value);
}

void gl_jw_put_u64(struct gl_jw *w, const char *key, uint64_t value)
{
    gl_jw_key(w, key);
    gl_jw_u64(w, value);
}

void gl_jw_put_bool(struct gl_jw *w, const char *key, bool value)
{
    gl_jw_key(w, key);
    gl_jw_bool(w, value);
}

void gl_jw_put_raw(struct gl_jw *w, const char *key, gl_str json)
{
    gl_jw_key(w, key);
    gl_jw_raw(w, json.n > 0 ? json : GL_S("null"));
}

void gl_jw_put_object(struct gl_jw *w, const char *key)
{
    gl_jw_key(w, key);
    gl_jw_object(w);
}

void gl_jw_put_array(struct gl_jw *w, const char *key)
{
    gl_jw_key(w, key);
    gl_jw_array(w);
}

void gl_jw_put_texts(struct gl_jw *w, const char *key, const gl_str *texts, size_t n)
{
    gl_jw_put_array(w, key);
    for (size_t i = 0; i < n; i++) {
        gl_jw_str(w, texts[i]);
    }
    gl_jw_end(w);
}
