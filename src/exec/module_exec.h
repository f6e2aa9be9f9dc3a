/* module_exec.h - the exec port for the driver "module": native modules (include/glia/module.h).
 *
 * argv[0] names the module, the input is what gl_module_call() takes, and the output of an attempt
 * that ended with code 0 is what the module said (model/bundle/worker_output.h). Modules that are
 * trusted run in this process, on the control thread, a few at a time; all others in processes of
 * their own.
 *
 * A call has no effect but its result, so nothing is durable: the memory is this process, its epoch
 * is new with each opening, and an attempt that is not known here may simply be made again. A floor
 * is remembered only while its job has attempts here; a late start could only come from this same
 * process. A trusted module cannot be interrupted: one that takes longer than its time has timed
 * out when it returns. */
#ifndef GL_EXEC_MODULE_EXEC_H
#define GL_EXEC_MODULE_EXEC_H

#include "os/loop.h"
#include "port/exec.h"

struct gl_module_exec_config {
    bool quiet;            /* do not call `up`: another executor stands before this one */
    const char *folders;   /* with modules: absolute, separated by ':'; NULL or "": only our own */
    const char *trusted;   /* their names, separated by ','; NULL or "": none */
    const char *host_path; /* of glia-module-host; NULL: beside our own executable, then in
                              ../libexec */
    /* Called before a trusted module is, with the job, and with "" when it has returned: one that
     * ends this process can be told from its job. NULL: nobody wants to know. */
    void (*handling)(void *owner, gl_str job);
    void *owner;
};

int gl_module_exec_open(struct gl_exec **ret, const struct gl_module_exec_config *config,
                        struct gl_loop *loop, const struct gl_exec_events *events,
                        struct gl_why *reterr_why);

/* Is this one of its attempts, running or not acknowledged? */
bool gl_module_exec_knows(struct gl_exec *x, const struct gl_attempt_key *key);

#endif
