/* view.h - a job parsed from its records, for the code that renders or explains it.
 *
 * gl_view_read() makes a view from all records at once, scan.h from pages. The caller then sets
 * `owner`, `nodes` and `asks`, if it knows them. */
#ifndef GL_API_VIEW_H
#define GL_API_VIEW_H

#include "api/nodes.h"
#include "model/flow/flow.h"
#include "model/job.h"
#include "port/questions.h"
#include "port/store.h"

struct gl_places;

struct gl_view_items { /* the instances of a step with foreach, by item; some may be missing */
    const struct gl_step_record **records;
    uint32_t n;
};

struct gl_view_pick { /* a step, or its instance for `item` */
    uint32_t number;
    int64_t item; /* -1: the step itself */
};

/* What has become of a running step's attempt on another node (model/offer.h). */
struct gl_view_offer {
    gl_str step_id;
    bool is_taken; /* its record exists; else it waits there, or is about to be taken */
    uint8_t state; /* enum gl_taken_state */
};

struct gl_view {
    struct gl_job_record job;
    const struct gl_flow *flow;
    const struct gl_step_record **steps; /* by number; NULL: no record */
    struct gl_view_items *items;         /* by number */
    const struct gl_step_record
        *damaged_step;                  /* the first step with a damaged record; NULL: none */
    const struct gl_nodes_owner *owner; /* NULL: the job has ended, or the store is not shared */
    const struct gl_nodes *nodes;       /* of a shared store, with `owner`; else NULL */
    struct gl_places *places;           /* of a shared store: places.h; else NULL */
    const struct gl_view_offer *offers; /* of some of the steps that run elsewhere */
    size_t offers_n;
    const struct gl_questions_run *asks; /* questions of its workers; NULL: none */

    /* If the job has more steps than one answer holds: the steps to list, in order. Of the others
     * only the status is known, and on a page (`is_page`) not even that. */
    struct gl_view_pick *picks;
    size_t picks_n;
    bool is_partial, is_page;
    gl_str next;          /* where the next page begins; "": this is the last */
    uint64_t steps_total; /* steps and instances */
    uint32_t counts[GL_STEP_STATUS_COUNT];
    bool asks_person;      /* a step waits for a decision */
    size_t items_max;      /* lists of instances' outputs are included up to this size */
    uint64_t *items_bytes; /* by number: total size of its instances' outputs */
    gl_str context;        /* for `output_ref` */
};

/* The whole job, however large. Everything lives in `a`. */
int gl_view_read(struct gl_arena *a, const struct gl_record *job, gl_str flow,
                 const struct gl_record *steps, size_t steps_n, struct gl_view *ret,
                 struct gl_why *reterr_why);
/* Its first two steps: parsing the job and decoding the flow. */
int gl_view_read_job(struct gl_arena *a, const struct gl_record *job, struct gl_job_record *ret,
                     struct gl_why *reterr_why);
int gl_view_read_flow(struct gl_arena *a, gl_str job, gl_str text, const struct gl_flow **ret,
                      struct gl_why *reterr_why);

int gl_view_record(struct gl_arena *a, const struct gl_schema *schema, gl_str text, void *ret,
                   struct gl_why *reterr_why);

#endif
