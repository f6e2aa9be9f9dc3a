/* mux_exec.h - one executor made of several: each side handles one driver ("noop" first), and the
 * keeper handles everything else.
 *
 * Calls about an attempt go to the side that knows it; unknown attempts go to the keeper, whose
 * epoch, `up` and `down` count for the whole. */
#ifndef GL_EXEC_MUX_EXEC_H
#define GL_EXEC_MUX_EXEC_H

#include "port/exec.h"

/* Is this one of its attempts, running or not acknowledged? */
typedef bool gl_mux_knows(struct gl_exec *x, const struct gl_attempt_key *key);

/* `noop` must be a noop_exec opened with `quiet`. Both are taken, and closed with this one. */
struct gl_exec *gl_mux_exec_new(struct gl_exec *noop, struct gl_exec *other);

/* Add a side for the driver of this name (borrowed). It must never call `up` or `down`. Taken, and
 * closed with this one; add it before the first call. */
void gl_mux_exec_add(struct gl_exec *mux, const char *driver, struct gl_exec *x,
                     gl_mux_knows *knows);

#endif
