/* sim_blobs.h - the blob port of one simulated machine: its folder, in memory.
 *
 * The folder outlives the nodes of the machine; what a node has asked for dies with it. A request
 * takes a random time, and with faults on the disk may refuse. Where a machine may have two nodes
 * at once each opens a handle of its own; the files are the folder's. */
#ifndef GL_SIM_SIM_BLOBS_H
#define GL_SIM_SIM_BLOBS_H

#include "base/list.h"
#include "base/map.h"
#include "base/rng.h"
#include "port/blob.h"
#include "sim/sim_fuse.h"
#include "sim/world.h"

struct sim_blobs {
    struct gl_blob port; /* what the node gets */
    struct sim_world *world;
    struct sim_blobs *folder; /* whose files these are: its own, unless it is a handle */
    struct sim_gate *gate;    /* of its node; NULL: none */
    struct sim_fuse *fuse;
    struct gl_rng rng;
    struct gl_map files; /* by hash: struct sim_blobs_file */
    struct gl_map parts; /* not sealed yet */
    struct gl_link ops;  /* under way */
    uint32_t delay_ms;   /* of a request, at most ... */
    gl_ms slow_ms;       /* ... and this in any case */
    uint32_t refuses;    /* so often the disk refuses, per million; 0: never */
    uint64_t asked_n;    /* requests */
    uint64_t fetched_n;  /* files that came piece by piece */
};

void sim_blobs_init(struct sim_blobs *b, struct sim_world *w, const char *name);
void sim_blobs_done(struct sim_blobs *b);
/* A node's way to the folder. */
void sim_blobs_open(struct sim_blobs *b, struct sim_blobs *folder, struct sim_gate *gate,
                    struct sim_fuse *fuse);

/* The node has died: nobody is called back. */
void sim_blobs_crash(struct sim_blobs *b);

bool sim_blobs_find(const struct sim_blobs *b, gl_str hex, gl_str *ret_content);
/* What retention does with all that nobody has put or asked for since then. */
void sim_blobs_remove_old(struct sim_blobs *b, gl_ms before);
/* A person has removed it, or has written something else into it. */
void sim_blobs_remove(struct sim_blobs *b, gl_str hex);
void sim_blobs_spoil(struct sim_blobs *b, gl_str hex);

#endif
