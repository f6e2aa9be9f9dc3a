/* glia-keeper --data-dir DIR [--idle-ms N] [--ready-fd N] [--foreground]
 *
 * Started by a node, not by hand. It drops everything it was started with: session, folder,
 * descriptors (above all the lock of the data folder, which must end with the node). Once it
 * accepts connections it writes "ok" to the ready descriptor, or else the reason for the
 * failure. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "keeper/keeper.h"
#include "os/fs.h"
#include "os/harden.h"

enum { LOG_BYTES_MAX = 1 << 20 };

struct options {
    struct gl_keeper_config config;
    int ready_fd; /* negative: none */
    bool foreground;
};

static int usage(void)
{
    (void)fprintf(stderr,
                  "usage: glia-keeper --data-dir DIR [--idle-ms N] [--ready-fd N] [--foreground]\n"
                  "Runs the steps of a Glia node; started by `glia` when needed.\n");
    return 2;
}

static bool read_number(const char *text, int64_t max, int64_t *ret)
{
    return text != NULL && gl_str_i64(gl_str_of(text), ret) && *ret >= 0 && *ret <= max;
}

static bool read_options(struct options *o, char **argv)
{
    int64_t number = 0;
    *o = (struct options){.config = {.idle_ms = GL_KEEPER_IDLE_MS}, .ready_fd = -1};
    for (char **a = argv + 1; *a != NULL; a++) {
        if (strcmp(*a, "--foreground") == 0) {
            o->foreground = true;
        } else if (strcmp(*a, "--data-dir") == 0 && a[1] != NULL) {
            o->config.data_dir = *++a;
        } else if (strcmp(*a, "--idle-ms") == 0 && read_number(a[1], INT32_MAX, &number)) {
            o->config.idle_ms = number;
            a++;
        } else if (strcmp(*a, "--ready-fd") == 0 && read_number(a[1], 1023, &number)) {
            o->ready_fd = (int)number;
            a++;
        } else {
            return false;
        }
    }
    return o->config.data_dir != NULL && o->config.data_dir[0] == '/' &&
           strlen(o->config.data_dir) < 3500;
}

/* Keep 0, 1, 2 and the ready descriptor. */
static void close_others(int kept)
{
    if (kept > 2) {
        (void)fcntl(kept, F_SETFD, FD_CLOEXEC);
        if (kept > 3) {
            (void)close_range(3, (unsigned)kept - 1, 0);
        }
        (void)close_range((unsigned)kept + 1, ~0u, 0);
    } else {
        (void)close_range(3, ~0u, 0);
    }
}

static void reset_signals(void)
{
    sigset_t none;
    for (int sig = 1; sig < NSIG; sig++) {
        (void)signal(sig, SIG_DFL); /* SIGKILL and SIGSTOP fail, and need no reset */
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* stderr becomes the keeper's log, which is truncated when it is too large. */
static void open_log(const char *data_dir)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const char *path = gl_str_fmt(&a, "%s/keeper/log", data_dir).p;
    GL_CLEANUP(gl_fs_closep) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    GL_CLEANUP(gl_fs_closep)
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > LOG_BYTES_MAX) {
        (void)!ftruncate(fd, 0); /* a log that stays too large does no harm */
    }
    if (null_fd >= 0) {
        (void)dup2(null_fd, 0);
        (void)dup2(null_fd, 1);
        (void)dup2(fd >= 0 ? fd : null_fd, 2);
    }
}

/* A second fork, so that the keeper can never acquire a controlling terminal again. */
static int become_daemon(void)
{
    (void)setsid(); /* fails only if we lead a session already */
    pid_t pid = fork();
    if (pid < 0) {
        return -1;
    }
    if (pid > 0) {
        _exit(0);
    }
    return 0;
}

static void report(int fd, const char *text)
{
    if (fd >= 0) {
        (void)!write(fd, text, strlen(text)); /* a node that is gone does not need it */
        (void)close(fd);
    }
}

int main(int argc, char **argv)
{
    struct options o;
    struct gl_why why = {0};
    struct gl_keeper keeper;
    if (argc < 2 || !read_options(&o, argv)) {
        return usage();
    }
    gl_harden_memory(); /* it will hold the secrets of steps */
    close_others(o.ready_fd);
    reset_signals();
    (void)umask(022);
    if (chdir("/") < 0 || (!o.foreground && become_daemon() < 0)) {
        (void)fprintf(stderr, "glia-keeper: cannot become a daemon: %s\n", strerror(errno));
        return 1;
    }
    o.config.locked = o.foreground ? NULL : open_log;
    int r = gl_keeper_open(&keeper, &o.config, &why);
    if (r < 0) {
        report(o.ready_fd, why.text);
        (void)fprintf(stderr, "glia-keeper: %s\n", why.text);
        gl_keeper_close(&keeper);
        return 1;
    }
    report(o.ready_fd, "ok");
    gl_keeper_run(&keeper);
    gl_keeper_close(&keeper);
    return 0;
}
