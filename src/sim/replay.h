/* replay.h - replays a recording of a node (node/flight_recorder.h).
 *
 * Each segment begins with a snapshot of the core. The snapshot is restored, the events are fed to
 * it, and its decisions are compared with the recorded ones. Effects are not executed. The text is
 * a segment, several segments, or a dump of `glia debug dump`, whose other lines are skipped.
 *
 * The text may come from an untrusted source: if it is truncated, damaged or not a recording, the
 * result is an error with a sentence. Lines at the end of a segment that no check follows
 * (port/recording.h) are what a crash leaves behind: they are skipped without an error. If a
 * segment, or the end of one, is missing, the rest is replayed, and `holes` lists what is missing.
 */
#ifndef GL_SIM_REPLAY_H
#define GL_SIM_REPLAY_H

#include "base/err.h"
#include "base/times.h"
#include "node/flight_recorder.h"

struct sim_replay_options {
    uint64_t until; /* stop after the event with this number; 0: at the end */
    gl_str job;     /* print only jobs whose ids begin with this; "": all jobs */
    bool read_only; /* read everything, but feed nothing to the core */
    bool is_bare; /* comes directly from node/flight_recorder.h: lines that no check follows count,
                     too */
    /* Gets each line of output; NULL: no output. */
    void (*print)(void *owner, const char *line);
    void *owner;
};

struct sim_replay_result {
    uint64_t segments_n, events_n, compared_n;
    uint64_t gaps_n;          /* segments that end early because the node had no time */
    bool is_torn;             /* the last line is incomplete */
    uint64_t torn_n;          /* segments of a dump whose ends were omitted when it was made */
    uint64_t left_out_n;      /* lines that no check follows: skipped */
    struct gl_buf holes;      /* what is missing or damaged, one sentence per line; else empty */
    uint64_t differs_at;      /* number of the first event that was decided differently; 0: none */
    struct gl_buf difference; /* in words */
    struct gl_buf release;    /* of the node that wrote it, if it differs from ours; else empty */
};

/* A difference in a decision is not an error: it is in ret->differs_at. */
int sim_replay_run(gl_str text, const struct sim_replay_options *options,
                   struct sim_replay_result *ret, struct gl_why *reterr_why);
void sim_replay_done(struct sim_replay_result *r);

#endif
