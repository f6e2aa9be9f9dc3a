/* findings.c - see findings.h. */
#include "port/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void gl_findings_add(struct gl_findings *f, struct gl_arena *a, enum gl_finding_level level,
                     const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args); /* a longer sentence is truncated */
    va_end(args);
    if (f->n == f->cap) {
        struct gl_finding *more = GL_NEW_ARRAY(a, struct gl_finding, f->cap * 2 + 8);

        if (f->n > 0) {
            memcpy(more, f->items, f->n * sizeof(*more));
        }
        f->items = more;
        f->cap = f->cap * 2 + 8;
    }
    f->items[f->n++] = (struct gl_finding){.level = level, .text = gl_str_dup(a, gl_str_of(text))};
}
