/* blob.h - content by its SHA-256: the files of a flow, snapshotted at submission.
 *
 * `put` and `has` are synchronous and called outside the control thread (HTTP) or before it runs
 * (CLI): a blob is written and synced before a job that names it is submitted.
 *
 * The others are for a node on a shared store, where the one that was given a file is not the one
 * that needs it (node/blobs.h): content leaves and comes piece by piece. As with the store,
 * requests are embedded, `done` runs exactly once, later, on the control thread, and what was given
 * is borrowed until then. They are carried out one after the other. */
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

    int status; /* 0 | GL_E_NOT_FOUND | GL_E_DAMAGED | GL_E_IO, GL_E_DENIED: this disk, this time */
    struct gl_why why;
    uint64_t size; /* look */
    size_t n;      /* read: so many bytes are in the buffer */

    void *maker[2];
};

struct gl_blob {
    /* Keep `content` under its hash `hex` (checked: GL_E_INVALID if it is another). Existing: fine,
     * and mended if it is damaged. */
    int (*put)(struct gl_blob *b, gl_str context, gl_str hex, gl_str content,
               struct gl_why *reterr_why);
    /* Open it for reading, on the same threads; NULL: it cannot. GL_E_NOT_FOUND, GL_E_INVALID. */
    int (*open)(struct gl_blob *b, gl_str context, gl_str hex, int *ret_fd, uint64_t *ret_bytes,
                struct gl_why *reterr_why);
    /* Who asks will rely on it: it is then as fresh as one just put, and stays for a while. */
    bool (*has)(struct gl_blob *b, gl_str context, gl_str hex);

    /* The same as `has`, and how large it is. With `check` all of it is read: GL_E_DAMAGED if it is
     * not what its name says. */
    void (*look)(struct gl_blob *b, struct gl_blob_req *req, gl_str context, gl_str hex,
                 bool check);
    /* `n` bytes from `at` on, into `buffer`; less only at the end. */
    void (*read)(struct gl_blob *b, struct gl_blob_req *req, gl_str context, gl_str hex,
                 uint64_t at, void *buffer, size_t n);
    /* A piece of one that is not there yet. With `at` 0 it begins anew; the others follow in order.
     * Nobody finds it before it is sealed. */
    void (*write)(struct gl_blob *b, struct gl_blob_req *req, gl_str context, gl_str hex,
                  uint64_t at, gl_str piece);
    /* All of it has been written: checked, synced, and there from now on. GL_E_DAMAGED: it was
     * something else, and what was written is gone. */
    void (*seal)(struct gl_blob *b, struct gl_blob_req *req, gl_str context, gl_str hex);
};

#endif
