/* worker_lines.h - what a worker of a bundle says: its stdout and stderr, and its lines for the
 * runtime.
 *
 * stdout is kept from its beginning, up to what the worker was given, and a note says if it was
 * cut; of stderr the end is kept. Both are part of the result.
 *
 * Lines of stdout that begin with GL_EXEC_BEACON or GL_EXEC_SAYS are no part of it: they are told
 * to the node as they come. While the node is there and does not keep up, the worker's stdout is
 * not read; while it is away, they wait up to a limit: then the oldest beacons go first, and after
 * them the oldest lines. What was told is forgotten: a node that dies with it has lost it. */
#ifndef GL_KEEPER_WORKER_LINES_H
#define GL_KEEPER_WORKER_LINES_H

#include "keeper/keeper.h"

struct gl_attempt;

struct gl_worker_line {
    struct gl_link link, beacon; /* in gl_worker_lines.lines, and in .beacons if it is one */
    size_t n;
    char text[];
};

/* Of the current line of stdout. */
enum gl_worker_lines_state {
    GL_WORKER_LINE_BEGIN, /* `line` may become one for the runtime */
    GL_WORKER_LINE_PLAIN,
    GL_WORKER_LINE_RUNTIME, /* it is one, as far as it has come in `line` */
    GL_WORKER_LINE_LONG,    /* ... and too long */
};

struct gl_worker_lines {
    struct gl_link waiting; /* in gl_keeper.talking while lines wait */
    struct gl_attempt *attempt;
    uint32_t out_max;
    struct gl_buf out, err;
    uint64_t out_bytes; /* of stdout, kept or not */
    bool is_cut;
    bool is_over; /* its processes have ended: nothing waits for the node any more */

    enum gl_worker_lines_state state;
    struct gl_buf line;
    struct gl_link lines, beacons; /* struct gl_worker_line, oldest first */
    size_t lines_n, lines_bytes;
    uint64_t dropped_n; /* lines for the runtime that nobody took in time */
};

struct gl_worker_lines *gl_worker_lines_new(struct gl_attempt *a, uint32_t out_max);
void gl_worker_lines_free(struct gl_keeper *k, struct gl_worker_lines *w); /* NULL is fine */

/* Some bytes of stdout; what is not for the runtime is kept, and appended to `plain`. */
void gl_worker_lines_out(struct gl_keeper *k, struct gl_worker_lines *w, gl_str text,
                         struct gl_buf *plain);
void gl_worker_lines_err(struct gl_worker_lines *w, gl_str text);
/* stdout is at its end: what was held back of it. */
void gl_worker_lines_end_out(struct gl_keeper *k, struct gl_worker_lines *w, struct gl_buf *plain);
/* Both are: make of `out` and `err` what the result has. `redacted`: secrets were taken out of
 * stdout. */
void gl_worker_lines_end(struct gl_keeper *k, struct gl_worker_lines *w, bool redacted);

/* Of an earlier keeper. */
void gl_worker_lines_restore(struct gl_keeper *k, struct gl_worker_lines *w,
                             const struct gl_keeper_worker *result);
struct gl_keeper_worker gl_worker_lines_result(const struct gl_worker_lines *w);

/* More lines wait than should. */
bool gl_worker_lines_is_full(const struct gl_worker_lines *w);
/* The oldest line, NULL: none; and away with it. */
struct gl_worker_line *gl_worker_lines_first(struct gl_worker_lines *w);
void gl_worker_lines_pop(struct gl_worker_lines *w);

#endif
