/* restore.h - a job's memory from its records. What stands in the store was written by us, but
 * disks rot and strangers have hands: a record that makes no sense is refused as damaged, never
 * believed. */
#ifndef GL_CORE_RECOVERY_RESTORE_H
#define GL_CORE_RECOVERY_RESTORE_H

#include "core/core_state.h"

/* From a LOADED event. On failure (GL_E_DAMAGED, ...) the job is half filled: gl_job_clear() it;
 * `*ret_bad` is the record that cannot be used; NULL: one is missing, or they contradict each
 * other. */
int gl_restore_job(struct gl_core *c, struct gl_job *j, const struct gl_event *ev,
                   const struct gl_event_record **ret_bad);
/* Only the job's own record and its flow, without its steps. */
int gl_restore_head(struct gl_core *c, struct gl_job *j, const struct gl_event *ev);

#endif
