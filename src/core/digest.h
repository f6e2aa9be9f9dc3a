/* digest.h - what one step of the core decided, as a number.
 *
 * It covers the effects, with what they are about and in which order, and what the core said on its
 * trace: moves, starts, marks. It never covers values (outputs, inputs, commands, sentences), so a
 * recording from which those have been removed replays to the same numbers.
 *
 *   gl_digest_init()    give `&d->tap` to the core as its trace
 *   gl_digest_end()     after each step: its number; the next step begins */
#ifndef GL_CORE_DIGEST_H
#define GL_CORE_DIGEST_H

#include "base/trace.h"
#include "core/effect.h"

struct gl_digest {
    struct gl_trace tap;
    struct gl_trace *inner; /* what passes the tap goes on to here; borrowed */
    uint64_t sum;
};

void gl_digest_init(struct gl_digest *d, struct gl_trace *inner);
uint64_t gl_digest_end(struct gl_digest *d, const struct gl_effects *effects);

#endif
