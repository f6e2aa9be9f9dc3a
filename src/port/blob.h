/* blob.h - content addressed by its SHA-256: the files of a flow, snapshotted at submission.
 *
 * `put`, `open` and `has` are synchronous and called outside the control thread (HTTP) or before it
 * runs (CLI): a blob is written and synced before a job that names it is submitted.
 *
 * The other calls serve a node on a shared store, where the node that received a file is not the
 * one that needs it (node/blobs.h); content is transferred in pieces. Order: `write` from offset 0
 * upwards, then `seal`. As for the store, requests are embedded, `done` runs exactly once, later,
 * on the control thread, and arguments are borrowed until then. Requests are carried out one after
 * the other. */
#ifndef GL_PORT_BLOB_H
#define GL_PORT_BLOB_H

#include "base/err.h"
#include "base/str.h"

struct gl_blob;
struct gl_blob_req;
typedef void gl_blob_done(struct gl_blob_req *req);

struct gl_blob_req {
    gl_blob_done *done;
    void *owner;

    int status; /* 0 | GL_E_NOT_FOUND | GL_E_DAMAGED | GL_E_IO, GL_E_DENIED: an error of this disk,
                   may pass */
    struct gl_why why;
    uint64_t size; /* look */
    size_t n;      /* read: number of bytes in the buffer */

    void *maker[2];
};

struct gl_blob {
    /* Store `content` under its hash `hex`, which is verified (GL_E_INVALID on a mismatch). An
     * existing blob is left alone, or repaired if damaged. */
    int (*put)(struct gl_blob *b, gl_str context, gl_str hex, gl_str content,
               struct gl_why *reterr_why);
    /* Open a blob for reading, on the same threads as `put`; the pointer is NULL if the
     * implementation cannot. GL_E_NOT_FOUND, GL_E_INVALID. */
    int (*open)(struct gl_blob *b, gl_str context, gl_str hex, int *ret_fd, uint64_t *ret_bytes,
                struct gl_why *reterr_why);
    /* Does the blob exist? The caller is going to rely on it, so asking makes it as fresh as one
     * just put, and garbage collection keeps it for a while. */
    bool (*has)(struct gl_blob *b, gl_str context, gl_str hex);

    /* Like `has`, and returns the size. With `check` the whole content is read: GL_E_DAMAGED if it
     * does not match its hash. */
    void (*look)(struct gl_blob *b, struct gl_blob_req *req, gl_str context, gl_str hex,
                 bool check);
    /* Read `n` bytes at offset `at` into `buffer`; fewer only at the end. */
    void (*read)(struct gl_blob *b, struct gl_blob_req *req, gl_str context, gl_str hex,
                 uint64_t at, void *buffer, size_t n);
    /* Write a piece of a new blob. `at` 0 starts over; the other pieces follow in order. The blob
     * is not visible before `seal`. */
    void (*write)(struct gl_blob *b, struct gl_blob_req *req, gl_str context, gl_str hex,
                  uint64_t at, gl_str piece);
    /* The content is complete: verify, sync and publish it. GL_E_DAMAGED: the content does not
     * match the hash, and what was written is gone. */
    void (*seal)(struct gl_blob *b, struct gl_blob_req *req, gl_str context, gl_str hex);
};

#endif
