/* sim_store.h - the `memory` maker of port/store.h: one node's handle on a simulated disk.
 *
 * The disk is shared and durable, a handle belongs to one incarnation of a node. The handle decides
 * when a request reaches the disk, whether it does, and what its caller is told: that is where the
 * faults are. Commits of one handle reach the disk and complete in the order of the calls; a read
 * sees the disk at some moment between its call and its end.
 *
 * A handle on a shared disk can be cut off from it for a while. What was under way then ends
 * unknown or unavailable, and when it is connected again its node is told that something may have
 * changed.
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
    /* What the store tells by itself. */
    struct gl_link link; /* in disk->handles */
    struct gl_store_events events;
    bool has_met;
    struct gl_link news;  /* struct sim_news: told, and not heard yet */
    struct gl_rng gossip; /* apart, so that nothing else changes */
    gl_ms away_until;     /* cut off until then */
    struct sim_call mend; /* ... and connected again */
    uint32_t untold_n;    /* changes of which its node has not heard yet */
};

/* `name` seeds this handle's own chance. The disk must outlive the handle. */
void sim_store_open(struct sim_store *s, struct sim_world *w, struct sim_disk *disk,
                    struct sim_gate *gate, struct sim_fuse *fuse, const char *name);

/* Cut off until `until`: of the commits on their way a random number of the first ones still reach
 * the disk, but nobody hears of it. */
void sim_store_cut(struct sim_store *s, gl_ms until);

/* A transaction of this context carried a word: whoever listens hears it, perhaps. */
void sim_news_word(struct sim_disk *d, gl_str context, gl_str word);
void sim_news_listen(struct sim_store *s, const struct gl_store_events *events);
void sim_news_changed(struct sim_store *s);
void sim_news_done(struct sim_store *s); /* nothing is told any more */

/* The node is dead. Of the commits that have not reached the disk a random number of the first ones
 * still do (a torn group); no completion runs any more. The handle is gone. */
void sim_store_crash(struct sim_store *s);

#endif
