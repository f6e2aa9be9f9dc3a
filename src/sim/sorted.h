/* sorted.h - rows in order, for the simulated disk: a sorted array of pointers.
 *
 * Simulated stores contain thousands of rows, not millions: moving some pointers is cheaper than a
 * tree, and the order is easy to see. Every row begins with its key. */
#ifndef GL_SIM_SORTED_H
#define GL_SIM_SORTED_H

#include "base/str.h"

struct sim_row { /* the head of every row */
    int64_t score;
    gl_str id;
};

struct sim_sorted {
    struct sim_row **rows;
    size_t n, cap;
    bool id_first; /* order by (id, score) instead of (score, id) */
};

void sim_sorted_init(struct sim_sorted *s, bool id_first);
void sim_sorted_done(struct sim_sorted *s); /* the rows belong to the caller */
/* The position of the first row that is not before the key; s->n: there is none. */
size_t sim_sorted_seek(const struct sim_sorted *s, int64_t score, gl_str id);
struct sim_row *sim_sorted_find(const struct sim_sorted *s, int64_t score, gl_str id);
void sim_sorted_add(struct sim_sorted *s, struct sim_row *row); /* its key must be absent */
struct sim_row *sim_sorted_remove_at(struct sim_sorted *s, size_t place);

#endif
