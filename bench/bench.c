/* bench.c - throughput of one node on a real store, with trivial work.
 *
 *   bench [--data DIR] [--keeper PATH] [--figures FILE] [--quick] [--percent N] [--record]
 *         [--only NAME] [--store URL] [--nodes N]
 *
 * Every figure drives the production node in this process, over SQLite with synchronous=FULL or the
 * store of the URL. The comparison that a figure needs (the disk's own syncs, a bare posix_spawn
 * loop) is measured in the same run. Figures are also written as "name value" to FILE, from which
 * bench/table and bench/stores make tables. */

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_node.h"

extern char **environ;

enum { QUICK_PERCENT = 5, NODES_MAX = 64 };

static long rss_bytes(void)
{
    long size = 0, rss = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (f != NULL) {
        if (fscanf(f, "%ld %ld", &size, &rss) != 2) {
            rss = 0;
        }
        fclose(f);
    }
    return rss * sysconf(_SC_PAGESIZE);
}

static void figure(const struct bench *b, const char *name, double value)
{
    FILE *f = b->figures != NULL ? fopen(b->figures, "ae") : NULL;

    if (f != NULL) {
        fprintf(f, "%s%s %.6g\n", b->record ? "recorded_" : "", name, value);
        fclose(f);
    }
}

static size_t part_of(const struct bench *b, size_t full)
{
    return full * b->percent / 100;
}

static double cpu_s(void)
{
    struct rusage u;

    (void)getrusage(RUSAGE_SELF, &u); /* cannot fail */
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* Run a load and record the cost per step: CPU time of this process and network traffic. */
static double run_counted(struct bench *b, const char *name, gl_str flow, size_t jobs,
                          size_t window, size_t steps)
{
    struct bench_wire before = bench_wire(), after;
    double cpu = cpu_s(), seconds = bench_run(b, flow, jobs, window), n = (double)(jobs * steps);
    char key[64];

    cpu = cpu_s() - cpu;
    after = bench_wire();
    const struct {
        const char *what;
        double value;
    } costs[] = {{"cpu_us", cpu * 1e6 / n},
                 {"out_bytes", (after.bytes_out - before.bytes_out) / n},
                 {"in_bytes", (after.bytes_in - before.bytes_in) / n},
                 {"sends", (after.sends - before.sends) / n}};
    for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
        (void)snprintf(key, sizeof(key), "%s_%s", name, costs[i].what);
        figure(b, key, costs[i].value);
    }
    return seconds;
}

/* ---- workloads ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void bench_jobs(struct bench *b)
{
    size_t n = part_of(b, 100000);
    double t;

    bench_open(b, 1024, 0);
    (void)bench_run(b, bench_one_step(b, "\"noop\":true"), n / 10, 256); /* warm */
    t = run_counted(b, "jobs", bench_one_step(b, "\"noop\":true"), n, 512, 1);
    figure(b, "jobs_n", (double)(n + n / 10));
    printf("one-step jobs        %10.0f jobs/s   (%zu jobs, 512 outstanding)\n", (double)n / t, n);
    figure(b, "jobs", (double)n / t);
    bench_close(b);
}

static void bench_chains(struct bench *b)
{
    size_t n = part_of(b, 10000);
    double t;

    bench_open(b, 1024, 0);
    t = run_counted(b, "chains", bench_chain(b, 10), n, 512, 10);
    figure(b, "chains_n", (double)n * 10);
    printf("ten-step chains      %10.0f steps/s  (%zu jobs, 512 outstanding)\n", (double)n * 10 / t,
           n);
    figure(b, "chains", (double)n * 10 / t);
    bench_close(b);
}

static void bench_fan(struct bench *b)
{
    size_t n = part_of(b, 500);
    double t;

    bench_open(b, 1024, 0);
    t = run_counted(b, "fan", bench_fan_out(b, 100), n, 16, 102);
    figure(b, "fan_n", (double)n * 102);
    printf("100-way fan and join %10.0f steps/s  (%zu jobs, 16 outstanding)\n", (double)n * 102 / t,
           n);
    figure(b, "fan", (double)n * 102 / t);
    bench_close(b);
}

static void bench_latency(struct bench *b)
{
    size_t n = part_of(b, 5000);
    double t;

    bench_open(b, 1024, 0);
    b->began = calloc(n, sizeof(double));
    b->took = calloc(n, sizeof(double));
    t = run_counted(b, "single", bench_one_step(b, "\"noop\":true"), n, 1, 1);
    figure(b, "single_n", (double)n);
    qsort(b->took, n, sizeof(double), by_value);
    printf("single job latency   p50 %.3f ms  p99 %.3f ms  (%zu jobs, one at a time)\n",
           b->took[n / 2] * 1e3, b->took[n * 99 / 100] * 1e3, n);
    figure(b, "p50_ms", b->took[n / 2] * 1e3);
    figure(b, "p99_ms", b->took[n * 99 / 100] * 1e3);
    figure(b, "our_syncs", 2 * (double)n / t);
    /* Two transactions per job, each in a group of its own: one sync each. */
    printf("our syncs meanwhile  %10.0f syncs/s\n", 2 * (double)n / t);
    free(b->began);
    free(b->took);
    b->began = b->took = NULL;
    bench_close(b);
}

/* Jobs that wait for slots, which never come because the executor stays down. */
static void bench_waiting(struct bench *b)
{
    size_t n = part_of(b, 200000) / 1000 * 1000;
    long before = 0, after;

    b->quiet = true;
    bench_open(b, 1, 64);
    b->flow = bench_one_step(b, "\"noop\":true");
    b->submitted = b->answered = 0;
    for (size_t i = 0; i < n + 10000; i += 1000) {
        if (i == 10000) {
            before = rss_bytes(); /* caches are warm */
        }
        for (size_t k = 0; k < 1000; k++) {
            bench_submit(b);
        }
        gl_loop_run(b->loop);
    }
    after = rss_bytes();
    printf("memory per waiting job %8.0f bytes    (%zu jobs queued for one slot, 64 hot)\n",
           (double)(after - before) / (double)n, n);
    figure(b, "waiting_bytes", (double)(after - before) / (double)n);
    fflush(stdout);
    _exit(0); /* in a child process: waiting jobs are abandoned with it */
}

static void bench_start(struct bench *b)
{
    double t = bench_now();

    bench_open(b, 8, 0);
    figure(b, "ready_ms", (bench_now() - t) * 1e3);
    printf("start to ready       %10.1f ms\n", (bench_now() - t) * 1e3);
    printf("idle RSS             %10.1f MiB\n", (double)rss_bytes() / 1048576.0);
    bench_close(b);
}

static void bench_disk(struct bench *b)
{
    char path[512];
    int fd;
    double t;
    int n = (int)part_of(b, 3000);
    char block[4096] = {0};

    (void)snprintf(path, sizeof(path), "%s/sync-probe", b->data);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    t = bench_now();
    for (int i = 0; i < n; i++) {
        if (pwrite(fd, block, sizeof(block), (off_t)i * 4096) != 4096 || fdatasync(fd) != 0) {
            bench_fail("sync probe", NULL);
        }
    }
    t = bench_now() - t;
    printf("the disk's own syncs %10.0f syncs/s  (4 KiB appended, fdatasync)\n", n / t);
    figure(b, "disk_syncs", n / t);
    close(fd);
    unlink(path);
}

static void bare_spawns(struct bench *b, size_t total, size_t window)
{
    char *argv[] = {(char *)"/bin/true", NULL};
    size_t running = 0;
    double t = bench_now();
    pid_t pid;

    for (size_t i = 0; i < total; i++) {
        if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0) {
            bench_fail("posix_spawn", NULL);
        }
        if (++running == window) {
            waitpid(-1, NULL, 0);
            running--;
        }
    }
    while (running-- > 0) {
        waitpid(-1, NULL, 0);
    }
    t = bench_now() - t;
    printf("bare posix_spawn     %10.0f /s       (/bin/true, %zu at a time)\n", (double)total / t,
           window);
    figure(b, window == 8 ? "bare_8" : "bare_32", (double)total / t);
}

static void spawn_at(struct bench *b, size_t window)
{
    size_t n = part_of(b, 5000);
    double t;

    bare_spawns(b, n, window);
    b->with_keeper = true;
    bench_open(b, (uint32_t)window, 0);
    t = bench_run(b, bench_one_step(b, "\"run\":[\"/bin/true\"]"), n, window * 4);
    printf("spawned steps        %10.0f steps/s  (/bin/true, %zu slots)\n", (double)n / t, window);
    figure(b, window == 8 ? "spawned_8" : "spawned_32", (double)n / t);
    bench_close(b);
}

static void bench_spawn(struct bench *b)
{
    spawn_at(b, 8);
    spawn_at(b, 32);
}

/* ---- several nodes on one store ---- */

/* All nodes are ready before any begins: one byte each up, then one each down. */
static void wait_byte(int fd)
{
    char byte;

    if (read(fd, &byte, 1) != 1) {
        bench_fail("a node has gone", NULL);
    }
}

static void send_byte(int fd)
{
    if (write(fd, "", 1) != 1) {
        bench_fail("a pipe", NULL);
    }
}

static _Noreturn void be_node(struct bench *b, unsigned number, size_t jobs, int up, int down)
{
    char name[32], data[700];
    gl_str flow;

    (void)snprintf(name, sizeof(name), "bench-%u", number);
    (void)snprintf(data, sizeof(data), "%s/%s", b->data, name);
    (void)mkdir(data, 0700);
    b->name = name;
    b->data = data;
    bench_open(b, 1024, 0);
    flow = bench_one_step(b, "\"noop\":true");
    (void)bench_run(b, flow, jobs / 10, 256); /* warm */
    send_byte(up);
    wait_byte(down);
    (void)bench_run(b, flow, jobs, 512 / b->nodes);
    send_byte(up);
    bench_close(b);
    fflush(stdout);
    _exit(0);
}

static void wait_node(void)
{
    struct gl_why why;
    int status = 0;

    if (wait(&status) < 0 || status != 0) {
        (void)gl_why(&why, GL_E_STATE, "%s %d", WIFSIGNALED(status) ? "signal" : "exit status",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        bench_fail("a node did not end well", &why);
    }
}

static void bench_nodes(struct bench *b)
{
    size_t n = part_of(b, 100000) / b->nodes;
    int up[2], down[2];
    char name[32];
    double t;

    if (pipe2(up, O_CLOEXEC) != 0 || pipe2(down, O_CLOEXEC) != 0) {
        bench_fail("a pipe", NULL);
    }
    for (unsigned i = 0; i < b->nodes; i++) {
        if (fork() == 0) {
            close(up[0]);
            close(down[1]);
            be_node(b, i + 1, n, up[1], down[0]);
        }
    }
    close(up[1]); /* so that the end of all of them is noticed */
    for (unsigned i = 0; i < b->nodes; i++) {
        wait_byte(up[0]);
    }
    t = bench_now();
    for (unsigned i = 0; i < b->nodes; i++) {
        send_byte(down[1]);
    }
    for (unsigned i = 0; i < b->nodes; i++) {
        wait_byte(up[0]);
    }
    t = bench_now() - t;
    for (unsigned i = 0; i < b->nodes; i++) {
        wait_node();
    }
    printf("one-step jobs        %10.0f jobs/s   (%u nodes on one store, 512 outstanding in all)\n",
           (double)(n * b->nodes) / t, b->nodes);
    (void)snprintf(name, sizeof(name), "nodes_%u", b->nodes);
    figure(b, name, (double)(n * b->nodes) / t);
}

/* ---- agents ---- */

enum { PAIRS = 256, AGENTS_PER_JOB = 100000 };

static void bench_messages(struct bench *b)
{
    unsigned hops = (unsigned)part_of(b, 1000);
    size_t jobs = 4, messages = jobs * PAIRS * (size_t)hops;
    double t;

    b->with_modules = true;
    bench_open(b, 4096, 0);
    t = run_counted(b, "messages", bench_balls(b, PAIRS / 4, hops * 4), jobs, jobs,
                    messages / jobs);
    printf("messages             %10.0f messages/s (%zu, %d agents)\n", (double)messages / t,
           messages, PAIRS * 2);
    figure(b, "messages", (double)messages / t);
    bench_close(b);
}

static void bench_scattered(struct bench *b)
{
    size_t jobs = part_of(b, 40);
    double t;

    b->with_modules = true;
    bench_open(b, 4096, 0);
    t = run_counted(b, "scatter", bench_scatter(b, 1000), jobs, 4, 1002);
    printf("1,000-way scatter    %10.0f steps/s  (%zu jobs, 4 outstanding)\n",
           (double)(jobs * 1002) / t, jobs);
    figure(b, "scatter", (double)(jobs * 1002) / t);
    bench_close(b);
}

static size_t resident_kib(void)
{
    char line[200];
    size_t kib = 0;
    FILE *f = fopen("/proc/self/status", "r");

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        if (sscanf(line, "VmRSS: %zu", &kib) == 1) {
            break;
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return kib;
}

/* All have handled a message once nothing is in progress. */
static void bench_many_agents(struct bench *b)
{
    size_t jobs = part_of(b, 10);
    double t = bench_now();

    b->with_modules = true;
    bench_open(b, 4096, 0);
    b->flow = bench_idlers(b, AGENTS_PER_JOB);
    for (size_t i = 0; i < jobs; i++) {
        bench_submit(b);
    }
    bench_until_quiet(b);
    printf("idle agents          %10zu           (%zu MiB resident after a message each, %.0f s)\n",
           jobs * AGENTS_PER_JOB, resident_kib() / 1024, bench_now() - t);
    figure(b, "idle_agents", (double)(jobs * AGENTS_PER_JOB));
    figure(b, "idle_agents_mib", (double)(resident_kib() / 1024));
    bench_close(b);
}

/* Each workload has its own process and folder, so figures do not depend on each other. */
static void in_child(struct bench *b, const char *name, void (*fn)(struct bench *b),
                     const char *only)
{
    char data[600];
    pid_t pid;
    int status;

    if (only != NULL && strcmp(only, name) != 0) {
        return;
    }
    fflush(stdout);
    (void)snprintf(data, sizeof(data), "%s/%s", b->data, name);
    (void)mkdir(data, 0700);
    pid = fork();
    if (pid == 0) {
        b->data = data;
        fn(b);
        fflush(stdout);
        _exit(0);
    }
    if (waitpid(pid, &status, 0) != pid || status != 0) {
        fprintf(stderr, "bench: %s failed\n", name);
        exit(1);
    }
}

static int usage(void)
{
    fprintf(stderr,
            "usage: bench [--data DIR] [--keeper PATH] [--figures FILE] [--quick] [--percent N]\n"
            "             [--record] [--only NAME] [--store URL] [--nodes N]\n");
    return 2;
}

/* An option with a value, if it is one. */
static bool take_option(struct bench *b, const char **only, const char *name, const char *value)
{
    const struct {
        const char *name;
        const char **text;
        unsigned *number;
    } options[] = {
        {"--data", &b->data, NULL},     {"--store", &b->store_url, NULL},
        {"--keeper", &b->keeper, NULL}, {"--figures", &b->figures, NULL},
        {"--only", only, NULL},         {"--percent", NULL, &b->percent},
        {"--nodes", NULL, &b->nodes},   {"--modules", &b->modules, NULL},
    };

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (strcmp(name, options[i].name) == 0 && value != NULL) {
            if (options[i].text != NULL) {
                *options[i].text = value;
            } else {
                *options[i].number = (unsigned)strtoul(value, NULL, 10);
            }
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    struct bench b = {
        .data = "bench-data", .store_url = "", .name = "bench", .percent = 100, .nodes = 1};
    const char *only = NULL;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            b.percent = QUICK_PERCENT;
        } else if (strcmp(argv[i], "--record") == 0) {
            b.record = true;
        } else if (take_option(&b, &only, argv[i], argv[i + 1])) {
            i++;
        } else {
            return usage();
        }
    }
    if (b.percent == 0 || b.percent > 1000 || b.nodes == 0 || b.nodes > NODES_MAX) {
        return usage();
    }
    (void)mkdir(b.data, 0700);
    in_child(&b, "disk", bench_disk, only);
    in_child(&b, "start", bench_start, only);
    in_child(&b, "jobs", bench_jobs, only);
    in_child(&b, "chains", bench_chains, only);
    in_child(&b, "fan", bench_fan, only);
    in_child(&b, "latency", bench_latency, only);
    in_child(&b, "waiting", bench_waiting, only);
    in_child(&b, "spawn", bench_spawn, only);
    if (b.modules != NULL) {
        in_child(&b, "messages", bench_messages, only);
        in_child(&b, "scatter", bench_scattered, only);
        in_child(&b, "agents", bench_many_agents, only);
    }
    if (only != NULL) { /* for a shared store */
        in_child(&b, "nodes", bench_nodes, only);
    }
    return 0;
}
