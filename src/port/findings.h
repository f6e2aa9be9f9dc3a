/* findings.h - the result of checking an engine's settings, for `glia store check`, `glia doctor`
 * and the start of a node. A finding is one sentence with a level. */
#ifndef GL_PORT_FINDINGS_H
#define GL_PORT_FINDINGS_H

#include "base/arena.h"
#include "base/str.h"

enum gl_finding_level {
    GL_FINDING_GOOD,
    GL_FINDING_WARNING, /* works, but data can be lost in the way the sentence describes */
    GL_FINDING_BAD,     /* data can be lost silently: refused unless the user overrides it */
};

struct gl_finding {
    enum gl_finding_level level;
    gl_str text; /* what was found, and what to do about it */
};

struct gl_findings {
    struct gl_finding *items; /* in the arena */
    size_t n, cap;
};

void gl_findings_add(struct gl_findings *f, struct gl_arena *a, enum gl_finding_level level,
                     const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif
