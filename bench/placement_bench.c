/* placement_bench.c - how many placements a second the pure scheduler makes, among 10, 100 and
 * 1,000 nodes that fill up. */
#define _GNU_SOURCE

#include "base/check.h"
#include "base/mem.h"
#include "core/scheduling/placement.h"

#include <stdio.h>
#include <time.h>

enum { POOLS = 2, SLOTS = 16 };

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double measure(size_t n)
{
    struct gl_place_node *nodes = gl_mem_alloc(n * sizeof(*nodes));
    struct gl_place_pool *pools = gl_mem_alloc(n * POOLS * sizeof(*pools));
    char(*ids)[32] = gl_mem_alloc(n * sizeof(*ids));
    struct gl_place_request r = {.pool = gl_str_of("gpu"), .slots = 1};
    unsigned placed = 0;
    double began, took;

    for (size_t i = 0; i < n; i++) {
        struct gl_place_pool *p = &pools[i * POOLS];

        (void)snprintf(ids[i], sizeof(ids[i]), "node%zu", i);
        p[0] = (struct gl_place_pool){.name = gl_str_of("default"), .slots = SLOTS};
        p[1] = (struct gl_place_pool){.name = gl_str_of("gpu"), .slots = SLOTS};
        nodes[i] = (struct gl_place_node){
            .id = gl_str_of(ids[i]), .takes = true, .pools = p, .pools_n = POOLS};
    }
    began = now_s();
    do {
        enum gl_place_result result;
        int64_t at = gl_place(nodes, n, &r, &result);

        if (result == GL_PLACE_FITS) {
            pools[(size_t)at * POOLS + 1].ours++;
        } else { /* all are full: begin again */
            for (size_t i = 0; i < n; i++) {
                pools[i * POOLS + 1].ours = 0;
            }
        }
        placed++;
        took = now_s() - began;
    } while (took < 0.5);
    gl_mem_free(nodes);
    gl_mem_free(pools);
    gl_mem_free(ids);
    return placed / took;
}

int main(void)
{
    static const size_t sizes[] = {10, 100, 1000};

    for (size_t i = 0; i < GL_COUNT(sizes); i++) {
        printf("%zu nodes: %.0f placements/s\n", sizes[i], measure(sizes[i]));
    }
    return 0;
}
