/* log_copies.h - copies the logs of attempts into a shared store (model/log_state.h).
 *
 * The log of a running attempt is copied every GL_LOG_COPY_MS if it has grown, and once more when
 * the attempt has ended. Nothing waits for a copy, and none of them is certain: if the store does
 * not accept it for a while, it is given up, and the log is only on this machine. A few attempts
 * are copied at a time, one chunk each; those of one job one after the other.
 *
 * Without the logs port, without a limit above 0, or on a store that is not shared, nothing is
 * copied. */
#ifndef GL_NODE_LOG_COPIES_H
#define GL_NODE_LOG_COPIES_H

#include "port/exec.h"

struct gl_node;

/* The executor runs this attempt. May be said again. */
void gl_log_copies_on_running(struct gl_node *n, const struct gl_attempt_key *key);
/* It has ended, and its log is complete. */
void gl_log_copies_on_ended(struct gl_node *n, const struct gl_attempt_key *key);
/* The executor forgets it: if it was copied, it has ended. */
void gl_log_copies_on_acked(struct gl_node *n, const struct gl_attempt_key *key);

#endif
