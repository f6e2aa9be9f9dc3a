/* gzip.h - gzip compression in memory. Deterministic: neither a time nor a name is written. */
#ifndef GL_BASE_GZIP_H
#define GL_BASE_GZIP_H

#include "base/err.h"
#include "base/str.h"

void gl_gzip_pack(gl_str bytes, struct gl_buf *out);
bool gl_gzip_is(gl_str bytes); /* does it look like gzip? */
/* GL_E_INVALID: not gzip, or damaged; GL_E_LIMIT: it would exceed `bytes_max` bytes. */
int gl_gzip_unpack(gl_str bytes, size_t bytes_max, struct gl_buf *out, struct gl_why *reterr_why);

#endif
