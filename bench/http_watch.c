/* http_watch.c - many watchers: of one job, and of a job each. */
#include "base/check.h"
#include "http_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
    struct watchers all = {.client = hb_client(s), .n = n};
    gl_str path, job;
    double began, cpu;
    char key[64];

    httpc_once(&all.client, "POST", HB_JOBS,
               hb_submission(&a, hb_chain(&a, WATCHED_STEPS, "\"signal\":\"go\""), 0), &out);
    job = hb_id(gl_buf_view(&out), &a);
    path = gl_str_fmt(&a, HB_JOBS "/%s/events", job.p);
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
    httpc_once(&all.client, "POST", gl_str_fmt(&a, HB_JOBS "/%s/signals/go", job.p).p, (gl_str){0},
               NULL);
    httpc_run(&all.client);
    printf("%4zu watchers        %10.1f ms  until all have seen %ld events (the first: %.1f ms); "
           "node CPU %.0f ms, RSS %.1f MiB\n",
           n, (httpc_now() - began) * 1e3, all.events, (all.ended_at_first - began) * 1e3,
           (served_cpu_s(s) - cpu) * 1e3, served_rss_mib(s));
    (void)snprintf(key, sizeof(key), "watch_%zu_ms", n);
    hb_figure(b, key, (httpc_now() - began) * 1e3);
    (void)snprintf(key, sizeof(key), "watch_%zu_first_ms", n);
    hb_figure(b, key, (all.ended_at_first - began) * 1e3);
    (void)snprintf(key, sizeof(key), "watch_%zu_cpu_ms", n);
    hb_figure(b, key, (served_cpu_s(s) - cpu) * 1e3);
    (void)snprintf(key, sizeof(key), "watch_%zu_events", n);
    hb_figure(b, key, (double)all.events);
    for (size_t i = 0; i < n; i++) {
        httpc_close(&all.conns[i]);
    }
    httpc_done(&all.client);
    free(all.conns);
    free(all.watchers);
}

void hb_watch(struct bench *b)
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

void hb_crowd(struct bench *b)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    size_t n = b->quick ? WATCHERS_MAX / 10 : WATCHERS_MAX, jobs = b->quick ? 5000 : 50000;
    struct httpc_conn *conns = calloc(n, sizeof(*conns));
    gl_str flow = hb_one_step(&a, "\"noop\":true");
    gl_str body = hb_submission(&a, hb_one_step(&a, "\"signal\":\"go\""), 0);
    struct served s;
    struct httpc c;
    double alone, beside, cpu_alone, cpu_beside;

    served_start(&s, b->glia, b->data, "default=1024", b->with_tcp);
    c = hb_client(&s);
    httpc_init(&c);
    (void)hb_run_load(&s, flow, jobs / 10, HB_BATCH, 4, HB_WINDOW); /* warm */
    cpu_alone = served_cpu_s(&s);
    alone = hb_run_load(&s, flow, jobs, HB_BATCH, 4, HB_WINDOW);
    cpu_alone = served_cpu_s(&s) - cpu_alone;
    for (size_t i = 0; i < n; i++) {
        httpc_once(&c, "POST", HB_JOBS, body, &out);
        conns[i] = (struct httpc_conn){.on_reply = on_quiet, .on_text = on_first};
        httpc_open(&c, &conns[i]);
        httpc_ask(&conns[i], "GET",
                  gl_str_fmt(&a, HB_JOBS "/%s/events", hb_id(gl_buf_view(&out), &a).p).p,
                  "Accept: text/event-stream\r\n", (gl_str){0});
        httpc_run(&c);
    }
    cpu_beside = served_cpu_s(&s);
    beside = hb_run_load(&s, flow, jobs, HB_BATCH, 4, HB_WINDOW);
    cpu_beside = served_cpu_s(&s) - cpu_beside;
    printf("%4zu jobs watched    %10.0f jobs/s of others, %.2f x as without; %.2f x the CPU\n", n,
           (double)jobs / beside, alone / beside, cpu_beside / cpu_alone);
    hb_figure(b, "crowd_jobs", (double)jobs / beside);
    hb_figure(b, "crowd_alone_jobs", (double)jobs / alone);
    hb_figure(b, "crowd_cpu", cpu_beside / cpu_alone);
    for (size_t i = 0; i < n; i++) {
        httpc_close(&conns[i]);
    }
    httpc_done(&c);
    free(conns);
    served_stop(&s);
}
