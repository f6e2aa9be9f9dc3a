/* heap.c - a binary heap. Every move of an item updates its `place`, which is what makes removal by
 * item possible. */
#include "base/heap.h"

#include "base/check.h"
#include "base/mem.h"

void gl_heap_init(struct gl_heap *h, gl_heap_before *before)
{
    *h = (struct gl_heap){.before = before};
}

void gl_heap_done(struct gl_heap *h)
{
    gl_mem_free(h->items);
    *h = (struct gl_heap){0};
}

static void put(struct gl_heap *h, size_t i, struct gl_heap_item *it)
{
    h->items[i] = it;
    it->place = (uint32_t)(i + 1);
}

static void sift_up(struct gl_heap *h, size_t i, struct gl_heap_item *it)
{
    while (i > 0) {
        size_t parent = (i - 1) / 2;
        if (!h->before(it, h->items[parent])) {
            break;
        }
        put(h, i, h->items[parent]);
        i = parent;
    }
    put(h, i, it);
}

static void sift_down(struct gl_heap *h, size_t i, struct gl_heap_item *it)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= h->n) {
            break;
        }
        if (child + 1 < h->n && h->before(h->items[child + 1], h->items[child])) {
            child++;
        }
        if (!h->before(h->items[child], it)) {
            break;
        }
        put(h, i, h->items[child]);
        i = child;
    }
    put(h, i, it);
}

/* Move the item at `i` up or down to where it belongs. */
static void settle(struct gl_heap *h, size_t i, struct gl_heap_item *it)
{
    if (i > 0 && h->before(it, h->items[(i - 1) / 2])) {
        sift_up(h, i, it);
    } else {
        sift_down(h, i, it);
    }
}

void gl_heap_push(struct gl_heap *h, struct gl_heap_item *it)
{
    GL_ASSERT(!gl_heap_has(it));
    if (h->n == h->cap) {
        h->cap = h->cap ? h->cap * 2 : 16;
        GL_ASSERT(h->cap < UINT32_MAX);
        h->items = gl_mem_realloc(h->items, h->cap * sizeof(h->items[0]));
    }
    sift_up(h, h->n++, it);
}

static size_t index_of(const struct gl_heap *h, const struct gl_heap_item *it)
{
    GL_ASSERT(gl_heap_has(it));
    size_t i = it->place - 1;
    GL_ASSERT(i < h->n);
    GL_ASSERT(h->items[i] == it);
    return i;
}

void gl_heap_remove(struct gl_heap *h, struct gl_heap_item *it)
{
    size_t i = index_of(h, it);
    it->place = 0;
    struct gl_heap_item *last = h->items[--h->n];
    if (last != it) {
        settle(h, i, last);
    }
}

void gl_heap_moved(struct gl_heap *h, struct gl_heap_item *it)
{
    settle(h, index_of(h, it), it);
}

struct gl_heap_item *gl_heap_top(const struct gl_heap *h)
{
    return h->n ? h->items[0] : NULL;
}

/* If an item does not come before `it`, none of its descendants does. */
static size_t ahead_from(const struct gl_heap *h, size_t i, const struct gl_heap_item *it,
                         size_t max)
{
    size_t n;

    if (max == 0 || i >= h->n || !h->before(h->items[i], it)) {
        return 0;
    }
    n = 1 + ahead_from(h, 2 * i + 1, it, max - 1);
    return n < max ? n + ahead_from(h, 2 * i + 2, it, max - n) : n;
}

size_t gl_heap_ahead(const struct gl_heap *h, const struct gl_heap_item *it, size_t max)
{
    (void)index_of(h, it); /* asserts that it is in this heap */
    return ahead_from(h, 0, it, max);
}

size_t gl_heap_ahead_in_other(const struct gl_heap *h, const struct gl_heap_item *it, size_t max)
{
    return ahead_from(h, 0, it, max);
}
