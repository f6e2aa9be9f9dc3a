/* membership.h - the other nodes of a shared store: which are alive, which have died.
 *
 * Sessions are listed often enough to notice an expired one soon after its deadline. An expired
 * session is declared dead, irrevocably, but only by a node whose own renewals have succeeded for a
 * whole TTL (gl_renewal_may_declare_dead): after an outage of the store every node gets a chance to
 * renew first.
 *
 * Dead sessions are remembered, because a session never comes back. Everything known about other
 * nodes is forgotten when the connection to the store changes, since the store may be a different
 * one or have lost its latest writes.
 *
 * Called: gl_membership_init() once; then the component lists sessions by itself. Code
 * that decides about a job asks gl_membership_owned_elsewhere() or gl_membership_must_not_take()
 * first. */
#ifndef GL_CORE_CLUSTER_MEMBERSHIP_H
#define GL_CORE_CLUSTER_MEMBERSHIP_H

#include "core/core_state.h"

void gl_membership_init(struct gl_core *c);
void gl_membership_done(struct gl_core *c);

/* Is this session known to be alive, and not ours? Is it known to be dead? Both are false for a
 * session we know nothing about. */
bool gl_membership_lives(const struct gl_core *c, gl_str session);
bool gl_membership_is_dead(const struct gl_core *c, gl_str session);
/* Is it a session of this node, of this life or an earlier one? */
bool gl_membership_is_own(const struct gl_core *c, gl_str session);

/* Does a job with this owner belong to another node? A job with running attempts (`runs`) also
 * belongs to a node whose session has died but which has opened a new one: only that node can ask
 * its own executor about them. */
bool gl_membership_owned_elsewhere(const struct gl_core *c, gl_str owner, bool runs);
/* Must this node leave the job alone? It must if the job belongs to another node. A guest also
 * leaves orphaned jobs to others, except those of earlier lives of its own node and those its
 * clients wait for (`is_wanted`). */
bool gl_membership_must_not_take(const struct gl_core *c, gl_str owner, bool runs, bool is_wanted);

/* A job was loaded whose owner, this session, turned out to be dead. */
void gl_membership_note_dead(struct gl_core *c, gl_str session);
/* Another node has returned jobs to the store. */
void gl_membership_on_given(struct gl_core *c);
void gl_membership_on_changed(struct gl_core *c);

#endif
