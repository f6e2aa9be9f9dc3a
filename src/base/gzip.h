/* gzip.h - a text in the gzip format, and back. The same bytes give the same bytes: no time and no
 * name is written. */
#ifndef GL_BASE_GZIP_H
#define GL_BASE_GZIP_H

#include "base/err.h"
#include "base/str.h"

void gl_gzip_pack(gl_str bytes, struct gl_buf *out);
bool gl_gzip_is(gl_str bytes); /* does it begin like one? */
/* GL_E_INVALID: no gzip, or damaged; GL_E_LIMIT: it would have more than `bytes_max` bytes. */
int gl_gzip_unpack(gl_str bytes, size_t bytes_max, struct gl_buf *out, struct gl_why *reterr_why);

#endif
