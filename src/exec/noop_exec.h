/* noop_exec.h - the exec port without processes, for benchmarks and tests.
 *
 * An attempt ends with exit code 0 as soon as it has started, unless its command says otherwise:
 *
 *     (anything)      exit code 0
 *     exit N          exit code N
 *     output JSON     exit code 0 with this output
 *     hold            runs until it is stopped
 *
 * Nothing is durable: the epoch is new with each opening. A floor is kept only while its job has
 * attempts here; a late start could only come from this same process. */
#ifndef GL_EXEC_NOOP_EXEC_H
#define GL_EXEC_NOOP_EXEC_H

#include "os/loop.h"
#include "port/exec.h"

struct gl_noop_exec_config {
    bool quiet; /* do not call `up`: another executor does */
};

int gl_noop_exec_open(struct gl_exec **ret, const struct gl_noop_exec_config *config,
                      struct gl_loop *loop, const struct gl_exec_events *events,
                      struct gl_why *reterr_why);

/* Is this one of its attempts, running or not acknowledged? */
bool gl_noop_exec_knows(struct gl_exec *x, const struct gl_attempt_key *key);

#endif
