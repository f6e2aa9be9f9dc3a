/* pools.h - the pools of a node, as an operator writes them: GLIA_POOLS="default=8,gpu=1". */
#ifndef GL_OS_POOLS_H
#define GL_OS_POOLS_H

#include "base/err.h"
#include "base/str.h"

enum { GL_POOLS_EXECUTOR_SLOTS = 50 }; /* for workers of bundles, unless it is configured */

struct gl_pools_entry {
    gl_str name;
    uint32_t slots;
};

/* Read `text` (borrowed) into an array with room for GL_POOLS_MAX; NULL or "" gives the default:
 * "default" with four slots per core. If "default" is not named it is added, because steps that
 * name no pool use it. Allocated in `a`. */
int gl_pools_read(const char *text, struct gl_arena *a, struct gl_pools_entry **ret, size_t *ret_n,
                  struct gl_why *reterr_why);

/* Add the pools for workers of bundles: "executor.default" with `slots`, and those named in `text`
 * ("gpu=1,io=8"; NULL or "": none) as "executor.gpu", .... A value for default in the text
 * overrides `slots`; a pool that exists already is left unchanged. */
int gl_pools_add_executor(const char *text, uint32_t slots, struct gl_arena *a,
                          struct gl_pools_entry *pools, size_t *pools_n, struct gl_why *reterr_why);

#endif
