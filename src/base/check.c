#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void gl_check_failed(const char *what, const char *file, int line)
{
    (void)fprintf(stderr, "glia: %s:%d: assertion failed: %s\n", file, line, what);
    abort();
}
