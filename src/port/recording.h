/* record.h - where the recording of a node's events goes: a ring of segments, of which the oldest
 * make room for new ones.
 *
 * Neither call waits for a disk. What cannot be taken is refused, and then the segment has ended: a
 * recording with a hole in it could not be replayed. One thread. */
#ifndef GL_PORT_RECORDING_H
#define GL_PORT_RECORDING_H

#include "base/str.h"

/* A segment has at least so many times the bytes of what it begins with. */
enum { GL_RECORDING_EVENTS_PER_SNAPSHOT = 2 };

struct gl_recording_port {
    size_t segment_bytes;   /* about this long a segment should get */
    size_t begin_bytes_max; /* with more than this none can begin */
    /* A new segment begins with these bytes. False: not now. */
    bool (*begin)(struct gl_recording_port *p, gl_str bytes);
    /* Behind the last. False: the segment has ended here. */
    bool (*add)(struct gl_recording_port *p, gl_str bytes);
};

/* Checks. Behind each piece of a segment stands a line with a hash over it and over the check
 * before it, so a piece that is changed, missing or out of place is found:
 *     {"check":"0123456789abcdef"}                              the first of a recorder's life
 *     {"check":"0123456789abcdef","after":"fedcba9876543210"}   every later one
 * The chain goes on from segment to segment. Releases before it wrote only lines of the first kind.
 * What no check follows was not written completely: nobody believes it. */
struct gl_recording_chain {
    uint64_t last;   /* the check before; 0: none was seen */
    bool is_chained; /* the last one of this segment named the one before it */
    bool in_segment; /* a check of this segment was seen */
};

enum gl_recording_result {
    GL_RECORDING_NO_CHECK, /* the line is another one */
    GL_RECORDING_FINE,
    GL_RECORDING_DAMAGED,  /* the piece, or the line itself, is not what was written */
    GL_RECORDING_MISSING,  /* a piece of this segment before it is missing */
    GL_RECORDING_END_LOST, /* of the segment before; this piece is fine */
};

/* Append the check of `piece`, with a newline. `piece` may be what stands in `out`. */
void gl_recording_put_check(struct gl_recording_chain *c, gl_str piece, struct gl_buf *out);
/* Look at a line, and at the piece before it. */
enum gl_recording_result gl_recording_check(struct gl_recording_chain *c, gl_str line,
                                            gl_str piece);
/* "segment 2 is missing: ..." */
void gl_recording_put_missing(uint64_t first, uint64_t last, struct gl_buf *out);
/* A segment begins. `knows_last`: what was read before it is the segment before it. */
void gl_recording_segment(struct gl_recording_chain *c, bool knows_last);

#endif
