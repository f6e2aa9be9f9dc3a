/* logs.h - reads the logs of a job's attempts where the executor wrote them.
 *
 * A log consists of lines "<ms> <o|e> <text>": wall time, stream, and the bytes as they came. A
 * line "-- N bytes dropped --" marks a gap. Calls are synchronous and made outside the control
 * thread. */
#ifndef GL_PORT_LOGS_H
#define GL_PORT_LOGS_H

#include "base/err.h"
#include "base/str.h"

struct gl_logs_attempt {
    gl_str step;
    uint32_t attempt;
    uint64_t bytes; /* size of its log so far */
};

struct gl_logs {
    /* The attempts of `job` that have a log, by step and number. None is not an error. */
    int (*list)(struct gl_logs *l, gl_str context, gl_str job, struct gl_arena *a,
                struct gl_logs_attempt **ret, size_t *ret_n, struct gl_why *reterr_why);
    /* Append whole lines from `offset`, about `bytes_max` bytes of them; *ret_next is the offset to
     * continue at. Offsets count everything ever written, so nothing is read twice; if the bytes at
     * `offset` have been dropped, a mark with their number comes first. A log that does not exist
     * is empty. */
    int (*read)(struct gl_logs *l, gl_str context, gl_str job, gl_str step, uint32_t attempt,
                uint64_t offset, size_t bytes_max, struct gl_buf *out, uint64_t *ret_next,
                struct gl_why *reterr_why);
    /* The offset at which the log ends now. A log that does not exist is empty. */
    int (*size)(struct gl_logs *l, gl_str context, gl_str job, gl_str step, uint32_t attempt,
                uint64_t *ret, struct gl_why *reterr_why);
};

#endif
