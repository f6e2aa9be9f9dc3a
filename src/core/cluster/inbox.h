/* inbox.h - commands that other nodes have sent to the owners of jobs.
 *
 *   asking node (outbox.h)  PUT inbox/<job>/<number>, into the index "inbox"    word "inbox"
 *   owner                   carries it out; its transaction removes the entry
 *   owner                   PUT answer/<number>                                 word "answer"
 *   asking node             reads the answer, removes it, replies to its client
 *
 * Words are hints: both sides also look by themselves. A node looks through the whole index of its
 * scope and carries out what is addressed to its own jobs, and to jobs without a living owner.
 *
 * An entry is carried out exactly once: the job's transaction demands that the entry is there, and
 * removes it. The answer is written after that transaction has committed. A refusal that removed
 * nothing is written only if the entry is still there, because another node may have carried it
 * out meanwhile.
 *
 * A command from the inbox is a COMMAND with a request number of this component. Its reply never
 * leaves the core: it comes here instead (gl_inbox_on_reply). */
#ifndef GL_CORE_CLUSTER_INBOX_H
#define GL_CORE_CLUSTER_INBOX_H

#include "core/core_state.h"

void gl_inbox_init(struct gl_core *c);
void gl_inbox_done(struct gl_core *c);

/* Another node has sent a command to somebody of this scope. */
void gl_inbox_on_woken(struct gl_core *c);

/* Does this request number belong to a command from the inbox? */
bool gl_inbox_has(uint64_t request);
/* The command's entry is removed by the transaction that its job is about to write. */
void gl_inbox_on_consumed(struct gl_core *c, uint64_t request);
/* The reply to the command; it counts when transaction `op` has committed, at once if `op` is 0. */
void gl_inbox_on_reply(struct gl_core *c, uint64_t op, const struct gl_effect *reply);
/* Nothing was done: the entry is found again, here or by the job's owner. */
void gl_inbox_let_go(struct gl_core *c, uint64_t request);
void gl_inbox_on_done(struct gl_core *c, const struct gl_event *ev);

#endif
