/* histogram.h - counts durations in fixed buckets, from a millisecond to ten minutes. */
#ifndef GL_BASE_HISTOGRAM_H
#define GL_BASE_HISTOGRAM_H

#include <stddef.h>

#include "base/times.h"

enum { GL_HISTOGRAM_BUCKETS = 18 };

struct gl_histogram {
    uint64_t counts[GL_HISTOGRAM_BUCKETS + 1]; /* the last one: above every bound */
    uint64_t n;
    gl_ms sum_ms;
};

extern const gl_ms gl_histogram_bounds[GL_HISTOGRAM_BUCKETS]; /* upper bounds, inclusive */

void gl_histogram_add(struct gl_histogram *h, gl_ms span); /* negative counts as 0 */

#endif
