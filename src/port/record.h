/* record.h - where the recording of a node's events goes: a ring of segments, of which the oldest
 * make room for new ones.
 *
 * Neither call waits for a disk. What cannot be taken is refused, and then the segment has ended: a
 * recording with a hole in it could not be replayed. One thread. */
#ifndef GL_PORT_RECORD_H
#define GL_PORT_RECORD_H

#include "base/str.h"

/* A segment has at least so many times the bytes of what it begins with. */
enum { GL_RECORD_EVENTS_PER_SNAPSHOT = 2 };

struct gl_record_port {
    size_t segment_bytes;   /* about this long a segment should get */
    size_t begin_bytes_max; /* with more than this none can begin */
    /* A new segment begins with these bytes. False: not now. */
    bool (*begin)(struct gl_record_port *p, gl_str bytes);
    /* Behind the last. False: the segment has ended here. */
    bool (*add)(struct gl_record_port *p, gl_str bytes);
};

#endif
