/* capture.h - captures the output of a step: two pipes, read as data arrives, written line by line
 * to a bounded log.
 *
 * A line of the log is "<ms> <o|e> <text>": wall time in milliseconds, the stream, and the bytes as
 * they came. Lines longer than 64 KiB are split. The log keeps the first and the last 5 MiB, with
 * the line "-- N bytes dropped --" between them. It grows while the step runs; when the last part
 * is twice as long as allowed, a shorter file replaces the log. N counts every byte that ever stood
 * between the two parts, so a reader can tell the original offset of each byte.
 *
 * The last non-empty line of stdout is kept as well if it begins with '{': it may be the step's
 * output. The output of a worker is handled by worker_lines.h; its lines for the runtime are in no
 * log.
 *
 * Secrets are removed before anything else is done with the bytes (redact.h).
 *
 * A log that cannot be written does not fail the step: a line "-- N bytes dropped: disk full --"
 * says how much is missing there.
 *
 * Call order: gl_capture_init(), gl_capture_open(), gl_capture_finish() once the processes have
 * ended, gl_capture_done(). */
#ifndef GL_KEEPER_CAPTURE_H
#define GL_KEEPER_CAPTURE_H

#include "keeper/keeper.h"
#include "keeper/redact.h"

enum {
    GL_CAPTURE_LINE_BYTES = 64 << 10,
    GL_CAPTURE_PART_BYTES = GL_LOG_BYTES_MAX / 2, /* the first part, and the last */
};

struct gl_worker_lines;

/* The keeper keeps both ends open, so there is never an end of file: the output is complete when
 * all processes of the step have ended and the pipe is empty. */
struct gl_pipe {
    struct gl_link link;   /* in pipes_closed, or alone */
    struct gl_watch watch; /* the end the keeper reads */
    int write_fd;          /* the end the step writes to */
    struct gl_capture *owner;
    struct gl_stream *stream;
    bool is_paused; /* not read for now: the node does not keep up */
};

struct gl_stream {
    struct gl_pipe *pipe;
    char letter;             /* 'o' or 'e' */
    struct gl_redact redact; /* without a redactor, bytes pass through */
    struct gl_buf partial;   /* an unfinished line */
};

struct gl_capture {
    struct gl_stream out, err;
    struct gl_worker_lines *worker; /* of a worker; borrowed */

    int log_fd;          /* negative: nothing written yet */
    const char *path;    /* of the log, relative to the contexts' folder; owned */
    uint64_t log_bytes;  /* size of the file */
    uint64_t head_bytes; /* where the first part ends; 0: it has not ended yet */
    uint64_t mark_bytes; /* length of the "dropped" line after it; 0: nothing dropped */
    uint64_t dropped;
    uint64_t unwritten; /* bytes the disk refused since the last line it accepted */

    struct gl_buf line,
        last; /* of stdout: the current one, the last complete one; only if it begins with '{' */
    bool line_begun; /* the line has something other than white space */
    bool line_kept;  /* ... and it begins with '{' and is not too long */
};

void gl_capture_init(struct gl_capture *c);
void gl_capture_done(struct gl_keeper *k, struct gl_capture *c);

/* Create the pipes. *ret_out and *ret_err are for the child and stay owned here. `path` is copied,
 * `redactor` (NULL: none) borrowed until gl_capture_finish(). */
int gl_capture_open(struct gl_keeper *k, struct gl_capture *c, gl_str path,
                    const struct gl_redactor *redactor, int *ret_out, int *ret_err,
                    struct gl_why *reterr_why);
/* The worker's lines were sent to the node: read stdout again if it was paused. */
void gl_capture_resume(struct gl_keeper *k, struct gl_capture *c);
/* The processes have ended: read what is left, finish the last lines, close the pipes. From then on
 * gl_capture_last() is final. */
void gl_capture_finish(struct gl_keeper *k, struct gl_capture *c);

/* At the end of a turn: free the pipes closed in it, which no event can name any more. */
void gl_capture_free_closed(struct gl_keeper *k);

/* The last line of stdout if it may be an output; else "". */
gl_str gl_capture_last(const struct gl_capture *c);

#endif
