/* base64.c - see base64.h. Decoding is strict about padding and leftover bits, so that one text has
 * one encoding. */
#include "base/base64.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void gl_base64_encode(gl_str bytes, struct gl_buf *out)
{
    const unsigned char *p = (const unsigned char *)bytes.p;
    char *at = gl_buf_reserve(out, (bytes.n + 2) / 3 * 4);
    const char *start = at;
    size_t i = 0;

    for (; i + 3 <= bytes.n; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16 | (uint32_t)p[i + 1] << 8 | p[i + 2];

        *at++ = letters[v >> 18];
        *at++ = letters[v >> 12 & 63];
        *at++ = letters[v >> 6 & 63];
        *at++ = letters[v & 63];
    }
    if (i < bytes.n) {
        bool two = bytes.n - i == 2;
        uint32_t v = (uint32_t)p[i] << 16 | (two ? (uint32_t)p[i + 1] << 8 : 0);

        *at++ = letters[v >> 18];
        *at++ = letters[v >> 12 & 63];
        *at++ = two ? letters[v >> 6 & 63] : '=';
        *at++ = '=';
    }
    out->n += (size_t)(at - start);
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

bool gl_base64_decode(gl_str text, struct gl_buf *out)
{
    size_t digits = 0, pads = 0;
    uint32_t bits = 0;

    (void)gl_buf_reserve(out, text.n / 4 * 3 + 3); /* grow the buffer once */
    for (size_t i = 0; i < text.n; i++) {
        int v = value_of(text.p[i]);

        if (is_space(text.p[i])) {
            continue;
        }
        if (text.p[i] == '=') {
            pads++;
            continue;
        }
        if (v < 0 || pads > 0) {
            return false;
        }
        bits = bits << 6 | (uint32_t)v;
        if (++digits % 4 != 1) { /* the first of four completes no byte */
            gl_buf_char(out, (char)(bits >> (6 - 2 * ((digits + 3) % 4)) & 255));
        }
    }
    /* The unused bits of the last letter must be zero and padding, if present, complete. */
    if (digits % 4 == 1 || (pads > 0 && (digits % 4 == 0 || (digits + pads) % 4 != 0))) {
        return false;
    }
    return digits % 4 == 0 || (bits & (digits % 4 == 2 ? 15u : 3u)) == 0;
}
