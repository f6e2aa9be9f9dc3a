#include "cli/minder.h"

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

enum { FORBID = -1 };

struct order { /* from us to the minder */
    int64_t term_at, kill_at;
    int32_t number; /* a signal to pass on; 0: the times are meant; FORBID: its time is over */
};

struct report {     /* from the minder to us */
    int32_t pid;    /* of the command; 0: it has ended, or could not be started */
    int32_t failed; /* errno, if it could not be started */
    int32_t status;
    int32_t is_stopped;
};

gl_ms gl_minder_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (gl_ms)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* All of it or nothing: both kinds are smaller than what a pipe takes at once. */
static bool put(int fd, const void *bytes, size_t n)
{
    ssize_t done;

    do {
        done = write(fd, bytes, n);
    } while (done < 0 && errno == EINTR);
    return done == (ssize_t)n;
}

static bool get(int fd, void *bytes, size_t n)
{
    ssize_t done;

    do {
        done = read(fd, bytes, n);
    } while (done < 0 && errno == EINTR);
    return done == (ssize_t)n;
}

/* ---- the minder ---- */

struct mind {
    pid_t command;
    int from_us, to_us, children;
    gl_ms term_at, kill_at, grace_ms;
    bool is_termed, is_killed;
};

static void run_command(const struct gl_minder_wish *wish, bool has_tty, int failed)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    int why;

    (void)setpgid(0, 0); /* the minder does so, too: whoever comes first */
    if (has_tty) {
        (void)tcsetpgrp(STDIN_FILENO, getpid()); /* SIGTTOU is blocked here */
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 1; i < NSIG; i++) {
        if (i != SIGKILL && i != SIGSTOP) {
            (void)sigaction(i, &plain, NULL); /* some numbers are not ours to set */
        }
    }
    (void)sigprocmask(SIG_SETMASK, wish->mask, NULL);
    (void)execvp(wish->argv[0], wish->argv);
    why = errno;
    (void)put(failed, &why, sizeof(why));
    _exit(127);
}

/* The command runs, or `errno` says why it does not. */
static int spawn(struct mind *m, const struct gl_minder_wish *wish, bool has_tty)
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
        (void)get(failed[0], &why, sizeof(why)); /* nothing comes if it was executed */
    }
    (void)close(failed[0]);
    return why;
}

static void check_times(struct mind *m)
{
    gl_ms now = gl_minder_now();

    if (!m->is_termed && now >= m->term_at) {
        m->is_termed = true;
        (void)kill(-m->command, SIGTERM);
        (void)kill(-m->command, SIGCONT); /* one that is stopped shall hear it */
        m->kill_at = now + m->grace_ms < m->kill_at ? now + m->grace_ms : m->kill_at;
    }
    if (m->is_termed && !m->is_killed && now >= m->kill_at) {
        m->is_killed = true;
        (void)kill(-m->command, SIGKILL);
    }
}

/* Nobody is there any more, or what came makes no sense: the command must end. */
static void stop(struct mind *m)
{
    m->term_at = 0;
    (void)close(m->from_us);
    m->from_us = -1;
}

static void hear(struct mind *m)
{
    struct order o;

    if (!get(m->from_us, &o, sizeof(o))) {
        stop(m);
    } else if (o.number == FORBID) {
        m->term_at = 0;
    } else if (o.number != 0) {
        (void)kill(-m->command, o.number);
    } else if (!m->is_termed) { /* what has been told to end is not told to go on */
        m->term_at = o.term_at;
        m->kill_at = o.kill_at;
    }
}

/* It has ended, but nobody has taken note: so the number of its group is still its own. What it has
 * left in it ends, too. */
static bool has_ended(const struct mind *m)
{
    siginfo_t info = {0};

    if (waitid(P_PID, (id_t)m->command, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
        info.si_pid == 0) {
        return false;
    }
    (void)kill(-m->command, SIGKILL);
    return true;
}

static void watch(struct mind *m)
{
    struct signalfd_siginfo ignored;

    while (!has_ended(m)) {
        struct pollfd fds[] = {{.fd = m->children, .events = POLLIN},
                               {.fd = m->from_us, .events = POLLIN}};
        gl_ms due = !m->is_termed ? m->term_at : !m->is_killed ? m->kill_at : INT64_MAX;
        gl_ms left = due == INT64_MAX ? 60000 : due - gl_minder_now();

        left = left < 0 ? 0 : left > 60000 ? 60000 : left + 1;
        if (poll(fds, GL_COUNT(fds), (int)left) > 0) {
            if (fds[0].revents != 0) {
                (void)get(m->children, &ignored, sizeof(ignored));
            }
            if (m->from_us >= 0 && fds[1].revents != 0) {
                hear(m);
            }
        }
        check_times(m);
    }
}

static void mind(const struct gl_minder_wish *wish, int from_us, int to_us, bool has_tty)
{
    struct mind m = {.from_us = from_us,
                     .to_us = to_us,
                     .term_at = wish->term_at,
                     .kill_at = wish->kill_at,
                     .grace_ms = wish->grace_ms};
    struct report r = {0};
    sigset_t all, child;
    int status = 0;

    /* What is sent to our group is not for us: only the clock, and our parent, tell us. */
    (void)setpgid(0, 0);
    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    m.children = signalfd(-1, &child, SFD_CLOEXEC);
    r.failed = m.children < 0 ? errno : spawn(&m, wish, has_tty);
    r.pid = r.failed == 0 ? m.command : 0;
    (void)put(to_us, &r, sizeof(r)); /* if nobody is there, that is noticed below */
    if (r.failed != 0) {
        _exit(1);
    }
    (void)close(STDIN_FILENO); /* else who reads what the command writes would wait for us */
    (void)close(STDOUT_FILENO);
    watch(&m);
    (void)waitpid(m.command, &status, 0);
    r = (struct report){.status = status, .is_stopped = m.is_termed};
    (void)put(to_us, &r, sizeof(r));
    _exit(0);
}

/* ---- us ---- */

/* Is the terminal ours to give? */
static bool owns_tty(void)
{
    return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static int give_up(struct gl_minder *m)
{
    int status;

    (void)close(m->to);
    (void)close(m->from);
    m->to = m->from = -1;
    (void)waitpid(m->pid, &status, 0); /* it has ended, or ends now */
    return status;
}

static void take_tty_back(const struct gl_minder *m)
{
    sigset_t out, before;

    if (!m->has_tty) {
        return;
    }
    sigemptyset(&out);
    sigaddset(&out, SIGTTOU);
    (void)sigprocmask(SIG_BLOCK, &out, &before);
    (void)tcsetpgrp(STDIN_FILENO, getpgrp()); /* it may have gone away */
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
}

static int cannot(const char *program, int why, struct gl_why *reterr_why)
{
    return gl_why(reterr_why,
                  why == ENOENT                     ? GL_E_NOT_FOUND
                  : why == EACCES || why == ENOEXEC ? GL_E_DENIED
                                                    : GL_E_IO,
                  "cannot run %s: %s", program, strerror(why));
}

int gl_minder_start(struct gl_minder *m, const struct gl_minder_wish *wish,
                    struct gl_why *reterr_why)
{
    int down[2], up[2];
    struct report r = {0};

    if (pipe2(down, O_CLOEXEC) < 0) {
        return gl_why(reterr_why, GL_E_IO, "cannot make a pipe: %s", strerror(errno));
    }
    if (pipe2(up, O_CLOEXEC) < 0) {
        (void)close(down[0]);
        (void)close(down[1]);
        return gl_why(reterr_why, GL_E_IO, "cannot make a pipe: %s", strerror(errno));
    }
    *m = (struct gl_minder){.to = down[1], .from = up[0], .has_tty = owns_tty()};
    m->pid = fork();
    if (m->pid == 0) {
        (void)close(down[1]);
        (void)close(up[0]);
        mind(wish, down[0], up[1], m->has_tty);
    }
    (void)close(down[0]);
    (void)close(up[1]);
    if (m->pid < 0) {
        r.failed = errno;
    } else if (!get(m->from, &r, sizeof(r))) {
        r.failed = EIO;
    }
    if (r.failed != 0) {
        (void)give_up(m);
        take_tty_back(m);
        return cannot(wish->argv[0], r.failed, reterr_why);
    }
    m->group = r.pid;
    return 0;
}

static void order(struct gl_minder *m, struct order o)
{
    (void)put(m->to, &o, sizeof(o)); /* a minder that is gone is noticed by gl_minder_wait() */
}

void gl_minder_allow(struct gl_minder *m, gl_ms term_at, gl_ms kill_at)
{
    order(m, (struct order){.term_at = term_at, .kill_at = kill_at});
}

void gl_minder_forbid(struct gl_minder *m)
{
    order(m, (struct order){.number = FORBID});
}

void gl_minder_signal(struct gl_minder *m, int number)
{
    order(m, (struct order){.number = number});
}

bool gl_minder_wait(struct gl_minder *m, int timeout_ms, struct gl_minder_end *ret)
{
    struct pollfd fd = {.fd = m->from, .events = POLLIN};
    struct report r;

    if (poll(&fd, 1, timeout_ms) <= 0) {
        return false;
    }
    if (!get(m->from, &r, sizeof(r))) {
        /* Somebody killed the minder. The command gets SIGKILL by that; what it started, by us. */
        (void)kill(-m->group, SIGKILL);
        r = (struct report){.status = SIGKILL, .is_stopped = 1};
    }
    (void)give_up(m);
    take_tty_back(m);
    *ret = (struct gl_minder_end){.status = r.status, .is_stopped = r.is_stopped != 0};
    return true;
}
