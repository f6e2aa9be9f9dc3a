/* check.c - the only place of the pure rooms that prints and aborts. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void gl_check_failed(const char *what, const char *file, int line)
{
    (void)fprintf(stderr, "glia: %s:%d: assertion failed: %s\n", file, line, what);
    abort();
}

_Noreturn void gl_check_out_of_memory(size_t bytes)
{
    (void)fprintf(
        stderr,
        "glia: out of memory: the system refused %zu bytes; raise the memory limit of the "
        "process ('ulimit -v', or that of its control group) and start it again; nothing "
        "that was acknowledged is lost\n",
        bytes);
    abort();
}
