/* tidyfs.h - the tidy port over files, on its own thread: removing a folder of gigabytes takes
 * long, and must not block the control thread. */
#ifndef GL_OS_TIDYFS_H
#define GL_OS_TIDYFS_H

#include "os/blobfs.h"
#include "os/loop.h"
#include "port/tidy.h"

struct gl_tidyfs;

/* All borrowed until it is closed. */
int gl_tidyfs_open(struct gl_tidyfs **ret, const char *data, struct gl_blobfs *blobs,
                   struct gl_loop *loop, struct gl_why *reterr_why);
struct gl_tidy *gl_tidyfs_port(struct gl_tidyfs *t);
/* Stops the current request early and fails the waiting ones with GL_E_UNAVAILABLE; then `closed`
 * runs once and the object is gone. */
void gl_tidyfs_close(struct gl_tidyfs *t, void (*closed)(void *owner), void *owner);

#endif
