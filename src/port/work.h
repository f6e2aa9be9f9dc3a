/* work.h - computation that must not block the control thread: parsing and rendering for readers.
 *
 * A task's `run` may be called on any thread. It accesses only memory the task owns and memory that
 * does not change before `done`. `done` runs later on the control thread, once, unless the worker
 * is cleared first. Tasks run one at a time, in the order they were posted. */
#ifndef GL_PORT_WORK_H
#define GL_PORT_WORK_H

#include "base/list.h"

struct gl_work_task {
    void (*run)(struct gl_work_task *t);
    void (*done)(struct gl_work_task *t);
    struct gl_link link; /* the worker's */
};

struct gl_work {
    void (*post)(struct gl_work *w, struct gl_work_task *t);
};

/* Without a worker (NULL) the task runs at once, and `done` with it: for commands that only read
 * and serve nobody else. */
static inline void gl_work_post(struct gl_work *w, struct gl_work_task *t)
{
    if (w != NULL) {
        w->post(w, t);
        return;
    }
    t->run(t);
    t->done(t);
}

#endif
