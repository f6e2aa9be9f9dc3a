/* inbox.h - commands that other nodes have sent to the owners of jobs.
 *
 *   sender (outbox.h)   PUT inbox/<job>/<number>, in the index "inbox"    notifies "inbox"
 *   owner               executes it; its transaction deletes the entry
 *   owner               PUT answer/<number>                               notifies "answer"
 *   sender              reads the answer, deletes it, replies to its client
 *
 * Notifications are hints: both sides also poll. A node scans the whole inbox index of its scope
 * and executes the commands for its own jobs and for jobs without a living owner.
 *
 * Rules:
 *   - A command is executed exactly once: the job's transaction is guarded on the presence of the
 *     entry, and deletes it.
 *   - The answer is written after that transaction has committed. If this node dies in between, the
 *     sender never gets an answer and reports the outcome as unknown.
 *   - A refusal that deleted nothing is written only if the entry is still there, because another
 *     node may have executed the command in the meantime.
 *
 * Inside the core, a command from the inbox is a COMMAND event whose request number belongs to this
 * component (gl_inbox_has). Its reply does not leave the core; it comes back to
 * gl_inbox_on_reply().
 *
 * Call order, for one command: the component dispatches the COMMAND; gl_inbox_on_consumed() when
 * the job's transaction deletes the entry; gl_inbox_on_reply(); gl_inbox_on_done() when the
 * transaction has ended. gl_inbox_abandon() replaces all of that if nothing was done. */
#ifndef GL_CORE_CLUSTER_INBOX_H
#define GL_CORE_CLUSTER_INBOX_H

#include "core/core_state.h"

void gl_inbox_init(struct gl_core *c);
void gl_inbox_done(struct gl_core *c);

/* Another node has sent a command to a node of this scope. */
void gl_inbox_on_woken(struct gl_core *c);

/* Does this request number belong to a command from the inbox? */
bool gl_inbox_has(uint64_t request);
/* The transaction that the job is about to write deletes the command's entry. */
void gl_inbox_on_consumed(struct gl_core *c, uint64_t request);
/* The reply to the command. It takes effect when transaction `op` has committed; at once if `op` is
 * 0. */
void gl_inbox_on_reply(struct gl_core *c, uint64_t op, const struct gl_effect *reply);
/* The command was not executed. Its entry stays, and is found again here or by the job's owner. */
void gl_inbox_abandon(struct gl_core *c, uint64_t request);
void gl_inbox_on_done(struct gl_core *c, const struct gl_event *ev);

#endif
