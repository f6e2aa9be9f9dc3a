/* trash.h - folders that are no longer wanted.
 *
 * A step may leave a hundred thousand files, and on some disks the end of a single folder takes two
 * milliseconds: the loop must not wait for it. The folder is renamed into `keeper/trash`, which is
 * as good as gone, and a thread removes it. The thread is started when there is something for it to
 * do. What a keeper has not got to when it ends, the next one goes on with. */
#ifndef GL_KEEPER_TRASH_H
#define GL_KEEPER_TRASH_H

#include "keeper/keeper.h"

/* Go on with what an earlier keeper left. */
void gl_trash_open(struct gl_keeper *k);
/* Take away `path`, relative to the contexts' folder, and all that is in it. What cannot be taken
 * away stays where it is. */
void gl_trash_put(struct gl_keeper *k, const char *path);
void gl_trash_close(struct gl_keeper *k);

#endif
