/* mux_exec.h - one executor made of two: the driver "noop" goes to the one, everything else to the
 * other.
 *
 * Calls about an attempt go to whoever knows it; about an unknown one the second is asked, whose
 * epoch and whose `up` and `down` count. */
#ifndef GL_EXEC_MUX_EXEC_H
#define GL_EXEC_MUX_EXEC_H

#include "port/exec.h"

/* `noop` must be a noop_exec opened with `quiet`. Both are taken, and closed with this one. */
struct gl_exec *gl_mux_exec_new(struct gl_exec *noop, struct gl_exec *other);

#endif
