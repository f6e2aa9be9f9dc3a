/* sim_store.h - the `memory` engine behind port/store.h: one node's handle on a simulated disk.
 *
 * The disk is shared and durable; a handle belongs to one incarnation of a node. The handle decides
 * when and whether a request reaches the disk, and what its caller learns: this is where faults
 * are injected. Commits of one handle reach the disk and complete in the order of the calls; a read
 * sees the disk at some moment between its call and its end.
 *
 * A handle on a shared disk can be cut off from it for a while. Requests in flight then end unknown
 * or unavailable. When it is connected again, its node is notified that something may have changed.
 *
 * In a world without faults and with all options zero, it is a plain in-memory store whose requests
 * complete with the next sim_world_step(). The contract suite uses it that way. */
#ifndef GL_SIM_SIM_STORE_H
#define GL_SIM_SIM_STORE_H

#include "port/store.h"
#include "sim/sim_disk.h"
#include "sim/sim_fuse.h"
#include "sim/world.h"

struct sim_store {
    struct gl_store port; /* given to the node */
    struct sim_world *world;
    struct sim_disk *disk;
    struct sim_gate *gate; /* of the node: completions wait while it sleeps; may be NULL */
    struct sim_fuse *fuse; /* of the node; may be NULL */
    struct gl_rng rng;
    struct gl_link ops;          /* in flight, in the order of the calls */
    struct gl_link spares;       /* used requests, kept for the next call */
    gl_ms last_apply, last_done; /* commits: earlier ones complete first */
    void (*closed)(void *owner);
    void *closed_owner;
    struct sim_call closing;
    /* What the store reports by itself. */
    struct gl_link link; /* in disk->handles */
    struct gl_store_events events;
    bool has_met;
    struct gl_link news;  /* struct sim_news: sent, not yet delivered */
    struct gl_rng gossip; /* separate, so that other draws do not change */
    gl_ms away_until;     /* cut off until then */
    struct sim_call mend; /* ... and connected again */
    uint32_t untold_n;    /* changes of which its node has not been notified yet */
};

/* `name` seeds this handle's random numbers. The disk must outlive the handle. */
void sim_store_open(struct sim_store *s, struct sim_world *w, struct sim_disk *disk,
                    struct sim_gate *gate, struct sim_fuse *fuse, const char *name);

/* Cuts it off until `until`: of the commits in flight, a random number of the first ones still
 * reach the disk, but their outcome is not reported. */
void sim_store_cut(struct sim_store *s, gl_ms until);

/* A transaction of this context carried a word: notifies all listeners, unless it is lost. */
void sim_news_word(struct sim_disk *d, gl_str context, gl_str word);
void sim_news_listen(struct sim_store *s, const struct gl_store_events *events);
void sim_news_changed(struct sim_store *s);
void sim_news_done(struct sim_store *s); /* no more notifications */

/* The node is dead. Of the commits that have not reached the disk, a random number of the first
 * ones still do (a torn group); no completion runs any more. The handle is invalid afterwards. */
void sim_store_crash(struct sim_store *s);

#endif
