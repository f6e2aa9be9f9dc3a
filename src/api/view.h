/* view.h - a job as its records tell it: parsed once, looked at by whoever renders or explains it.
 */
#ifndef GL_API_VIEW_H
#define GL_API_VIEW_H

#include "api/nodes.h"
#include "model/flow.h"
#include "model/job.h"
#include "port/asks.h"
#include "port/store.h"

struct gl_view_items { /* the instances of one step with foreach, by item; some may be missing */
    struct gl_step_record **records;
    uint32_t n;
};

struct gl_view {
    struct gl_job_record job;
    struct gl_flow *flow;
    struct gl_step_record **steps;       /* by number; NULL: it has no record */
    struct gl_view_items *items;         /* by number */
    const struct gl_step_record *spoilt; /* the first whose record is damaged; NULL: none is */
    const struct gl_nodes_owner *owner;  /* NULL: it has ended, or the store is not shared */
    const struct gl_asks_run *asks;      /* what its workers ask a person; NULL: nothing */
};

/* Everything lives in `a`. */
int gl_view_read(struct gl_arena *a, const struct gl_record *job, gl_str flow,
                 const struct gl_record *steps, size_t steps_n, struct gl_view *ret,
                 struct gl_why *reterr_why);

int gl_view_record(struct gl_arena *a, const struct gl_schema *schema, gl_str text, void *ret,
                   struct gl_why *reterr_why);

#endif
