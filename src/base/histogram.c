/* histogram.c - the bounds are part of the metrics that nodes export: changing them breaks
 * dashboards. */
#include "base/histogram.h"

const gl_ms gl_histogram_bounds[GL_HISTOGRAM_BUCKETS] = {
    1,    2,    5,    10,    20,    50,    100,    200,    500,
    1000, 2000, 5000, 10000, 20000, 60000, 120000, 300000, 600000,
};

void gl_histogram_add(struct gl_histogram *h, gl_ms span)
{
    size_t i = 0;

    span = span > 0 ? span : 0;
    while (i < GL_HISTOGRAM_BUCKETS && span > gl_histogram_bounds[i]) {
        i++;
    }
    h->counts[i]++;
    h->n++;
    h->sum_ms += span;
}
