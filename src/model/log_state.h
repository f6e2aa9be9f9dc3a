/* log_state.h - the logs of attempts in a shared store.
 *
 * The node that runs an attempt copies the end of its log into the store, so that every node can
 * read it, also when the machine is gone. Three records:
 *
 *     "log"/<job>                              struct gl_log_job: how much the job's logs take
 *     "log"/<job>/<step>:attempt:<n>           struct gl_log_head: what is there of one log
 *     "logchunk"/<job>/<step>:attempt:<n>/<k>  a part of the log, as gzip
 *
 * Every transaction that writes one of them also writes the job's record under a guard on its
 * revision, and guards on the record "job". So writers of one job take turns, and retention, which
 * removes the job under a guard on that same revision, never leaves anything behind.
 *
 * Offsets are those of the logs port: they count every byte ever written to the log. The chunks
 * are in order; between two of them bytes may be missing. The last chunk grows: it is written again
 * with more lines until it is large enough, and its `from` stays the same. */
#ifndef GL_MODEL_LOG_STATE_H
#define GL_MODEL_LOG_STATE_H

#include "model/schema.h"

#define GL_LOG_KIND GL_S("log")
#define GL_LOG_CHUNK_KIND GL_S("logchunk")

struct gl_log_job {
    uint64_t bytes; /* of all its chunks, compressed */
};

struct gl_log_chunk {
    uint64_t from, to; /* what it covers */
    uint64_t bytes;    /* its size, compressed */
};

struct gl_log_head {
    gl_str node;            /* ran the attempt */
    uint64_t size;          /* of the whole log, when this was written */
    uint32_t first;         /* number of the first chunk */
    struct gl_items chunks; /* struct gl_log_chunk: numbers first, first + 1, ... */
    bool ended;             /* nothing more will be written */
    bool full;              /* the logs of the job have reached their limit: the end is missing */
};

extern const struct gl_schema gl_log_job_schema, gl_log_head_schema;

/* False: not a valid record. Strings and lists live in `a`. */
bool gl_log_job_read(gl_str value, struct gl_arena *a, struct gl_log_job *ret);
bool gl_log_head_read(gl_str value, struct gl_arena *a, struct gl_log_head *ret);
gl_str gl_log_job_write(const struct gl_log_job *j, struct gl_arena *a);
gl_str gl_log_head_write(const struct gl_log_head *h, struct gl_arena *a);

/* The ids: of a head, and of a chunk. */
gl_str gl_log_head_id(gl_str job, gl_str attempt, struct gl_arena *a);
gl_str gl_log_chunk_id(gl_str job, gl_str attempt, uint32_t number, struct gl_arena *a);

/* Where the stored log ends, and how many bytes of the beginning are missing. */
uint64_t gl_log_head_end(const struct gl_log_head *h);
uint64_t gl_log_head_dropped(const struct gl_log_head *h);

/* Compress as many of the whole lines at the beginning of `lines` as a chunk holds, at least one.
 * Returns how many bytes those are. */
size_t gl_log_chunk_pack(gl_str lines, struct gl_buf *out);
/* May more lines be added to it? */
bool gl_log_chunk_grows(const struct gl_log_chunk *c);

/* How many chunks at the beginning are not needed, because those after them have `keep_bytes`. */
size_t gl_log_head_spare(const struct gl_log_head *h, uint64_t keep_bytes);

/* The chunk to read for `offset`, by its place in the list; -1: there is none after it. */
int64_t gl_log_head_find(const struct gl_log_head *h, uint64_t offset);

/* Append the lines of an unpacked chunk that begins at `from` to `out`, from `offset` on. A mark
 * says how many bytes are missing before it. Returns the offset to continue at. */
uint64_t gl_log_chunk_slice(gl_str lines, uint64_t from, uint64_t offset, struct gl_buf *out);

#endif
