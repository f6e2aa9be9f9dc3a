/* lock.h - the lock of a data folder: whoever holds it is the node of that folder.
 *
 * It is held as long as the process lives and vanishes with it, however it dies. The descriptor is
 * close-on-exec; a child that is forked and not yet executed holds it too, so fork and exec in one
 * go. */
#ifndef GL_OS_LOCK_H
#define GL_OS_LOCK_H

#include "base/err.h"

struct gl_lock {
    int fd; /* negative: not held */
};

/* Take the lock of the folder `data`, which exists. GL_E_BUSY: another process has it; the sentence
 * names its pid where known. */
int gl_lock_take(struct gl_lock *ret, const char *data, struct gl_why *reterr_why);
void gl_lock_drop(struct gl_lock *l); /* fine when not held */

#endif
