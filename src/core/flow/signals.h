/* signals.h - named messages from outside to a running job.
 *
 * A signal completes the first step that waits for its name. If no step waits yet, the job keeps
 * the signal until one does, in the order of arrival, so the sender need not care whether the step
 * has been reached. A kept signal is a record "signal" and is loaded with its job. A name that no
 * step of the flow waits for is refused, so that a typing error is noticed.
 *
 * Order of calls: gl_signals_on_command() completes a step or keeps the signal; gl_signals_take()
 * consumes a kept one when a step begins to wait. */
#ifndef GL_CORE_FLOW_SIGNALS_H
#define GL_CORE_FLOW_SIGNALS_H

#include "core/core_state.h"

/* The command `signal`: delivers or keeps it, and answers. */
void gl_signals_on_command(struct gl_core *c, struct gl_job *j, const struct gl_event *ev);
/* A step begins to wait. True: its signal had been kept; it is consumed, and the step completes. */
bool gl_signals_take(struct gl_core *c, struct gl_step *st);

int gl_signals_restore(struct gl_core *c, struct gl_job *j, const struct gl_event_record *rec);
/* Frees the kept signals; the records stay. */
void gl_signals_clear(struct gl_core *c, struct gl_job *j);

struct gl_snapshot_line;
void gl_signals_save(const struct gl_job *j, struct gl_buf *out);
int gl_signals_restore_kept(struct gl_core *c, struct gl_snapshot_line *l);

#endif
