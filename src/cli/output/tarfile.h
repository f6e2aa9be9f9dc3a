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

/* What follows are `bytes` bytes of the file `name`. */
void gl_tarfile_begin(struct gl_tarfile *t, gl_str name, uint64_t bytes, gl_ms modified_at);
/* A piece of it. More than was announced is dropped. */
void gl_tarfile_add(struct gl_tarfile *t, gl_str piece);
/* It is complete; what is missing of what was announced is filled with zeros. True: nothing was. */
bool gl_tarfile_end(struct gl_tarfile *t);
/* Begin, add and end. */
void gl_tarfile_text(struct gl_tarfile *t, gl_str name, gl_str content, gl_ms modified_at);
/* The end of the archive. Errors are those of the stream. */
void gl_tarfile_close(struct gl_tarfile *t);

#endif
