/* trash.h - removes folders in the background.
 *
 * A step may leave a hundred thousand files, and on some disks removing a single folder takes two
 * milliseconds; the loop must not wait for that. The folder is renamed into `keeper/trash` and a
 * thread removes it there. The thread is started when it is first needed. What a keeper did not
 * get to, the next one removes. */
#ifndef GL_KEEPER_TRASH_H
#define GL_KEEPER_TRASH_H

#include "keeper/keeper.h"

/* Continue with the folders that an earlier keeper left. */
void gl_trash_open(struct gl_keeper *k);
/* Remove `path`, relative to the contexts' folder, with everything in it. A path below a symbolic
 * link, or one that cannot be renamed, stays where it is. */
void gl_trash_put(struct gl_keeper *k, const char *path);
void gl_trash_close(struct gl_keeper *k);

#endif
