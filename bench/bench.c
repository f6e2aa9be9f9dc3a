/* bench.c - what one node does in a second, on the real store, with nothing to run.
 *
 *   bench [--data DIR] [--keeper PATH] [--figures FILE] [--quick] [--record] [--only NAME]
 *
 * Every figure is the production node over SQLite with synchronous=FULL, driven in this process.
 * The comparison that a figure needs (the disk's own syncs, a bare posix_spawn loop) is measured in
 * the same run. Figures also go as "name value" into FILE, from which bench/table makes a table. */
#define _GNU_SOURCE

#include "base/mem.h"
#include "core/core.h"
#include "exec/keeper_exec.h"
#include "exec/noop_exec.h"
#include "model/flow.h"
#include "node/node.h"
#include "os/loop.h"
#include "os/random.h"
#include "os/recorder.h"
#include "stores.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

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

#define RECORD_BYTES (32u << 20) /* as a node has it */

struct bench {
    const char *store_url; /* "" : SQLite in the data folder */
    const char *data;
    const char *keeper; /* path of glia-keeper */
    const char *figures;
    bool quick, record;
    struct gl_recorder *recorder;
    struct gl_loop *loop;
    struct gl_store *store;
    struct gl_exec *exec;
    struct gl_node *node;
    struct gl_trace trace;
    struct gl_entropy entropy;
    bool with_keeper, quiet; /* quiet: the executor never comes up, so everything waits for slots */

    /* The workload under way. */
    gl_str flow;
    size_t total, window, submitted, answered, ended;
    double *began, *took; /* per job, for latencies; NULL: not wanted */
    struct gl_loop_task task;
    bool refilling;
    struct gl_arena arena;
};

struct ticket {
    struct gl_request rq;
    struct bench *b;
};

static void fail(const char *what, const struct gl_why *why)
{
    fprintf(stderr, "bench: %s: %s\n", what, why != NULL ? why->text : "");
    exit(1);
}

static void figure(const struct bench *b, const char *name, double value)
{
    FILE *f = b->figures != NULL ? fopen(b->figures, "ae") : NULL;

    if (f != NULL) {
        fprintf(f, "%s%s %.6g\n", b->record ? "recorded_" : "", name, value);
        fclose(f);
    }
}

/* ---- one node ---- */

static void on_submitted(struct gl_request *rq)
{
    struct ticket *t = rq->owner;

    if (rq->code != 0) {
        fail("submit", &rq->why);
    }
    if (++t->b->answered == t->b->submitted && t->b->quiet) {
        gl_loop_stop(t->b->loop);
    }
    free(t);
}

static void submit_one(struct bench *b)
{
    struct ticket *t = calloc(1, sizeof(*t));

    t->b = b;
    t->rq = (struct gl_request){.verb = GL_VERB_SUBMIT,
                                .context = GL_S("default"),
                                .flow = b->flow,
                                .done = on_submitted,
                                .owner = t};
    if (b->began != NULL) {
        b->began[b->submitted] = now_s();
    }
    b->submitted++;
    gl_node_request(b->node, &t->rq);
}

/* Jobs are submitted from the loop, never from inside the node's own callback. */
static void refill(struct gl_loop_task *task)
{
    struct bench *b = task->owner;

    b->refilling = false;
    while (b->submitted < b->total && b->submitted - b->ended < b->window) {
        submit_one(b);
    }
    if (b->ended == b->total) {
        gl_loop_stop(b->loop);
    }
}

static void post_refill(struct bench *b)
{
    if (!b->refilling) {
        b->refilling = true;
        b->task = (struct gl_loop_task){.run = refill, .owner = b};
        gl_loop_post(b->loop, &b->task);
    }
}

static void on_ended(void *owner, gl_str job)
{
    struct bench *b = owner;

    (void)job;
    if (b->took != NULL) { /* one at a time: the order is known */
        b->took[b->ended] = now_s() - b->began[b->ended];
    }
    b->ended++;
    post_refill(b);
}

static void on_ready(void *owner)
{
    struct bench *b = owner;

    gl_loop_stop(b->loop);
}

static void on_session(void *owner, uint64_t incarnation)
{
    struct bench *b = owner;

    if (b->with_keeper) {
        gl_keeper_exec_connect(b->exec, incarnation);
    } else if (b->quiet) {
        gl_loop_stop(b->loop);
    }
}

static void on_closed(void *owner)
{
    gl_loop_stop(((struct bench *)owner)->loop);
}

static void on_quiet(void *owner, gl_str epoch)
{
    (void)owner;
    (void)epoch;
}

static void node_open(struct bench *b, uint32_t slots, uint32_t hot)
{
    struct gl_why why;
    char folder[512];
    struct gl_stores_config config = {.url = b->store_url, .data = b->data};
    struct gl_pool_config pool = {.name = GL_S("default"), .slots = slots};
    struct gl_node_config node = {.name = GL_S("bench"),
                                  .pools = &pool,
                                  .pools_n = 1,
                                  .hot_jobs_max = hot,
                                  .trace = &b->trace,
                                  .on_ready = on_ready,
                                  .on_session = on_session,
                                  .on_ended = on_ended,
                                  .owner = b};
    struct gl_node_ports ports = {0};
    struct gl_exec_events events;
    struct gl_keeper_exec_config keeper = {.data_dir = b->data, .keeper_path = b->keeper};
    struct gl_noop_exec_config noop = {0};

    if (gl_loop_new(&b->loop, &why) != 0 ||
        gl_stores_open(&b->store, &config, b->loop, &why) != 0) {
        fail("open", &why);
    }
    b->entropy = gl_random_entropy();
    ports.store = b->store;
    ports.clock = gl_loop_clock(b->loop);
    ports.entropy = &b->entropy;
    if (b->record) {
        (void)snprintf(folder, sizeof(folder), "%s/" GL_RECORDER_FOLDER, b->data);
        if (gl_recorder_open(&b->recorder, folder, RECORD_BYTES, &why) != 0) {
            fail("recorder", &why);
        }
        ports.record = gl_recorder_port(b->recorder);
    }
    b->node = gl_node_new(&node, &ports);
    events = gl_node_exec_events(b->node);
    if (b->quiet) {
        events.up = on_quiet;
    }
    if (b->with_keeper ? gl_keeper_exec_open(&b->exec, &keeper, b->loop, &events, &why) != 0
                       : gl_noop_exec_open(&b->exec, &noop, b->loop, &events, &why) != 0) {
        fail("executor", &why);
    }
    gl_node_set_exec(b->node, b->exec);
    gl_node_start(b->node);
    gl_loop_run(b->loop);
}

static void node_close(struct bench *b)
{
    gl_node_stop(b->node, on_closed, b);
    gl_loop_run(b->loop);
    gl_node_free(b->node);
    gl_recorder_close(b->recorder);
    b->recorder = NULL;
    b->exec->ops->close(b->exec, on_closed, b);
    gl_loop_run(b->loop);
    b->store->ops->close(b->store, on_closed, b);
    gl_loop_run(b->loop);
    gl_loop_free(b->loop);
}

static gl_str compile(struct bench *b, gl_str text)
{
    struct gl_flow_errors *errors = GL_NEW(&b->arena, struct gl_flow_errors);
    struct gl_flow *flow;
    struct gl_json j;
    struct gl_buf out = {0};
    gl_str compiled;

    if (gl_json_parse(&j, text, GL_FLOW_BYTES_MAX, &b->arena, NULL) != 0 ||
        gl_flow_parse(&j, gl_json_root(&j), NULL, &b->arena, &flow, errors) != 0) {
        fail("flow", NULL);
    }
    gl_flow_encode(flow, &out);
    compiled = gl_str_dup(&b->arena, gl_buf_view(&out));
    gl_buf_done(&out);
    return compiled;
}

static double run(struct bench *b, gl_str flow, size_t total, size_t window)
{
    double began;

    b->flow = flow;
    b->total = total;
    b->window = window;
    b->submitted = b->answered = b->ended = 0;
    began = now_s();
    post_refill(b);
    gl_loop_run(b->loop);
    return now_s() - began;
}

/* ---- flows ---- */

static gl_str one_step(struct bench *b, const char *action)
{
    return compile(b, gl_str_fmt(&b->arena, "{\"steps\":{\"a\":{%s}}}", action));
}

static gl_str chain(struct bench *b, unsigned n)
{
    struct gl_buf t = {0};
    gl_str flow;

    gl_buf_c(&t, "{\"steps\":{\"s0\":{\"noop\":true}");
    for (unsigned i = 1; i < n; i++) {
        gl_buf_fmt(&t, ",\"s%u\":{\"noop\":true,\"needs\":[\"s%u\"]}", i, i - 1);
    }
    gl_buf_c(&t, "}}");
    flow = compile(b, gl_str_dup(&b->arena, gl_buf_view(&t)));
    gl_buf_done(&t);
    return flow;
}

static gl_str fan(struct bench *b, unsigned n)
{
    struct gl_buf t = {0};
    gl_str flow;

    gl_buf_c(&t, "{\"steps\":{\"root\":{\"noop\":true}");
    for (unsigned i = 0; i < n; i++) {
        gl_buf_fmt(&t, ",\"c%u\":{\"noop\":true,\"needs\":[\"root\"]}", i);
    }
    gl_buf_c(&t, ",\"join\":{\"noop\":true,\"needs\":[");
    for (unsigned i = 0; i < n; i++) {
        gl_buf_fmt(&t, "%s\"c%u\"", i > 0 ? "," : "", i);
    }
    gl_buf_c(&t, "]}}}");
    flow = compile(b, gl_str_dup(&b->arena, gl_buf_view(&t)));
    gl_buf_done(&t);
    return flow;
}

/* ---- what is measured ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void bench_jobs(struct bench *b)
{
    size_t n = b->quick ? 5000 : 100000;
    double t;

    node_open(b, 1024, 0);
    (void)run(b, one_step(b, "\"noop\":true"), n / 10, 256); /* warm */
    t = run(b, one_step(b, "\"noop\":true"), n, 512);
    printf("one-step jobs        %10.0f jobs/s   (%zu jobs, 512 outstanding)\n", (double)n / t, n);
    figure(b, "jobs", (double)n / t);
    node_close(b);
}

static void bench_chains(struct bench *b)
{
    size_t n = b->quick ? 500 : 10000;
    double t;

    node_open(b, 1024, 0);
    t = run(b, chain(b, 10), n, 512);
    printf("ten-step chains      %10.0f steps/s  (%zu jobs, 512 outstanding)\n", (double)n * 10 / t,
           n);
    figure(b, "chains", (double)n * 10 / t);
    node_close(b);
}

static void bench_fan(struct bench *b)
{
    size_t n = b->quick ? 20 : 500;
    double t;

    node_open(b, 1024, 0);
    t = run(b, fan(b, 100), n, 16);
    printf("100-way fan and join %10.0f steps/s  (%zu jobs, 16 outstanding)\n", (double)n * 102 / t,
           n);
    figure(b, "fan", (double)n * 102 / t);
    node_close(b);
}

static void bench_latency(struct bench *b)
{
    size_t n = b->quick ? 500 : 5000;
    double t;

    node_open(b, 1024, 0);
    b->began = calloc(n, sizeof(double));
    b->took = calloc(n, sizeof(double));
    t = run(b, one_step(b, "\"noop\":true"), n, 1);
    qsort(b->took, n, sizeof(double), by_value);
    printf("single job latency   p50 %.3f ms  p99 %.3f ms  (%zu jobs, one at a time)\n",
           b->took[n / 2] * 1e3, b->took[n * 99 / 100] * 1e3, n);
    figure(b, "p50_ms", b->took[n / 2] * 1e3);
    figure(b, "p99_ms", b->took[n * 99 / 100] * 1e3);
    figure(b, "our_syncs", 2 * (double)n / t);
    /* Two transactions a job, each in a group of its own: a sync each. */
    printf("our syncs meanwhile  %10.0f syncs/s\n", 2 * (double)n / t);
    free(b->began);
    free(b->took);
    b->began = b->took = NULL;
    node_close(b);
}

/* Jobs that wait for slots, which nobody gets because the executor is not there. */
static void bench_waiting(struct bench *b)
{
    size_t n = b->quick ? 20000 : 200000;
    long before = 0, after;

    b->quiet = true;
    node_open(b, 1, 64);
    b->flow = one_step(b, "\"noop\":true");
    b->submitted = b->answered = 0;
    for (size_t i = 0; i < n + 10000; i += 1000) {
        if (i == 10000) {
            before = rss_bytes(); /* caches are warm */
        }
        for (size_t k = 0; k < 1000; k++) {
            submit_one(b);
        }
        gl_loop_run(b->loop);
    }
    after = rss_bytes();
    printf("memory per waiting job %8.0f bytes    (%zu jobs queued for one slot, 64 hot)\n",
           (double)(after - before) / (double)n, n);
    figure(b, "waiting_bytes", (double)(after - before) / (double)n);
    fflush(stdout);
    _exit(0); /* in a child: what waits is left behind */
}

static void bench_start(struct bench *b)
{
    double t = now_s();

    node_open(b, 8, 0);
    figure(b, "ready_ms", (now_s() - t) * 1e3);
    printf("start to ready       %10.1f ms\n", (now_s() - t) * 1e3);
    printf("idle RSS             %10.1f MiB\n", (double)rss_bytes() / 1048576.0);
    node_close(b);
}

static void bench_disk(struct bench *b)
{
    char path[512];
    int fd;
    double t;
    int n = b->quick ? 300 : 3000;
    char block[4096] = {0};

    (void)snprintf(path, sizeof(path), "%s/sync-probe", b->data);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    t = now_s();
    for (int i = 0; i < n; i++) {
        if (pwrite(fd, block, sizeof(block), (off_t)i * 4096) != 4096 || fdatasync(fd) != 0) {
            fail("sync probe", NULL);
        }
    }
    t = now_s() - t;
    printf("the disk's own syncs %10.0f syncs/s  (4 KiB appended, fdatasync)\n", n / t);
    figure(b, "disk_syncs", n / t);
    close(fd);
    unlink(path);
}

static void bare_spawns(struct bench *b, size_t total, size_t window)
{
    char *argv[] = {(char *)"/bin/true", NULL};
    size_t running = 0;
    double t = now_s();
    pid_t pid;

    for (size_t i = 0; i < total; i++) {
        if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0) {
            fail("posix_spawn", NULL);
        }
        if (++running == window) {
            waitpid(-1, NULL, 0);
            running--;
        }
    }
    while (running-- > 0) {
        waitpid(-1, NULL, 0);
    }
    t = now_s() - t;
    printf("bare posix_spawn     %10.0f /s       (/bin/true, %zu at a time)\n", (double)total / t,
           window);
    figure(b, window == 8 ? "bare_8" : "bare_32", (double)total / t);
}

static void spawn_at(struct bench *b, size_t window)
{
    size_t n = b->quick ? 500 : 5000;
    double t;

    bare_spawns(b, n, window);
    b->with_keeper = true;
    node_open(b, (uint32_t)window, 0);
    t = run(b, one_step(b, "\"run\":[\"/bin/true\"]"), n, window * 4);
    printf("spawned steps        %10.0f steps/s  (/bin/true, %zu slots)\n", (double)n / t, window);
    figure(b, window == 8 ? "spawned_8" : "spawned_32", (double)n / t);
    node_close(b);
}

static void bench_spawn(struct bench *b)
{
    spawn_at(b, 8);
    spawn_at(b, 32);
}

/* Each in a process and a folder of its own: a figure never depends on the one before. */
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

int main(int argc, char **argv)
{
    struct bench b = {.data = "bench-data", .store_url = ""};
    const char *only = NULL;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            b.quick = true;
        } else if (strcmp(argv[i], "--record") == 0) {
            b.record = true;
        } else if (strcmp(argv[i], "--data") == 0 && i + 1 < argc) {
            b.data = argv[++i];
        } else if (strcmp(argv[i], "--store") == 0 && i + 1 < argc) {
            b.store_url = argv[++i];
        } else if (strcmp(argv[i], "--keeper") == 0 && i + 1 < argc) {
            b.keeper = argv[++i];
        } else if (strcmp(argv[i], "--figures") == 0 && i + 1 < argc) {
            b.figures = argv[++i];
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = argv[++i];
        } else {
            fprintf(stderr, "usage: bench [--data DIR] [--keeper PATH] [--figures FILE] [--quick] "
                            "[--record] [--only NAME] [--store URL]\n");
            return 2;
        }
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
    return 0;
}
