/* blobserve.h - the part of the blob port that a node on a shared store uses: a thread that reads
 * and writes pieces of blobs, so that no disk holds up the control thread.
 *
 * What is being written lies in blobs/tmp as <hex>.part, where gl_blobfs_sweep() finds it if nobody
 * ever seals it. */
#ifndef GL_OS_BLOBSERVE_H
#define GL_OS_BLOBSERVE_H

#include "os/blobfs.h"
#include "os/loop.h"

struct gl_blobserve;

/* From now on `blobs->blob` has all of its functions. It must outlive what is returned. */
int gl_blobserve_open(struct gl_blobserve **ret, struct gl_blobfs *blobs, struct gl_loop *loop,
                      struct gl_why *reterr_why);
/* When no request is under way. NULL is fine. */
void gl_blobserve_close(struct gl_blobserve *s);

#endif
