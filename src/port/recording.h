/* recording.h - the interface to the recording of a node's core events: a ring of segments in which
 * new segments replace the oldest.
 *
 * Neither call waits for the disk. If a piece cannot be accepted the segment ends, because a
 * recording with a gap could not be replayed. Order of calls: `begin` with a snapshot, `add` for
 * each event, `begin` again for the next segment. Single-threaded. */
#ifndef GL_PORT_RECORDING_H
#define GL_PORT_RECORDING_H

#include "base/str.h"

/* A segment is at least this many times larger than the snapshot it begins with. */
enum { GL_RECORDING_EVENTS_PER_SNAPSHOT = 2 };

struct gl_recording_port {
    size_t segment_bytes;   /* target size of a segment */
    size_t begin_bytes_max; /* a larger snapshot cannot begin a segment */
    /* Begin a segment with these bytes. False: not possible now. */
    bool (*begin)(struct gl_recording_port *p, gl_str bytes);
    /* Append to the segment. False: the segment has ended. */
    bool (*add)(struct gl_recording_port *p, gl_str bytes);
};

/* Checks. Each piece of a segment is followed by a line with a hash over the piece and the previous
 * check, so that a changed, missing or misplaced piece is detected:
 *     {"check":"0123456789abcdef"}                              the first of a recorder's life
 *     {"check":"0123456789abcdef","after":"fedcba9876543210"}   every later one
 * The chain continues from segment to segment. Releases without the chain wrote only lines of the
 * first kind. A piece without a check after it was not written completely and is ignored. */
struct gl_recording_chain {
    uint64_t last;   /* the previous check; 0: none seen */
    bool is_chained; /* the last check of this segment named its predecessor */
    bool in_segment; /* a check of this segment has been seen */
};

enum gl_recording_result {
    GL_RECORDING_NO_CHECK, /* the line is not a check */
    GL_RECORDING_FINE,
    GL_RECORDING_DAMAGED,  /* the piece or the check itself was changed */
    GL_RECORDING_MISSING,  /* an earlier piece of this segment is missing */
    GL_RECORDING_END_LOST, /* the end of the previous segment is missing; this piece is good */
};

/* Append the check of `piece`, with a newline. `piece` may be the content of `out`. */
void gl_recording_put_check(struct gl_recording_chain *c, gl_str piece, struct gl_buf *out);
/* Examine a line and the piece before it. */
enum gl_recording_result gl_recording_check(struct gl_recording_chain *c, gl_str line,
                                            gl_str piece);
/* "segment 2 is missing: ..." */
void gl_recording_put_missing(uint64_t first, uint64_t last, struct gl_buf *out);
/* Begin a segment. `knows_last`: what was read last is the previous segment. */
void gl_recording_segment(struct gl_recording_chain *c, bool knows_last);

#endif
