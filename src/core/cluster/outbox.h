/* outbox.h - commands of this node's clients for jobs that another node owns.
 *
 *   SENDING ──► WAITING ◄──► LOOKING ──► REMOVING ──► (gone)     there was an answer
 *                  ▲            │
 *                  └─ TAKING_BACK ──► (gone)                     withdrawn: nothing was done
 *
 * The entry is written with the guard that the job exists. If the outcome of that write is unknown,
 * it is not repeated: an answer will show that the entry arrived. After 30 s without an answer the
 * entry is withdrawn, which succeeds only if no node has executed the command. If the entry is gone
 * already, the answer gets a little more time; after that the client gets the reply that the
 * outcome is unknown. See inbox.h for the owner's side.
 *
 * Called: gl_outbox_init(); gl_outbox_send() for each command; gl_outbox_on_woken() when an answer
 * may have come; gl_outbox_done(). */
#ifndef GL_CORE_CLUSTER_OUTBOX_H
#define GL_CORE_CLUSTER_OUTBOX_H

#include "core/core_state.h"

void gl_outbox_init(struct gl_core *c);
void gl_outbox_done(struct gl_core *c);

/* Send this COMMAND to the owner of `j`. The client gets exactly one REPLY, later. */
void gl_outbox_send(struct gl_core *c, const struct gl_job *j, const struct gl_event *ev);
/* An answer has been written for some node. */
void gl_outbox_on_woken(struct gl_core *c);

#endif
