/* outbox.h - commands of this node's clients for jobs that another node owns.
 *
 *   SENDING ──► WAITING ◄──► LOOKING ──► REMOVING ──► (gone)     the answer was there
 *                  ▲            │
 *                  └─ TAKING_BACK ──► (gone)                     nobody took it: nothing was done
 *
 * The entry is written with the guard that the job exists. If the outcome of that is unknown, it is
 * not sent again: an answer will show that it arrived. After a while without an answer the entry is
 * taken back, which succeeds only if nobody has carried it out. If it is gone, the answer gets a
 * little more time. See inbox.h for the owner's side. */
#ifndef GL_CORE_CLUSTER_OUTBOX_H
#define GL_CORE_CLUSTER_OUTBOX_H

#include "core/core_state.h"

void gl_outbox_init(struct gl_core *c);
void gl_outbox_done(struct gl_core *c);

/* Send this COMMAND to the owner of its job, which is in memory. */
void gl_outbox_send(struct gl_core *c, const struct gl_job *j, const struct gl_event *ev);
/* An answer has been written. */
void gl_outbox_on_woken(struct gl_core *c);

#endif
