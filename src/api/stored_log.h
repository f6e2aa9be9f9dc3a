/* stored_log.h - reads the answer to the query STORED_LOGS.
 *
 *    gl_stored_log_read()   the rows, and the chunk if there is one
 *    gl_stored_log_text()   the lines of the chunk, unpacked */
#ifndef GL_API_STORED_LOG_H
#define GL_API_STORED_LOG_H

#include "base/json.h"

struct gl_stored_log {
    gl_str step, node;
    uint32_t attempt;
    uint64_t bytes;    /* of the whole log, when it was last copied */
    uint64_t from, to; /* what the store has of it */
    bool ended;        /* the copy is finished */
    bool full;         /* the job's logs have reached their limit: the end is missing */
};

struct gl_stored_logs {
    const struct gl_stored_log *logs;
    size_t n;
    bool has_chunk;
    uint64_t chunk_from;
    gl_str chunk; /* base64 */
};

/* Strings live in `a`. False: not such an answer. */
bool gl_stored_log_read(gl_str body, struct gl_arena *a, struct gl_stored_logs *ret);

/* Append the lines of the chunk from `offset` on to `out`; a mark says how many bytes are missing
 * before them. *ret_next: the offset to continue at. Without a chunk nothing is appended. */
int gl_stored_log_text(const struct gl_stored_logs *s, uint64_t offset, struct gl_buf *out,
                       uint64_t *ret_next, struct gl_why *reterr_why);

/* What is missing of this log, as a sentence for people; "": nothing. */
gl_str gl_stored_log_missing(const struct gl_stored_log *l, struct gl_arena *a);

#endif
