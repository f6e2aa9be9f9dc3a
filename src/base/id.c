/* id.c - ULIDs in Crockford's base 32. The first character is at most '7', because 26 characters
 * hold 130 bits and only 128 are used. */
#include "base/id.h"

#include "base/check.h"

static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

enum { TIME_CHARS = 10, TIME_MAX_BITS = 48 };

void gl_id_make(struct gl_ulid *ret, gl_ms now, const uint8_t chance[static 10])
{
    GL_ASSERT(now >= 0);
    GL_ASSERT(now < (gl_ms)1 << TIME_MAX_BITS);
    uint64_t t = (uint64_t)now;
    for (unsigned i = TIME_CHARS; i-- > 0; t >>= 5) {
        ret->text[i] = alphabet[t & 31];
    }
    /* 80 bits are exactly 16 characters: two groups of 5 bytes, 8 characters each. */
    for (unsigned group = 0; group < 2; group++) {
        uint64_t bits = 0;
        for (unsigned i = 0; i < 5; i++) {
            bits = bits << 8 | chance[group * 5 + i];
        }
        for (unsigned i = 8; i-- > 0; bits >>= 5) {
            ret->text[TIME_CHARS + group * 8 + i] = alphabet[bits & 31];
        }
    }
    ret->text[GL_ULID_BYTES] = 0;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    const char *hit = c >= 'A' && c <= 'Z' ? strchr(alphabet, c) : NULL;
    return hit ? (int)(hit - alphabet) : -1;
}

bool gl_id_valid(gl_str s)
{
    if (s.n != GL_ULID_BYTES || s.p[0] > '7') {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        if (digit_of(s.p[i]) < 0) {
            return false;
        }
    }
    return true;
}

gl_ms gl_id_time(gl_str s)
{
    GL_ASSERT(gl_id_valid(s));
    uint64_t t = 0;
    for (unsigned i = 0; i < TIME_CHARS; i++) {
        t = t << 5 | (uint64_t)digit_of(s.p[i]);
    }
    return (gl_ms)t;
}
