/* module_bench.c - throughput of the executor of native modules, without a node.
 *
 *   module_bench HOST FOLDER [CALLS]    HOST: glia-module-host; FOLDER: with pingpong.so
 *
 * Each call is a start, its answer, its end and the acknowledgement; a thousand are outstanding. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "exec/module_exec.h"

enum { WINDOW = 1000 };

struct call {
    struct gl_exec_req req;
    struct gl_exec_start start;
    char attempt[32];
};

struct bench {
    struct gl_loop *loop;
    struct gl_exec *x;
    struct call *calls;
    size_t total, started, ended;
    gl_str module, input;
    bool is_closed;
};

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void on_done(struct gl_exec_req *req)
{
    if (req->status != 0) {
        (void)fprintf(stderr, "module_bench: %s\n", req->why.text);
        exit(1);
    }
}

static void start_more(struct bench *b)
{
    while (b->started < b->total && b->started - b->ended < WINDOW) {
        struct call *c = &b->calls[b->started++ % (2 * WINDOW)];
        int n = snprintf(c->attempt, sizeof(c->attempt), "@a:attempt:%zu", b->started);
        c->req = (struct gl_exec_req){.done = on_done};
        c->start = (struct gl_exec_start){
            .key = {GL_S("default"),
                    GL_S("01M7GFVX2E2ETTX37YZJGGFB0B"),
                    {.p = c->attempt, .n = (size_t)n}},
            .token = 1,
            .driver = GL_S("module"),
            .argv = &b->module,
            .argv_n = 1,
            .input = b->input,
            .timeout_ms = 60000,
        };
        b->x->ops->start(b->x, &c->req, &c->start);
    }
}

static void on_ended(void *owner, const struct gl_attempt_key *key, uint64_t token,
                     const struct gl_exec_result *result)
{
    struct bench *b = owner;
    if (result->exit_code != 0) {
        (void)fprintf(stderr, "module_bench: %.*s\n", GL_STR_ARG(result->error));
        exit(1);
    }
    b->x->ops->ack(b->x, key, token);
    if (++b->ended == b->total) {
        gl_loop_stop(b->loop);
    } else if (b->started - b->ended < WINDOW / 2) {
        start_more(b);
    }
}

static void on_up(void *owner, gl_str epoch)
{
    struct bench *b = owner;
    (void)epoch;
    gl_loop_stop(b->loop);
}

static void on_closed(void *owner)
{
    struct bench *b = owner;
    b->is_closed = true;
    gl_loop_stop(b->loop);
}

static double run(struct bench *b, size_t total)
{
    double began = now();
    b->total = total;
    b->started = b->ended = 0;
    start_more(b);
    while (b->ended < b->total) {
        gl_loop_run(b->loop);
    }
    return now() - began;
}

static void measure(struct bench *b, const char *name, const struct gl_module_exec_config *config,
                    size_t total)
{
    struct gl_exec_events events = {.owner = b, .up = on_up, .ended = on_ended};
    struct gl_why why;
    if (gl_module_exec_open(&b->x, config, b->loop, &events, &why) != 0) {
        (void)fprintf(stderr, "module_bench: %s\n", why.text);
        exit(1);
    }
    gl_loop_run(b->loop);
    (void)run(b, 1); /* the module is found and loaded */
    double took = run(b, total);
    printf("%-8s %8zu calls in %6.2f s: %8.0f calls/s\n", name, total, took, (double)total / took);
    b->is_closed = false;
    b->x->ops->close(b->x, on_closed, b);
    while (!b->is_closed) {
        gl_loop_run(b->loop);
    }
}

int main(int argc, char **argv)
{
    struct bench b = {
        .module = GL_S("bench.pingpong"),
        .input =
            GL_S("{\"config\":{\"peer\":\"b\"},\"message\":{\"envelope\":{\"spec_version\":"
                 "\"mn-msg/1\",\"message_id\":\"01M7GFVX2E2ETTX37YZJGGFB0B\",\"job_id\":"
                 "\"01M7GFVX2E2ETTX37YZJGGFB0B\",\"from\":\"b\",\"to\":\"a\",\"type\":\"ball\","
                 "\"class\":\"event\",\"timestamp\":\"2026-11-15T20:00:00Z\","
                 "\"correlation_id\":\"01M7GFVX2E2ETTX37YZJGGFB0B\",\"attempt\":1,"
                 "\"priority\":100,\"content_type\":\"application/json\","
                 "\"content_encoding\":\"identity\"},\"headers\":{},\"body\":{\"left\":1000},"
                 "\"artifacts\":[],\"stream\":null},\"state\":7,\"job_id\":"
                 "\"01M7GFVX2E2ETTX37YZJGGFB0B\",\"agent_id\":\"a\"}"),
    };
    size_t total = argc > 3 ? (size_t)atol(argv[3]) : 200000;
    struct gl_module_exec_config config = {0};
    struct gl_why why;
    if (argc < 3 || gl_loop_new(&b.loop, &why) != 0) {
        (void)fprintf(stderr, "usage: module_bench HOST FOLDER [CALLS]\n");
        return 2;
    }
    b.calls = gl_mem_alloc(2 * WINDOW * sizeof(*b.calls));
    config.host_path = argv[1];
    config.folders = argv[2];
    config.trusted = "bench.pingpong";
    measure(&b, "trusted", &config, total);
    config.trusted = "";
    measure(&b, "hosted", &config, total);
    gl_mem_free(b.calls);
    gl_loop_free(b.loop);
    return 0;
}
