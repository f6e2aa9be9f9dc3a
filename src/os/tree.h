/* tree.h - removes and measures whole folders.
 *
 * Steps fill their folders with anything: links, pipes, folders without permissions, paths
 * longer than PATH_MAX. These functions never follow a link and never enter another file system.
 * Neither the stack nor the number of open files grows with the depth. Sizes are allocated
 * blocks, not lengths. */
#ifndef GL_OS_TREE_H
#define GL_OS_TREE_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/str.h"

struct gl_tree_sum {
    uint64_t files_n; /* everything but folders */
    uint64_t bytes;
    const atomic_bool *stop; /* NULL: none. Once it is true, the rest is left alone. */
};

/* Remove `name` in the folder `at` with everything in it, and add its size to *sum. Absent: fine.
 * False: something could not be removed and stays. */
bool gl_tree_remove(int at, const char *name, struct gl_tree_sum *sum);

/* Add the size of everything in `name` in the folder `at` to *sum. Unreadable entries count
 * nothing. */
void gl_tree_measure(int at, const char *name, struct gl_tree_sum *sum);

#endif
