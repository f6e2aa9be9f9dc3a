/* sim_known.h - resolves the references of a step from the records on the disk.
 *
 * Computed by the checkers from committed records, to compare with what a node made of a condition
 * or a reference. Valid only for settled steps: everything they name had ended when they became
 * ready, and ended steps do not change. */
#ifndef GL_SIM_SIM_KNOWN_H
#define GL_SIM_SIM_KNOWN_H

#include "sim/sim_checks.h"

/* The facts (model/text/ref.h) for a step, or for an instance with its item. False: they cannot be
 * computed, because the list of its items cannot. Allocated in c->arena. */
bool sim_known_facts(struct sim_checks *c, const struct sim_fact_job *j,
                     const struct sim_fact_step *st, struct gl_json *ret);

/* The output of a step: for a step with foreach, the list of its instances' outputs. */
gl_str sim_known_output(struct sim_checks *c, const struct sim_fact_step *st);

/* The list a step iterates over. False: there is none, or it is not a list. */
bool sim_known_items(struct sim_checks *c, const struct sim_fact_step *st,
                     const struct gl_json *facts, struct gl_json *ret, uint32_t *ret_n);

/* When a sleep that begins at `now` is over. False: that cannot be determined. */
bool sim_known_due(struct sim_checks *c, const struct sim_fact_step *st,
                   const struct gl_json *facts, gl_ms now, gl_ms *ret);

#endif
