/* sim_damage.h - records that are damaged for a while: their value has been changed, or a record is
 * missing, and later they are restored.
 *
 * A reader gets such a record with a wrong checksum and another text; the checkers still see the
 * true one. A node that has its job in memory may rewrite the record, which repairs it. */
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
        struct sim_fact_job *job; /* NULL: unused */
    } items[SIM_DAMAGES_MAX];
};

/* Damages records as often as the options say, until `span_ms` from now. */
void sim_damage_init(struct sim_damage *x, struct sim_checks *checks, gl_ms span_ms);
/* Restores everything; nothing is damaged any more. */
void sim_damage_heal(struct sim_damage *x);

#endif
