/* retention.h - garbage collection: removes ended jobs by age, by number, by size or on a client's
 * request, and then everything that nothing refers to any more.
 *
 * A component of the core (component.h). A pass goes through
 *
 *     count ─► measure ─► page ─► a batch of jobs ─► pause ─► page ... ─► chores ─► answer
 *
 * and the next one starts a minute later. A pass that fails may leave work half done; the next pass
 * finishes it, because every removal can be repeated.
 *
 *   retention.c    passes: when they start and how much they remove; requests and their answers
 *   ended.c        a batch of ended jobs: which of them may be removed, and what belongs to them
 *   drop.c         the transactions that remove them, and then their files
 *   chores.c       what a pass does after its jobs, and in which order
 *   garbage.c      mark and sweep: flows that no job names, blobs that no flow names
 *   reserved.c     flows of jobs whose records cannot be read
 *   leftovers.c    small records and files that nothing else removes
 *   saved.c        all of it in a snapshot
 *
 * Two rules hold everywhere. Every removal is guarded by the records it was decided from and by our
 * session. And on a shared store only the leader removes anything without being asked.
 *
 * Order of calls: gl_retention_init(), then gl_retention_on_ready() when the session or the
 * executor becomes available, then the other functions in any order, and gl_retention_done() last.
 * Between these, time and answers arrive through `gl_retention`, the component. */
#ifndef GL_CORE_RETENTION_RETENTION_H
#define GL_CORE_RETENTION_RETENTION_H

#include "core/core.h"

void gl_retention_init(struct gl_core *c, const struct gl_core_config *config);
void gl_retention_done(struct gl_core *c);

/* Called when we get a session and when we get an executor. Having both schedules the first pass.
 */
void gl_retention_on_ready(struct gl_core *c);
/* A client asks for a clean-up or for the removal of one job. The answer may take a while. */
void gl_retention_on_clean(struct gl_core *c, const struct gl_event *ev);
/* A job is about to be created; it names a flow, and an earlier job if it is a retry. Both stay. */
void gl_retention_on_submit(struct gl_core *c, const struct gl_event *ev);
/* A job has left memory. `has_ended`: because it ended, so there is one more to count. */
void gl_retention_on_ended(struct gl_core *c, bool has_ended);
/* True while a client's request is being served; *ret_removed: jobs removed for it so far. */
bool gl_retention_progress(const struct gl_core *c, uint64_t *ret_removed);

#endif
