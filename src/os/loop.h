/* loop.h - the control thread's loop: libevent, plus a way for other threads to hand in work.
 *
 * One loop belongs to the thread that runs it. gl_loop_post() is the only call that others may
 * make. */
#ifndef GL_OS_LOOP_H
#define GL_OS_LOOP_H

#include "base/err.h"
#include "port/clock.h"

struct event_base;
struct gl_loop;

/* Work posted to the loop. Embedded by the caller, who owns it again once `run` is called. */
struct gl_loop_task {
    void (*run)(struct gl_loop_task *t);
    void *owner;
    bool is_urgent;            /* short, and someone waits for it: runs before ordinary tasks */
    struct gl_loop_task *next; /* used by the loop */
};

int gl_loop_new(struct gl_loop **ret, struct gl_why *reterr_why);
void gl_loop_free(struct gl_loop *l);
struct event_base *gl_loop_base(struct gl_loop *l); /* for adapters that watch sockets */

void gl_loop_run(struct gl_loop *l);  /* until gl_loop_stop() */
void gl_loop_stop(struct gl_loop *l); /* from the loop's own thread */
/* From any thread. Tasks run in the order they were posted, urgent ones first, but ordinary ones
 * get their turn however many urgent ones there are. Posting many costs one wake-up. */
void gl_loop_post(struct gl_loop *l, struct gl_loop_task *t);

/* The clock of a node that runs on this loop (see port/clock.h). */
struct gl_clock *gl_loop_clock(struct gl_loop *l);

#endif
