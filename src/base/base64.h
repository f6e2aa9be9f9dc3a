/* base64.h - bytes as letters (RFC 4648). */
#ifndef GL_BASE_BASE64_H
#define GL_BASE_BASE64_H

#include "base/str.h"

void gl_base64_encode(gl_str bytes, struct gl_buf *out); /* with padding */
/* The usual alphabet, padded or not; white space is passed over. False: it is something else, and
 * what `out` got is of no use. */
bool gl_base64_decode(gl_str text, struct gl_buf *out);

#endif
