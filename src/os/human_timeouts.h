/* human_timeouts.h - questions that workers have left for people in the folders of runs: which are
 * open is kept in mind, and the defaults of those that nobody has answered in time are written
 * down.
 *
 * Looks through the folders of all runs for files of questions (os/human_file.h). One that has not
 * changed is not read again before a question in it is over, so looking costs a question to the
 * file system for each folder. Of what it knows nothing is needed: after a crash the files tell.
 *
 * Folders of runs may belong to others, or to jobs that have ended: whoever made it is asked before
 * anything is written or told. One thread looks; gl_human_timeouts_asks() is for another. */
#ifndef GL_OS_HUMAN_TIMEOUTS_H
#define GL_OS_HUMAN_TIMEOUTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "base/str.h"
#include "base/when.h"
#include "port/asks.h"

enum gl_human_run {
    GL_HUMAN_RUN_LIVE,       /* its job has not ended */
    GL_HUMAN_RUN_REMOTE,     /* it has not; another node has it, and writes the defaults */
    GL_HUMAN_RUN_OTHER_FILE, /* ... and has a file of its own: this one is nobody's at present */
    GL_HUMAN_RUN_FOREIGN,    /* it has, or is none of ours */
    GL_HUMAN_RUN_UNKNOWN,    /* it cannot be told now */
};

struct gl_human_timeouts {
    const char *root; /* borrowed */
    enum gl_human_run (*ask)(void *owner, gl_str run_id);
    void (*log)(void *owner, const char *line);
    void *owner;
    atomic_bool stops;  /* set from any thread: a look under way ends soon */
    struct gl_map seen; /* by run id: struct watched_run */
    uint64_t round;     /* looks so far */

    pthread_mutex_t mutex; /* guards what follows; held for no longer than memory is copied */
    struct gl_map open; /* by run id: struct watched_run, of a live job, with something to tell */
    struct gl_map out;  /* such beyond GL_ASKS_RUNS_MAX: only how many questions is told, ... */
    uint64_t left_out;  /* ... so many altogether; they are taken in when there is room */
};

void gl_human_timeouts_init(struct gl_human_timeouts *o); /* the rest is set by its owner */
void gl_human_timeouts_done(struct gl_human_timeouts *o);
/* Look at all of them. A folder that cannot be read is met again the next time. */
void gl_human_timeouts_scan(struct gl_human_timeouts *o, gl_ms now);

/* What was found, for the control thread; valid until gl_human_timeouts_done(). */
struct gl_asks gl_human_timeouts_asks(struct gl_human_timeouts *o);

#endif
