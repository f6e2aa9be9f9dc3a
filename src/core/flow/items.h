/* items.h - runs a step with `foreach` once for each item.
 *
 * The step itself is WAITING while its instances run. An instance is a step like any other
 * (attempts, retries, slots, review) but has no children: its end is counted by its step, which
 * ends with the last instance, or with the first failure if a failure of the step fails the job. At
 * most `max_parallel` instances have not ended at any time, and one transaction creates at most
 * GL_SPREAD_MAX of them.
 *
 * Order of calls: gl_items_begin(), then gl_items_make() and gl_items_on_end() until the step
 * ends. */
#ifndef GL_CORE_FLOW_ITEMS_H
#define GL_CORE_FLOW_ITEMS_H

#include "core/core_state.h"

/* The gate has counted the items: there are `items_n`, at least one. */
void gl_items_begin(struct gl_core *c, struct gl_step *st, uint32_t items_n);
/* Creates the instances that may exist now, for every step that lacks some. Returns what is left of
 * the budget. */
uint32_t gl_items_make(struct gl_core *c, struct gl_job *j, uint32_t budget);
/* A step that waits for its instances has been loaded. */
void gl_items_on_load(struct gl_step *st);
/* An instance has ended. */
void gl_items_on_end(struct gl_core *c, struct gl_step *item);

#endif
