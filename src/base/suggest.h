/* suggest.h - "did you mean": which known word someone may have wanted to write. */
#ifndef GL_BASE_SUGGEST_H
#define GL_BASE_SUGGEST_H

#include "base/str.h"

/* How many letters must be added, dropped, changed or swapped with their neighbour to make `b` of
 * `a`; `max` + 1 if more than `max` (which is at most 3). Cheap: looks only at a narrow band around
 * the diagonal. */
unsigned gl_suggest_distance(gl_str a, gl_str b, unsigned max);

/* Collects the best candidate: near enough to be a slip (two letters; one in words of up to three).
 */
struct gl_suggest {
    gl_str wanted;
    gl_str best; /* empty: nothing is near */
    unsigned distance;
};

void gl_suggest_init(struct gl_suggest *n,
                     gl_str wanted); /* borrowed until the last use, like candidates */
void gl_suggest_offer(struct gl_suggest *n, gl_str candidate);

#endif
