/* blobfs.h - the blob port over files: contexts/CTX/blobs/<2 hex>/<hex>.
 *
 * A blob is written to blobs/tmp, synced and renamed, and then its folder is synced: a file
 * under its hash always has the complete content. Safe to use from several threads. */
#ifndef GL_OS_BLOBFS_H
#define GL_OS_BLOBFS_H

#include <pthread.h>

#include "port/blob.h"
#include "port/tidy.h"

struct gl_blob_thread;

struct gl_blobfs {
    struct gl_blob blob;          /* what callers of the port get */
    const char *data;             /* the data folder, borrowed until gl_blobfs_done */
    pthread_mutex_t use;          /* blobs that `has` found are kept by garbage collection */
    struct gl_blob_thread *serve; /* of a node on a shared store (os/blob_thread.h); NULL: none */
};

void gl_blobfs_init(struct gl_blobfs *b, const char *data);
void gl_blobfs_done(struct gl_blobfs *b);

/* The path where the content of `hex` is or would be. `context` and `hex` must be valid. */
const char *gl_blobfs_path(struct gl_arena *a, const char *data, gl_str context, gl_str hex);

/* Remove what crashed writers left behind. For the holder of the folder's lock, before the first
 * put. */
int gl_blobfs_sweep(struct gl_blobfs *b, gl_str context, struct gl_why *reterr_why);

/* Remove blobs that were put or asked for longer than `age_ms` ago, except those in `keep`. `req`
 * counts what was removed. */
void gl_blobfs_remove(struct gl_blobfs *b, gl_str context, const gl_str *keep, size_t keep_n,
                      gl_ms age_ms, struct gl_tidy_req *req);

#endif
