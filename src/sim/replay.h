/* replay.h - a recording of a node (node/flight_recorder.h), told again.
 *
 * Each segment begins with a snapshot of the core: it is restored, the events are fed to it, and
 * what it decides is compared with what was decided then. Effects go nowhere. The text is a
 * segment, several of them, or a bundle as `glia debug dump` makes it, whose further lines are
 * passed over.
 *
 * The text may come from anybody: what is torn, damaged or no recording at all is an error with a
 * sentence. Lines at the end of a segment that no check follows (port/recording.h) are what a crash
 * leaves behind: they are passed over, and that is fine. Where a segment, or the end of one, is
 * missing, the rest is told, and `holes` says what is missing. */
#ifndef GL_SIM_REPLAY_H
#define GL_SIM_REPLAY_H

#include "base/err.h"
#include "base/times.h"
#include "node/flight_recorder.h"

struct sim_replay_options {
    uint64_t until; /* stop behind the event of this number; 0: at the end */
    gl_str job;     /* tell only about jobs whose ids begin so; "" : about all */
    bool read_only; /* read everything, but feed nothing to the core */
    bool is_bare;   /* it comes straight from node/flight_recorder.h: what no check follows counts,
                       too */
    /* What happens, line by line; NULL: nobody wants to know. */
    void (*print)(void *owner, const char *line);
    void *owner;
};

struct sim_replay_result {
    uint64_t segments_n, events_n, compared_n;
    uint64_t gaps_n;          /* segments that end early because the node had no time */
    bool is_torn;             /* the last line was cut off */
    uint64_t torn_n;          /* segments of a bundle whose ends were left out when it was made */
    uint64_t left_out_n;      /* lines that no check follows: passed over */
    struct gl_buf holes;      /* what is missing or damaged, a sentence a line; else empty */
    uint64_t differs_at;      /* number of the first event that was decided otherwise; 0: none */
    struct gl_buf difference; /* in words */
    struct gl_buf release;    /* of the node that wrote it, if it is not ours; else empty */
};

/* A recording that was decided otherwise is not an error: ask ret->differs_at. */
int sim_replay_run(gl_str text, const struct sim_replay_options *options,
                   struct sim_replay_result *ret, struct gl_why *reterr_why);
void sim_replay_done(struct sim_replay_result *r);

#endif
