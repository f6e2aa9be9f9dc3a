/* attempt_life.h - what the keeper does with an attempt, from its first moment to its last.
 *
 *     gl_attempt_life_begin()     folder, pipes, process
 *     gl_attempt_life_stop()      SIGTERM, grace, SIGKILL: its owner asked, its time is over, ...
 *     gl_attempt_life_reap()      some processes have ended: whose, and which attempts are over
 *     gl_attempt_life_ack()       its result is known: forget it */
#ifndef GL_KEEPER_ATTEMPT_LIFE_H
#define GL_KEEPER_ATTEMPT_LIFE_H

#include "keeper/attempt.h"

/* Start an attempt that is not known yet and whose floor was raised. 0: it runs, or has ended
 * already because it could not. Else nothing has happened: GL_E_LIMIT, GL_E_UNAVAILABLE. */
int gl_attempt_life_begin(struct gl_keeper *k, const struct gl_exec_start *s,
                          struct gl_why *reterr_why);

/* Fine at any time: one that is being stopped already, or has ended, stays so. */
void gl_attempt_life_stop(struct gl_keeper *k, struct gl_attempt *a, enum gl_exec_end why);
/* Its grace is no longer than this, also if it is ending already. */
void gl_attempt_life_limit_grace(struct gl_keeper *k, struct gl_attempt *a, gl_ms grace_ms);

/* A node speaks for what it has started or asked about, as long as it is heard. What an earlier one
 * has left, and it does not ask about, is not its own any more: others may be about to run it. */
void gl_attempt_life_set_node(const struct gl_keeper *k, struct gl_attempt *a);
void gl_attempt_life_save_contact(
    struct gl_keeper *k); /* another node comes: the last one was heard till now */
/* When nobody has spoken for a step for the whole grace, others will run it: then it must have
 * ended. So it is asked to when three quarters of that are over, whatever grace it was promised,
 * and killed when all of it is over: at once, if that is only found out later. Returns when to look
 * again; INT64_MAX: all are ending. */
gl_ms gl_attempt_life_end_orphans(struct gl_keeper *k);

/* The keeper itself must go: stop everything and record nothing, so that the next keeper calls it
 * lost. */
void gl_attempt_life_shut_down(struct gl_keeper *k);

void gl_attempt_life_reap(struct gl_keeper *k);

/* A result that is acknowledged is forgotten. `failed`: the node does not accept it, although the
 * step exited with 0. The working folder of one that succeeded goes, others stay for people to look
 * at. */
void gl_attempt_life_ack(struct gl_keeper *k, struct gl_attempt *a, bool failed);

#endif
