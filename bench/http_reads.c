/* http_reads.c - status reads during work: how much does the work slow them down? */
#include "base/check.h"
#include "http_load.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    READERS = 8,
    READ_JOBS = 100, /* are read in turn */
    RUNNING = 1000,
    PACED_BATCH = 64,
    PACED_MS = 10,
    PACED_CONNS = 16,
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

    r->client = hb_client(s);
    r->n = 0;
    ended = hb_ended(&r->client);
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
    ended = (hb_ended(&r->client) - ended) / began;
    qsort(r->took, r->n, sizeof(double), hb_by_value);
    printf(
        "reads, %-14s%10.0f /s  p50 %.3f ms  p99 %.3f ms  (beside %.0f jobs/s; node CPU %.0f %%)\n",
        what, (double)r->n / began, r->took[r->n / 2] * 1e3, r->took[r->n * 99 / 100] * 1e3, ended,
        cpu * 100);
    (void)snprintf(key, sizeof(key), "reads_%s_jobs_s", name);
    hb_figure(b, key, ended);
    (void)snprintf(key, sizeof(key), "reads_%s_s", name);
    hb_figure(b, key, (double)r->n / began);
    (void)snprintf(key, sizeof(key), "reads_%s_p50_ms", name);
    hb_figure(b, key, r->took[r->n / 2] * 1e3);
    (void)snprintf(key, sizeof(key), "reads_%s_p99_ms", name);
    hb_figure(b, key, r->took[r->n * 99 / 100] * 1e3);
    for (size_t i = 0; i < READERS; i++) {
        httpc_close(&r->conns[i]);
    }
    httpc_done(&r->client);
}

/* Ten-step jobs that have ended: an answer of some kilobytes, the same in each phase. */
static void make_read_jobs(struct httpc *c, struct reads *r)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    gl_str body = hb_submission(&r->arena, hb_chain(&r->arena, 10, "\"noop\":true"), 0);
    double before = hb_ended(c);

    for (size_t i = 0; i < READ_JOBS; i++) {
        httpc_once(c, "POST", HB_JOBS, body, &out);
        r->paths[i] = gl_str_fmt(&r->arena, HB_JOBS "/%s", hb_id(gl_buf_view(&out), &r->arena).p);
    }
    while (hb_ended(c) < before + READ_JOBS) {
        (void)usleep(10000);
    }
}

/* A thousand running steps, each replaced when it ends: about two hundred per second. */
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
    httpc_once(c, "POST", HB_JOBS ":batch", gl_buf_view(&body), NULL);
    do {
        (void)usleep(100000);
        httpc_once(c, "GET", "/metrics", (gl_str){0}, &out);
    } while (hb_value(gl_buf_view(&out), "\nglia_attempts_running ") < RUNNING);
}

struct paced {
    struct httpc client;
    struct httpc_conn conns[PACED_CONNS];
    gl_str body;
};

/* A batch at every tick, whatever the state of earlier ones. */
static void submit_on_tick(struct httpc *c)
{
    struct paced *p = c->owner;

    for (size_t i = 0; i < PACED_CONNS; i++) {
        if (!p->conns[i].is_busy) {
            httpc_ask(&p->conns[i], "POST", HB_JOBS ":batch", "", p->body);
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

/* Until the process is killed. */
static void run_paced(const struct served *s, gl_str flow)
{
    struct gl_arena a = {0};
    struct paced p = {.client = hb_client(s), .body = hb_submission(&a, flow, PACED_BATCH)};

    httpc_init(&p.client);
    p.client.owner = &p;
    p.client.on_tick = submit_on_tick;
    p.client.tick_ms = PACED_MS;
    for (size_t i = 0; i < PACED_CONNS; i++) {
        p.conns[i] = (struct httpc_conn){.on_reply = on_paced, .owner = &p};
        httpc_open(&p.client, &p.conns[i]);
    }
    httpc_run(&p.client);
}

static void time_reads_beside(struct bench *b, const struct served *s, struct reads *r,
                              bool is_paced)
{
    gl_str flow = hb_one_step(&r->arena, "\"noop\":true");
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (is_paced) {
            run_paced(s, flow);
        }
        (void)hb_run_load(s, flow, SIZE_MAX / 2, HB_BATCH, 4, HB_WINDOW);
        _exit(0);
    }
    (void)usleep(500000);
    time_reads(b, s, r, is_paced ? "6,400 jobs/s" : "full load", is_paced ? "paced" : "full");
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

void hb_reads(struct bench *b)
{
    struct served s;
    struct httpc c;
    struct reads r = {0};

    served_start(&s, b->glia, b->data, "default=1024,steps=1000", b->with_tcp);
    c = hb_client(&s);
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
