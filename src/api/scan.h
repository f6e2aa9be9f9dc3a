/* scan.h - reduces the steps of a job, page by page, to what one answer may hold.
 *
 *   gl_scan_begin()   for a job and its flow; keeps at most `limit` steps
 *   gl_scan_add()     a page of step records, in any order; the page can be freed afterwards
 *   gl_scan_end()     the view: the steps kept, and the status of all others
 *   gl_scan_done()    frees everything except the view
 *
 * Memory is bounded by `limit` plus a few bytes per step: outputs above `inline_max` are dropped,
 * and for a step that is not kept only the status is remembered. If there are more steps than
 * `limit`, failed steps are kept first, then running ones, then those waiting for something
 * specific, then the rest in the order of the flow.
 *
 * Pure. A scan may be filled on a different thread from the one that began it. */
#ifndef GL_API_SCAN_H
#define GL_API_SCAN_H

#include "api/view.h"
#include "base/heap.h"

struct gl_scan {
    struct gl_arena *arena; /* the view's; borrowed */
    struct gl_view view;
    struct gl_heap steps, units; /* struct kept; the least important on top */
    uint32_t limit;
    size_t inline_max;                 /* larger outputs are dropped, ... */
    size_t outputs_max, outputs_bytes; /* ... and so are further ones once this much is kept */
    size_t items_max;      /* lists of instances' outputs are included up to this size */
    uint32_t *items_n;     /* by number: number of instances, as far as records were added */
    uint64_t *items_bytes; /* by number: total size of its instances' outputs */
    int64_t wanted_number; /* always kept, whatever its status; -1: none */
    int64_t wanted_item;
};

/* The view lives in `a`, and borrows the job and the flow. */
void gl_scan_begin(struct gl_scan *s, struct gl_arena *a, const struct gl_job_record *job,
                   const struct gl_flow *flow, uint32_t limit, size_t inline_max);
/* Always keep this step; false: no such step. */
bool gl_scan_want(struct gl_scan *s, gl_str step);
void gl_scan_add(struct gl_scan *s, const struct gl_record *records, size_t n);
void gl_scan_end(struct gl_scan *s, struct gl_view *ret);
void gl_scan_done(struct gl_scan *s);

#endif
