/* str.c - see str.h. Numbers are parsed strictly and without the locale. */
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/mem.h"

gl_str gl_str_of(const char *cstr)
{
    return (gl_str){.p = cstr, .n = cstr ? strlen(cstr) : 0};
}

bool gl_str_eq(gl_str a, gl_str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool gl_str_is(gl_str a, const char *cstr)
{
    return gl_str_eq(a, gl_str_of(cstr));
}

int gl_str_cmp(gl_str a, gl_str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

bool gl_str_starts(gl_str s, gl_str prefix)
{
    return s.n >= prefix.n && gl_str_eq((gl_str){s.p, prefix.n}, prefix);
}

bool gl_str_ends(gl_str s, gl_str suffix)
{
    return s.n >= suffix.n &&
           (suffix.n == 0 || memcmp(s.p + (s.n - suffix.n), suffix.p, suffix.n) == 0);
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

gl_str gl_str_trim(gl_str s)
{
    while (s.n && is_space(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n && is_space(s.p[s.n - 1])) {
        s.n--;
    }
    return s;
}

gl_str gl_str_cut(gl_str s, char sep, gl_str *rest)
{
    const char *hit = s.n ? memchr(s.p, sep, s.n) : NULL;
    if (!hit) {
        *rest = (gl_str){0};
        return s;
    }
    size_t n = (size_t)(hit - s.p);
    *rest = (gl_str){.p = hit + 1, .n = s.n - n - 1};
    return (gl_str){.p = s.p, .n = n};
}

bool gl_str_u64(gl_str s, uint64_t *ret)
{
    if (s.n == 0) {
        return false;
    }
    uint64_t v = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9') {
            return false;
        }
        uint64_t digit = (uint64_t)(s.p[i] - '0');
        if (v > (UINT64_MAX - digit) / 10) {
            return false;
        }
        v = v * 10 + digit;
    }
    *ret = v;
    return true;
}

bool gl_str_i64(gl_str s, int64_t *ret)
{
    bool negative = s.n && s.p[0] == '-';
    if (negative) {
        s.p++;
        s.n--;
    }
    uint64_t v;
    if (!gl_str_u64(s, &v) || v > (uint64_t)INT64_MAX + (negative ? 1 : 0)) {
        return false;
    }
    *ret = negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

static bool is_id(gl_str s, char also)
{
    if (s.n == 0 || s.n > GL_ID_BYTES_MAX || s.p[0] == '.' || s.p[0] == '-' || s.p[0] == ':') {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool ok = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '.' || c == '-' || c == also;
        if (!ok) {
            return false;
        }
    }
    return true;
}

bool gl_str_is_id(gl_str s)
{
    return is_id(s, '_');
}

bool gl_str_is_step_id(gl_str s)
{
    if (s.n > 0 && s.p[0] == '@') {
        return is_id((gl_str){.p = s.p + 1, .n = s.n - 1}, '_');
    }
    return is_id(s, ':');
}

bool gl_str_split_step(gl_str s, gl_str *ret_name, int64_t *ret_item)
{
    gl_str rest, name = gl_str_cut(s, '[', &rest);
    uint64_t item = 0;

    if (!gl_str_is_step_id(name)) {
        return false;
    }
    if (name.n < s.n) {
        if (rest.n < 2 || rest.p[rest.n - 1] != ']' ||
            !gl_str_u64((gl_str){.p = rest.p, .n = rest.n - 1}, &item) || item >= GL_ITEMS_MAX) {
            return false;
        }
    }
    *ret_name = name;
    *ret_item = name.n < s.n ? (int64_t)item : -1;
    return true;
}

/* Well-formed sequences: Unicode 15, table 3-7. */
size_t gl_str_utf8_at(gl_str s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    if (s.n == 0 || p[0] < 0x80) {
        return s.n ? 1 : 0;
    }
    unsigned char c = p[0];
    size_t n = c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    if (n == 0 || n > s.n) {
        return 0;
    }
    unsigned char lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    unsigned char hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < lo || p[1] > hi) {
        return 0;
    }
    for (size_t i = 2; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return n;
}

bool gl_str_is_utf8(gl_str s, size_t *ret_bad_at)
{
    size_t i = 0;
    while (i < s.n) {
        uint64_t word;
        if (s.n - i >= 8 && (memcpy(&word, s.p + i, 8), (word & 0x8080808080808080u) == 0)) {
            i += 8;
            continue;
        }
        size_t n = gl_str_utf8_at((gl_str){s.p + i, s.n - i});
        if (n == 0) {
            if (ret_bad_at) {
                *ret_bad_at = i;
            }
            return false;
        }
        i += n;
    }
    return true;
}

static uint64_t load_le(const unsigned char *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        v |= (uint64_t)p[i] << (8 * i);
    }
    return v;
}

/* Multiply and fold over words read as little endian, so that every machine computes the same
 * hash. */
uint64_t gl_str_hash(gl_str s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    uint64_t h = 0x9e3779b97f4a7c15u ^ (s.n * 0xff51afd7ed558ccdu);
    size_t left = s.n;
    while (left) {
        size_t n = left < 8 ? left : 8;
        h = (h ^ (n == 8 ? load_le(p, 8) : load_le(p, n))) * 0xd6e8feb86659fd93u;
        h ^= h >> 32;
        p += n;
        left -= n;
    }
    h ^= h >> 29;
    h *= 0xc4ceb9fe1a85ec53u;
    return h ^ (h >> 32);
}

gl_str gl_str_dup(struct gl_arena *a, gl_str s)
{
    char *p = gl_arena_alloc(a, s.n + 1);
    if (s.n) {
        memcpy(p, s.p, s.n);
    }
    return (gl_str){.p = p, .n = s.n};
}

const char *gl_str_c(struct gl_arena *a, gl_str s)
{
    return gl_str_dup(a, s).p;
}

gl_str gl_str_fmt(struct gl_arena *a, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    GL_ASSERT(n >= 0);
    char *p = gl_arena_alloc(a, (size_t)n + 1);
    (void)vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return (gl_str){.p = p, .n = (size_t)n};
}

/* Buffers. */

void gl_buf_done(struct gl_buf *b)
{
    gl_mem_free(b->p);
    *b = (struct gl_buf){0};
}

void gl_buf_reset(struct gl_buf *b)
{
    b->n = 0;
}

char *gl_buf_reserve(struct gl_buf *b, size_t n)
{
    if (n > b->cap - b->n) {
        GL_ASSERT(n < SIZE_MAX / 4);
        size_t cap = b->cap ? b->cap : 128;
        while (cap - b->n < n) {
            cap *= 2;
        }
        b->p = gl_mem_realloc(b->p, cap);
        b->cap = cap;
    }
    return b->p + b->n;
}

void gl_buf_add(struct gl_buf *b, const void *bytes, size_t n)
{
    if (n) {
        memcpy(gl_buf_reserve(b, n), bytes, n);
        b->n += n;
    }
}

void gl_buf_str(struct gl_buf *b, gl_str s)
{
    gl_buf_add(b, s.p, s.n);
}

void gl_buf_c(struct gl_buf *b, const char *cstr)
{
    gl_buf_add(b, cstr, strlen(cstr));
}

void gl_buf_char(struct gl_buf *b, char c)
{
    *gl_buf_reserve(b, 1) = c;
    b->n++;
}

void gl_buf_u64(struct gl_buf *b, uint64_t v)
{
    char digits[20];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    gl_buf_add(b, digits + at, sizeof(digits) - at);
}

void gl_buf_i64(struct gl_buf *b, int64_t v)
{
    if (v < 0) {
        gl_buf_char(b, '-');
        gl_buf_u64(b, 0 - (uint64_t)v);
    } else {
        gl_buf_u64(b, (uint64_t)v);
    }
}

void gl_buf_fmt(struct gl_buf *b, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    GL_ASSERT(n >= 0);
    char *p = gl_buf_reserve(b, (size_t)n + 1);
    (void)vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    b->n += (size_t)n;
}

gl_str gl_buf_view(const struct gl_buf *b)
{
    return (gl_str){.p = b->p, .n = b->n};
}
