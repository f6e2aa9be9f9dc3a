/* id.h - ULIDs: 48 bits of time and 80 random bits, as 26 characters that sort by time. The random
 * bits come from the caller (the entropy port, or a seeded source in the simulator). */
#ifndef GL_BASE_ID_H
#define GL_BASE_ID_H

#include "base/limits.h"
#include "base/times.h"

struct gl_ulid {
    char text[GL_ULID_BYTES + 1];
};

void gl_id_make(struct gl_ulid *ret, gl_ms now, const uint8_t chance[static 10]);
bool gl_id_valid(gl_str s); /* 26 characters of Crockford's alphabet, upper case, no overflow */
gl_ms gl_id_time(gl_str s); /* must be valid */

#endif
