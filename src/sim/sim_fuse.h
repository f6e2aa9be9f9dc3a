/* sim_fuse.h - crashes between two calls of one step.
 *
 * A node may die at any instant, also while it handles an event: some of its calls to ports have
 * been made and the rest never are. All ports of a node share one fuse. Once it has blown they
 * ignore the node, and the simulator frees the rest of it when the step returns. */
#ifndef GL_SIM_SIM_FUSE_H
#define GL_SIM_SIM_FUSE_H

#include <stdbool.h>

struct sim_fuse {
    int calls_left; /* < 0: not lit */
    bool blown;
};

/* Counts one call; true: the call is ignored. */
static inline bool sim_fuse_call(struct sim_fuse *f)
{
    if (!f->blown && f->calls_left >= 0 && f->calls_left-- == 0) {
        f->blown = true;
    }
    return f->blown;
}

#endif
