/* store_full.h - a store that answers and does not write any more: its disk is full, or its memory.
 *
 * What fits into room that is there already is still taken: renewals of the session, small changes.
 * So their success proves nothing, and jobs prove nothing if there are none to be tried again.
 * While the store is shut, and nothing was refused for a while, it is asked to keep something of
 * some size; when it does, it is open again, and what it kept is removed.
 *
 * A node that is idle learns from the others that there is no room (gl_store_full_doubt), and asks.
 */
#ifndef GL_CORE_CLUSTER_STORE_FULL_H
#define GL_CORE_CLUSTER_STORE_FULL_H

#include "core/core_state.h"

/* The store has refused something for want of room, and said this. */
void gl_store_full_on_refused(struct gl_core *c, gl_str why);
/* Another node says that it meets no room: is it so for us? */
void gl_store_full_doubt(struct gl_core *c);

#endif
