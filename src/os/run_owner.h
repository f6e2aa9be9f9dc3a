/* run_owner.h - whose a run's folder is: <runs root>/.glia/<run id>, the ids of the jobs that have
 * taken <runs root>/<run id>, one a line, the latest last.
 *
 * A run id can be used again once its job has been removed, and the folder outlives its job. What
 * lies there (a person's approval, half a gathering, a result) must not pass for the new job's:
 * when another job takes the folder, it is set aside whole as "<run id>.<the earlier job's id>"
 * beside it. The list stands outside of the folder, because workers empty theirs, or replace it. A
 * folder that no job has had was made by somebody else, for this run or not: it is taken as it is.
 *
 * Each job takes its folder once, before its first worker starts. That is durable before the worker
 * runs, and whatever dies on the way is made good by the next start: until the list names the job,
 * nothing of it can be in there. */
#ifndef GL_OS_RUN_OWNER_H
#define GL_OS_RUN_OWNER_H

#include "base/err.h"
#include "base/id.h"
#include "base/str.h"

#define GL_RUN_OWNER_FOLDER ".glia" /* no run id begins with a dot */

/* The folder is there afterwards, and is this job's. Blocks for some syncs, the first time. */
int gl_run_owner_take(const char *folder, gl_str job, struct gl_why *reterr_why);

/* The job that took it last; "" : nobody has, or there is no such folder. */
void gl_run_owner_find(const char *root, gl_str run_id, char ret[static GL_ULID_BYTES + 1]);

/* Is what lies in the folder this job's, as far as that can be told? */
bool gl_run_owner_is_job(const char *root, gl_str run_id, gl_str job);

#endif
