/* supervise.h - runs a command only as long as its deadline is extended.
 *
 * A separate process, the supervisor, is the parent of the command and only watches the clock. It
 * has two deadlines, which the starting process moves forward. At the first, the command's process
 * group gets SIGTERM, at the second SIGKILL. If the starting process sleeps, is stopped or hangs in
 * a call, nothing moves the deadlines, and the command ends in time; if it dies, the command ends
 * at once.
 *
 *   starter --> supervisor --> command (its own process group)
 *
 *   gl_supervise_start()        run the command
 *   gl_supervise_extend()       move the deadlines
 *   gl_supervise_terminate()    end the command now
 *   gl_supervise_wait()         wait for its end; then the supervisor is gone
 *
 * Times are those of gl_supervise_now(): milliseconds of a clock that never jumps and runs while
 * the machine sleeps. */
#ifndef GL_CLI_SUPERVISE_H
#define GL_CLI_SUPERVISE_H

#include <signal.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/times.h"

struct gl_supervisor {
    pid_t pid;    /* pid of the supervisor */
    pid_t group;  /* pid of the command */
    int to, from; /* pipes; `from` becomes readable when the command has ended */
    bool has_tty; /* the terminal was given to the command */
};

struct gl_supervise_config {
    char **argv;
    const sigset_t *mask; /* the signal mask of the command */
    gl_ms grace_ms;       /* from SIGTERM to SIGKILL, at most */
    gl_ms term_at, kill_at;
};

struct gl_supervise_result {
    int status;      /* as returned by wait() */
    bool is_stopped; /* it was stopped because a deadline passed */
};

gl_ms gl_supervise_now(void);

/* GL_E_NOT_FOUND, GL_E_DENIED: the program does not exist, or cannot be executed. The process must
 * have no other threads. */
int gl_supervise_start(struct gl_supervisor *m, const struct gl_supervise_config *wish,
                       struct gl_why *reterr_why);

/* Extend both deadlines. */
void gl_supervise_extend(struct gl_supervisor *m, gl_ms term_at, gl_ms kill_at);
/* End the command now. */
void gl_supervise_terminate(struct gl_supervisor *m);
/* Forward a signal to the command's process group. */
void gl_supervise_signal(struct gl_supervisor *m, int number);

/* Wait at most this long for the end (-1: no limit). False: the command has not ended. Afterwards
 * the supervisor is gone. */
bool gl_supervise_wait(struct gl_supervisor *m, int timeout_ms, struct gl_supervise_result *ret);

#endif
