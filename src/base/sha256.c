/* sha256.c - straightforward SHA-256, without CPU-specific code. */
#include "base/sha256.h"

/* FIPS 180-4, section 4.2.2. */
static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

void gl_sha256_init(struct gl_sha256 *s)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->h, start, sizeof(start));
    s->total = 0;
}

static uint32_t rotate(uint32_t x, unsigned n)
{
    return (x >> n) | (x << (32 - n));
}

static void fill_schedule(uint32_t w[static 64], const uint8_t *block)
{
    for (unsigned i = 0; i < 16; i++) {
        const uint8_t *b = block + 4 * i;
        w[i] = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    }
    for (unsigned i = 16; i < 64; i++) {
        uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >> 3);
        uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
}

static void compress(uint32_t h[static 8], const uint8_t *block)
{
    uint32_t w[64], v[8];
    fill_schedule(w, block);
    memcpy(v, h, sizeof(v));
    for (unsigned i = 0; i < 64; i++) {
        uint32_t s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t t1 = v[7] + s1 + choice + k[i] + w[i];
        uint32_t s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        memmove(v + 1, v, 7 * sizeof(v[0]));
        v[4] += t1;
        v[0] = t1 + s0 + majority;
    }
    for (unsigned i = 0; i < 8; i++) {
        h[i] += v[i];
    }
}

void gl_sha256_add(struct gl_sha256 *s, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    size_t filled = (size_t)(s->total % sizeof(s->block));
    s->total += n;
    if (filled) {
        size_t fill = sizeof(s->block) - filled;
        fill = n < fill ? n : fill;
        memcpy(s->block + filled, p, fill);
        p += fill;
        n -= fill;
        if (filled + fill < sizeof(s->block)) {
            return;
        }
        compress(s->h, s->block);
    }
    for (; n >= sizeof(s->block); n -= sizeof(s->block), p += sizeof(s->block)) {
        compress(s->h, p);
    }
    if (n) {
        memcpy(s->block, p, n);
    }
}

void gl_sha256_done(struct gl_sha256 *s, uint8_t ret[static GL_SHA256_BYTES])
{
    uint64_t bits = s->total * 8;
    uint8_t tail[72] = {0x80};
    size_t filled = (size_t)(s->total % 64);
    size_t zeros = (filled < 56 ? 56 : 120) - filled; /* including the leading 0x80 */
    for (unsigned i = 0; i < 8; i++) {
        tail[zeros + i] = (uint8_t)(bits >> (56 - 8 * i));
    }
    gl_sha256_add(s, tail, zeros + 8);
    for (unsigned i = 0; i < GL_SHA256_BYTES; i++) {
        ret[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
    }
}

gl_str gl_sha256_hex(gl_str text, char ret[static GL_SHA256_HEX])
{
    struct gl_sha256 s;
    uint8_t digest[GL_SHA256_BYTES];
    gl_sha256_init(&s);
    gl_sha256_add(&s, text.p, text.n);
    gl_sha256_done(&s, digest);
    for (unsigned i = 0; i < GL_SHA256_BYTES; i++) {
        ret[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        ret[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    ret[GL_SHA256_HEX - 1] = 0;
    return (gl_str){.p = ret, .n = GL_SHA256_HEX - 1};
}
