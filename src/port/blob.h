/* blob.h - content by its SHA-256: the files of a flow, snapshotted at submission.
 *
 * Synchronous and called outside the control thread (HTTP) or before it runs (CLI): a blob is
 * written and synced before a job that names it is submitted. */
#ifndef GL_PORT_BLOB_H
#define GL_PORT_BLOB_H

#include "base/err.h"
#include "base/str.h"

struct gl_blob {
    /* Keep `content` under its hash `hex` (checked: GL_E_INVALID if it is another). Existing: fine.
     */
    int (*put)(struct gl_blob *b, gl_str context, gl_str hex, gl_str content,
               struct gl_why *reterr_why);
    /* Who asks will rely on it: it is then as fresh as one just put, and stays for a while. */
    bool (*has)(struct gl_blob *b, gl_str context, gl_str hex);
};

#endif
