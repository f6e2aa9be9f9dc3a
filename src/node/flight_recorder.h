/* flight_recorder.h - the flight recorder: everything the core is told, and what it made of it.
 *
 * A segment begins with a snapshot of the core (core/snapshot.h), so it can be replayed by itself:
 * restore the snapshot, feed the events, compare the digests (core/digest.h). That is what glia
 * replay does (sim/replay.h).
 *
 * A segment is lines of JSON:
 *     {"recording":{...}}          first: format, node, number of snapshot lines
 *     {"core":{...}}, ...          the snapshot
 *     {"flow":{...}}               the text of a flow that an event behind it names by its hash
 *     {"event":{...}}              core/event.h
 *     {"decided":"0123..."}        the digest of the event before it
 *     {"check":"0123..."}          a hash over everything since the last one; from the adapter
 *     {"gap":"..."}                why the segment ends early, or why nothing was recorded
 *                                  before it
 *
 * It never slows the node: what the port does not take at once is not recorded. */
#ifndef GL_NODE_FLIGHT_RECORDER_H
#define GL_NODE_FLIGHT_RECORDER_H

#include "core/core.h"
#include "core/digest.h"
#include "port/record.h"

enum { GL_FLIGHT_FORMAT = 2 };

struct gl_flight_recorder {
    struct gl_digest digest;   /* its tap is the core's trace */
    struct gl_record_port *to; /* borrowed */
    gl_str node;               /* borrowed */
    struct gl_buf text;
    size_t bytes;       /* of the segment's events so far */
    size_t bytes_max;   /* then the next one begins */
    bool recording;     /* a segment is open */
    gl_ms retry_at;     /* not before this */
    bool was_too_large; /* the core; nothing is recorded until it is smaller */
    bool has_decision;  /* `decided` of the last event is not yet written */
    uint64_t decided;
};

void gl_flight_recorder_init(struct gl_flight_recorder *f, struct gl_record_port *to,
                             struct gl_trace *inner, gl_str node);
void gl_flight_recorder_done(struct gl_flight_recorder *f); /* says what is still to be said */

/* Around each step of the core. */
void gl_flight_recorder_event(struct gl_flight_recorder *f, const struct gl_core *c,
                              const struct gl_event *ev);
void gl_flight_recorder_decided(struct gl_flight_recorder *f, const struct gl_effects *effects);

/* The first line of a segment. */
struct gl_flight_recorder_head {
    uint32_t format;
    gl_str node, release;
    gl_ms at;
    uint64_t lines; /* of the snapshot */
};

extern const struct gl_schema gl_flight_recorder_head_schema;

#endif
