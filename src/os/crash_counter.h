/* crash_counter.h - detects a job that crashes the node again and again.
 *
 * Such a job would crash the node after every restart and stop all other jobs. Before each step
 * the node therefore writes the id of the job it handles into a mapped page (crash.mark), which
 * outlives the process: a memcpy, no system call. If a process died while it handled a job, the
 * next gl_crash_counter_open() counts one more crash of that job (crash.json). After
 * GL_CRASH_COUNTER_CRASHES_MAX crashes in a row, the job is quarantined until a person looks at it.
 *
 *   gl_crash_counter_open()    reads the mark of the previous process and counts
 *   gl_crash_counter_set()     before and after each step: the job that is handled
 *   gl_crash_counter_close()   at a normal end
 *
 * A job's count is cleared once the job has been handled and the process has then either run for
 * GL_CRASH_COUNTER_WELL_MS or closed normally. The count of a quarantined job stays.
 *
 * One crash too many is harmless: a person looks at the job. So a kill from outside while a job
 * is handled counts as well. The mark survives the process, not the machine: nothing is synced.
 * For the holder of the folder's lock; one thread. */
#ifndef GL_OS_CRASH_COUNTER_H
#define GL_OS_CRASH_COUNTER_H

#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"
#include "base/times.h"

enum {
    GL_CRASH_COUNTER_CRASHES_MAX = 3,
    GL_CRASH_COUNTER_WELL_MS = 10000,
    GL_CRASH_COUNTER_SUSPECTS_MAX = 64, /* jobs counted; the oldest is dropped */
};

struct gl_crash_counter_suspect {
    char job[GL_ULID_BYTES + 1];
    uint32_t crashes;
    gl_ms seen_at; /* when its last crash was counted */
    gl_ms well_at; /* when it was first handled since then; 0: not yet */
};

struct gl_crash_counter_page;

struct gl_crash_counter {
    struct gl_crash_counter_page *page; /* mapped; NULL: not open */
    const char *path;                   /* path of crash.json; borrowed from the arena */
    gl_ms (*now)(void);                 /* any clock that never goes backwards */
    /* May be set after opening: is this job quarantined, so that handling it proves nothing? */
    bool (*is_quarantined)(void *owner, gl_str job);
    void *owner;
    gl_str current;                            /* borrowed while it is handled */
    struct gl_crash_counter_suspect *suspects; /* usually empty */
    size_t suspects_n;
    gl_str quarantined[GL_CRASH_COUNTER_SUSPECTS_MAX]; /* as found on opening */
    size_t quarantined_n;
};

/* `a` must outlive it. `now` NULL: the system's clock. An unreadable file of counts is replaced by
 * an empty one: it must not prevent a start. */
int gl_crash_counter_open(struct gl_crash_counter *ret, const char *data, gl_ms (*now)(void),
                          struct gl_arena *a, struct gl_why *reterr_why);
/* Normal end: not a crash. May be called when not open. */
void gl_crash_counter_close(struct gl_crash_counter *m);

/* From now on `job` is handled; "": nothing is. `job` is borrowed until the next call. */
void gl_crash_counter_set(struct gl_crash_counter *m, gl_str job);

#endif
