/* mem.h - the heap, for data that outlives a step. Out of memory aborts: a crash is a path that the
 * simulator exercises on every seed, while unwinding from a failed allocation is one that nobody
 * tests. Anything a user can size is checked against limits.h first.
 *
 *   gl_mem_*      plain heap blocks
 *   gl_pool_*     size-class free lists for long-lived records: memory is reused and not returned
 *                 before gl_pool_done(); a pool belongs to one thread */
#ifndef GL_BASE_MEM_H
#define GL_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

void *gl_mem_alloc(size_t bytes); /* zeroed */
void *gl_mem_realloc(void *p, size_t bytes);
void gl_mem_free(void *p);

enum { GL_POOL_CLASSES = 16 }; /* 16, 32, 48, 64, 96, ... 4096 bytes; larger goes to the heap */

struct gl_pool {
    void *free_list[GL_POOL_CLASSES];
    void *slabs; /* list of all slabs */
    void *large; /* allocations too large for a class, freed by done() */
    char *fresh; /* the unused rest of the newest slab */
    size_t fresh_bytes;
    size_t used_bytes; /* in use, by class size */
    size_t slab_bytes; /* taken from the heap for classes */
};

void gl_pool_init(struct gl_pool *p);
void gl_pool_done(struct gl_pool *p);
void *gl_pool_alloc(struct gl_pool *p, size_t bytes); /* zeroed */
void gl_pool_free(struct gl_pool *p, void *ptr,
                  size_t bytes); /* with the same `bytes`; NULL is fine */

#endif
