/* workthread.h - the work port: one thread that parses and renders replies to read requests.
 *
 *   gl_workthread_open()    starts the thread
 *   gl_workthread_port()    the port to give to a node
 *   gl_workthread_clear()   before the owner of tasks is freed: waits for the running task and
 * drops the others; no `done` runs afterwards gl_workthread_stop()    clears, and ends the thread;
 * tasks posted afterwards are dropped gl_workthread_free()    after the loop has been freed */
#ifndef GL_OS_WORKTHREAD_H
#define GL_OS_WORKTHREAD_H

#include "os/loop.h"
#include "port/work.h"

struct gl_workthread;

int gl_workthread_open(struct gl_workthread **ret, struct gl_loop *loop, struct gl_why *reterr_why);
struct gl_work *gl_workthread_port(struct gl_workthread *w);
void gl_workthread_clear(struct gl_workthread *w);
/* Call it on the loop, which must run once more before it is freed: it may have been notified of a
 * finished task. */
void gl_workthread_stop(struct gl_workthread *w);
void gl_workthread_free(struct gl_workthread *w); /* NULL is fine */

#endif
