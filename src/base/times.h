/* when.h - times and durations as numbers and as people write them. No clock is read here. */
#ifndef GL_BASE_TIMES_H
#define GL_BASE_TIMES_H

#include "base/str.h"

typedef int64_t gl_ms; /* milliseconds since 1970-01-01 UTC, or a span of them */

enum { GL_TIMES_BYTES = 25 }; /* "2026-11-15T10:55:49.123Z" and NUL */

/* RFC 3339, UTC, milliseconds. Years 1970 to 9999; others are clamped. */
gl_str gl_times_format(gl_ms t, char buf[static GL_TIMES_BYTES]);
bool gl_times_parse(gl_str s, gl_ms *ret); /* RFC 3339 with any offset */

/* "90s", "1.5h", "2m30s", "250ms", "1d"; a bare number means seconds. At most 10 years. */
bool gl_times_parse_span(gl_str s, gl_ms *ret);
/* "1.2s", "3m 20s": short, for people. */
gl_str gl_times_format_span(gl_ms span, char buf[static GL_TIMES_BYTES]);

#endif
