/* sim_senders.h - messages that clients send to agents, and dead letters that they redrive.
 *
 * Each message has a unique type, "post-<n>": see check_sent.c. */
#ifndef GL_SIM_SIM_SENDERS_H
#define GL_SIM_SIM_SENDERS_H

#include "sim/sim_client.h"

/* Sends a message to an agent of this bundle, lists its dead letters, or redrives the one that was
 * found last. */
void sim_senders_meddle(struct sim_client *cl, struct sim_node *node, const struct sim_fact_job *j);
/* The steward: sends a message to waiting controllers of fan-outs. */
void sim_senders_wake(struct sim_client *cl, struct sim_node *node, const struct sim_fact_job *j);
/* The job was paused because one of its records was damaged, and none is any more: resumes it. */
bool sim_senders_is_mended(const struct sim_fact_job *j);
void sim_senders_done(struct sim_client *cl);

#endif
