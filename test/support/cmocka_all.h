/* cmocka_all.h - cmocka with the headers it wants in front of it.
 *
 * In a build with planted bugs GLIA_PLANT=N plants one (test/sim/plants). */
#ifndef GL_TEST_CMOCKA_ALL_H
#define GL_TEST_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#ifdef GL_WITH_PLANTS
#include <stdlib.h>

#include "base/trace.h"

__attribute__((constructor)) static inline void plant_by_environment(void)
{
    const char *number = getenv("GLIA_PLANT");

    gl_planted = number != NULL ? atoi(number) : 0;
}
#endif

#endif
