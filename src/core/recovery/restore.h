/* restore.h - rebuilds a job's memory from its records.
 *
 * The records were written by a node, but disks decay and other programs may write to the store. So
 * every record is checked, by itself and against the others; one that makes no sense is refused as
 * damaged (GL_E_DAMAGED), never used.
 *
 * Called by load.c with each LOADED: gl_restore_job(), or gl_restore_head() if the job's own record
 * is all that is needed. */
#ifndef GL_CORE_RECOVERY_RESTORE_H
#define GL_CORE_RECOVERY_RESTORE_H

#include "core/core_state.h"

/* From a LOADED event, all of the job. If it fails the job is half filled: call gl_job_clear().
 * `*ret_bad` is then the record that cannot be used; NULL if one is missing, or if they contradict
 * each other. */
int gl_restore_job(struct gl_core *c, struct gl_job *j, const struct gl_event *ev,
                   const struct gl_event_record **ret_bad);
/* Only the job's own record and its flow, without its steps. */
int gl_restore_head(struct gl_core *c, struct gl_job *j, const struct gl_event *ev);

#endif
