/* scan.h - the steps of a job, reduced page by page to what one answer may hold.
 *
 *   gl_scan_begin()   of a job and its flow; at most `limit` steps will be kept
 *   gl_scan_add()     a page of step records, in any order; the page can be freed afterwards
 *   gl_scan_end()     the view: what was kept, and the status of everything else
 *   gl_scan_done()    frees everything but the view
 *
 * Memory is bounded by `limit` and by a few bytes for each step: outputs above `inline_max` are
 * left out, and a step that is not kept is remembered by its status only. If there are more steps
 * than `limit`, those that failed are kept first, then those that run, then those that wait for
 * something in particular, then the rest in the order of the flow.
 *
 * Pure: a scan may be filled on another thread than the one that began it. */
#ifndef GL_API_SCAN_H
#define GL_API_SCAN_H

#include "api/view.h"
#include "base/heap.h"

struct gl_scan {
    struct gl_arena *arena; /* of the view; borrowed */
    struct gl_view view;
    struct gl_heap steps, units; /* struct kept, the least important on top */
    uint32_t limit;
    size_t inline_max;                 /* larger outputs are left out, ... */
    size_t outputs_max, outputs_bytes; /* ... and those that follow when this much is kept */
    size_t items_max;                  /* outputs of instances are put together up to this */
    uint32_t *items_n;     /* by number: how many instances it has, as far as records were added */
    uint64_t *items_bytes; /* by number: what the outputs of its instances amount to */
    int64_t wanted_number; /* always kept, whatever its status; -1: none */
    int64_t wanted_item;
};

/* The view lives in `a`, and borrows the job and the flow. */
void gl_scan_begin(struct gl_scan *s, struct gl_arena *a, const struct gl_job_record *job,
                   const struct gl_flow *flow, uint32_t limit, size_t inline_max);
/* Keep this step in any case; false: there is no such step. */
bool gl_scan_want(struct gl_scan *s, gl_str step);
void gl_scan_add(struct gl_scan *s, const struct gl_record *records, size_t n);
void gl_scan_end(struct gl_scan *s, struct gl_view *ret);
void gl_scan_done(struct gl_scan *s);

#endif
