/* retention.h - garbage collection: ended jobs are removed by age, by number, by size, or because a
 * client asked, and with them everything that nothing else names any more.
 *
 * A component of the core (component.h). A pass goes through
 *
 *     count ─► measure ─► page ─► a handful of jobs ─► pause ─► page ... ─► chores ─► answer
 *
 * and then waits a minute. One that fails leaves things half done, and the next one finishes them:
 * nothing is removed that could not be removed again.
 *
 *   retention.c    passes: when, and how far; requests and their answers
 *   ended.c        a handful of ended jobs: which of them may go, and what belongs to them
 *   drop.c         the transactions that remove them, and then their files
 *   chores.c       what a pass does after its jobs, and in which order
 *   garbage.c      mark and sweep: flows that no job names, blobs that no flow names
 *   reserved.c     flows of jobs whose records cannot be read
 *   leftovers.c    small records and files that have stayed behind
 *   saved.c        all of it in a snapshot
 *
 * Two rules hold everywhere. What goes is guarded by what was read when that was decided, and by
 * our session. And of the nodes of a shared store only the leader removes anything unasked. */
#ifndef GL_CORE_RETENTION_RETENTION_H
#define GL_CORE_RETENTION_RETENTION_H

#include "core/core.h"

void gl_retention_init(struct gl_core *c, const struct gl_core_config *config);
void gl_retention_done(struct gl_core *c);

/* We have a session, or an executor: with both the first pass is near. */
void gl_retention_on_ready(struct gl_core *c);
void gl_retention_on_clean(struct gl_core *c, const struct gl_event *ev);
/* A job is about to be created that names a flow, and perhaps an earlier job. */
void gl_retention_on_submit(struct gl_core *c, const struct gl_event *ev);
/* A job has left memory: has it ended? */
void gl_retention_on_ended(struct gl_core *c, bool has_ended);
bool gl_retention_progress(const struct gl_core *c, uint64_t *ret_removed);

#endif
