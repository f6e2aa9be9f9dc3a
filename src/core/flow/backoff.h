/* backoff.h - how long a step waits before it is retried. Integers only, so that every machine and
 * every replay computes the same wait.
 *
 * Order of calls: gl_backoff_after() gives the wait, gl_backoff_jitter() varies it. */
#ifndef GL_CORE_FLOW_BACKOFF_H
#define GL_CORE_FLOW_BACKOFF_H

#include "model/flow/flow.h"

/* The wait before the attempt that follows `failures` counted failures (1 or more). */
gl_ms gl_backoff_after(const struct gl_retry *retry, uint32_t failures);

/* The wait, varied by up to `jitter_pct` in both directions. `chance` should differ between steps
 * and attempts. It must not be random, or a recording would not replay. */
gl_ms gl_backoff_jitter(const struct gl_retry *retry, gl_ms wait, uint64_t chance);

#endif
