/* sim_fuse.h - death between two calls of one step.
 *
 * A node dies at any instant, also in the middle of handling one event: some of its calls to the
 * outside have been made and the rest never are. All ports of a node share one fuse; once it is
 * blown they do not hear the node any more, and the simulator frees what is left of it when the
 * step returns. */
#ifndef GL_SIM_SIM_FUSE_H
#define GL_SIM_SIM_FUSE_H

#include <stdbool.h>

struct sim_fuse {
    int calls_left; /* < 0: not lit */
    bool blown;
};

/* Count one call; true if it is not heard any more. */
static inline bool sim_fuse_call(struct sim_fuse *f)
{
    if (!f->blown && f->calls_left >= 0 && f->calls_left-- == 0) {
        f->blown = true;
    }
    return f->blown;
}

#endif
