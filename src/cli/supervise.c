#include "cli/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"

enum { TERMINATE = -1 };

struct send_order { /* from the starter to the supervisor */
    int64_t term_at, kill_at;
    int32_t number; /* a signal to forward; 0: the deadlines changed; TERMINATE: stop the command */
};

struct child_report { /* from the supervisor to the starter */
    int32_t pid;      /* pid of the command; 0: it has ended, or could not be started */
    int32_t failed;   /* errno, if it could not be started */
    int32_t status;
    int32_t is_stopped;
};

gl_ms gl_supervise_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (gl_ms)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Write all or nothing: both kinds of messages are smaller than PIPE_BUF. */
static bool write_all(int fd, const void *bytes, size_t n)
{
    ssize_t done;

    do {
        done = write(fd, bytes, n);
    } while (done < 0 && errno == EINTR);
    return done == (ssize_t)n;
}

static bool read_all(int fd, void *bytes, size_t n)
{
    ssize_t done;

    do {
        done = read(fd, bytes, n);
    } while (done < 0 && errno == EINTR);
    return done == (ssize_t)n;
}

/* ---- the supervisor ---- */

struct supervised {
    pid_t command;
    int from_us, to_us, children;
    gl_ms term_at, kill_at, grace_ms;
    bool is_termed, is_killed;
};

static void run_command(const struct gl_supervise_config *wish, bool has_tty, int failed)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    int why;

    (void)setpgid(0, 0); /* the supervisor does the same; one of the two is first */
    if (has_tty) {
        (void)tcsetpgrp(STDIN_FILENO, getpid()); /* SIGTTOU is blocked here */
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 1; i < NSIG; i++) {
        if (i != SIGKILL && i != SIGSTOP) {
            (void)sigaction(i, &plain, NULL); /* some signals cannot be changed */
        }
    }
    (void)sigprocmask(SIG_SETMASK, wish->mask, NULL);
    (void)execvp(wish->argv[0], wish->argv);
    why = errno;
    (void)write_all(failed, &why, sizeof(why));
    _exit(127);
}

/* Returns 0 if the command runs, or errno. */
static int spawn(struct supervised *m, const struct gl_supervise_config *wish, bool has_tty)
{
    int failed[2], why = 0;

    if (pipe2(failed, O_CLOEXEC) < 0) {
        return errno;
    }
    m->command = fork();
    if (m->command == 0) {
        run_command(wish, has_tty, failed[1]);
    }
    (void)close(failed[1]);
    if (m->command < 0) {
        why = errno;
    } else {
        (void)setpgid(m->command, m->command);
        (void)read_all(failed[0], &why, sizeof(why)); /* EOF means that exec succeeded */
    }
    (void)close(failed[0]);
    return why;
}

static void check_times(struct supervised *m)
{
    gl_ms now = gl_supervise_now();

    if (!m->is_termed && now >= m->term_at) {
        m->is_termed = true;
        (void)kill(-m->command, SIGTERM);
        (void)kill(-m->command, SIGCONT); /* so that a stopped process gets the signal */
        m->kill_at = now + m->grace_ms < m->kill_at ? now + m->grace_ms : m->kill_at;
    }
    if (m->is_termed && !m->is_killed && now >= m->kill_at) {
        m->is_killed = true;
        (void)kill(-m->command, SIGKILL);
    }
}

/* The starter is gone, or sent garbage: the command must end. */
static void terminate(struct supervised *m)
{
    m->term_at = 0;
    (void)close(m->from_us);
    m->from_us = -1;
}

static void read_order(struct supervised *m)
{
    struct send_order o;

    if (!read_all(m->from_us, &o, sizeof(o))) {
        terminate(m);
    } else if (o.number == TERMINATE) {
        m->term_at = 0;
    } else if (o.number != 0) {
        (void)kill(-m->command, o.number);
    } else if (!m->is_termed) { /* SIGTERM cannot be taken back */
        m->term_at = o.term_at;
        m->kill_at = o.kill_at;
    }
}

/* The command has ended but is not reaped yet, so its group number cannot have been reused. Kill
 * what it left in the group. */
static bool has_ended(const struct supervised *m)
{
    siginfo_t info = {0};

    if (waitid(P_PID, (id_t)m->command, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
        info.si_pid == 0) {
        return false;
    }
    (void)kill(-m->command, SIGKILL);
    return true;
}

static void supervise_loop(struct supervised *m)
{
    struct signalfd_siginfo ignored;

    while (!has_ended(m)) {
        struct pollfd fds[] = {{.fd = m->children, .events = POLLIN},
                               {.fd = m->from_us, .events = POLLIN}};
        gl_ms due = !m->is_termed ? m->term_at : !m->is_killed ? m->kill_at : INT64_MAX;
        gl_ms left = due == INT64_MAX ? 60000 : due - gl_supervise_now();

        left = left < 0 ? 0 : left > 60000 ? 60000 : left + 1;
        if (poll(fds, GL_COUNT(fds), (int)left) > 0) {
            if (fds[0].revents != 0) {
                (void)read_all(m->children, &ignored, sizeof(ignored));
            }
            if (m->from_us >= 0 && fds[1].revents != 0) {
                read_order(m);
            }
        }
        check_times(m);
    }
}

static void supervised(const struct gl_supervise_config *wish, int from_us, int to_us, bool has_tty)
{
    struct supervised m = {.from_us = from_us,
                           .to_us = to_us,
                           .term_at = wish->term_at,
                           .kill_at = wish->kill_at,
                           .grace_ms = wish->grace_ms};
    struct child_report r = {0};
    sigset_t all, child;
    int status = 0;

    /* Ignore signals to our process group: only the clock and the starter count. */
    (void)setpgid(0, 0);
    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    m.children = signalfd(-1, &child, SFD_CLOEXEC);
    r.failed = m.children < 0 ? errno : spawn(&m, wish, has_tty);
    r.pid = r.failed == 0 ? m.command : 0;
    (void)write_all(to_us, &r, sizeof(r)); /* the loop below notices a dead starter */
    if (r.failed != 0) {
        _exit(1);
    }
    (void)close(STDIN_FILENO); /* otherwise readers of the command's output would also wait for the
                                  supervisor */
    (void)close(STDOUT_FILENO);
    supervise_loop(&m);
    (void)waitpid(m.command, &status, 0);
    r = (struct child_report){.status = status, .is_stopped = m.is_termed};
    (void)write_all(to_us, &r, sizeof(r));
    _exit(0);
}

/* ---- the starter ---- */

/* Are we in the foreground of the terminal? */
static bool owns_tty(void)
{
    return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static int close_pipes(struct gl_supervisor *m)
{
    int status;

    (void)close(m->to);
    (void)close(m->from);
    m->to = m->from = -1;
    (void)waitpid(m->pid, &status, 0); /* the command has ended, or ends now */
    return status;
}

static void take_tty_back(const struct gl_supervisor *m)
{
    sigset_t out, before;

    if (!m->has_tty) {
        return;
    }
    sigemptyset(&out);
    sigaddset(&out, SIGTTOU);
    (void)sigprocmask(SIG_BLOCK, &out, &before);
    (void)tcsetpgrp(STDIN_FILENO, getpgrp()); /* the terminal may be gone */
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
}

static int start_error(const char *program, int why, struct gl_why *reterr_why)
{
    return gl_why(reterr_why,
                  why == ENOENT                     ? GL_E_NOT_FOUND
                  : why == EACCES || why == ENOEXEC ? GL_E_DENIED
                                                    : GL_E_IO,
                  "cannot run %s: %s", program, strerror(why));
}

int gl_supervise_start(struct gl_supervisor *m, const struct gl_supervise_config *wish,
                       struct gl_why *reterr_why)
{
    int down[2], up[2];
    struct child_report r = {0};

    if (pipe2(down, O_CLOEXEC) < 0) {
        return gl_why(reterr_why, GL_E_IO, "cannot make a pipe: %s", strerror(errno));
    }
    if (pipe2(up, O_CLOEXEC) < 0) {
        (void)close(down[0]);
        (void)close(down[1]);
        return gl_why(reterr_why, GL_E_IO, "cannot make a pipe: %s", strerror(errno));
    }
    *m = (struct gl_supervisor){.to = down[1], .from = up[0], .has_tty = owns_tty()};
    m->pid = fork();
    if (m->pid == 0) {
        (void)close(down[1]);
        (void)close(up[0]);
        supervised(wish, down[0], up[1], m->has_tty);
    }
    (void)close(down[0]);
    (void)close(up[1]);
    if (m->pid < 0) {
        r.failed = errno;
    } else if (!read_all(m->from, &r, sizeof(r))) {
        r.failed = EIO;
    }
    if (r.failed != 0) {
        (void)close_pipes(m);
        take_tty_back(m);
        return start_error(wish->argv[0], r.failed, reterr_why);
    }
    m->group = r.pid;
    return 0;
}

static void send_order(struct gl_supervisor *m, struct send_order o)
{
    (void)write_all(m->to, &o,
                    sizeof(o)); /* gl_supervise_wait() notices if the supervisor is gone */
}

void gl_supervise_extend(struct gl_supervisor *m, gl_ms term_at, gl_ms kill_at)
{
    send_order(m, (struct send_order){.term_at = term_at, .kill_at = kill_at});
}

void gl_supervise_terminate(struct gl_supervisor *m)
{
    send_order(m, (struct send_order){.number = TERMINATE});
}

void gl_supervise_signal(struct gl_supervisor *m, int number)
{
    send_order(m, (struct send_order){.number = number});
}

bool gl_supervise_wait(struct gl_supervisor *m, int timeout_ms, struct gl_supervise_result *ret)
{
    struct pollfd fd = {.fd = m->from, .events = POLLIN};
    struct child_report r;

    if (poll(&fd, 1, timeout_ms) <= 0) {
        return false;
    }
    if (!read_all(m->from, &r, sizeof(r))) {
        /* The supervisor was killed, which kills the command; we kill what the command started.
         */
        (void)kill(-m->group, SIGKILL);
        r = (struct child_report){.status = SIGKILL, .is_stopped = 1};
    }
    (void)close_pipes(m);
    take_tty_back(m);
    *ret = (struct gl_supervise_result){.status = r.status, .is_stopped = r.is_stopped != 0};
    return true;
}
