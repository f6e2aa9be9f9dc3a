/* capture.h - what a step says: two pipes, read as it comes, written line by line to a bounded log.
 *
 * A line of the log is "<ms> <o|e> <text>": wall time in milliseconds, the stream, and the bytes as
 * they came. Lines longer than 64 KiB are split. The log keeps the first and the last 5 MiB, with
 * the line "-- N bytes dropped --" between them. It grows while the step runs; when the end part
 * has become twice as long as it may be, a shorter file takes its place. N counts all that ever
 * stood between the two parts, so a reader knows of every byte the how manieth it is.
 *
 * Beside that the last line of stdout that is not empty is remembered, if it begins with '{': it
 * may be the step's output. What a worker says is heard otherwise (worker_lines.h), and its lines
 * for the runtime are in no log.
 *
 * Secrets are taken out before anything else is done with the bytes (redact.h).
 *
 * A log that cannot be written does not fail a step: a line "-- N bytes dropped: disk full --" says
 * how much is missing there. */
#ifndef GL_KEEPER_CAPTURE_H
#define GL_KEEPER_CAPTURE_H

#include "keeper/keeper.h"
#include "keeper/redact.h"

enum {
    GL_CAPTURE_LINE_BYTES = 64 << 10,
    GL_CAPTURE_PART_BYTES = GL_LOG_BYTES_MAX / 2, /* the first part, and the last */
};

struct gl_worker_lines;

/* Both ends stay open here, so there is never an end of file; a step's output is complete when its
 * processes have ended and the pipe is empty. */
struct gl_pipe {
    struct gl_link link;   /* in pipes_closed, or alone */
    struct gl_watch watch; /* the end we read */
    int write_fd;          /* the end steps write to */
    struct gl_capture *owner;
    struct gl_stream *stream;
    bool is_paused; /* nothing is read from it for now */
};

struct gl_stream {
    struct gl_pipe *pipe;
    char letter;             /* 'o' or 'e' */
    struct gl_redact redact; /* without a redactor: bytes pass through */
    struct gl_buf partial;   /* a line that has not ended */
};

struct gl_capture {
    struct gl_stream out, err;
    struct gl_worker_lines *worker; /* of a worker; borrowed */

    int log_fd;          /* negative: nothing written yet */
    const char *path;    /* of the log, relative to the contexts' folder; set by the owner, taken */
    uint64_t log_bytes;  /* size of the file */
    uint64_t head_bytes; /* where the first part ends; 0: it has not ended */
    uint64_t mark_bytes; /* length of the mark behind it; 0: nothing dropped */
    uint64_t dropped;
    uint64_t unwritten; /* bytes the disk has refused since the last line it took */

    struct gl_buf line,
        last; /* of stdout: the current one, the last complete one; only if it begins with '{' */
    bool line_begun; /* it has something other than white space */
    bool line_kept;  /* ... and it begins with '{' and is not too long */
};

void gl_capture_init(struct gl_capture *c);
void gl_capture_done(struct gl_keeper *k, struct gl_capture *c);

/* Get pipes; *ret_out and *ret_err are for the child, and stay ours. `path` is copied, `redactor`
 * (NULL: none) borrowed until gl_capture_finish(). */
int gl_capture_open(struct gl_keeper *k, struct gl_capture *c, gl_str path,
                    const struct gl_redactor *redactor, int *ret_out, int *ret_err,
                    struct gl_why *reterr_why);
/* A worker's lines were told: go on reading if they were too many. */
void gl_capture_resume(struct gl_keeper *k, struct gl_capture *c);
/* The processes have ended: read what is left, end the last lines, close. Then gl_capture_last() is
 * final. */
void gl_capture_finish(struct gl_keeper *k, struct gl_capture *c);

/* The turn is over: nobody names the pipes any more that were closed in it. */
void gl_capture_free_closed(struct gl_keeper *k);

/* The last line of stdout, if it may be an output; else "". */
gl_str gl_capture_last(const struct gl_capture *c);

#endif
