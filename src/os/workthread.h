/* workthread.h - the work port: one thread that parses and renders for readers.
 *
 *   gl_workthread_open()    starts the thread
 *   gl_workthread_port()    what a node is given
 *   gl_workthread_clear()   before the owner of tasks is freed: waits for the running task, and
 *                           forgets all others; no `done` runs any more
 *   gl_workthread_stop()    clears, and ends the thread; what is posted afterwards is dropped
 *   gl_workthread_free()    when the loop is gone */
#ifndef GL_OS_WORKTHREAD_H
#define GL_OS_WORKTHREAD_H

#include "os/loop.h"
#include "port/work.h"

struct gl_workthread;

int gl_workthread_open(struct gl_workthread **ret, struct gl_loop *loop, struct gl_why *reterr_why);
struct gl_work *gl_workthread_port(struct gl_workthread *w);
void gl_workthread_clear(struct gl_workthread *w);
/* On the loop, which must run once more before it is freed: it may have been told of a finished
 * task. */
void gl_workthread_stop(struct gl_workthread *w);
void gl_workthread_free(struct gl_workthread *w); /* NULL is fine */

#endif
