/* sim_record.h - the recording of a simulated node, in memory. Each segment is replayed when it has
 * ended, and must produce the same decisions. */
#ifndef GL_SIM_SIM_RECORD_H
#define GL_SIM_SIM_RECORD_H

#include "base/rng.h"
#include "port/recording.h"
#include "sim/world.h"

struct sim_record {
    struct gl_recording_port port;
    struct sim_world *world;
    struct gl_rng whim; /* decides what is not accepted */
    struct gl_buf text; /* of the current segment */
};

void sim_record_init(struct sim_record *r, struct sim_world *w, uint64_t seed);
/* After its node has been freed: replays the last segment, too. */
void sim_record_done(struct sim_record *r);

#endif
