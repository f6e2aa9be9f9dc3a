/* lock.h - the lock of a data folder: whoever holds it is the node of that folder.
 *
 * It is held as long as the process lives and vanishes with it, however it dies. The descriptor is
 * close-on-exec; a child that is forked and not yet executed holds it too, so fork and exec in one
 * go.
 *
 * A node that stays claims the folder while it waits for the lock: whoever only wanted to be the
 * node for a while sees that, and does not snatch the lock when its present holder lets go. */
#ifndef GL_OS_LOCK_H
#define GL_OS_LOCK_H

#include "base/err.h"
#include "base/str.h"
#include "base/when.h"

struct gl_lock {
    int fd; /* negative: not held */
};

/* Take the lock of the folder `data`, which exists. GL_E_BUSY: another process has it; the sentence
 * tells who, where known. */
int gl_lock_take(struct gl_lock *ret, const char *data, struct gl_why *reterr_why);
/* The same, and say what it is taken for: "serve". */
int gl_lock_take_as(struct gl_lock *ret, const char *data, const char *what,
                    struct gl_why *reterr_why);
void gl_lock_drop(struct gl_lock *l); /* fine when not held */

/* Who has it, for people: the kernel's lock decides. */
struct gl_lock_holder {
    int64_t pid;   /* 0: not known */
    gl_ms since;   /* 0: not known */
    char what[16]; /* "serve", "run"; "" : not known */
};
/* False: nobody has it. */
bool gl_lock_find(const char *data, struct gl_lock_holder *ret);

/* GL_E_BUSY: another process claims the folder. */
int gl_lock_claim(struct gl_lock *ret, const char *data, struct gl_why *reterr_why);
bool gl_lock_is_claimed(const char *data);

#endif
