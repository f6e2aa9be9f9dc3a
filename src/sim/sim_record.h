/* sim_record.h - the recording of a simulated node, in memory. Each segment is replayed as soon as
 * it has ended, and must come to the same decisions. */
#ifndef GL_SIM_SIM_RECORD_H
#define GL_SIM_SIM_RECORD_H

#include "base/rng.h"
#include "port/recording.h"
#include "sim/world.h"

struct sim_record {
    struct gl_recording_port port;
    struct sim_world *world;
    struct gl_rng whim; /* what is not taken */
    struct gl_buf text; /* of the segment under way */
};

void sim_record_init(struct sim_record *r, struct sim_world *w, uint64_t seed);
/* After its node has been freed: the last segment is replayed, too. */
void sim_record_done(struct sim_record *r);

#endif
