/* sim_full.h - times when the store answers and has no room: commits are refused, sessions are
 * renewed. Sometimes small commits still fit. */
#ifndef GL_SIM_SIM_FULL_H
#define GL_SIM_SIM_FULL_H

#include "sim/sim_disk.h"
#include "sim/world.h"

struct sim_full {
    struct sim_world *world;
    struct sim_disk *disk;
    struct gl_rng rng;
    struct sim_call call;
    gl_ms ends_at;
    uint32_t left, had_n; /* how many are still to come; how many have begun */
};

/* Fills the disk as often as the options say, until `span_ms` from now. */
void sim_full_init(struct sim_full *x, struct sim_world *w, struct sim_disk *disk, gl_ms span_ms);
/* There is room from now on. */
void sim_full_heal(struct sim_full *x);

#endif
