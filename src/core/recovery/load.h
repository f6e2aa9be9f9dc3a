/* load.h - brings jobs into memory and removes them from it. Loading is the only recovery path.
 *
 * A job is loaded when it is needed: for an event, a timer, free slots. If the owner of a loaded
 * job is dead, its first transaction takes it over; if attempts may be running, that transaction is
 * written at once, because the executor must not be asked with an old token. When a transaction
 * fails, the job's memory is thrown away and the job is loaded again. So a restart, a failed commit
 * and an eviction all exercise the same code.
 *
 * Events for a job that is not in memory are parked with it (parked.h) and replayed after loading.
 *
 * Called: gl_load_ready() by every handler of an event about a job; gl_load_on_loaded() with what
 * was read; gl_load_on_done() when a transaction has ended; gl_load_trim() at the end of every step
 * of the core. */
#ifndef GL_CORE_RECOVERY_LOAD_H
#define GL_CORE_RECOVERY_LOAD_H

#include "core/core_state.h"

/* The job, in memory or being loaded. */
struct gl_job *gl_load_job(struct gl_core *c, gl_str id);
/* May `ev` be handled now? True if the job is hot; false if the event was parked (copied) or
 * refused.
 */
bool gl_load_ready(struct gl_core *c, const struct gl_event *ev, struct gl_job **ret);

void gl_load_on_done(struct gl_core *c, const struct gl_event *ev);
void gl_load_on_loaded(struct gl_core *c, const struct gl_event *ev);
/* The store may have lost its latest writes: every job in memory is read again. */
void gl_load_on_changed(struct gl_core *c);
/* Our memory of this job is outdated: it is dropped at the end of this step of the core, and the
 * job is loaded again. */
void gl_load_distrust(struct gl_core *c, struct gl_job *j);
/* The same, because the executor has seen this token, which is not below ours. If the job turns out
 * to be ours still, the store has lost the write that raised its token, and the token must
 * rise above the one the executor knows. */
void gl_load_outbid(struct gl_core *c, struct gl_job *j, uint64_t token);
/* Drop the memory of a hot job now, and load it again. */
void gl_load_forget(struct gl_core *c, struct gl_job *j);
/* Send the LOAD of a job that is waiting to be loaded. */
void gl_load_again(struct gl_core *c, struct gl_job *j);
/* Evict jobs that only wait, if there are too many in memory, and jobs that have ended. */
void gl_load_trim(struct gl_core *c);

#endif
