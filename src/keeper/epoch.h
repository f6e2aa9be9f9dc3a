/* epoch.h - the name of an unbroken memory, and what the next keeper must know about this one.
 *
 * While a keeper lives its file says "running". A keeper that ends in an orderly way has nothing
 * left that it could forget, marks the file "clean", and the next one continues the same epoch. If
 * the file still says "running" when a keeper starts, its predecessor died: whatever it knew and
 * did not write down is lost, and a new epoch begins.
 *
 * Written whole, synced and renamed, so that it is never half of anything. */
#ifndef GL_KEEPER_EPOCH_H
#define GL_KEEPER_EPOCH_H

#include "base/err.h"
#include "port/keeper_protocol.h"

struct gl_epoch {
    char id[GL_KEEPER_EPOCH_BYTES + 1]; /* "": none yet */
    bool running;
    uint64_t incarnation; /* the highest a node has come with: lower ones are refused */
    uint64_t mark;        /* marks of its processes begin with these bits; 0: none */
    char boot[40];        /* the boot of the machine it lived in */
    char cgroup[512];     /* its control group; "": none */
};

/* `folder`: the keeper's. An absent file gives an empty epoch, a damaged one that of a keeper that
 * died. */
int gl_epoch_load(struct gl_epoch *ret, const char *folder, struct gl_why *reterr_why);
int gl_epoch_save(const struct gl_epoch *e, const char *folder, struct gl_why *reterr_why);

#endif
