/* module_exec.h - the exec port for the driver "module": native modules (include/glia/module.h).
 *
 * argv[0] names the module, the input is what gl_module_call() takes, and the output of an attempt
 * that ended with code 0 is the module's output (model/bundle/worker_output.h). Trusted modules run
 * in this process, on the control thread, a few calls at a time; all others in processes of their
 * own.
 *
 * A call has no effect but its result, so nothing is durable: the epoch is new with each opening,
 * and an unknown attempt may simply be run again. A floor is kept only while its job has attempts
 * here; a late start could only come from this same process. A trusted module cannot be
 * interrupted: one that exceeds its timeout has timed out when it returns. */
#ifndef GL_EXEC_MODULE_EXEC_H
#define GL_EXEC_MODULE_EXEC_H

#include "os/loop.h"
#include "port/exec.h"

struct gl_module_exec_config {
    bool quiet;          /* do not call `up`: another executor does */
    const char *folders; /* module folders: absolute, separated by ':'; NULL or "": only our own */
    const char *trusted; /* names of trusted modules, separated by ','; NULL or "": none */
    const char
        *host_path; /* of glia-module-host; NULL: next to our own executable, then in ../libexec */
    /* Called with the job before a trusted module handles a message, and with "" when it has
     * returned, so that a module that crashes this process can be attributed to a job. NULL:
     * none. */
    void (*handling)(void *owner, gl_str job);
    void *owner;
};

int gl_module_exec_open(struct gl_exec **ret, const struct gl_module_exec_config *config,
                        struct gl_loop *loop, const struct gl_exec_events *events,
                        struct gl_why *reterr_why);

/* Is this one of its attempts, running or not acknowledged? */
bool gl_module_exec_knows(struct gl_exec *x, const struct gl_attempt_key *key);

#endif
