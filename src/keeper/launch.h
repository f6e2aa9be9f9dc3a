/* launch.h - from a request to a running process.
 *
 * The child is cloned with the parent's memory and the parent waits until it has executed its
 * program or failed (as posix_spawn does): that is as fast as it gets, and the cause of a failure
 * simply stands in memory afterwards.
 *
 * What the process finds: its own session and process group, SIGKILL when the keeper dies, stdin
 * from /dev/null, stdout and stderr to the capture's pipes, no other descriptor, default signals,
 * no core files, umask 022, the environment it was given and GLIA_INPUT_FILE, GLIA_OUTPUT, and
 * PATH, HOME and LANG where absent. A worker has the environment it was given and nothing else. */
#ifndef GL_KEEPER_LAUNCH_H
#define GL_KEEPER_LAUNCH_H

#include "keeper/keeper.h"

struct gl_launch {
    char **argv;
    char **env;            /* the secrets first */
    const char **programs; /* where the program may be, in this order; NULL at the end */
    const char *path;      /* the PATH that was searched; NULL: the name has a slash */
    const char *cwd;
    int out_fd, err_fd, null_fd;
    uint64_t mark; /* 0: none */
    struct rlimit nofile;
    pid_t keeper;

    /* Set by the child. */
    volatile int stage; /* enum; 0: it runs its program */
    volatile int err;
};

enum { GL_LAUNCH_STACK_BYTES = 64 << 10 };

/* Turn the texts of `s` into what execve() takes; `folder` is the attempt's, absolute. Lives in
 * k->scratch. */
void gl_launch_prepare(struct gl_keeper *k, struct gl_launch *l, const struct gl_exec_start *s,
                       gl_str folder);

/* Start it. On failure no process is left, and the sentence says what could not be done. */
int gl_launch_start(struct gl_keeper *k, struct gl_launch *l, pid_t *ret_pid,
                    struct gl_why *reterr_why);

#endif
