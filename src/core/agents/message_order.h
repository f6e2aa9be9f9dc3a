/* message_order.h - in which order an agent handles the messages in its inbox.
 *
 * Each message has a rank: the time when it was sent, less GL_MESSAGE_AGEING_MS for each point of
 * its priority. The lowest rank goes first, then the lowest number.
 *
 *   - A rank never changes, so the order of two waiting messages never changes either, and a load
 *     gives the same order.
 *   - No message waits forever: what is sent long enough after it ranks after it, whatever its
 *     priority.
 *   - Messages of the same priority keep the order in which they were sent, because the dates of a
 *     job's messages never go back, even if a new owner's clock is behind.
 *   - A message that a retry gets again goes before all others: the retry begins with it. */
#ifndef GL_CORE_AGENTS_MESSAGE_ORDER_H
#define GL_CORE_AGENTS_MESSAGE_ORDER_H

#include "core/agents/mailbox.h"

/* ---- a new message ---- */

/* Its date: now, but not before that of any message of the job. */
gl_ms gl_message_order_date(const struct gl_core *c, struct gl_job *j);
/* Its priority, as the record has it. */
int64_t gl_message_order_urgency(const struct gl_message *m);

/* ---- an inbox ---- */

void gl_message_order_init(struct gl_heap *inbox);
/* Can a rank be computed from it? For records, which are bytes from outside. */
bool gl_message_order_is_valid(const struct gl_message_record *r);
/* Adds the message to its receiver's inbox; the mailbox exists. */
void gl_message_order_enqueue(struct gl_step *unit, struct gl_queued_message *q);
/* The same for a message that is in the list of the mailbox already. */
void gl_message_order_put(struct gl_step *unit, struct gl_queued_message *q);
/* The message that the unit handles next; its inbox is not empty. gl_mailbox_take() removes it. */
struct gl_queued_message *gl_message_order_next(const struct gl_step *unit);

/* ---- counted messages ---- */

/* Adds it to those that an aggregator has counted, in the order of their numbers. */
void gl_message_order_collect(struct gl_step *unit, struct gl_queued_message *q);

#endif
