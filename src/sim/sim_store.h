/* sim_store.h - the `memory` maker of port/store.h: one node's handle on a simulated disk.
 *
 * The disk is shared and durable, a handle belongs to one incarnation of a node. The handle decides
 * when a request reaches the disk, whether it does, and what its caller is told: that is where the
 * faults are. Commits of one handle reach the disk and complete in the order of the calls; a read
 * sees the disk at some moment between its call and its end.
 *
 * With a world whose faults are off and whose options are all zero it is a plain in-memory store,
 * whose requests complete with the next sim_world_step(): the contract suite uses it so. */
#ifndef GL_SIM_SIM_STORE_H
#define GL_SIM_SIM_STORE_H

#include "port/store.h"
#include "sim/sim_disk.h"
#include "sim/sim_fuse.h"
#include "sim/world.h"

struct sim_store {
    struct gl_store port; /* what the node gets */
    struct sim_world *world;
    struct sim_disk *disk;
    struct sim_gate *gate; /* of the node: completions wait while it sleeps; may be NULL */
    struct sim_fuse *fuse; /* of the node; may be NULL */
    struct gl_rng rng;
    struct gl_link ops;          /* under way, in the order of the calls */
    struct gl_link spares;       /* used ones, kept for the next call */
    gl_ms last_apply, last_done; /* of commits: none overtakes another */
    void (*closed)(void *owner);
    void *closed_owner;
    struct sim_call closing;
};

/* `name` seeds this handle's own chance. The disk must outlive the handle. */
void sim_store_open(struct sim_store *s, struct sim_world *w, struct sim_disk *disk,
                    struct sim_gate *gate, struct sim_fuse *fuse, const char *name);

/* The node is dead. Of the commits that have not reached the disk a random number of the first ones
 * still do (a torn group); no completion runs any more. The handle is gone. */
void sim_store_crash(struct sim_store *s);

#endif
