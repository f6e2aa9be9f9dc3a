/* renewal.h - our session is renewed every third of its TTL, and how far it can be relied on.
 *
 * Nobody knows when the store heard of a renewal, so its time counts from the moment it was sent.
 * Less a margin that is `valid_until`: the effect VALID tells the node, which starts nothing later
 * and tells the executor. A session that the store calls gone is lost: nothing starts any more. */
#ifndef GL_CORE_CLUSTER_RENEWAL_H
#define GL_CORE_CLUSTER_RENEWAL_H

#include "core/core_state.h"

/* The session was opened by a call that left at ev->sent_at. */
void gl_renewal_begin(struct gl_core *c, const struct gl_event *ev);
/* Others should soon know what is new of us. A renewal that is under way tells them the old state;
 * then the next one tells them. */
void gl_renewal_hurry(struct gl_core *c);
void gl_renewal_on_changed(struct gl_core *c);
/* Have our renewals been good for long enough to declare others dead? */
bool gl_renewal_may_judge(const struct gl_core *c);

#endif
