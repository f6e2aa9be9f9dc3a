/* logs.h - what the attempts of a job have said: read where the executor has written it.
 *
 * A log is lines of "<ms> <o|e> <text>": wall time, stream, and the bytes as they came; where
 * something was dropped stands a line "-- N bytes dropped --". Synchronous, and called outside the
 * control thread. */
#ifndef GL_PORT_LOGS_H
#define GL_PORT_LOGS_H

#include "base/err.h"
#include "base/str.h"

struct gl_logs_attempt {
    gl_str step;
    uint32_t attempt;
    uint64_t bytes; /* of its log so far */
};

struct gl_logs {
    /* The attempts of `job` that have left something, by step and number. None: not an error. */
    int (*list)(struct gl_logs *l, gl_str context, gl_str job, struct gl_arena *a,
                struct gl_logs_attempt **ret, size_t *ret_n, struct gl_why *reterr_why);
    /* Append whole lines from `offset` on, about `bytes_max` bytes of them; *ret_next is where to
     * go on. Offsets count all that was ever written, so nothing is read twice; if what stood there
     * has been dropped, a mark with the number of those bytes comes first. A log that is not there
     * is empty. */
    int (*read)(struct gl_logs *l, gl_str context, gl_str job, gl_str step, uint32_t attempt,
                uint64_t offset, size_t bytes_max, struct gl_buf *out, uint64_t *ret_next,
                struct gl_why *reterr_why);
};

#endif
