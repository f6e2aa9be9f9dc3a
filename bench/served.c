#include "served.h"

#include "httpc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    READY_SECONDS_MAX = 30,
};

static void nap(long ms)
{
    (void)usleep((useconds_t)ms * 1000);
}

/* A port that was free a moment ago. */
static uint16_t free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) < 0) {
        httpc_fail("no port", gl_str_of(strerror(errno)));
    }
    close(fd);
    return ntohs(a.sin_port);
}

static void read_file(const char *path, char *buf, size_t n)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, buf, n - 1) : -1;

    if (got < 0) {
        httpc_fail(path, gl_str_of(strerror(errno)));
    }
    buf[got] = '\0';
    close(fd);
}

static void become(const char *glia, const struct served *s, const char *pools, const char *listen)
{
    char log[600];
    int fd;

    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)snprintf(log, sizeof(log), "%s.log", s->data);
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || dup2(fd, STDERR_FILENO) < 0) {
        _exit(127);
    }
    /* No retention, as in the bench of the core. */
    execl(glia, "glia", "serve", "--data-dir", s->data, "--pools", pools, "--keep-jobs", "0",
          "--keep-for", "0", listen[0] != '\0' ? "--listen" : (char *)NULL, listen, (char *)NULL);
    _exit(127);
}

static void wait_ready(struct served *s)
{
    double until = httpc_now() + READY_SECONDS_MAX;
    char path[600];

    /* Wait for the socket, then for an answer. */
    while (access(s->socket, R_OK) < 0) {
        if (httpc_now() > until || waitpid(s->pid, NULL, WNOHANG) == s->pid) {
            httpc_fail("the node did not start; see", gl_str_of(s->data));
        }
        nap(5);
    }
    if (s->port != 0) {
        (void)snprintf(path, sizeof(path), "%s/token", s->data);
        read_file(path, s->token, sizeof(s->token));
    }
    nap(200); /* let the rest of its startup finish before measuring */
}

void served_start(struct served *s, const char *glia, const char *data, const char *pools,
                  bool with_tcp)
{
    char listen[32] = "";

    *s = (struct served){0};
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)snprintf(s->data, sizeof(s->data), "%s", data);
    (void)snprintf(s->socket, sizeof(s->socket), "%s/node.sock", data);
    if (with_tcp) {
        s->port = free_port();
        (void)snprintf(listen, sizeof(listen), "127.0.0.1:%u", s->port);
    }
    s->pid = fork();
    if (s->pid == 0) {
        become(glia, s, pools, listen);
    }
    wait_ready(s);
}

/* The keeper, then its leftovers. */
static void end_orphans(void)
{
    char path[64], list[64 << 10];

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    for (;;) {
        read_file(path, list, sizeof(list));
        if (list[0] == '\0') {
            return;
        }
        for (char *at = list, *end; *at != '\0'; at = end) {
            long pid = strtol(at, &end, 10);

            if (end == at) {
                break;
            }
            (void)kill((pid_t)pid, SIGKILL);
        }
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
        nap(1);
    }
}

void served_stop(struct served *s)
{
    (void)kill(s->pid, SIGTERM);
    if (waitpid(s->pid, NULL, 0) != s->pid) {
        httpc_fail("waitpid", gl_str_of(strerror(errno)));
    }
    end_orphans();
}

double served_cpu_s(const struct served *s)
{
    char path[64], text[1024];
    const char *at;
    unsigned long user = 0, sys = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)s->pid);
    read_file(path, text, sizeof(text));
    at = strrchr(text, ')');
    if (at == NULL ||
        sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &sys) != 2) {
        httpc_fail(path, gl_str_of(text));
    }
    return (double)(user + sys) / (double)sysconf(_SC_CLK_TCK);
}

double served_rss_mib(const struct served *s)
{
    char path[64], text[256];
    long size = 0, rss = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)s->pid);
    read_file(path, text, sizeof(text));
    if (sscanf(text, "%ld %ld", &size, &rss) != 2) {
        httpc_fail(path, gl_str_of(text));
    }
    return (double)rss * (double)sysconf(_SC_PAGESIZE) / 1048576.0;
}
