/* rng.h - a seeded random number generator (xoshiro256**). One per subsystem, so that an additional
 * draw in one does not change the others. Not for secrets. */
#ifndef GL_BASE_RNG_H
#define GL_BASE_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct gl_rng {
    uint64_t s[4];
};

void gl_rng_init(struct gl_rng *r, uint64_t seed);
/* Derive an independent generator from the state of `r` and a name; `r` advances by one draw. */
void gl_rng_fork(struct gl_rng *r, struct gl_rng *ret, const char *name);
uint64_t gl_rng_u64(struct gl_rng *r);
uint64_t gl_rng_below(struct gl_rng *r, uint64_t n);            /* 0 .. n-1, unbiased; n > 0 */
int64_t gl_rng_range(struct gl_rng *r, int64_t lo, int64_t hi); /* lo .. hi, inclusive */
bool gl_rng_chance(struct gl_rng *r, uint32_t per_million);
void gl_rng_fill(struct gl_rng *r, void *bytes, uint32_t n);

#endif
