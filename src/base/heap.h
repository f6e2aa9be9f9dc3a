/* heap.h - a priority queue of items that know their own position, so that any item can be removed
 * or moved in O(log n). `before` must break ties, by sequence and never by address, so that the
 * order is deterministic. */
#ifndef GL_BASE_HEAP_H
#define GL_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gl_heap_item {
    uint32_t place; /* 0: not in a heap; else index + 1 */
};

typedef bool gl_heap_before(const struct gl_heap_item *a, const struct gl_heap_item *b);

struct gl_heap {
    struct gl_heap_item **items;
    size_t n, cap;
    gl_heap_before *before;
};

void gl_heap_init(struct gl_heap *h, gl_heap_before *before);
void gl_heap_done(struct gl_heap *h);                          /* frees the array, not the items */
void gl_heap_push(struct gl_heap *h, struct gl_heap_item *it); /* must not be in a heap */
void gl_heap_remove(struct gl_heap *h, struct gl_heap_item *it); /* must be in this heap */
void gl_heap_moved(struct gl_heap *h, struct gl_heap_item *it); /* call after its key has changed */
struct gl_heap_item *gl_heap_top(const struct gl_heap *h);      /* NULL if empty */
/* The number of items that come before this one. Counting stops at `max`, which bounds the cost. */
size_t gl_heap_ahead(const struct gl_heap *h, const struct gl_heap_item *it, size_t max);
/* The same for an item of another heap with the same order. */
size_t gl_heap_ahead_in_other(const struct gl_heap *h, const struct gl_heap_item *it, size_t max);

static inline bool gl_heap_has(const struct gl_heap_item *it)
{
    return it->place != 0;
}

#endif
