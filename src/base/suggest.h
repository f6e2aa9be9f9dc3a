/* suggest.h - "did you mean": finds the known word that is closest to an unknown one.
 *
 * Order of calls: init, offer each candidate, then read `best`. */
#ifndef GL_BASE_SUGGEST_H
#define GL_BASE_SUGGEST_H

#include "base/str.h"

/* The number of letters to add, drop, change or swap with a neighbour to turn `a` into `b`; `max` +
 * 1 if it exceeds `max` (at most 3). Cheap: examines only a narrow band around the diagonal. */
unsigned gl_suggest_distance(gl_str a, gl_str b, unsigned max);

/* The best candidate so far, if close enough to be a typo: two letters, one in words of up to
 * three. */
struct gl_suggest {
    gl_str wanted;
    gl_str best; /* empty: nothing is close enough */
    unsigned distance;
};

void gl_suggest_init(struct gl_suggest *n,
                     gl_str wanted); /* borrowed until the last use, like candidates */
void gl_suggest_offer(struct gl_suggest *n, gl_str candidate);

#endif
