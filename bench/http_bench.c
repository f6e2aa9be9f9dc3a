/* http_bench.c - throughput of a node for clients: everything over HTTP, from a separate process.
 *
 *   http_bench --glia PATH [--data DIR] [--figures FILE] [--tcp] [--quick] [--only NAME]
 *
 * The workloads are those of bench.c, so that the two can be compared. Each has its own node and
 * folder. Figures are also written as "name value" to FILE, from which bench/table makes a table.
 */
#include "base/check.h"
#include "http_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* ---- the workloads of the core ---- */

struct shape {
    const char *name, *figure;
    unsigned steps; /* per job; 0: count jobs */
    size_t total, quick;
    size_t batch, window;
};

/* A few connections with batches keep the node busy; single jobs need many, because each
 * waits for the disk. */
static void bench_shape(struct bench *b, const struct shape *shape, gl_str flow)
{
    struct served s;
    size_t n = b->quick ? shape->quick : shape->total;
    double factor = shape->steps > 0 ? shape->steps : 1, t;
    char name[64];

    served_start(&s, b->glia, b->data, "default=1024", b->with_tcp);
    (void)hb_run_load(&s, flow, n / 10, shape->batch, 4, shape->window); /* warm */
    t = hb_run_load(&s, flow, n, shape->batch, 4, shape->window);
    printf("%-21s%10.0f %s  (%zu jobs, %zu in a request, 4 connections)\n", shape->name,
           (double)n * factor / t, shape->steps > 0 ? "steps/s" : "jobs/s ", n, shape->batch);
    (void)snprintf(name, sizeof(name), "%s_batch", shape->figure);
    hb_figure(b, name, (double)n * factor / t);
    n /= 2;
    t = hb_run_load(&s, flow, n, 0, HB_CONNS_MAX, shape->window);
    printf("%-21s%10.0f %s  (%zu jobs, one in a request, %d connections)\n", shape->name,
           (double)n * factor / t, shape->steps > 0 ? "steps/s" : "jobs/s ", n, HB_CONNS_MAX);
    (void)snprintf(name, sizeof(name), "%s_single", shape->figure);
    hb_figure(b, name, (double)n * factor / t);
    served_stop(&s);
}

static void bench_jobs(struct bench *b)
{
    static const struct shape shape = {"one-step jobs", "jobs",   0, 100000, 5000,
                                       HB_BATCH,        HB_WINDOW};
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};

    bench_shape(b, &shape, hb_one_step(&a, "\"noop\":true"));
}

static void bench_chains(struct bench *b)
{
    static const struct shape shape = {"ten-step chains", "chains", 10, 10000, 1000, 64, 512};
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};

    bench_shape(b, &shape, hb_chain(&a, 10, "\"noop\":true"));
}

static void bench_fan(struct bench *b)
{
    static const struct shape shape = {"100-way fan and join", "fan", 102, 500, 40, 4, 16};
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};

    bench_shape(b, &shape, hb_fan(&a, 100));
}

/* ---- one job at a time, from the request to the report of its completion ---- */

struct single {
    struct httpc client;
    struct httpc_conn conn;
    struct gl_arena arena;
    gl_str body;
    bool by_poll, is_watching;
    char path[128];
    size_t total, n;
    double began, *took;
};

static void submit_single(struct single *l)
{
    l->is_watching = false;
    l->began = httpc_now();
    httpc_ask(&l->conn, "POST", HB_JOBS, "", l->body);
}

static void watch_single(struct single *l, long from)
{
    char path[200];

    l->is_watching = true;
    (void)snprintf(path, sizeof(path), "%s?from=%ld%s", l->path, from,
                   l->by_poll ? "&wait_ms=30000" : "");
    httpc_ask(&l->conn, "GET", path, l->by_poll ? "" : "Accept: text/event-stream\r\n",
              (gl_str){0});
}

static void on_single(struct httpc_conn *conn, int status, gl_str body)
{
    struct single *l = conn->owner;
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};

    if (status > 299) {
        httpc_fail("single job", body);
    }
    if (!l->is_watching) {
        (void)snprintf(l->path, sizeof(l->path), HB_JOBS "/%s/events", hb_id(body, &a).p);
        watch_single(l, 0);
        return;
    }
    if (l->by_poll && memmem(body.p, body.n, "\"ended\":true", 12) == NULL) {
        watch_single(l, (long)hb_value(body, "\"next_seq\":"));
        return;
    }
    if (!l->by_poll && memmem(body.p, body.n, "job_completed", 13) == NULL) {
        httpc_fail("the stream ended too early", body);
    }
    l->took[l->n++] = httpc_now() - l->began;
    if (l->n == l->total) {
        conn->client->is_done = true;
    } else {
        submit_single(l);
    }
}

static void time_singles(struct bench *b, const struct served *s, bool by_poll)
{
    struct single l = {.client = hb_client(s), .by_poll = by_poll, .total = b->quick ? 300 : 3000};

    l.took = calloc(l.total, sizeof(double));
    l.body = hb_submission(&l.arena, hb_one_step(&l.arena, "\"noop\":true"), 0);
    httpc_init(&l.client);
    l.conn = (struct httpc_conn){.on_reply = on_single, .owner = &l};
    httpc_open(&l.client, &l.conn);
    submit_single(&l);
    httpc_run(&l.client);
    qsort(l.took, l.total, sizeof(double), hb_by_value);
    printf("single job, %-9sp50 %.3f ms  p99 %.3f ms  (%zu jobs, one at a time)\n",
           by_poll ? "polled" : "streamed", l.took[l.total / 2] * 1e3,
           l.took[l.total * 99 / 100] * 1e3, l.total);
    hb_figure(b, by_poll ? "poll_p50_ms" : "sse_p50_ms", l.took[l.total / 2] * 1e3);
    hb_figure(b, by_poll ? "poll_p99_ms" : "sse_p99_ms", l.took[l.total * 99 / 100] * 1e3);
    httpc_close(&l.conn);
    httpc_done(&l.client);
    gl_arena_done(&l.arena);
    free(l.took);
}

static void bench_latency(struct bench *b)
{
    struct served s;

    served_start(&s, b->glia, b->data, "default=1024", b->with_tcp);
    time_singles(b, &s, false);
    time_singles(b, &s, true);
    served_stop(&s);
}

/* ---- idle ---- */

static void bench_idle(struct bench *b)
{
    struct served s;

    served_start(&s, b->glia, b->data, "default=8", b->with_tcp);
    printf("idle node            %10.1f MiB RSS\n", served_rss_mib(&s));
    hb_figure(b, "idle_mib", served_rss_mib(&s));
    served_stop(&s);
}

/* ---- all of it ---- */

static void in_folder(const struct bench *b, const char *name, void (*fn)(struct bench *b),
                      const char *only)
{
    struct bench one = *b;
    char data[400];

    if (only != NULL && strcmp(only, name) != 0) {
        return;
    }
    (void)snprintf(data, sizeof(data), "%s/%s-%s", b->data, b->with_tcp ? "tcp" : "http", name);
    (void)mkdir(data, 0700);
    one.data = data;
    fn(&one);
    fflush(stdout);
}

static void raise_files(void)
{
    struct rlimit limit;

    (void)getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max < 8192 ? limit.rlim_max : 8192;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* if it is too low, connecting fails and says so */
}

int main(int argc, char **argv)
{
    struct bench b = {.data = "bench-data"};
    const char *only = NULL;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            b.quick = true;
        } else if (strcmp(argv[i], "--tcp") == 0) {
            b.with_tcp = true;
        } else if (strcmp(argv[i], "--data") == 0 && i + 1 < argc) {
            b.data = argv[++i];
        } else if (strcmp(argv[i], "--glia") == 0 && i + 1 < argc) {
            b.glia = argv[++i];
        } else if (strcmp(argv[i], "--figures") == 0 && i + 1 < argc) {
            b.figures = argv[++i];
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = argv[++i];
        } else {
            b.glia = NULL;
            break;
        }
    }
    if (b.glia == NULL) {
        fprintf(stderr, "usage: http_bench --glia PATH [--data DIR] [--figures FILE] [--tcp] "
                        "[--quick] [--only NAME]\n");
        return 2;
    }
    raise_files();
    (void)mkdir(b.data, 0700);
    in_folder(&b, "idle", bench_idle, only);
    in_folder(&b, "jobs", bench_jobs, only);
    in_folder(&b, "chains", bench_chains, only);
    in_folder(&b, "fan", bench_fan, only);
    in_folder(&b, "latency", bench_latency, only);
    in_folder(&b, "reads", hb_reads, only);
    in_folder(&b, "watch", hb_watch, only);
    in_folder(&b, "crowd", hb_crowd, only);
    return 0;
}
