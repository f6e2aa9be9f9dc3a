/* parked.h - events about a job that is not in memory. They wait with the job until it has been
 * loaded.
 *
 * A job parks at most GL_PARKED_MAX events. Above that, commands are refused, and reports of the
 * executor are dropped, which it repeats.
 *
 * Called: gl_parked_add() instead of handling the event; gl_parked_take_all() once, when the job is
 * hot or will never be. */
#ifndef GL_CORE_RECOVERY_PARKED_H
#define GL_CORE_RECOVERY_PARKED_H

#include "core/core_state.h"

struct gl_snapshot_line;

/* The request that the event's sender expects an answer to; 0 unless the event is a command. */
uint64_t gl_parked_request(const struct gl_event *ev);
/* Copy the event. The job must not be hot. */
void gl_parked_add(struct gl_core *c, struct gl_job *j, const struct gl_event *ev);
/* Free the parked events, after passing each to `each` unless that is NULL. */
void gl_parked_take_all(struct gl_core *c, struct gl_job *j,
                        void (*each)(struct gl_core *c, struct gl_job *j,
                                     const struct gl_event *ev));
void gl_parked_save(const struct gl_job *j, struct gl_buf *out);
int gl_parked_restore(struct gl_core *c, struct gl_snapshot_line *l);

#endif
