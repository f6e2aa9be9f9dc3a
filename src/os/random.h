/* random.h - random numbers from the operating system: the entropy port. */
#ifndef GL_OS_RANDOM_H
#define GL_OS_RANDOM_H

#include "port/entropy.h"

/* Safe to call from any thread. */
struct gl_entropy gl_random_entropy(void);

#endif
