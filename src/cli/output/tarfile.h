/* tarfile.h - a tar archive, written piece by piece (ustar; long names and sizes as pax headers).
 */
#ifndef GL_CLI_OUTPUT_TARFILE_H
#define GL_CLI_OUTPUT_TARFILE_H

#include <stdio.h>

#include "base/str.h"
#include "base/times.h"

struct gl_tarfile {
    FILE *out;       /* borrowed */
    uint64_t left;   /* of the file that is being written */
    uint64_t padded; /* padding due after it */
};

/* Begin the file `name` of `bytes` bytes. */
void gl_tarfile_begin(struct gl_tarfile *t, gl_str name, uint64_t bytes, gl_ms modified_at);
/* Append content. Bytes beyond the announced size are dropped. */
void gl_tarfile_add(struct gl_tarfile *t, gl_str piece);
/* End the file; missing bytes are filled with zeros. True: none were missing. */
bool gl_tarfile_end(struct gl_tarfile *t);
/* A whole file: begin, add and end. */
void gl_tarfile_text(struct gl_tarfile *t, gl_str name, gl_str content, gl_ms modified_at);
/* End the archive. Errors are those of the stream. */
void gl_tarfile_close(struct gl_tarfile *t);

#endif
