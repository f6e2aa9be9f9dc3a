/* human_timeouts.h - reads the questions of workers, and writes what is decided about them.
 *
 * gl_human_timeouts_scan() looks through the folders of all runs for human.jsonl
 * (os/human_file.h), remembers which questions are open, and reports each file's next deadline to
 * the core, which decides what follows (core/agents/human_requests.h). It reads a file again only
 * if the file has changed, so a scan costs one stat() per folder. Everything it remembers can be
 * rebuilt from the files after a crash.
 *
 * A folder may belong to another node, or to a job that has ended. The owner's `ask` function is
 * therefore called before any question is shown.
 *
 *   gl_human_timeouts_init()     then, all from one thread:
 *   gl_human_timeouts_scan()     every second or so
 *   gl_human_timeouts_expire()   when the core says that a job's deadline is over
 *
 * Another thread may use gl_human_timeouts_asks() at the same time. */
#ifndef GL_OS_HUMAN_TIMEOUTS_H
#define GL_OS_HUMAN_TIMEOUTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "base/str.h"
#include "base/times.h"
#include "port/questions.h"

enum gl_human_run {
    GL_HUMAN_RUN_LIVE,       /* its job runs on this node */
    GL_HUMAN_RUN_REMOTE,     /* another node runs its job, and enforces the timeouts */
    GL_HUMAN_RUN_OTHER_FILE, /* ... with a file on its own disk: ignore this one */
    GL_HUMAN_RUN_FOREIGN,    /* its job has ended, or the folder is not ours */
    GL_HUMAN_RUN_UNKNOWN,    /* cannot be decided now: ask again */
};

struct gl_human_timeouts {
    const char *root; /* borrowed */
    enum gl_human_run (*ask)(void *owner, gl_str run_id);
    void (*log)(void *owner, const char *line);
    /* The next deadline in the file of this job's run; INT64_MAX: none. False: report it again
     * later. */
    bool (*report)(void *owner, gl_str job, gl_ms due);
    void *owner;
    atomic_bool stops;  /* set from any thread: a running scan ends soon */
    struct gl_map seen; /* by run id: struct watched_run */
    uint64_t round;     /* scans so far */

    pthread_mutex_t mutex; /* guards what follows; held for no longer than memory is copied */
    struct gl_map open; /* by run id: struct watched_run, of a live job, with something to report */
    struct gl_map out;  /* further ones, beyond GL_QUESTIONS_RUNS_MAX: only the number of their
                           questions is reported, ... */
    uint64_t left_out;  /* ... in total; they are moved to `open` when there is room */
};

void gl_human_timeouts_init(
    struct gl_human_timeouts *o); /* the caller sets root, ask, log, report and owner */
void gl_human_timeouts_done(struct gl_human_timeouts *o);
/* Scan the folders of all runs. A folder that cannot be read is retried by the next scan. */
void gl_human_timeouts_scan(struct gl_human_timeouts *o, gl_ms now);

/* Append the default decisions of this job's requests that have expired by `now`, if its run's
 * folder still belongs to it. *ret_n: the number appended. GL_E_BUSY: the file is locked. */
int gl_human_timeouts_expire(struct gl_human_timeouts *o, gl_str job, gl_ms now, size_t *ret_n,
                             struct gl_why *reterr_why);

/* The open questions, for the control thread; valid until gl_human_timeouts_done(). */
struct gl_questions gl_human_timeouts_asks(struct gl_human_timeouts *o);

#endif
