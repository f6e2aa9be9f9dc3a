/* map.h - a hash map from text to pointers, iterated in insertion order.
 *
 * Keys are borrowed: they must live as long as the entry (usually they are part of the value). The
 * hash uses no pointers and no seed: the same operations give the same order, always. */
#ifndef GL_BASE_MAP_H
#define GL_BASE_MAP_H

#include "base/str.h"

struct gl_map_entry {
    gl_str key;
    uint64_t hash;
    void *value; /* NULL: a removed entry, skipped by iteration */
};

struct gl_map {
    struct gl_map_entry *entries;           /* in insertion order, with holes */
    uint32_t *slots;                        /* open addressing: entry number + 1, 0 = free */
    size_t entries_n, entries_cap, slots_n; /* slots_n is a power of two */
    size_t live_n;
};

void gl_map_init(struct gl_map *m);
void gl_map_done(struct gl_map *m);
size_t gl_map_count(const struct gl_map *m);
void *gl_map_find(const struct gl_map *m, gl_str key); /* NULL if absent */
/* The key must be absent and the value not NULL (asserted). */
void gl_map_add(struct gl_map *m, gl_str key, void *value);
void *gl_map_remove(struct gl_map *m, gl_str key); /* its value, or NULL */
/* for (size_t i = 0; (v = gl_map_next(&m, &i)) != NULL;) ... Adding while iterating is not allowed;
 * removing is. */
void *gl_map_next(const struct gl_map *m, size_t *i);
/* The same backwards; start with SIZE_MAX. */
void *gl_map_prev(const struct gl_map *m, size_t *i);

#endif
