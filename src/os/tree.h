/* tree.h - whole folders: removed and measured.
 *
 * Steps fill their folders with whatever they like: links, pipes, folders nobody may enter, nesting
 * deeper than a path can be long. No link is followed, no other file system entered, and the stack
 * and the number of open files do not grow with the depth. Sizes are what the disk gives: blocks,
 * not lengths. */
#ifndef GL_OS_TREE_H
#define GL_OS_TREE_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/str.h"

struct gl_tree_sum {
    uint64_t files_n; /* whatever is no folder */
    uint64_t bytes;
    const atomic_bool *stop; /* NULL: none. Once it is true, what is left stays as it is. */
};

/* Remove `name` in the folder `at` with all it holds, and add what that was to *sum. Absent: fine.
 * false: something could not be removed, and stays. */
bool gl_tree_remove(int at, const char *name, struct gl_tree_sum *sum);

/* Add all that `name` in the folder `at` holds to *sum. What cannot be looked at counts nothing. */
void gl_tree_measure(int at, const char *name, struct gl_tree_sum *sum);

#endif
