/* sim_repeats.h - repeated requests of clients: the same submission again, another one under a run
 * id that is taken, and retries of ended jobs.
 *
 * A run id makes it safe to repeat a submission: whatever the outcome of the first attempt, there
 * is one job, and every submission gets the same answer. */
#ifndef GL_SIM_SIM_REPEATS_H
#define GL_SIM_SIM_REPEATS_H

#include "sim/sim_client.h"

/* Repeats an accepted order. */
void sim_repeats_same(struct sim_client *cl, struct sim_node *node);
/* Submits something else under the run id of an accepted order. */
void sim_repeats_rival(struct sim_client *cl, struct sim_node *node);
/* Retries a job, ended or not, from some step, or from none. */
void sim_repeats_retry(struct sim_client *cl, struct sim_node *node, const struct sim_fact_job *j);

/* Does it have a run id or a request key, by which a node recognises it? */
bool sim_repeats_is_named(const struct sim_order *o);

#endif
