/* http_bench.c - what a node does for clients: everything over HTTP, from a process of its own.
 *
 *   http_bench --glia PATH [--data DIR] [--figures FILE] [--tcp] [--quick] [--only NAME]
 *
 * The workloads are those of bench.c, so that the two can be compared. Each workload has a node and
 * a folder of its own. Figures also go as "name value" into FILE, from which bench/table makes a
 * table. */
#define _GNU_SOURCE

#include "base/check.h"
#include "httpc.h"
#include "served.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS "/v1/contexts/default/jobs"

enum {
    CONNS_MAX = 64,
    BATCH = 256,
    /* Jobs that are submitted and not ended: enough to keep the node busy between two looks at its
     * metrics, and what a thousand slots and some queue can hold. */
    WINDOW = 4096,
    LOOK_MS = 2,
};

struct bench {
    const char *glia, *data, *figures;
    bool with_tcp, quick;
};

static void figure(const struct bench *b, const char *name, double value)
{
    FILE *f = b->figures != NULL ? fopen(b->figures, "ae") : NULL;

    if (f != NULL) {
        fprintf(f, "%s%s %.6g\n", b->with_tcp ? "tcp_" : "http_", name, value);
        fclose(f);
    }
}

static struct httpc client_of(const struct served *s)
{
    return (struct httpc){.socket = s->socket, .port = s->port, .token = s->token};
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The value behind a name, in the text of /metrics or in JSON. */
static double value_of(gl_str text, const char *name)
{
    const char *at = text.n > 0 ? memmem(text.p, text.n, name, strlen(name)) : NULL;

    if (at == NULL) {
        httpc_fail("not in the answer", gl_str_of(name));
    }
    return strtod(at + strlen(name), NULL);
}

static gl_str id_of(gl_str body, struct gl_arena *a)
{
    const char *at = memmem(body.p, body.n, "\"job_id\":\"", 10);

    if (at == NULL) {
        httpc_fail("no job", body);
    }
    return gl_str_dup(a, (gl_str){.p = at + 10, .n = 26});
}

/* ---- flows ---- */

static gl_str one_step(struct gl_arena *a, const char *action)
{
    return gl_str_fmt(a, "{\"steps\":{\"a\":{%s}}}", action);
}

/* `first` is the action of the first step. */
static gl_str chain(struct gl_arena *a, unsigned n, const char *first)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf t = {0};

    gl_buf_fmt(&t, "{\"steps\":{\"s0\":{%s}", first);
    for (unsigned i = 1; i < n; i++) {
        gl_buf_fmt(&t, ",\"s%u\":{\"noop\":true,\"needs\":[\"s%u\"]}", i, i - 1);
    }
    gl_buf_c(&t, "}}");
    return gl_str_dup(a, gl_buf_view(&t));
}

static gl_str fan(struct gl_arena *a, unsigned n)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf t = {0};

    gl_buf_c(&t, "{\"steps\":{\"root\":{\"noop\":true}");
    for (unsigned i = 0; i < n; i++) {
        gl_buf_fmt(&t, ",\"c%u\":{\"noop\":true,\"needs\":[\"root\"]}", i);
    }
    gl_buf_c(&t, ",\"join\":{\"noop\":true,\"needs\":[");
    for (unsigned i = 0; i < n; i++) {
        gl_buf_fmt(&t, "%s\"c%u\"", i > 0 ? "," : "", i);
    }
    gl_buf_c(&t, "]}}}");
    return gl_str_dup(a, gl_buf_view(&t));
}

/* `count` jobs of one flow; 0: one job that is not in a batch. */
static gl_str submission(struct gl_arena *a, gl_str flow, size_t count)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf t = {0};

    gl_buf_fmt(&t, "{\"flow\":%.*s", GL_STR_ARG(flow));
    for (size_t i = 0; i < count; i++) {
        gl_buf_c(&t, i == 0 ? ",\"jobs\":[{}" : ",{}");
    }
    gl_buf_c(&t, count > 0 ? "]}" : "}");
    return gl_str_dup(a, gl_buf_view(&t));
}

/* ---- jobs as fast as they are taken, until all have ended ---- */

struct load {
    struct httpc client;
    struct httpc_conn conns[CONNS_MAX], look;
    size_t conns_n;
    gl_str body;
    size_t per_request; /* jobs */
    const char *path;
    size_t total, window, submitted;
    double ended, ended_before;
};

static void fill(struct load *l, struct httpc_conn *conn)
{
    double outstanding = (double)l->submitted - (l->ended - l->ended_before);

    if (!conn->is_busy && l->submitted < l->total && outstanding < (double)l->window) {
        l->submitted += l->per_request;
        httpc_ask(conn, "POST", l->path, "", l->body);
    }
}

static void on_submitted(struct httpc_conn *conn, int status, gl_str body)
{
    if ((status != 200 && status != 201) || memmem(body.p, body.n, "\"error\"", 7) != NULL) {
        httpc_fail("submission", body);
    }
    fill(conn->owner, conn);
}

static void on_look(struct httpc_conn *conn, int status, gl_str body)
{
    struct load *l = conn->owner;

    if (status != 200) {
        httpc_fail("metrics", body);
    }
    l->ended = value_of(body, "\nglia_jobs_ended_total{status=\"completed\"} ");
    l->client.is_done = l->ended - l->ended_before >= (double)l->total;
    for (size_t i = 0; i < l->conns_n; i++) {
        fill(l, &l->conns[i]);
    }
}

static void look(struct httpc *c)
{
    struct load *l = c->owner;

    if (!l->look.is_busy) {
        httpc_ask(&l->look, "GET", "/metrics", "", (gl_str){0});
    }
}

static double ended_now(struct httpc *c)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};

    httpc_once(c, "GET", "/metrics", (gl_str){0}, &out);
    return value_of(gl_buf_view(&out), "\nglia_jobs_ended_total{status=\"completed\"} ");
}

/* Seconds that `total` jobs take; batch: how many are in one request, 0 for the other route. */
static double run_load(const struct served *s, gl_str flow, size_t total, size_t batch,
                       size_t conns)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct load l = {.client = client_of(s), .conns_n = conns, .window = WINDOW};
    double began;

    l.per_request = batch > 0 ? batch : 1;
    l.path = batch > 0 ? JOBS ":batch" : JOBS;
    l.body = submission(&a, flow, batch);
    l.total = (total + l.per_request - 1) / l.per_request * l.per_request;
    l.ended = l.ended_before = ended_now(&l.client);
    httpc_init(&l.client);
    l.client.owner = &l;
    l.client.on_tick = look;
    l.client.tick_ms = LOOK_MS;
    l.look = (struct httpc_conn){.on_reply = on_look, .owner = &l};
    httpc_open(&l.client, &l.look);
    began = httpc_now();
    for (size_t i = 0; i < conns; i++) {
        l.conns[i] = (struct httpc_conn){.on_reply = on_submitted, .owner = &l};
        httpc_open(&l.client, &l.conns[i]);
        fill(&l, &l.conns[i]);
    }
    httpc_run(&l.client);
    began = httpc_now() - began;
    for (size_t i = 0; i < conns; i++) {
        httpc_close(&l.conns[i]);
    }
    httpc_close(&l.look);
    httpc_done(&l.client);
    return began * (double)total / (double)l.total;
}

struct shape {
    const char *name, *figure;
    unsigned steps; /* per job; 0: count jobs */
    size_t total, quick;
    size_t batch;
};

/* One connection for batches is enough to keep the node busy; single jobs need many, because each
 * waits for the disk. */
static void bench_shape(struct bench *b, const struct shape *shape, gl_str flow)
{
    struct served s;
    size_t n = b->quick ? shape->quick : shape->total;
    double factor = shape->steps > 0 ? shape->steps : 1, t;
    char name[64];

    served_start(&s, b->glia, b->data, "default=1024", b->with_tcp);
    (void)run_load(&s, flow, n / 10, shape->batch, 4); /* warm */
    t = run_load(&s, flow, n, shape->batch, 4);
    printf("%-21s%10.0f %s  (%zu jobs, %zu in a request, 4 connections)\n", shape->name,
           (double)n * factor / t, shape->steps > 0 ? "steps/s" : "jobs/s ", n, shape->batch);
    (void)snprintf(name, sizeof(name), "%s_batch", shape->figure);
    figure(b, name, (double)n * factor / t);
    n /= 2;
    t = run_load(&s, flow, n, 0, CONNS_MAX);
    printf("%-21s%10.0f %s  (%zu jobs, one in a request, %d connections)\n", shape->name,
           (double)n * factor / t, shape->steps > 0 ? "steps/s" : "jobs/s ", n, CONNS_MAX);
    (void)snprintf(name, sizeof(name), "%s_single", shape->figure);
    figure(b, name, (double)n * factor / t);
    served_stop(&s);
}

static void bench_jobs(struct bench *b)
{
    static const struct shape shape = {"one-step jobs", "jobs", 0, 100000, 5000, BATCH};
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};

    bench_shape(b, &shape, one_step(&a, "\"noop\":true"));
}

static void bench_chains(struct bench *b)
{
    static const struct shape shape = {"ten-step chains", "chains", 10, 10000, 1000, 64};
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};

    bench_shape(b, &shape, chain(&a, 10, "\"noop\":true"));
}

static void bench_fan(struct bench *b)
{
    static const struct shape shape = {"100-way fan and join", "fan", 102, 500, 40, 4};
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};

    bench_shape(b, &shape, fan(&a, 100));
}

/* ---- one job at a time, from the request to the word that it has completed ---- */

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
    httpc_ask(&l->conn, "POST", JOBS, "", l->body);
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
        (void)snprintf(l->path, sizeof(l->path), JOBS "/%s/events", id_of(body, &a).p);
        watch_single(l, 0);
        return;
    }
    if (l->by_poll && memmem(body.p, body.n, "\"ended\":true", 12) == NULL) {
        watch_single(l, (long)value_of(body, "\"next_seq\":"));
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
    struct single l = {.client = client_of(s), .by_poll = by_poll, .total = b->quick ? 300 : 3000};

    l.took = calloc(l.total, sizeof(double));
    l.body = submission(&l.arena, one_step(&l.arena, "\"noop\":true"), 0);
    httpc_init(&l.client);
    l.conn = (struct httpc_conn){.on_reply = on_single, .owner = &l};
    httpc_open(&l.client, &l.conn);
    submit_single(&l);
    httpc_run(&l.client);
    qsort(l.took, l.total, sizeof(double), by_value);
    printf("single job, %-9sp50 %.3f ms  p99 %.3f ms  (%zu jobs, one at a time)\n",
           by_poll ? "polled" : "streamed", l.took[l.total / 2] * 1e3,
           l.took[l.total * 99 / 100] * 1e3, l.total);
    figure(b, by_poll ? "poll_p50_ms" : "sse_p50_ms", l.took[l.total / 2] * 1e3);
    figure(b, by_poll ? "poll_p99_ms" : "sse_p99_ms", l.took[l.total * 99 / 100] * 1e3);
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

/* ---- status reads beside work ---- */

enum {
    READERS = 8,
    READ_JOBS = 100, /* are read in turn */
    RUNNING = 1000,
    PACED_BATCH = 64,
    PACED_MS = 10,
};

struct reads {
    struct httpc client;
    struct httpc_conn conns[READERS];
    struct gl_arena arena;
    gl_str paths[READ_JOBS];
    size_t next, n, cap;
    double *took, until;
};

static void read_next(struct reads *r, struct httpc_conn *conn)
{
    httpc_ask(conn, "GET", r->paths[r->next++ % READ_JOBS].p, "", (gl_str){0});
}

static void on_read(struct httpc_conn *conn, int status, gl_str body)
{
    struct reads *r = conn->owner;
    double now = httpc_now();

    if (status != 200) {
        httpc_fail("status", body);
    }
    if (r->n == r->cap) {
        r->cap = r->cap > 0 ? r->cap * 2 : 4096;
        r->took = realloc(r->took, r->cap * sizeof(double));
    }
    r->took[r->n++] = now - conn->asked_at;
    if (now > r->until) {
        conn->client->is_done = true;
    } else {
        read_next(r, conn);
    }
}

static void time_reads(struct bench *b, const struct served *s, struct reads *r, const char *what,
                       const char *name)
{
    double seconds = b->quick ? 0.5 : 5, began, cpu = served_cpu_s(s), ended;
    char key[64];

    r->client = client_of(s);
    r->n = 0;
    ended = ended_now(&r->client);
    httpc_init(&r->client);
    began = httpc_now();
    r->until = began + seconds;
    for (size_t i = 0; i < READERS; i++) {
        r->conns[i] = (struct httpc_conn){.on_reply = on_read, .owner = r};
        httpc_open(&r->client, &r->conns[i]);
        read_next(r, &r->conns[i]);
    }
    httpc_run(&r->client);
    began = httpc_now() - began;
    cpu = (served_cpu_s(s) - cpu) / began;
    ended = (ended_now(&r->client) - ended) / began;
    qsort(r->took, r->n, sizeof(double), by_value);
    printf(
        "reads, %-14s%10.0f /s  p50 %.3f ms  p99 %.3f ms  (beside %.0f jobs/s; node CPU %.0f %%)\n",
        what, (double)r->n / began, r->took[r->n / 2] * 1e3, r->took[r->n * 99 / 100] * 1e3, ended,
        cpu * 100);
    (void)snprintf(key, sizeof(key), "reads_%s_jobs_s", name);
    figure(b, key, ended);
    (void)snprintf(key, sizeof(key), "reads_%s_s", name);
    figure(b, key, (double)r->n / began);
    (void)snprintf(key, sizeof(key), "reads_%s_p50_ms", name);
    figure(b, key, r->took[r->n / 2] * 1e3);
    (void)snprintf(key, sizeof(key), "reads_%s_p99_ms", name);
    figure(b, key, r->took[r->n * 99 / 100] * 1e3);
    for (size_t i = 0; i < READERS; i++) {
        httpc_close(&r->conns[i]);
    }
    httpc_done(&r->client);
}

/* Ten-step jobs that have ended: an answer of some kilobytes, the same in each phase. */
static void make_read_jobs(struct httpc *c, struct reads *r)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    gl_str body = submission(&r->arena, chain(&r->arena, 10, "\"noop\":true"), 0);
    double before = ended_now(c);

    for (size_t i = 0; i < READ_JOBS; i++) {
        httpc_once(c, "POST", JOBS, body, &out);
        r->paths[i] = gl_str_fmt(&r->arena, JOBS "/%s", id_of(gl_buf_view(&out), &r->arena).p);
    }
    while (ended_now(c) < before + READ_JOBS) {
        (void)usleep(10000);
    }
}

/* A thousand steps at any time, each replaced when it ends: about two hundred of them a second. */
static void start_steps(struct httpc *c)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf body = {0};

    gl_buf_c(&body, "{\"jobs\":[");
    for (int i = 0; i < 10 * RUNNING; i++) {
        gl_buf_fmt(
            &body,
            "%s{\"flow\":{\"steps\":{\"a\":{\"run\":[\"sleep\",\"%d\"],\"pool\":\"steps\"}}}}",
            i > 0 ? "," : "", 1 + i % 10);
    }
    gl_buf_c(&body, "]}");
    httpc_once(c, "POST", JOBS ":batch", gl_buf_view(&body), NULL);
    do {
        (void)usleep(100000);
        httpc_once(c, "GET", "/metrics", (gl_str){0}, &out);
    } while (value_of(gl_buf_view(&out), "\nglia_attempts_running ") < RUNNING);
}

/* A batch at every tick, whatever has become of those before. */
static void submit_on_tick(struct httpc *c)
{
    struct load *l = c->owner;

    for (size_t i = 0; i < l->conns_n; i++) {
        if (!l->conns[i].is_busy) {
            httpc_ask(&l->conns[i], "POST", l->path, "", l->body);
            return;
        }
    }
}

static void on_paced(struct httpc_conn *conn, int status, gl_str body)
{
    (void)conn;
    if (status != 200) {
        httpc_fail("submission", body);
    }
}

static void run_paced(const struct served *s, gl_str flow)
{
    struct gl_arena a = {0}; /* until the process is killed */
    struct load l = {.client = client_of(s), .conns_n = 16, .path = JOBS ":batch"};

    l.body = submission(&a, flow, PACED_BATCH);
    httpc_init(&l.client);
    l.client.owner = &l;
    l.client.on_tick = submit_on_tick;
    l.client.tick_ms = PACED_MS;
    for (size_t i = 0; i < l.conns_n; i++) {
        l.conns[i] = (struct httpc_conn){.on_reply = on_paced, .owner = &l};
        httpc_open(&l.client, &l.conns[i]);
    }
    httpc_run(&l.client);
}

static void time_reads_beside(struct bench *b, const struct served *s, struct reads *r,
                              bool is_paced)
{
    gl_str flow = one_step(&r->arena, "\"noop\":true");
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (is_paced) {
            run_paced(s, flow);
        }
        (void)run_load(s, flow, SIZE_MAX / 2, BATCH, 4);
        _exit(0);
    }
    (void)usleep(500000);
    time_reads(b, s, r, is_paced ? "6,400 jobs/s" : "full load", is_paced ? "paced" : "full");
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

static void bench_reads(struct bench *b)
{
    struct served s;
    struct httpc c;
    struct reads r = {0};

    served_start(&s, b->glia, b->data, "default=1024,steps=1000", b->with_tcp);
    c = client_of(&s);
    make_read_jobs(&c, &r);
    time_reads(b, &s, &r, "idle node", "idle");
    time_reads_beside(b, &s, &r, true);
    time_reads_beside(b, &s, &r, false);
    start_steps(&c);
    time_reads(b, &s, &r, "1,000 steps", "running");
    served_stop(&s);
    gl_arena_done(&r.arena);
    free(r.took);
}

/* ---- many watchers of one job ---- */

enum {
    WATCHERS_MAX = 1000,
    WATCHED_STEPS = 50,
};

struct watchers {
    struct httpc client;
    struct httpc_conn *conns;
    struct watcher {
        long seen;      /* the number of its last event */
        size_t at_line; /* 0: at the beginning of a line; counts bytes kept in `line` */
        char line[32];
    } * watchers;
    size_t n, begun, ended;
    long events;  /* each has seen */
    bool is_gone; /* the signal is sent */
    double ended_at_first;
};

static void on_line(struct watchers *all, struct watcher *w)
{
    long number;

    if (strncmp(w->line, "id: ", 4) != 0) {
        return;
    }
    number = strtol(w->line + 4, NULL, 10);
    if (number != w->seen + 1) {
        httpc_fail("events are missing before", gl_str_of(w->line));
    }
    if (w->seen == 0 && ++all->begun == all->n) {
        all->client.is_done = true;
    }
    w->seen = number;
}

static void on_events(struct httpc_conn *conn, gl_str text)
{
    struct watchers *all = conn->owner;
    struct watcher *w = &all->watchers[conn->number];

    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '\n') {
            w->line[w->at_line] = '\0';
            on_line(all, w);
            w->at_line = 0;
        } else if (w->at_line < sizeof(w->line) - 1) {
            w->line[w->at_line++] = text.p[i];
        }
    }
}

static void on_stream_end(struct httpc_conn *conn, int status, gl_str body)
{
    struct watchers *all = conn->owner;
    struct watcher *w = &all->watchers[conn->number];

    if (status != 200 || !all->is_gone) {
        httpc_fail("stream", body);
    }
    if (all->ended == 0) {
        all->ended_at_first = httpc_now();
        all->events = w->seen;
    }
    if (w->seen != all->events) {
        httpc_fail("a watcher has missed", GL_S("the last events"));
    }
    all->client.is_done = ++all->ended == all->n;
}

static void watch_with(struct bench *b, const struct served *s, size_t n)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    struct watchers all = {.client = client_of(s), .n = n};
    gl_str path, job;
    double began, cpu;
    char key[64];

    httpc_once(&all.client, "POST", JOBS,
               submission(&a, chain(&a, WATCHED_STEPS, "\"signal\":\"go\""), 0), &out);
    job = id_of(gl_buf_view(&out), &a);
    path = gl_str_fmt(&a, JOBS "/%s/events", job.p);
    all.conns = calloc(n, sizeof(*all.conns));
    all.watchers = calloc(n, sizeof(*all.watchers));
    httpc_init(&all.client);
    for (size_t i = 0; i < n; i++) {
        all.conns[i] = (struct httpc_conn){
            .on_reply = on_stream_end, .on_text = on_events, .owner = &all, .number = i};
        httpc_open(&all.client, &all.conns[i]);
        httpc_ask(&all.conns[i], "GET", path.p, "Accept: text/event-stream\r\n", (gl_str){0});
    }
    httpc_run(&all.client); /* until each has seen the first event */
    (void)usleep(200000);
    cpu = served_cpu_s(s);
    began = httpc_now();
    all.is_gone = true;
    httpc_once(&all.client, "POST", gl_str_fmt(&a, JOBS "/%s/signals/go", job.p).p, (gl_str){0},
               NULL);
    httpc_run(&all.client);
    printf("%4zu watchers        %10.1f ms  until all have seen %ld events (the first: %.1f ms); "
           "node CPU %.0f ms, RSS %.1f MiB\n",
           n, (httpc_now() - began) * 1e3, all.events, (all.ended_at_first - began) * 1e3,
           (served_cpu_s(s) - cpu) * 1e3, served_rss_mib(s));
    (void)snprintf(key, sizeof(key), "watch_%zu_ms", n);
    figure(b, key, (httpc_now() - began) * 1e3);
    (void)snprintf(key, sizeof(key), "watch_%zu_first_ms", n);
    figure(b, key, (all.ended_at_first - began) * 1e3);
    (void)snprintf(key, sizeof(key), "watch_%zu_cpu_ms", n);
    figure(b, key, (served_cpu_s(s) - cpu) * 1e3);
    (void)snprintf(key, sizeof(key), "watch_%zu_events", n);
    figure(b, key, (double)all.events);
    for (size_t i = 0; i < n; i++) {
        httpc_close(&all.conns[i]);
    }
    httpc_done(&all.client);
    free(all.conns);
    free(all.watchers);
}

static void bench_watch(struct bench *b)
{
    struct served s;

    served_start(&s, b->glia, b->data, "default=1024", b->with_tcp);
    watch_with(b, &s, 1);
    watch_with(b, &s, b->quick ? WATCHERS_MAX / 10 : WATCHERS_MAX);
    served_stop(&s);
}

/* ---- many watchers, of a job each, and work on other jobs ---- */

static void on_quiet(struct httpc_conn *conn, int status, gl_str body)
{
    (void)conn, (void)status;
    httpc_fail("a stream has ended", body);
}

static void on_first(struct httpc_conn *conn, gl_str text)
{
    (void)text;
    conn->client->is_done = true;
}

static void bench_crowd(struct bench *b)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    size_t n = b->quick ? WATCHERS_MAX / 10 : WATCHERS_MAX, jobs = b->quick ? 5000 : 50000;
    struct httpc_conn *conns = calloc(n, sizeof(*conns));
    gl_str flow = one_step(&a, "\"noop\":true");
    gl_str body = submission(&a, one_step(&a, "\"signal\":\"go\""), 0);
    struct served s;
    struct httpc c;
    double alone, beside, cpu_alone, cpu_beside;

    served_start(&s, b->glia, b->data, "default=1024", b->with_tcp);
    c = client_of(&s);
    httpc_init(&c);
    (void)run_load(&s, flow, jobs / 10, BATCH, 4); /* warm */
    cpu_alone = served_cpu_s(&s);
    alone = run_load(&s, flow, jobs, BATCH, 4);
    cpu_alone = served_cpu_s(&s) - cpu_alone;
    for (size_t i = 0; i < n; i++) {
        httpc_once(&c, "POST", JOBS, body, &out);
        conns[i] = (struct httpc_conn){.on_reply = on_quiet, .on_text = on_first};
        httpc_open(&c, &conns[i]);
        httpc_ask(&conns[i], "GET",
                  gl_str_fmt(&a, JOBS "/%s/events", id_of(gl_buf_view(&out), &a).p).p,
                  "Accept: text/event-stream\r\n", (gl_str){0});
        httpc_run(&c);
    }
    cpu_beside = served_cpu_s(&s);
    beside = run_load(&s, flow, jobs, BATCH, 4);
    cpu_beside = served_cpu_s(&s) - cpu_beside;
    printf("%4zu jobs watched    %10.0f jobs/s of others, %.2f x as without; %.2f x the CPU\n", n,
           (double)jobs / beside, alone / beside, cpu_beside / cpu_alone);
    figure(b, "crowd_jobs", (double)jobs / beside);
    figure(b, "crowd_alone_jobs", (double)jobs / alone);
    figure(b, "crowd_cpu", cpu_beside / cpu_alone);
    for (size_t i = 0; i < n; i++) {
        httpc_close(&conns[i]);
    }
    httpc_done(&c);
    free(conns);
    served_stop(&s);
}

/* ---- nothing to do ---- */

static void bench_idle(struct bench *b)
{
    struct served s;

    served_start(&s, b->glia, b->data, "default=8", b->with_tcp);
    printf("idle node            %10.1f MiB RSS\n", served_rss_mib(&s));
    figure(b, "idle_mib", served_rss_mib(&s));
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
    in_folder(&b, "reads", bench_reads, only);
    in_folder(&b, "watch", bench_watch, only);
    in_folder(&b, "crowd", bench_crowd, only);
    return 0;
}
