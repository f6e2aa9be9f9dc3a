/* clock.h - the time, as a node sees it.
 *
 * Wall time when the node started, advanced by CLOCK_BOOTTIME: it never jumps, and it advances
 * while the machine is suspended. */
#ifndef GL_PORT_CLOCK_H
#define GL_PORT_CLOCK_H

#include "base/times.h"

struct gl_clock {
    gl_ms (*now)(struct gl_clock *c);
    /* Call `fire` once, at `at` or shortly after, on the control thread. A second call replaces the
     * first; INT64_MAX cancels. */
    void (*alarm)(struct gl_clock *c, gl_ms at);
    void (*fire)(void *owner); /* set by the node */
    void *owner;
};

#endif
