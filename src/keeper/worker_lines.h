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

struct gl_said {
    struct gl_link link, beacon; /* in gl_worker_lines.lines, and in .beacons if it is one */
    size_t n;
    char text[];
};

/* Of the current line of stdout. */
enum gl_worker_lines_line {
    GL_WORKER_LINE_BEGIN, /* `line` may become one for the runtime */
    GL_WORKER_LINE_PLAIN,
    GL_WORKER_LINE_SAID, /* it is one, as far as it has come in `line` */
    GL_WORKER_LINE_LONG, /* ... and too long */
};

struct gl_worker_lines {
    struct gl_link talking; /* in gl_keeper.talking while lines wait */
    struct gl_attempt *charge;
    uint32_t out_max;
    struct gl_buf out, err;
    uint64_t out_bytes; /* of stdout, kept or not */
    bool is_cut;
    bool is_over; /* its processes have ended: nothing waits for the node any more */

    enum gl_worker_lines_line state;
    struct gl_buf line;
    struct gl_link lines, beacons; /* struct gl_said, oldest first */
    size_t lines_n, lines_bytes;
    uint64_t dropped_n; /* lines for the runtime that nobody took in time */
};

struct gl_worker_lines *gl_worker_lines_new(struct gl_attempt *c, uint32_t out_max);
void gl_worker_lines_free(struct gl_keeper *k, struct gl_worker_lines *h); /* NULL is fine */

/* Some bytes of stdout; what is not for the runtime is kept, and appended to `plain`. */
void gl_worker_lines_out(struct gl_keeper *k, struct gl_worker_lines *h, gl_str text,
                         struct gl_buf *plain);
void gl_worker_lines_err(struct gl_worker_lines *h, gl_str text);
/* stdout is at its end: what was held back of it. */
void gl_worker_lines_end_out(struct gl_keeper *k, struct gl_worker_lines *h, struct gl_buf *plain);
/* Both are: make of `out` and `err` what the result has. `redacted`: secrets were taken out of
 * stdout. */
void gl_worker_lines_end(struct gl_keeper *k, struct gl_worker_lines *h, bool redacted);

/* Of an earlier keeper. */
void gl_worker_lines_recall(struct gl_keeper *k, struct gl_worker_lines *h,
                            const struct gl_keeper_worker *w);
struct gl_keeper_worker gl_worker_lines_result(const struct gl_worker_lines *h);

/* More lines wait than should. */
bool gl_worker_lines_is_full(const struct gl_worker_lines *h);
/* The oldest line, NULL: none; and away with it. */
struct gl_said *gl_worker_lines_first(struct gl_worker_lines *h);
void gl_worker_lines_pop(struct gl_worker_lines *h);

#endif
