/* items.h - one step, many items: `foreach`.
 *
 * The step itself waits while its instances run. They are steps like others (attempts, retries,
 * slots, review), but nobody's parents: their end is told to their step, which ends with the last
 * of them, or with the first failure if its failure is the job's. At most `max_parallel` are alive
 * at a time, and no more than GL_SPREAD_MAX are made by one transaction. */
#ifndef GL_CORE_FLOW_ITEMS_H
#define GL_CORE_FLOW_ITEMS_H

#include "core/core_state.h"

void gl_items_begin(struct gl_core *c, struct gl_step *st, uint32_t items_n);
/* Make what may be made now; returns what is left of the budget. */
uint32_t gl_items_make(struct gl_core *c, struct gl_job *j, uint32_t budget);
/* After loading a step that waits for its instances. */
void gl_items_on_load(struct gl_step *st);
void gl_items_on_end(struct gl_core *c, struct gl_step *item);

#endif
