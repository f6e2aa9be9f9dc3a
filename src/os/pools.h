/* pools.h - the pools of a node, as an operator writes them: GLIA_POOLS="default=8,gpu=1". */
#ifndef GL_OS_POOLS_H
#define GL_OS_POOLS_H

#include "base/err.h"
#include "base/str.h"

struct gl_pools_entry {
    gl_str name;
    uint32_t slots;
};

/* Read `text` (borrowed); NULL or "" gives the default: "default" with four slots per core. Where
 * "default" is not named it is added, because a step that names no pool wants that one. Lives in
 * `a`. */
int gl_pools_read(const char *text, struct gl_arena *a, struct gl_pools_entry **ret, size_t *ret_n,
                  struct gl_why *reterr_why);

#endif
