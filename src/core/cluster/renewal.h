/* renewal.h - renews our session every third of its TTL, and says how long it can be relied on.
 *
 * It is not known exactly when a renewal reached the store, so the TTL counts from the moment it
 * was sent. That, less a margin, is `valid_until`. The effect VALID passes it to the node, which
 * starts no attempt later than that and passes it on to the executor. Once the store says that the
 * session is gone, it is lost: nothing starts any more, and the node shuts down.
 *
 * Called: gl_renewal_begin() when the session has been opened; after that the component runs by
 * itself. */
#ifndef GL_CORE_CLUSTER_RENEWAL_H
#define GL_CORE_CLUSTER_RENEWAL_H

#include "core/core_state.h"

/* The session was opened, by a call that was sent at ev->sent_at. */
void gl_renewal_begin(struct gl_core *c, const struct gl_event *ev);
/* Renew now, because a renewal also publishes this node's state. If one is in flight, it carries
 * the old state, and the next regular one publishes the new. */
void gl_renewal_renew_now(struct gl_core *c);
void gl_renewal_on_changed(struct gl_core *c);
/* Have our renewals succeeded for long enough that we may declare other sessions dead? */
bool gl_renewal_may_declare_dead(const struct gl_core *c);

#endif
