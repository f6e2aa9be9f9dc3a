/* epoch.h - the id of one unbroken memory, and what the next keeper must know about this one.
 *
 * While a keeper runs, its file says "running". A keeper that shuts down in order has nothing left
 * to forget: it marks the file "clean", and the next keeper continues the same epoch. If the file
 * still says "running" when a keeper starts, its predecessor died: whatever it had not written down
 * is lost, and a new epoch begins.
 *
 * The file is written whole, synced and renamed, so it is never half-written. */
#ifndef GL_KEEPER_EPOCH_H
#define GL_KEEPER_EPOCH_H

#include "base/err.h"
#include "port/keeper_protocol.h"

struct gl_epoch {
    char id[GL_KEEPER_EPOCH_BYTES + 1]; /* "": none yet */
    bool running;
    uint64_t incarnation; /* the highest seen from a node: lower ones are refused */
    uint64_t mark;        /* the upper bits of its processes' marks; 0: none */
    char boot[40];        /* boot id of the machine at the time */
    char cgroup[512];     /* its control group; "": none */
};

/* `folder`: the keeper's. A missing file gives an empty epoch; a damaged one counts as left by a
 * keeper that died. */
int gl_epoch_load(struct gl_epoch *ret, const char *folder, struct gl_why *reterr_why);
int gl_epoch_save(const struct gl_epoch *e, const char *folder, struct gl_why *reterr_why);

#endif
