/* load.h - how a job comes into memory, and how it leaves. The only recovery path there is.
 *
 * A job is loaded when something concerns it: an event, a due time, free slots. Whoever loads a job
 * whose owner is dead takes it over with its first transaction; if attempts may be running, at
 * once, because the executor must not be asked with an old token. A failed transaction throws the
 * memory away and comes back here. */
#ifndef GL_CORE_RECOVERY_LOAD_H
#define GL_CORE_RECOVERY_LOAD_H

#include "core/core_state.h"

/* The job, in memory or on its way there. */
struct gl_job *gl_load_job(struct gl_core *c, gl_str id);
/* Handle `ev` when the job is hot: true if it is now, false if the event was parked (copied). */
bool gl_load_ready(struct gl_core *c, const struct gl_event *ev, struct gl_job **ret);

void gl_load_on_done(struct gl_core *c, const struct gl_event *ev);
void gl_load_on_loaded(struct gl_core *c, const struct gl_event *ev);
/* Our memory of this job is not true any more: it goes when this step of the core is through. */
void gl_load_distrust(struct gl_core *c, struct gl_job *j);
/* The same, because the executor has seen this token, which is not below ours. If the job is ours
 * all the same, its own token has been lost with the tail of a store: it must rise above that. */
/* The store has lost some of what it had said to have, perhaps. Everything is read again. */
void gl_load_on_changed(struct gl_core *c);
void gl_load_outbid(struct gl_core *c, struct gl_job *j, uint64_t token);
void gl_load_forget(struct gl_core *c, struct gl_job *j); /* ... which is now */
void gl_load_again(struct gl_core *c, struct gl_job *j);
/* Free the parked events; with `each`, after giving them to it. */
void gl_load_unpark(struct gl_core *c, struct gl_job *j,
                    void (*each)(struct gl_core *c, struct gl_job *j, const struct gl_event *ev));
struct gl_snapshot_line;
void gl_load_save_parked(const struct gl_job *j, struct gl_buf *out);
int gl_load_restore_parked(struct gl_core *c, struct gl_snapshot_line *l);
/* Make room: jobs that only wait need not be in memory. */
void gl_load_trim(struct gl_core *c);

#endif
