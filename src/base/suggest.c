/* suggest.c - optimal string alignment distance (edit distance with swaps of neighbours), limited
 * to a band. */
#include "base/suggest.h"

#include "base/check.h"
#include "base/limits.h"

enum { BAND_MAX = 3, WORD_BYTES_MAX = GL_ID_BYTES_MAX };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

unsigned gl_suggest_distance(gl_str a, gl_str b, unsigned max)
{
    GL_ASSERT(max <= BAND_MAX);
    size_t difference = a.n > b.n ? a.n - b.n : b.n - a.n;
    if (difference > max || a.n > WORD_BYTES_MAX || b.n > WORD_BYTES_MAX) {
        return gl_str_eq(a, b) ? 0 : max + 1;
    }
    /* Three rows of the matrix; cells outside the band count as "too many". */
    unsigned rows[3][WORD_BYTES_MAX + 1];
    for (size_t k = 0; k <= b.n; k++) {
        rows[0][k] = least((unsigned)k, max + 1);
    }
    for (size_t i = 1; i <= a.n; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *second = rows[(i + 1) % 3];
        size_t from = i > max ? i - max : 1, to = i + max < b.n ? i + max : b.n;
        unsigned best = row[from - 1] = from == 1 ? least((unsigned)i, max + 1) : max + 1;
        for (size_t k = from; k <= to; k++) {
            unsigned up = k < i + max ? above[k] : max + 1;
            unsigned v = above[k - 1] + (a.p[i - 1] != b.p[k - 1]);
            v = least(v, least(up, row[k - 1]) + 1);
            if (i > 1 && k > 1 && a.p[i - 1] == b.p[k - 2] && a.p[i - 2] == b.p[k - 1]) {
                v = least(v, second[k - 2] + 1);
            }
            row[k] = least(v, max + 1);
            best = least(best, row[k]);
        }
        if (best > max) {
            return max + 1;
        }
    }
    return rows[a.n % 3][b.n];
}

void gl_suggest_init(struct gl_suggest *n, gl_str wanted)
{
    /* One more than accepted. Among short words nearly everything is two letters away. */
    *n = (struct gl_suggest){.wanted = wanted, .distance = wanted.n <= 3 ? 2 : 3};
}

void gl_suggest_offer(struct gl_suggest *n, gl_str candidate)
{
    unsigned d = gl_suggest_distance(n->wanted, candidate, n->distance - 1);
    if (d < n->distance && d < candidate.n) {
        n->best = candidate;
        n->distance = d ? d : 1;
    }
}
