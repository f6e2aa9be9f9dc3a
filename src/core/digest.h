/* digest.h - a hash of what one step of the core decided.
 *
 * It covers the effects, in their order, with the jobs and records they are about, and the core's
 * trace: moves, starts, marks. It never covers values (outputs, inputs, commands, sentences), so a
 * recording from which values have been redacted replays to the same digests.
 *
 * Called: gl_digest_init(), with `&d->tap` given to the core as its trace; gl_digest_end() after
 * each step, which returns that step's digest and resets it for the next. */
#ifndef GL_CORE_DIGEST_H
#define GL_CORE_DIGEST_H

#include "base/trace.h"
#include "core/effect.h"

struct gl_digest {
    struct gl_trace tap;
    struct gl_trace *inner; /* gets all that passes through `tap`; borrowed */
    uint64_t sum;
};

void gl_digest_init(struct gl_digest *d, struct gl_trace *inner);
uint64_t gl_digest_end(struct gl_digest *d, const struct gl_effects *effects);

#endif
