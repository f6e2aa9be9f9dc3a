/* sha256.h - SHA-256 (FIPS 180-4), for content addressing. init, add any number of times, done. */
#ifndef GL_BASE_SHA256_H
#define GL_BASE_SHA256_H

#include "base/str.h"

enum { GL_SHA256_BYTES = 32, GL_SHA256_HEX = 65 };

struct gl_sha256 {
    uint32_t h[8];
    uint8_t block[64];
    uint64_t total;
};

void gl_sha256_init(struct gl_sha256 *s);
void gl_sha256_add(struct gl_sha256 *s, const void *bytes, size_t n);
void gl_sha256_done(struct gl_sha256 *s, uint8_t ret[static GL_SHA256_BYTES]);
/* The digest of `text` in lower-case hex, NUL-terminated. */
gl_str gl_sha256_hex(gl_str text, char ret[static GL_SHA256_HEX]);

#endif
