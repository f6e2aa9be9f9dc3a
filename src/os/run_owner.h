/* run_owner.h - which job owns the folder of a run.
 *
 * A run id can be reused after its job has been removed, but the folder of the run stays. Its
 * content (an approval, a partial collection, a result) must not be mistaken for the new job's:
 * when another job takes the folder, the old one is renamed to "<run id>.<the earlier job's
 * id>". The owners of <runs root>/<run id> are listed in <runs root>/.glia/<run id>, one job id
 * per line, the latest last. The list is outside of the folder because workers empty or replace
 * their folder. A folder without a list was not created by a job and is used unchanged.
 *
 * Each job calls gl_run_owner_take() once, before its first worker starts. The list is durable
 * before that worker runs. After a crash in between, the next start repeats the step: until the
 * list names the job, the folder holds nothing of it. */
#ifndef GL_OS_RUN_OWNER_H
#define GL_OS_RUN_OWNER_H

#include "base/err.h"
#include "base/id.h"
#include "base/str.h"

#define GL_RUN_OWNER_FOLDER ".glia" /* no run id begins with a dot */

/* Makes `job` the owner of the folder, and creates it. Blocks for a few syncs the first time. */
int gl_run_owner_take(const char *folder, gl_str job, struct gl_why *reterr_why);

/* The job that took the folder last; "" : none, or there is no such folder. */
void gl_run_owner_find(const char *root, gl_str run_id, char ret[static GL_ULID_BYTES + 1]);

/* False if the folder is known to belong to another job. */
bool gl_run_owner_is_job(const char *root, gl_str run_id, gl_str job);

#endif
