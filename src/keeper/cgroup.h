/* cgroup.h - a control group for a keeper and all its processes, where the machine allows one.
 *
 * One group per keeper, not per step: processes inherit it at no cost, while moving each step into
 * a group of its own makes the kernel wait for all processors (13 ms for the first after a pause).
 * It serves one purpose: when a keeper is killed, the next one finds all its leftover processes,
 * even one that has shed its parent, its session, its environment and its mark.
 *
 * Version 2 is used where mounted, else the freezer hierarchy of version 1.
 *
 * Call order: gl_cgroup_end() with the path of the former keeper, gl_cgroup_enter(),
 * gl_cgroup_leave(). */
#ifndef GL_KEEPER_CGROUP_H
#define GL_KEEPER_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

/* Create a group below our own and move into it. False: not possible here, and `path` is "". */
bool gl_cgroup_enter(char *path, size_t bytes, const char *name);
/* Move back out and remove it. */
void gl_cgroup_leave(const char *path);
/* Kill everything in the group of an earlier keeper and remove it. Does nothing if the group is
 * gone or not a keeper's. */
void gl_cgroup_end(const char *path);

#endif
