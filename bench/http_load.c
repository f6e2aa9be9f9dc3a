#include "http_load.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    LOOK_MS = 2,
};

void hb_figure(const struct bench *b, const char *name, double value)
{
    FILE *f = b->figures != NULL ? fopen(b->figures, "ae") : NULL;

    if (f != NULL) {
        fprintf(f, "%s%s %.6g\n", b->with_tcp ? "tcp_" : "http_", name, value);
        fclose(f);
    }
}

struct httpc hb_client(const struct served *s)
{
    return (struct httpc){.socket = s->socket, .port = s->port, .token = s->token};
}

int hb_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double hb_value(gl_str text, const char *name)
{
    const char *at = text.n > 0 ? memmem(text.p, text.n, name, strlen(name)) : NULL;

    if (at == NULL) {
        httpc_fail("not in the answer", gl_str_of(name));
    }
    return strtod(at + strlen(name), NULL);
}

gl_str hb_id(gl_str body, struct gl_arena *a)
{
    const char *at = memmem(body.p, body.n, "\"job_id\":\"", 10);

    if (at == NULL) {
        httpc_fail("no job", body);
    }
    return gl_str_dup(a, (gl_str){.p = at + 10, .n = 26});
}

/* ---- flows ---- */

gl_str hb_one_step(struct gl_arena *a, const char *action)
{
    return gl_str_fmt(a, "{\"steps\":{\"a\":{%s}}}", action);
}

gl_str hb_chain(struct gl_arena *a, unsigned n, const char *first)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf t = {0};

    gl_buf_fmt(&t, "{\"steps\":{\"s0\":{%s}", first);
    for (unsigned i = 1; i < n; i++) {
        gl_buf_fmt(&t, ",\"s%u\":{\"noop\":true,\"needs\":[\"s%u\"]}", i, i - 1);
    }
    gl_buf_c(&t, "}}");
    return gl_str_dup(a, gl_buf_view(&t));
}

gl_str hb_fan(struct gl_arena *a, unsigned n)
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

gl_str hb_submission(struct gl_arena *a, gl_str flow, size_t count)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf t = {0};

    gl_buf_fmt(&t, "{\"flow\":%.*s", GL_STR_ARG(flow));
    for (size_t i = 0; i < count; i++) {
        gl_buf_c(&t, i == 0 ? ",\"jobs\":[{}" : ",{}");
    }
    gl_buf_c(&t, count > 0 ? "]}" : "}");
    return gl_str_dup(a, gl_buf_view(&t));
}

/* ---- jobs as fast as they are accepted, until all have ended ---- */

struct load {
    struct httpc client;
    struct httpc_conn conns[HB_CONNS_MAX], look;
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
    l->ended = hb_value(body, "\nglia_jobs_ended_total{status=\"completed\"} ");
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

double hb_ended(struct httpc *c)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};

    httpc_once(c, "GET", "/metrics", (gl_str){0}, &out);
    return hb_value(gl_buf_view(&out), "\nglia_jobs_ended_total{status=\"completed\"} ");
}

double hb_run_load(const struct served *s, gl_str flow, size_t total, size_t batch, size_t conns,
                   size_t window)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct load l = {.client = hb_client(s), .conns_n = conns, .window = window};
    double began;

    l.per_request = batch > 0 ? batch : 1;
    l.path = batch > 0 ? HB_JOBS ":batch" : HB_JOBS;
    l.body = hb_submission(&a, flow, batch);
    l.total = (total + l.per_request - 1) / l.per_request * l.per_request;
    l.ended = l.ended_before = hb_ended(&l.client);
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
