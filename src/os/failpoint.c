#include "os/failpoint.h"

#ifdef GL_WITH_FAILPOINTS

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"

/* Global to the process, like the crash it causes. This file is not part of any release build. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static gl_str wanted;
static atomic_llong left;

static void read_environment(void)
{
    gl_str count;
    wanted = gl_str_cut(gl_str_of(getenv("GLIA_FAILPOINT")), ':', &count);
    int64_t n;
    atomic_store(&left, gl_str_i64(count, &n) && n > 0 ? n : 1);
}

void gl_failpoint_hit(const char *name)
{
    (void)pthread_once(&once, read_environment);
    if (wanted.n == 0 || !gl_str_is(wanted, name)) {
        return;
    }
    if (atomic_fetch_sub(&left, 1) == 1) {
        (void)kill(getpid(), SIGKILL);
        for (;;) {
            (void)pause(); /* The signal arrives before another thread can use the result. */
        }
    }
}

#endif
