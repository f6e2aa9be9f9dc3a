/* overdue.h - questions of workers that nobody has answered in time: their defaults are written
 * down.
 *
 * Looks through the folders of all runs for files of questions (os/humanfile.h). One that has not
 * changed is not read again before a question in it is over, so looking costs a question to the
 * file system for each folder. Of what it knows nothing is needed: after a crash the files tell.
 *
 * Folders of runs may belong to others, or to jobs that have ended: whoever made it is asked before
 * anything is written. One thread. */
#ifndef GL_OS_OVERDUE_H
#define GL_OS_OVERDUE_H

#include <stdatomic.h>

#include "base/map.h"
#include "base/str.h"
#include "base/when.h"

enum gl_overdue_run {
    GL_OVERDUE_LIVE,  /* its job has not ended */
    GL_OVERDUE_OTHER, /* it has, or is none of ours */
    GL_OVERDUE_LATER, /* it cannot be told now */
};

struct gl_overdue {
    const char *root; /* borrowed */
    enum gl_overdue_run (*ask)(void *owner, gl_str run_id);
    void (*log)(void *owner, const char *line);
    void *owner;
    atomic_bool stops;  /* set from any thread: a look under way ends soon */
    struct gl_map seen; /* by run id: struct seen */
};

void gl_overdue_init(struct gl_overdue *o); /* the rest is set by its owner */
void gl_overdue_done(struct gl_overdue *o);
/* Look at all of them. A folder that cannot be read is met again the next time. */
void gl_overdue_look(struct gl_overdue *o, gl_ms now);

#endif
