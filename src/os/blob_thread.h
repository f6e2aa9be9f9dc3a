/* blob_thread.h - a thread that reads and writes pieces of blobs, so that a slow disk does not
 * block the control thread. Used by nodes on a shared store.
 *
 * A blob that is being written is blobs/tmp/<hex>.part. If it is never completed,
 * gl_blobfs_sweep() removes it. */
#ifndef GL_OS_BLOB_THREAD_H
#define GL_OS_BLOB_THREAD_H

#include "os/blobfs.h"
#include "os/loop.h"

struct gl_blob_thread;

/* Start the thread. From then on `blobs->blob` has all of its functions. `blobs` must outlive the
 * returned object. */
int gl_blob_thread_open(struct gl_blob_thread **ret, struct gl_blobfs *blobs, struct gl_loop *loop,
                        struct gl_why *reterr_why);
/* Call it when no request is in progress. NULL is fine. */
void gl_blob_thread_close(struct gl_blob_thread *s);

#endif
