/* worker_lines.h - the output of a bundle's worker: stdout, stderr, and lines for the runtime.
 *
 * stdout is kept from its beginning, up to the worker's limit, with a note if it was cut; of stderr
 * the end is kept. Both are part of the result.
 *
 * Lines of stdout that begin with GL_EXEC_BEACON or GL_EXEC_SAYS are not part of it: they are sent
 * to the node as they come. While a node is connected but does not keep up, the worker's stdout is
 * not read. While no node is connected, lines wait up to a limit: beyond it the oldest beacons are
 * dropped first, then the oldest lines. A line that was sent is forgotten: a node that dies with it
 * has lost it. */
#ifndef GL_KEEPER_WORKER_LINES_H
#define GL_KEEPER_WORKER_LINES_H

#include "keeper/keeper.h"

struct gl_attempt;

/* A line for the runtime. */
struct gl_worker_line {
    struct gl_link link, beacon; /* in gl_worker_lines.lines, and in .beacons if it is one */
    size_t n;
    char text[];
};

/* Of the current line of stdout. */
enum gl_worker_lines_state {
    GL_WORKER_LINE_BEGIN,   /* `line` may become a line for the runtime */
    GL_WORKER_LINE_PLAIN,   /* ordinary output */
    GL_WORKER_LINE_RUNTIME, /* a line for the runtime, as far as it has come in `line` */
    GL_WORKER_LINE_LONG,    /* a line for the runtime that is too long */
};

struct gl_worker_lines {
    struct gl_link waiting; /* in gl_keeper.lines_waiting while lines wait */
    struct gl_attempt *attempt;
    uint32_t out_max;
    struct gl_buf out, err;
    uint64_t out_bytes; /* of stdout, kept or not */
    bool is_cut;
    bool is_over; /* its processes have ended: stdout is no longer paused for the node */

    enum gl_worker_lines_state state;
    struct gl_buf line;
    struct gl_link lines, beacons; /* struct gl_worker_line, oldest first */
    size_t lines_n, lines_bytes;
    uint64_t dropped_n; /* lines for the runtime that were dropped */
};

struct gl_worker_lines *gl_worker_lines_new(struct gl_attempt *a, uint32_t out_max);
void gl_worker_lines_free(struct gl_keeper *k, struct gl_worker_lines *w); /* NULL is fine */

/* Some bytes of stdout. What is not for the runtime is kept, and appended to `plain`. */
void gl_worker_lines_out(struct gl_keeper *k, struct gl_worker_lines *w, gl_str text,
                         struct gl_buf *plain);
void gl_worker_lines_err(struct gl_worker_lines *w, gl_str text);
/* stdout has ended: release the part of a line that was held back. */
void gl_worker_lines_end_out(struct gl_keeper *k, struct gl_worker_lines *w, struct gl_buf *plain);
/* Both have ended: turn `out` and `err` into what the result holds. `redacted`: secrets were
 * removed from stdout. */
void gl_worker_lines_end(struct gl_keeper *k, struct gl_worker_lines *w, bool redacted);

/* Restore the result an earlier keeper wrote. */
void gl_worker_lines_restore(struct gl_keeper *k, struct gl_worker_lines *w,
                             const struct gl_keeper_worker *result);
struct gl_keeper_worker gl_worker_lines_result(const struct gl_worker_lines *w);

/* Do more lines wait than the limit allows? */
bool gl_worker_lines_is_full(const struct gl_worker_lines *w);
/* The oldest line, or NULL; and remove it. */
struct gl_worker_line *gl_worker_lines_first(struct gl_worker_lines *w);
void gl_worker_lines_pop(struct gl_worker_lines *w);

#endif
