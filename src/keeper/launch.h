/* launch.h - turns a start request into a running process.
 *
 * The child is cloned with the parent's memory, and the parent waits until the child has executed
 * its program or failed (as posix_spawn does): this is the fastest way, and the cause of a failure
 * is simply left in shared memory.
 *
 * The process gets its own session and process group, SIGKILL when the keeper dies, stdin from
 * /dev/null, stdout and stderr to the capture's pipes, no other descriptors, default signals, no
 * core files, umask 022, and the environment it was given plus GLIA_INPUT_FILE, GLIA_OUTPUT, and
 * PATH, HOME and LANG where absent. A worker gets exactly the environment it was given.
 *
 * Call order: gl_launch_prepare(), set out_fd, err_fd and mark, gl_launch_start(). */
#ifndef GL_KEEPER_LAUNCH_H
#define GL_KEEPER_LAUNCH_H

#include "keeper/keeper.h"

struct gl_launch {
    char **argv;
    char **env;            /* the secrets first */
    const char **programs; /* candidate paths, in order; NULL at the end */
    const char *path;      /* the PATH that was searched; NULL: the name contains a slash */
    const char *cwd;
    int out_fd, err_fd;
    int null_fd;   /* for stdin; -1: descriptor 0 is /dev/null already */
    uint64_t mark; /* 0: none */
    struct rlimit nofile;
    bool set_nofile; /* the keeper has raised its own */
    pid_t keeper;

    /* Set by the child. */
    volatile int stage; /* where it failed (enum); 0: it runs its program */
    volatile int err;
};

enum { GL_LAUNCH_STACK_BYTES = 64 << 10 };

/* Convert `s` to what execve() takes; `folder` is the attempt's, absolute. Lives in k->scratch. */
void gl_launch_prepare(struct gl_keeper *k, struct gl_launch *l, const struct gl_exec_start *s,
                       gl_str folder);

/* Start it. On failure no process is left, and `reterr_why` says which step failed. */
int gl_launch_start(struct gl_keeper *k, struct gl_launch *l, pid_t *ret_pid,
                    struct gl_why *reterr_why);

#endif
