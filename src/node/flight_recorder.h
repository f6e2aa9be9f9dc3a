/* flight_recorder.h - records every event the core handles, and a digest of what it decided.
 *
 * A segment begins with a snapshot of the core (core/snapshot.h), so it can be replayed by itself:
 * restore the snapshot, feed the events, compare the digests (core/digest.h). `glia replay` does
 * that (sim/replay.h).
 *
 * A segment consists of lines of JSON:
 *     {"recording":{...}}          first: format, node, number of snapshot lines
 *     {"core":{...}}, ...          the snapshot
 *     {"flow":{...}}               the text of a flow that a later event names by its hash
 *     {"event":{...}}              core/event.h
 *     {"decided":"0123..."}        the digest of the event before it
 *     {"check":"0123..."}          a hash over everything since the last one, from the adapter
 *     {"gap":"..."}                why the segment ends early, or why nothing was recorded before
 *                                  it
 *
 * Recording never slows the node: what the port does not accept at once is not recorded.
 *
 * Order of calls: gl_flight_recorder_init(); gl_flight_recorder_event() before and
 * gl_flight_recorder_decided() after each step of the core; gl_flight_recorder_done(). */
#ifndef GL_NODE_FLIGHT_RECORDER_H
#define GL_NODE_FLIGHT_RECORDER_H

#include "core/core.h"
#include "core/digest.h"
#include "port/recording.h"

enum { GL_FLIGHT_FORMAT = 2 };

struct gl_flight_recorder {
    struct gl_digest digest;      /* its tap is the trace the core writes to */
    struct gl_recording_port *to; /* borrowed */
    gl_str node;                  /* borrowed */
    struct gl_buf text;
    size_t bytes;       /* size of the segment's events so far */
    size_t bytes_max;   /* when it reaches this, the next segment begins */
    bool recording;     /* a segment is open */
    gl_ms retry_at;     /* do not begin a segment before this time */
    bool was_too_large; /* the snapshot; nothing is recorded until it is smaller */
    bool has_decision;  /* `decided` holds a digest that is not written yet */
    uint64_t decided;
};

void gl_flight_recorder_init(struct gl_flight_recorder *f, struct gl_recording_port *to,
                             struct gl_trace *inner, gl_str node);
void gl_flight_recorder_done(struct gl_flight_recorder *f); /* writes the last digest */

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
