/* attempts.h - what the executor says about attempts, and what follows from it.
 *
 * A result counts only for the current attempt of a step that is running. Everything else is
 * acknowledged and forgotten, but never while a transaction of the job is in flight: should that
 * one fail, the result would be needed again. */
#ifndef GL_CORE_RECOVERY_ATTEMPTS_H
#define GL_CORE_RECOVERY_ATTEMPTS_H

#include "core/core_state.h"

void gl_attempts_on_up(struct gl_core *c, const struct gl_event *ev);
void gl_attempts_on_down(struct gl_core *c);
void gl_attempts_on_started(struct gl_core *c, const struct gl_event *ev);
void gl_attempts_on_attached(struct gl_core *c, const struct gl_event *ev);
void gl_attempts_on_ended(struct gl_core *c, const struct gl_event *ev);
void gl_attempts_on_beacon(struct gl_core *c, const struct gl_event *ev);
void gl_attempts_on_listed(struct gl_core *c, const struct gl_event *ev);
/* A worker has said something for the runtime. */
void gl_attempts_on_said(struct gl_core *c, const struct gl_event *ev);
/* A timer of a running attempt is due: its heartbeat, or the time to ask about it. */
void gl_attempts_on_timer(struct gl_core *c, struct gl_step *st);
/* Its job has just been loaded: ask what became of it. */
void gl_attempts_adopt(struct gl_core *c, struct gl_step *st);
/* Compare with the executor's list of attempts. */
void gl_attempts_list(struct gl_core *c);
/* Something the executor has could not be judged. On a shared store others rely on our ending soon
 * what is not ours any more. */
void gl_attempts_list_soon(struct gl_core *c);
/* The attempt that a part of LISTED is about; NULL: another kind. */
const struct gl_event_info *gl_attempts_info(const struct gl_event *ev);
/* Tell the executor to forget the attempt an event is about, or to end it. */
void gl_attempts_discard(struct gl_core *c, const struct gl_event *ev, uint64_t token);

#endif
