#include "os/random.h"

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/types.h>

#include "base/check.h"

static void fill(struct gl_entropy *e, void *bytes, size_t n)
{
    (void)e;
    uint8_t *at = bytes;
    while (n > 0) {
        ssize_t got = getrandom(at, n, 0);
        if (got < 0) {
            /* No other error is possible: the pointer is valid and the call exists since
             * Linux 3.17. */
            GL_ASSERT(errno == EINTR);
            continue;
        }
        at += got;
        n -= (size_t)got;
    }
}

struct gl_entropy gl_random_entropy(void)
{
    return (struct gl_entropy){.fill = fill};
}
