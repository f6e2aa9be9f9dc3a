/* attempt_life.h - what the keeper does with an attempt, from start to acknowledgement.
 *
 *     gl_attempt_life_begin()     create folder and pipes, start the process
 *     gl_attempt_life_stop()      SIGTERM, grace period, SIGKILL: on request, timeout, ...
 *     gl_attempt_life_reap()      after SIGCHLD: collect exits, finish attempts without processes
 *     gl_attempt_life_ack()       the node has the result: forget the attempt */
#ifndef GL_KEEPER_ATTEMPT_LIFE_H
#define GL_KEEPER_ATTEMPT_LIFE_H

#include "keeper/attempt.h"

/* Start an attempt that is not known yet and whose floor was raised. 0: it runs, or has already
 * ended because it could not be executed. On an error nothing has happened: GL_E_LIMIT,
 * GL_E_UNAVAILABLE. */
int gl_attempt_life_begin(struct gl_keeper *k, const struct gl_exec_start *s,
                          struct gl_why *reterr_why);

/* Does nothing to an attempt that is being stopped or has ended. */
void gl_attempt_life_stop(struct gl_keeper *k, struct gl_attempt *a, enum gl_exec_end why);
/* Shorten the grace period to at most this, even if the attempt is being stopped already. */
void gl_attempt_life_limit_grace(struct gl_keeper *k, struct gl_attempt *a, gl_ms grace_ms);

/* The current node started this attempt or asked about it: its messages keep it alive from now on.
 * Attempts of an earlier incarnation that the node does not ask about are not its own: another
 * node may be about to run them. */
void gl_attempt_life_set_node(const struct gl_keeper *k, struct gl_attempt *a);
/* Another node is taking over: save the last contact of the current one in its attempts. */
void gl_attempt_life_save_contact(struct gl_keeper *k);
/* Stop attempts whose node has been silent for too long. After the full grace other nodes run the
 * step again, so it must have ended by then: SIGTERM after three quarters of it, whatever grace
 * the step was promised, and SIGKILL at its end (at once if this runs late). Returns when to check
 * again; INT64_MAX: all are being stopped. */
gl_ms gl_attempt_life_end_orphans(struct gl_keeper *k);

/* The keeper is shutting down: stop everything and record no result, so that the next keeper
 * reports these attempts as lost. */
void gl_attempt_life_shut_down(struct gl_keeper *k);

void gl_attempt_life_reap(struct gl_keeper *k);

/* Forget an acknowledged result. `failed`: the node rejected it although the step exited with 0.
 * The working folder of a successful attempt is removed; others are kept for inspection. */
void gl_attempt_life_ack(struct gl_keeper *k, struct gl_attempt *a, bool failed);

#endif
