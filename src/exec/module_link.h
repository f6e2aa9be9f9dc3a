/* module_link.h - a module that runs in its own process, and the queue of calls to it.
 *
 *   OFF ──call──► STARTING ──ready──► UP ──died──► OFF, or PAUSED if calls wait
 *                     │                               │
 *                     └──unusable──► OFF              └──pause over──► STARTING
 *
 * Calls are answered in order. When the process dies, or is killed because a call took too long,
 * only the call being handled fails: it alone can be the cause, and the calls after it go to the
 * next process. A process that keeps dying is restarted with growing pauses. Everything runs on the
 * loop's thread; no callback is called from inside a call. Private to this folder. */
#ifndef GL_EXEC_MODULE_LINK_H
#define GL_EXEC_MODULE_LINK_H

#include <sys/types.h>

#include "base/list.h"
#include "os/loop.h"
#include "port/exec.h"

struct event;
struct gl_module_pending; /* a queued call */

struct gl_module_link_events {
    void *owner;
    /* `call_owner`: as passed with the call. `end`, `exit_code`, `signal`, `output` and `error` of
     * the result are set, and valid until this returns. */
    void (*ended)(void *owner, void *call_owner, const struct gl_exec_result *result);
};

enum gl_module_link_state { GL_LINK_OFF, GL_LINK_STARTING, GL_LINK_UP, GL_LINK_PAUSED };

struct gl_module_link {
    struct gl_loop *loop;
    struct gl_module_link_events events;
    const char *program, *path; /* of the host, of the module; borrowed */
    gl_str name;                /* of the module; borrowed */

    enum gl_module_link_state state;
    pid_t pid;
    int fd;
    int pidfd; /* -1: unsupported; only end of file on `fd` shows that it died */
    struct event *readable, *writable, *flush, *exited;
    struct event *timer;  /* deadline of the first call, of starting, or of a pause */
    struct gl_link calls; /* those already sent come first */
    size_t sent_n;
    uint64_t last_id;
    unsigned deaths; /* since the last valid answer */
    struct gl_buf in, out;
    struct gl_arena scratch;
};

/* `l` must be all zero except for the borrowed fields. */
int gl_module_link_init(struct gl_module_link *l, struct gl_why *reterr_why);
void gl_module_link_done(struct gl_module_link *l); /* calls in progress are dropped */

/* `input` is copied. timeout_ms counts from when the call is handled; 0: none. */
struct gl_module_pending *gl_module_link_call(struct gl_module_link *l, void *call_owner,
                                              gl_str input, gl_ms timeout_ms);
/* The result is no longer wanted. A call being handled may take another `grace_ms`. */
void gl_module_link_drop(struct gl_module_link *l, struct gl_module_pending *t, gl_ms grace_ms);

#endif
