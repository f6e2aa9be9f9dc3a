/* cgroup.h - a control group of its own for a keeper and all that comes from it, where the machine
 * lets us make one.
 *
 * One group per keeper, not per step: processes inherit it at no cost, while moving each step into
 * a group of its own makes the kernel wait for all processors (13 ms for the first after a pause).
 * It serves one purpose: when a keeper was killed, the next one finds everything that is left of
 * it, even a process that has shed its parent, its session, its environment and its mark.
 *
 * Version 2 is used where mounted, else the freezer hierarchy of version 1. */
#ifndef GL_KEEPER_CGROUP_H
#define GL_KEEPER_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

/* Make a group below our own and move into it. False: not possible here; `path` is then "". */
bool gl_cgroup_enter(char *path, size_t bytes, const char *name);
/* Move back out and remove it. */
void gl_cgroup_leave(const char *path);
/* Kill everything in the group of an earlier keeper and remove it. Gone already, or not a keeper's:
 * nothing happens. */
void gl_cgroup_end(const char *path);

#endif
