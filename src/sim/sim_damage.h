/* sim_damage.h - records that are damaged for a while: somebody has written into the store, or a
 * piece of it is missing, and later it is put back as it was.
 *
 * Who reads such a record is told that its checksum is wrong, and gets another text; the checkers
 * still see the true one. Whoever has its job in memory may write it anew: then it is mended. */
#ifndef GL_SIM_SIM_DAMAGE_H
#define GL_SIM_SIM_DAMAGE_H

#include "sim/sim_checks.h"

enum { SIM_DAMAGES_MAX = 16 };

struct sim_damage {
    struct sim_world *world;
    struct sim_disk *disk;
    struct sim_facts *facts;
    struct gl_rng rng;
    struct sim_call call;
    gl_ms ends_at;
    uint32_t left, hit_n; /* how many are still to come; how many records have been damaged */
    struct sim_damage_item {
        const char *kind;
        char id[96];
        uint64_t rev;
        gl_ms mend_at;
        struct sim_fact_job *job; /* NULL: this place is free */
    } items[SIM_DAMAGES_MAX];
};

/* As often as the options say, from now on until `span_ms` is over. */
void sim_damage_init(struct sim_damage *x, struct sim_checks *checks, gl_ms span_ms);
/* Everything is mended, and nothing is damaged any more. */
void sim_damage_heal(struct sim_damage *x);

#endif
