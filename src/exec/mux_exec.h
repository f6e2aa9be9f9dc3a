/* mux_exec.h - one executor made of several: each of the others has a driver of its own, "noop"
 * first; everything else goes to the keeper.
 *
 * Calls about an attempt go to whoever knows it; about an unknown one the keeper is asked,
 * find_exec epoch and find_exec `up` and `down` count. */
#ifndef GL_EXEC_MUX_EXEC_H
#define GL_EXEC_MUX_EXEC_H

#include "port/exec.h"

/* Is this one of its attempts, running or not acknowledged? */
typedef bool gl_mux_knows(struct gl_exec *x, const struct gl_attempt_key *key);

/* `noop` must be a noop_exec opened with `quiet`. Both are taken, and closed with this one. */
struct gl_exec *gl_mux_exec_new(struct gl_exec *noop, struct gl_exec *other);

/* One more, which never calls `up` or `down`, for the driver of this name (borrowed). Taken, and
 * closed with this one; to be added before the first call. */
void gl_mux_exec_add(struct gl_exec *mux, const char *driver, struct gl_exec *x,
                     gl_mux_knows *knows);

#endif
