/* backoff.c - the arithmetic of retry pauses: no overflow, whatever the factor and the limit. */
#include "core/flow/backoff.h"

#include "base/check.h"

gl_ms gl_backoff_after(const struct gl_retry *retry, uint32_t failures)
{
    gl_ms wait = retry->backoff_ms;

    GL_ASSERT(failures > 0);
    for (uint32_t i = 1; i < failures && wait < retry->backoff_max_ms; i++) {
        if (retry->factor_pct <= 100) {
            break; /* a constant backoff */
        }
        wait = wait > INT64_MAX / (gl_ms)retry->factor_pct ? INT64_MAX
                                                           : wait * (gl_ms)retry->factor_pct / 100;
        if (wait == 0) {
            break;
        }
    }
    GL_ASSERT(wait >= 0);
    return wait < retry->backoff_max_ms ? wait : retry->backoff_max_ms;
}

gl_ms gl_backoff_jitter(const struct gl_retry *retry, gl_ms wait, uint64_t chance)
{
    gl_ms span = wait / 100 * retry->jitter_pct + wait % 100 * retry->jitter_pct / 100;

    GL_ASSERT(wait >= 0);
    GL_ASSERT(retry->jitter_pct <= 100);
    if (span == 0) {
        return wait;
    }
    GL_ASSERT(span <= wait);
    return wait - span + (gl_ms)(chance % (uint64_t)(span * 2 + 1));
}
