/* blob_thread.h - the part of the blob port that a node on a shared store uses: a thread that reads
 * and writes pieces of blobs, so that no disk holds up the control thread.
 *
 * What is being written lies in blobs/tmp as <hex>.part, where gl_blobfs_sweep() finds it if nobody
 * ever seals it. */
#ifndef GL_OS_BLOB_THREAD_H
#define GL_OS_BLOB_THREAD_H

#include "os/blobfs.h"
#include "os/loop.h"

struct gl_blob_thread;

/* From now on `blobs->blob` has all of its functions. It must outlive what is returned. */
int gl_blob_thread_open(struct gl_blob_thread **ret, struct gl_blobfs *blobs, struct gl_loop *loop,
                        struct gl_why *reterr_why);
/* When no request is under way. NULL is fine. */
void gl_blob_thread_close(struct gl_blob_thread *s);

#endif
