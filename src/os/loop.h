/* loop.h - the control thread's loop: libevent, plus a way in for other threads.
 *
 * One loop belongs to the thread that runs it. gl_loop_post() is the only call that others may
 * make. */
#ifndef GL_OS_LOOP_H
#define GL_OS_LOOP_H

#include "base/err.h"
#include "port/clock.h"

struct event_base;
struct gl_loop;

/* Work handed to the loop. Embedded by the caller, which owns it again when `run` is called. */
struct gl_loop_task {
    void (*run)(struct gl_loop_task *t);
    void *owner;
    bool is_urgent;            /* small, and somebody waits for it: goes before all that is not */
    struct gl_loop_task *next; /* the loop's */
};

int gl_loop_new(struct gl_loop **ret, struct gl_why *reterr_why);
void gl_loop_free(struct gl_loop *l);
struct event_base *gl_loop_base(struct gl_loop *l); /* for adapters that watch sockets */

void gl_loop_run(struct gl_loop *l);  /* until gl_loop_stop() */
void gl_loop_stop(struct gl_loop *l); /* from the loop's own thread */
/* From any thread. Tasks run in the order they were posted, urgent ones before the others; however
 * many are urgent, the others get their turn. Posting many costs one wake-up. */
void gl_loop_post(struct gl_loop *l, struct gl_loop_task *t);

/* The clock of a node that lives on this loop (see port/clock.h). */
struct gl_clock *gl_loop_clock(struct gl_loop *l);

#endif
