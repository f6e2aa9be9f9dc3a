/* mem.c - the heap and the pools. The only file of the pure rooms that calls malloc and free. */
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/asan.h"
#include "base/check.h"

/* See base/banned.h. */
#undef malloc
#undef calloc
#undef realloc
#undef free

void *gl_mem_alloc(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);
    if (p == NULL) {
        gl_check_out_of_memory(bytes);
    }
    return p;
}

void *gl_mem_realloc(void *p, size_t bytes)
{
    void *q = realloc(p, bytes ? bytes : 1);
    if (q == NULL) {
        gl_check_out_of_memory(bytes);
    }
    return q;
}

void gl_mem_free(void *p)
{
    free(p);
}

/* Pools. */

enum { SLAB_BYTES = 64 << 10, SLAB_HEAD = 16 };

static const uint16_t class_bytes[GL_POOL_CLASSES] = {
    16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096,
};

struct slab {
    struct slab *next;
};

struct free_piece {
    struct free_piece *next;
};

/* Precedes a piece that is too large for a class; 16 bytes keep the piece aligned. */
struct large {
    struct large *prev, *next;
};

static_assert(sizeof(struct large) == 16, "a large piece stays aligned to 16");
static_assert(sizeof(struct slab) <= SLAB_HEAD, "the first piece of a slab stays aligned to 16");

/* The smallest class that holds `bytes`; GL_POOL_CLASSES if there is none. */
static unsigned class_of(size_t bytes)
{
    unsigned c = 0;
    while (c < GL_POOL_CLASSES && class_bytes[c] < bytes) {
        c++;
    }
    return c;
}

void gl_pool_init(struct gl_pool *p)
{
    *p = (struct gl_pool){0};
}

void gl_pool_done(struct gl_pool *p)
{
    for (struct slab *s = p->slabs, *next; s; s = next) {
        next = s->next;
        GL_ASAN_UNPOISON(s, SLAB_BYTES);
        gl_mem_free(s);
    }
    for (struct large *l = p->large, *next; l; l = next) {
        next = l->next;
        gl_mem_free(l);
    }
    *p = (struct gl_pool){0};
}

static void *large_alloc(struct gl_pool *p, size_t bytes)
{
    struct large *l = gl_mem_alloc(sizeof(*l) + bytes);
    l->next = p->large;
    if (l->next) {
        l->next->prev = l;
    }
    p->large = l;
    p->used_bytes += bytes;
    return l + 1;
}

static void large_free(struct gl_pool *p, void *ptr, size_t bytes)
{
    struct large *l = (struct large *)ptr - 1;
    if (l->prev) {
        l->prev->next = l->next;
    } else {
        GL_ASSERT(p->large == l);
        p->large = l->next;
    }
    if (l->next) {
        l->next->prev = l->prev;
    }
    p->used_bytes -= bytes;
    gl_mem_free(l);
}

static void slab_add(struct gl_pool *p)
{
    /* The rest of the old slab stays unused: less than one piece of the largest class. */
    struct slab *s = gl_mem_realloc(NULL, SLAB_BYTES);
    s->next = p->slabs;
    p->slabs = s;
    p->fresh = (char *)s + SLAB_HEAD;
    p->fresh_bytes = SLAB_BYTES - SLAB_HEAD;
    p->slab_bytes += SLAB_BYTES;
    GL_ASAN_POISON(p->fresh, p->fresh_bytes);
}

void *gl_pool_alloc(struct gl_pool *p, size_t bytes)
{
    unsigned c = class_of(bytes);
    if (c == GL_POOL_CLASSES) {
        return large_alloc(p, bytes);
    }
    size_t size = class_bytes[c];
    void *piece = p->free_list[c];
    if (piece) {
        GL_ASAN_UNPOISON(piece, size);
        p->free_list[c] = ((struct free_piece *)piece)->next;
    } else {
        if (p->fresh_bytes < size + GL_ASAN_GAP) {
            slab_add(p);
        }
        piece = p->fresh;
        p->fresh += size + GL_ASAN_GAP;
        p->fresh_bytes -= size + GL_ASAN_GAP;
        GL_ASAN_UNPOISON(piece, size);
    }
    p->used_bytes += size;
    memset(piece, 0, size);
    return piece;
}

void gl_pool_free(struct gl_pool *p, void *ptr, size_t bytes)
{
    if (!ptr) {
        return;
    }
    unsigned c = class_of(bytes);
    if (c == GL_POOL_CLASSES) {
        large_free(p, ptr, bytes);
        return;
    }
    GL_ASSERT(p->used_bytes >= class_bytes[c]);
    p->used_bytes -= class_bytes[c];
    ((struct free_piece *)ptr)->next = p->free_list[c];
    p->free_list[c] = ptr;
    GL_ASAN_POISON(ptr, class_bytes[c]);
}
