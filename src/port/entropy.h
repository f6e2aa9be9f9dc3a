/* entropy.h - random bytes, for code that may not read the system's random source itself. */
#ifndef GL_PORT_ENTROPY_H
#define GL_PORT_ENTROPY_H

#include <stddef.h>

struct gl_entropy {
    void (*fill)(struct gl_entropy *e, void *bytes, size_t n);
};

#endif
