/* findings.h - what a look at an engine's settings has shown, for `glia store check` and at start.
 */
#ifndef GL_PORT_FINDINGS_H
#define GL_PORT_FINDINGS_H

#include "base/arena.h"
#include "base/str.h"

enum gl_finding_level {
    GL_FINDING_GOOD,
    GL_FINDING_WARNING, /* works, but the reader should know what can be lost */
    GL_FINDING_BAD,     /* data could silently vanish: refused unless the user overrides it */
};

struct gl_finding {
    enum gl_finding_level level;
    gl_str text; /* a sentence: what was found, and what to do about it */
};

struct gl_findings {
    struct gl_finding *items; /* in the arena */
    size_t n, cap;
};

void gl_findings_add(struct gl_findings *f, struct gl_arena *a, enum gl_finding_level level,
                     const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif
