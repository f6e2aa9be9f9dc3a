/* signals.h - what the world tells a running job: a name and some data.
 *
 * A signal ends the first step that waits for its name. If none does yet it is kept, in the order
 * of arrival, until one does: it does not matter who is earlier. Kept ones are records of kind
 * "signal" and come back with the job when it is loaded. */
#ifndef GL_CORE_FLOW_SIGNALS_H
#define GL_CORE_FLOW_SIGNALS_H

#include "core/core_state.h"

/* The command: deliver or keep it, and answer. */
void gl_signals_on_command(struct gl_core *c, struct gl_job *j, const struct gl_event *ev);
/* A step begins to wait: if its signal has come already, it is used up, and the step has ended. */
bool gl_signals_take(struct gl_core *c, struct gl_step *st);

int gl_signals_restore(struct gl_core *c, struct gl_job *j, const struct gl_event_record *rec);
void gl_signals_clear(struct gl_core *c, struct gl_job *j); /* from memory */

struct gl_snapshot_line;
void gl_signals_save(const struct gl_job *j, struct gl_buf *out);
int gl_signals_restore_kept(struct gl_core *c, struct gl_snapshot_line *l);

#endif
