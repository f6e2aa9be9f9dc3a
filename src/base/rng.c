/* rng.c - xoshiro256**. The sequence is part of what a seed means: changing it invalidates every
 * recorded seed of the simulator. */
#include "base/rng.h"

#include <string.h>

#include "base/check.h"
#include "base/str.h"

/* splitmix64, which the authors of xoshiro recommend for filling the state from one number. */
static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void gl_rng_init(struct gl_rng *r, uint64_t seed)
{
    for (unsigned i = 0; i < 4; i++) {
        r->s[i] = splitmix(&seed);
    }
}

void gl_rng_fork(struct gl_rng *r, struct gl_rng *ret, const char *name)
{
    gl_rng_init(ret, gl_rng_u64(r) ^ gl_str_hash(gl_str_of(name)));
}

static uint64_t rotate(uint64_t x, unsigned k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t gl_rng_u64(struct gl_rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t gl_rng_below(struct gl_rng *r, uint64_t n)
{
    GL_ASSERT(n > 0);
    uint64_t skip =
        (0 - n) % n; /* 2^64 mod n: accepting draws below it would favour small results */
    uint64_t v;
    do {
        v = gl_rng_u64(r);
    } while (v < skip);
    return v % n;
}

int64_t gl_rng_range(struct gl_rng *r, int64_t lo, int64_t hi)
{
    GL_ASSERT(lo <= hi);
    uint64_t span = (uint64_t)hi - (uint64_t)lo;
    uint64_t v = span == UINT64_MAX ? gl_rng_u64(r) : gl_rng_below(r, span + 1);
    return (int64_t)((uint64_t)lo + v);
}

bool gl_rng_chance(struct gl_rng *r, uint32_t per_million)
{
    return gl_rng_below(r, 1000000) < per_million;
}

void gl_rng_fill(struct gl_rng *r, void *bytes, uint32_t n)
{
    unsigned char *p = bytes;
    uint64_t v = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i % 8 == 0) {
            v = gl_rng_u64(r);
        }
        p[i] = (unsigned char)(v >> (8 * (i % 8)));
    }
}
