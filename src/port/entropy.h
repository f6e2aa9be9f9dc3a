/* entropy.h - chance, from outside the pure rooms. */
#ifndef GL_PORT_ENTROPY_H
#define GL_PORT_ENTROPY_H

#include <stddef.h>

struct gl_entropy {
    void (*fill)(struct gl_entropy *e, void *bytes, size_t n);
};

#endif
