/* arena.c - a chain of blocks that double in size up to a maximum. Allocating moves a pointer in
 * the newest block. */
#include "base/arena.h"

#include <string.h>

#include "base/asan.h"
#include "base/check.h"
#include "base/mem.h"

enum {
    BLOCK_BYTES_MIN = 4 << 10,
    BLOCK_BYTES_MAX = 256 << 10, /* larger pieces get a block of their own */
    ALIGN = 16,
};

struct gl_arena_block {
    struct gl_arena_block *next;
    size_t bytes; /* after this header */
};

_Static_assert(sizeof(struct gl_arena_block) % ALIGN == 0, "the first piece of a block is aligned");

static char *block_start(struct gl_arena_block *b)
{
    return (char *)(b + 1);
}

static struct gl_arena_block *block_new(size_t bytes)
{
    struct gl_arena_block *b = gl_mem_realloc(NULL, sizeof(*b) + bytes);
    b->next = NULL;
    b->bytes = bytes;
    GL_ASAN_POISON(block_start(b), bytes);
    return b;
}

static void block_free(struct gl_arena_block *b)
{
    GL_ASAN_UNPOISON(block_start(b), b->bytes);
    gl_mem_free(b);
}

void gl_arena_init(struct gl_arena *a)
{
    *a = (struct gl_arena){0};
}

void gl_arena_done(struct gl_arena *a)
{
    for (struct gl_arena_block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        block_free(b);
    }
    *a = (struct gl_arena){0};
}

void gl_arena_reset(struct gl_arena *a)
{
    /* Keep the largest block of ordinary size: one oversized document must not keep its memory. */
    struct gl_arena_block *keep = NULL;
    for (struct gl_arena_block *b = a->blocks; b; b = b->next) {
        if (b->bytes <= BLOCK_BYTES_MAX && (!keep || b->bytes > keep->bytes)) {
            keep = b;
        }
    }
    for (struct gl_arena_block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        if (b != keep) {
            block_free(b);
        }
    }
    *a = (struct gl_arena){.blocks = keep};
    if (keep) {
        keep->next = NULL;
        a->at = block_start(keep);
        a->end = a->at + keep->bytes;
        GL_ASAN_POISON(a->at, keep->bytes);
    }
}

/* Allocate a piece that does not fit into the newest block. */
static char *take_slow(struct gl_arena *a, size_t bytes)
{
    if (bytes > BLOCK_BYTES_MAX / 2 && a->blocks) {
        /* Its own block, inserted after the newest, whose free part stays in use. */
        struct gl_arena_block *b = block_new(bytes);
        b->next = a->blocks->next;
        a->blocks->next = b;
        return block_start(b);
    }
    size_t grown = a->blocks ? a->blocks->bytes * 2 : BLOCK_BYTES_MIN;
    while (grown < BLOCK_BYTES_MAX && grown < bytes * 2) {
        grown *= 2;
    }
    if (grown > BLOCK_BYTES_MAX) {
        grown = BLOCK_BYTES_MAX;
    }
    struct gl_arena_block *b = block_new(bytes > grown ? bytes : grown);
    b->next = a->blocks;
    a->blocks = b;
    a->at = block_start(b) + bytes;
    a->end = block_start(b) + b->bytes;
    return block_start(b);
}

/* Allocate `bytes` of uninitialized memory. */
static char *take(struct gl_arena *a, size_t bytes)
{
    GL_ASSERT(bytes < SIZE_MAX / 2);
    size_t rounded = (bytes + GL_ASAN_GAP + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    char *p;
    if (rounded <= (size_t)(a->end - a->at)) {
        p = a->at;
        a->at += rounded;
    } else {
        p = take_slow(a, rounded);
    }
    a->used_bytes += rounded;
    GL_ASAN_UNPOISON(p, bytes);
    return p;
}

void *gl_arena_alloc(struct gl_arena *a, size_t bytes)
{
    char *p = take(a, bytes ? bytes : 1);
    return memset(p, 0, bytes ? bytes : 1);
}

void *gl_arena_copy(struct gl_arena *a, const void *src, size_t bytes)
{
    char *p = take(a, bytes ? bytes : 1);
    if (bytes) {
        memcpy(p, src, bytes);
    }
    return p;
}
