/* membership.h - the other nodes of a shared store: who lives, who has died, who has room.
 *
 * Sessions are listed often enough to notice a deadline soon after it has passed. A session past
 * its deadline is declared dead, irrevocably, but only by a node whose own renewals have been good
 * for a whole TTL (gl_renewal_may_judge): after an outage of the store every node gets the time to
 * renew first.
 *
 * Dead sessions are remembered, because a dead session stays dead. What is known of the others is
 * forgotten when the connection to the store changes. */
#ifndef GL_CORE_CLUSTER_MEMBERSHIP_H
#define GL_CORE_CLUSTER_MEMBERSHIP_H

#include "core/core_state.h"

void gl_membership_init(struct gl_core *c);
void gl_membership_done(struct gl_core *c);

/* A session that is known to live, and is not ours; one that is known to be dead. */
bool gl_membership_lives(const struct gl_core *c, gl_str session);
bool gl_membership_is_dead(const struct gl_core *c, gl_str session);
bool gl_membership_is_own(const struct gl_core *c,
                          gl_str session); /* of this life or an earlier one */

/* Is a job with this owner another node's? A job with running attempts also belongs to a node whose
 * session has died and which lives on with its next one: only that node can ask its executor. */
bool gl_membership_have(const struct gl_core *c, gl_str owner, bool runs);
/* The same, or a job that other nodes take up: of what was left behind a guest takes only the work
 * of earlier lives of its own node, and what its clients wait for (`is_wanted`). */
bool gl_membership_mind(const struct gl_core *c, gl_str owner, bool runs, bool is_wanted);

/* This session turned out to be dead when a job of its was loaded. */
void gl_membership_note_dead(struct gl_core *c, gl_str session);
/* Another node has given work back to the store. */
void gl_membership_on_given(struct gl_core *c);
void gl_membership_on_changed(struct gl_core *c);

#endif
