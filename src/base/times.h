/* times.h - points in time and durations, as numbers and as people write them. Reads no clock. */
#ifndef GL_BASE_TIMES_H
#define GL_BASE_TIMES_H

#include "base/str.h"

typedef int64_t gl_ms; /* milliseconds since 1970-01-01 UTC, or a duration */

enum { GL_TIMES_BYTES = 25 }; /* "2026-11-15T10:55:49.123Z" and NUL */

/* RFC 3339, UTC, with milliseconds. Years 1970 to 9999; other times are clamped. */
gl_str gl_times_format(gl_ms t, char buf[static GL_TIMES_BYTES]);
bool gl_times_parse(gl_str s, gl_ms *ret); /* RFC 3339 with any offset */

/* Parse a duration: "90s", "1.5h", "2m30s", "250ms", "1d"; a bare number means seconds. At most 10
 * years. */
bool gl_times_parse_span(gl_str s, gl_ms *ret);
/* Format a duration for people: "1.2s", "3m 20s". */
gl_str gl_times_format_span(gl_ms span, char buf[static GL_TIMES_BYTES]);

#endif
