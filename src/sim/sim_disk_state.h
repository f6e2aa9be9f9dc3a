/* sim_disk_state.h - the memory of a simulated disk. Private to its files. */
#ifndef GL_SIM_SIM_DISK_STATE_H
#define GL_SIM_SIM_DISK_STATE_H

#include "base/check.h"
#include "base/limits.h"
#include "sim/sim_disk.h"

enum sim_shape { SIM_RECORDS, SIM_INDEX, SIM_LOG };

struct sim_table {
    enum sim_shape shape;
    gl_str kind;
    struct sim_sorted rows;
    struct sim_table *next;
};

struct sim_entry { /* of an index or a log */
    struct sim_row row;
    gl_str value;
};

struct sim_decided { /* the committed transactions of one session */
    gl_str session;
    uint64_t *ids; /* ascending */
    size_t n, cap;
    uint64_t floor; /* numbers up to this that have not arrived will never be accepted: a caller
                       relies on it */
};

struct sim_disk_context {
    gl_str name;
    struct sim_table *tables;
    struct gl_map decided; /* session -> struct sim_decided */
};

gl_str sim_disk_text(char **at, gl_str s); /* copies to *at, and advances it */
struct sim_disk_context *sim_disk_context_make(struct sim_disk *d, gl_str name);
struct sim_table *sim_disk_table(const struct sim_disk *d, gl_str context, enum sim_shape shape,
                                 gl_str kind); /* NULL: there is none */
struct sim_table *sim_disk_table_make(struct sim_disk_context *c, enum sim_shape shape,
                                      gl_str kind);
/* Replaces `old` by `fresh`; either may be NULL. Takes both; the tail keeps what it may need. */
void sim_disk_swap(struct sim_disk *d, struct sim_table *t, struct sim_row *old,
                   struct sim_row *fresh);
bool sim_disk_is_dead(const struct sim_disk *d, gl_str session); /* or unknown */
bool sim_disk_is_alive(const struct sim_disk *d, gl_str session);

/* ---- the tail (sim_disk_tail.c): what a failover may undo ---- */
void sim_disk_tail_begin(struct sim_disk *d, gl_str session, uint64_t tx_id, bool confirm);
void sim_disk_tail_row(struct sim_disk *d, struct sim_table *t, struct sim_row *old,
                       struct sim_row *fresh);
void sim_disk_tail_decided(struct sim_disk *d, struct sim_decided *decided);
void sim_disk_tail_session(struct sim_disk *d, struct sim_disk_session *s); /* as it is now */
void sim_disk_tail_done(struct sim_disk *d);

#endif
