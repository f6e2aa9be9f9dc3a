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
 * "default" with four slots per core. Where "default" is not named it is added, because a step that
 * names no pool wants that one. Lives in `a`. */
int gl_pools_read(const char *text, struct gl_arena *a, struct gl_pools_entry **ret, size_t *ret_n,
                  struct gl_why *reterr_why);

/* Add the pools in which workers of bundles run: "executor.default" with `slots`, and those that
 * `text` names ("gpu=1,io=8"; NULL or "": none) as "executor.gpu", .... What the text says of
 * default beats `slots`; one that is among the pools already stays as it is. */
int gl_pools_add_executor(const char *text, uint32_t slots, struct gl_arena *a,
                          struct gl_pools_entry *pools, size_t *pools_n, struct gl_why *reterr_why);

#endif
