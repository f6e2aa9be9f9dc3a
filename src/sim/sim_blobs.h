/* sim_blobs.h - the blob port of one simulated machine: its folder, in memory.
 *
 * The folder outlives the nodes of the machine; a node's requests die with it. A request takes a
 * random time, and with disk faults may fail. If a machine may have two nodes at once, each opens
 * its own handle on the folder. */
#ifndef GL_SIM_SIM_BLOBS_H
#define GL_SIM_SIM_BLOBS_H

#include "base/list.h"
#include "base/map.h"
#include "base/rng.h"
#include "port/blob.h"
#include "sim/sim_fuse.h"
#include "sim/world.h"

struct sim_blobs {
    struct gl_blob port; /* given to the node */
    struct sim_world *world;
    struct sim_blobs *folder; /* which contains the files: itself, unless it is a handle */
    struct sim_gate *gate;    /* of its node; NULL: none */
    struct sim_fuse *fuse;
    struct gl_rng rng;
    struct gl_map files; /* by hash: struct sim_blobs_file */
    struct gl_map parts; /* not sealed yet */
    struct gl_link ops;  /* in flight */
    uint32_t delay_ms;   /* at most, of a request ... */
    gl_ms slow_ms;       /* ... plus this */
    uint32_t refuses;    /* failures of the disk per million requests; 0: none */
    uint64_t asked_n;    /* requests */
    uint64_t fetched_n;  /* files that arrived in pieces */
};

void sim_blobs_init(struct sim_blobs *b, struct sim_world *w, const char *name);
void sim_blobs_done(struct sim_blobs *b);
/* Opens a node's handle on the folder. */
void sim_blobs_open(struct sim_blobs *b, struct sim_blobs *folder, struct sim_gate *gate,
                    struct sim_fuse *fuse);

/* The node has died: no request is answered any more. */
void sim_blobs_crash(struct sim_blobs *b);

bool sim_blobs_find(const struct sim_blobs *b, gl_str hex, gl_str *ret_content);
/* Like retention: removes the files that no node has written or read since `before`. */
void sim_blobs_remove_old(struct sim_blobs *b, gl_ms before);
/* A person has removed the file, or has overwritten it. */
void sim_blobs_remove(struct sim_blobs *b, gl_str hex);
void sim_blobs_spoil(struct sim_blobs *b, gl_str hex);

#endif
