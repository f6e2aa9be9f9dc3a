/* base64.h - base64 encoding and decoding (RFC 4648). */
#ifndef GL_BASE_BASE64_H
#define GL_BASE_BASE64_H

#include "base/str.h"

void gl_base64_encode(gl_str bytes, struct gl_buf *out); /* with padding */
/* Decode the standard alphabet, padded or not; white space is skipped. False: not base64; what was
 * appended to `out` is meaningless. */
bool gl_base64_decode(gl_str text, struct gl_buf *out);

#endif
