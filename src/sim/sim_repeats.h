/* sim_repeats.h - people who ask for what has been asked for before: the same submission again,
 * another one under a run id that is taken, and retries of what has ended.
 *
 * A run id is what makes it safe to ask again: whatever became of the first try, there is one job,
 * and everybody is told the same. */
#ifndef GL_SIM_SIM_REPEATS_H
#define GL_SIM_SIM_REPEATS_H

#include "sim/sim_client.h"

/* An order that has been accepted, once more. */
void sim_repeats_same(struct sim_client *cl, struct sim_node *node);
/* Something else under the run id of an order that has been accepted. */
void sim_repeats_rival(struct sim_client *cl, struct sim_node *node);
/* A job that has ended, or has not, once more, from some step on, or from none. */
void sim_repeats_retry(struct sim_client *cl, struct sim_node *node, const struct sim_fact_job *j);

/* Has it a run id or a request key, by which a node knows it again? */
bool sim_repeats_is_named(const struct sim_order *o);

#endif
