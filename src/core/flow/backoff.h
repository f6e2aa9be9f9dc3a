/* backoff.h - how long to wait before the next try. Integers only: the same on every machine. */
#ifndef GL_CORE_FLOW_BACKOFF_H
#define GL_CORE_FLOW_BACKOFF_H

#include "model/flow/flow.h"

/* Before the try that follows `failures` counted failures (1 or more). */
gl_ms gl_backoff_after(const struct gl_retry *retry, uint32_t failures);

/* The wait, varied by up to `jitter_pct`, up and down. `chance` should differ between steps and
 * tries; it need not be random, so that a recording replays. */
gl_ms gl_backoff_jitter(const struct gl_retry *retry, gl_ms wait, uint64_t chance);

#endif
