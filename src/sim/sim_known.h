/* sim_known.h - what the references of a step lead to, by the records on the disk.
 *
 * Put together by the checkers from committed records, so that what a node made of a condition or a
 * reference can be held against it. Good only for steps that are settled: all that they name had
 * ended when they became ready, and what has ended does not change. */
#ifndef GL_SIM_SIM_KNOWN_H
#define GL_SIM_SIM_KNOWN_H

#include "sim/sim_checks.h"

/* The facts (model/text/ref.h) for a step, or for an instance with its item. False: they cannot be
 * put together, because the list of its items cannot. Lives in c->arena. */
bool sim_known_facts(struct sim_checks *c, const struct sim_fact_job *j,
                     const struct sim_fact_step *st, struct gl_json *ret);

/* What a step has handed on: of one that went through a list, the list of what its items have. */
gl_str sim_known_output(struct sim_checks *c, const struct sim_fact_step *st);

/* The list a step goes through. False: there is none, or it is none. */
bool sim_known_items(struct sim_checks *c, const struct sim_fact_step *st,
                     const struct gl_json *facts, struct gl_json *ret, uint32_t *ret_n);

/* When a sleep that begins at `now` is over. False: it cannot be said. */
bool sim_known_due(struct sim_checks *c, const struct sim_fact_step *st,
                   const struct gl_json *facts, gl_ms now, gl_ms *ret);

#endif
