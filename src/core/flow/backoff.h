/* backoff.h - how long to wait before the next try. Integers only: the same on every machine. */
#ifndef GL_CORE_FLOW_BACKOFF_H
#define GL_CORE_FLOW_BACKOFF_H

#include "model/flow.h"

/* Before the try that follows `failures` counted failures (1 or more). */
gl_ms gl_backoff_after(const struct gl_retry *retry, uint32_t failures);

#endif
