/* arena.h - memory with one lifetime: a core step, a transaction, a parsed document.
 *
 * Order of calls: init (or zero the struct), alloc any number of times, then reset to reuse the
 * memory or done to free it. Nothing is freed individually, and pointers must not outlive a
 * reset. */
#ifndef GL_BASE_ARENA_H
#define GL_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct gl_arena_block;

struct gl_arena {
    struct gl_arena_block *blocks; /* newest first */
    char *at, *end;                /* the free part of the newest block */
    size_t used_bytes;
};

/* An all-zero arena is valid and empty: no block is taken before the first allocation. */
void gl_arena_init(struct gl_arena *a);
void gl_arena_done(struct gl_arena *a);
/* Discard everything but keep one block, so that a per-step arena does not use the heap in each
 * step. */
void gl_arena_reset(struct gl_arena *a);

void *gl_arena_alloc(struct gl_arena *a, size_t bytes); /* zeroed, aligned to 16 */
void *gl_arena_copy(struct gl_arena *a, const void *src, size_t bytes);

#define GL_NEW(a, type) ((type *)gl_arena_alloc((a), sizeof(type)))
#define GL_NEW_ARRAY(a, type, n) ((type *)gl_arena_alloc((a), sizeof(type) * (size_t)(n)))

#endif
