/* sim_posts.h - messages that people and programs send to agents, and dead letters that they send
 * again.
 *
 * Each message can be told from every other by its type, "post-<n>": see check_posts.c. */
#ifndef GL_SIM_SIM_POSTS_H
#define GL_SIM_SIM_POSTS_H

#include "sim/sim_client.h"

/* Somebody sends a message to an agent of this bundle, or looks for a dead letter of it, or sends
 * the one again that was found last. */
void sim_posts_meddle(struct sim_client *cl, struct sim_node *node, const struct sim_fact_job *j);
/* The steward: controllers of fan-outs that wait get a message. */
void sim_posts_wake(struct sim_client *cl, struct sim_node *node, const struct sim_fact_job *j);
/* It was held because a record of it was damaged, and none is any more: somebody has to say so. */
bool sim_posts_is_mended(const struct sim_fact_job *j);
void sim_posts_done(struct sim_client *cl);

#endif
