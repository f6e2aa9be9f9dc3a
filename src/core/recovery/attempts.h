/* attempts.h - handles what the executor reports about attempts.
 *
 * Rules:
 *   - A result counts only for the current attempt of a step that is running. Any other result is
 *     acknowledged and forgotten.
 *   - Nothing is acknowledged while a transaction of the job is in flight: if that transaction
 *     fails, the result is needed again.
 *   - The acknowledgement of a result leaves only after the result has been committed. Until then
 *     the executor repeats it, so a crash in between loses nothing.
 *
 * Called: gl_attempts_on_up() first; gl_attempts_adopt() for every running step of a job that was
 * loaded; the gl_attempts_on_*() handlers for the executor's events. */
#ifndef GL_CORE_RECOVERY_ATTEMPTS_H
#define GL_CORE_RECOVERY_ATTEMPTS_H

#include "core/core_state.h"
#include "model/offer.h"

void gl_attempts_on_up(struct gl_core *c, const struct gl_event *ev);
void gl_attempts_on_down(struct gl_core *c);
void gl_attempts_on_started(struct gl_core *c, const struct gl_event *ev);
void gl_attempts_on_attached(struct gl_core *c, const struct gl_event *ev);
void gl_attempts_on_ended(struct gl_core *c, const struct gl_event *ev);
void gl_attempts_on_beacon(struct gl_core *c, const struct gl_event *ev);
void gl_attempts_on_listed(struct gl_core *c, const struct gl_event *ev);
/* The record of a running step's attempt on another node: what has become of it. */
void gl_attempts_on_elsewhere(struct gl_core *c, struct gl_step *st,
                              const struct gl_taken_record *r);
/* The running step whose current attempt this is; NULL if the attempt is an old one, or not ours.
 */
struct gl_step *gl_attempts_find(struct gl_job *j, gl_str attempt);
/* The parts of "step:attempt:n"; "" or false if it is something else. */
gl_str gl_attempts_step_of(gl_str attempt);
bool gl_attempts_number_of(gl_str attempt, uint32_t *ret);
/* How long to wait before a START is repeated that has been refused for this long. */
gl_ms gl_attempts_start_pause(gl_ms waited);
/* A worker has printed a line addressed to the runtime. */
void gl_attempts_on_said(struct gl_core *c, const struct gl_event *ev);
/* A timer of a running attempt is due: its heartbeat deadline, or the time to ask about it. */
void gl_attempts_on_timer(struct gl_core *c, struct gl_step *st);
/* The job of this running step has just been loaded: ask the executor about the attempt. */
void gl_attempts_adopt(struct gl_core *c, struct gl_step *st);
/* Ask the executor for the list of its attempts, to compare it with the ledger. */
void gl_attempts_list(struct gl_core *c);
/* The same in a moment, because one of the executor's attempts could not be judged yet. On a shared
 * store other nodes rely on our ending attempts of jobs that are not ours any more. */
void gl_attempts_list_soon(struct gl_core *c);
/* The attempt that a parked part of LISTED is about; NULL if the event is of another kind. */
const struct gl_event_info *gl_attempts_info(const struct gl_event *ev);
/* The attempt that the event is about is not wanted: the executor is to forget it, or to end it if
 * it still runs. */
void gl_attempts_discard(struct gl_core *c, const struct gl_event *ev, uint64_t token);

#endif
