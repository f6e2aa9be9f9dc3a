/* machine.h - measures how much of the machine this process may use: cores, memory, and the disk of
 * a folder.
 *
 * Cores are those of the process's affinity, less if a control group (version 1 or 2) allows less
 * CPU time. Memory is the machine's, or the limit of a control group. The groups above our own
 * count, too, as far as they are visible. Reads files, so it may block: not for the control
 * thread. */
#ifndef GL_OS_MACHINE_H
#define GL_OS_MACHINE_H

#include "model/capacity.h"

/* `root` comes before every path in /proc and /sys; "" but in tests. What cannot be measured is
 * unknown. `folder` is the one whose disk counts. */
void gl_machine_measure(const char *root, const char *folder, struct gl_capacity *ret);

#endif
