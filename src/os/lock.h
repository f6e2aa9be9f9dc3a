/* lock.h - the lock of a data folder: its holder is the node of that folder.
 *
 * The kernel releases the lock when the process ends, however it ends. The descriptor is
 * close-on-exec; between fork and exec a child holds the lock too, so nothing may come between
 * them.
 *
 * A node that serves also reserves the folder while it waits for the lock. A command that needs
 * the folder only for a moment checks the reservation and does not take the lock when its holder
 * releases it. */
#ifndef GL_OS_LOCK_H
#define GL_OS_LOCK_H

#include "base/err.h"
#include "base/str.h"
#include "base/times.h"

struct gl_lock {
    int fd; /* negative: not held */
};

/* Take the lock of the folder `data`, which exists. GL_E_BUSY: another process holds it; the
 * sentence names that process if it is known. */
int gl_lock_take(struct gl_lock *ret, const char *data, struct gl_why *reterr_why);
/* The same, and record the command that takes it, like "serve". */
int gl_lock_take_as(struct gl_lock *ret, const char *data, const char *what,
                    struct gl_why *reterr_why);
void gl_lock_drop(struct gl_lock *l); /* may be called when not held */

/* The holder, for messages only: what counts is the kernel's lock. */
struct gl_lock_holder {
    int64_t pid;   /* 0: unknown */
    gl_ms since;   /* 0: unknown */
    char what[16]; /* "serve", "run"; "" : unknown */
};
/* False: the lock is free. */
bool gl_lock_find(const char *data, struct gl_lock_holder *ret);

/* GL_E_BUSY: another process has reserved the folder. */
int gl_lock_reserve(struct gl_lock *ret, const char *data, struct gl_why *reterr_why);
bool gl_lock_is_reserved(const char *data);

#endif
