#include "bench_node.h"

#include <event2/event.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "app/stores.h"
#include "exec/keeper_exec.h"
#include "exec/module_exec.h"
#include "exec/noop_exec.h"
#include "node/node_state.h"
#include "os/random.h"
#include "os/recorder.h"

#define RECORD_BYTES (32u << 20) /* as a node has it */

struct ticket {
    struct gl_request rq;
    struct bench *b;
};

void bench_fail(const char *what, const struct gl_why *why)
{
    fprintf(stderr, "bench: %s: %s\n", what, why != NULL ? why->text : "");
    exit(1);
}

double bench_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void on_submitted(struct gl_request *rq)
{
    struct ticket *t = rq->owner;

    if (rq->code != 0) {
        bench_fail("submit", &rq->why);
    }
    if (++t->b->answered == t->b->submitted && t->b->quiet) {
        gl_loop_stop(t->b->loop);
    }
    free(t);
}

void bench_submit(struct bench *b)
{
    struct ticket *t = calloc(1, sizeof(*t));

    t->b = b;
    t->rq = (struct gl_request){.verb = GL_VERB_SUBMIT,
                                .context = GL_S("default"),
                                .submission = {.compiled = b->flow},
                                .done = on_submitted,
                                .owner = t};
    if (b->began != NULL) {
        b->began[b->submitted] = bench_now();
    }
    b->submitted++;
    gl_node_request(b->node, &t->rq);
}

static void look(evutil_socket_t fd, short what, void *owner)
{
    struct bench *b = owner;

    (void)fd;
    (void)what;
    b->quiet_looks = gl_node_idle(b->node) ? b->quiet_looks + 1 : 0;
    if (b->quiet_looks >= 5) {
        gl_loop_stop(b->loop);
    }
}

void bench_until_quiet(struct bench *b)
{
    struct event *timer = event_new(gl_loop_base(b->loop), -1, EV_PERSIST, look, b);
    struct timeval every = {.tv_usec = 200000};

    b->quiet_looks = 0;
    (void)event_add(timer, &every);
    gl_loop_run(b->loop);
    event_free(timer);
}

/* Jobs are submitted from the loop, never from inside the node's own callback. */
static void refill(struct gl_loop_task *task)
{
    struct bench *b = task->owner;

    b->refilling = false;
    while (b->submitted < b->total && b->submitted - b->ended < b->window) {
        bench_submit(b);
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
        b->took[b->ended] = bench_now() - b->began[b->ended];
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

/* Declared dead: the machine stood still for longer than a session. */
static void on_session_lost(void *owner, const char *text)
{
    struct gl_why why;

    (void)owner;
    (void)gl_why(&why, GL_E_GONE, "%s", text);
    bench_fail("the session is lost", &why);
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

void bench_open(struct bench *b, uint32_t slots, uint32_t hot)
{
    struct gl_why why;
    char folder[512];
    struct gl_stores_config config = {.url = b->store_url, .data = b->data};
    struct gl_pool_config pool = {.name = GL_S("default"), .slots = slots};
    struct gl_node_config node = {.context = GL_CONTEXT_DEFAULT,
                                  .name = gl_str_of(b->name),
                                  .pools = &pool,
                                  .pools_n = 1,
                                  .hot_jobs_max = hot,
                                  .trace = &b->trace,
                                  .on_ready = on_ready,
                                  .on_session = on_session,
                                  .on_ended = on_ended,
                                  .on_session_lost = on_session_lost,
                                  .owner = b};
    struct gl_node_ports ports = {0};
    struct gl_exec_events events;
    struct gl_store_events heard;
    struct gl_keeper_exec_config keeper = {.data_dir = b->data, .keeper_path = b->keeper};
    struct gl_noop_exec_config noop = {0};
    char host[600];
    struct gl_module_exec_config modules = {
        .folders = b->modules, .trusted = "bench.pingpong", .host_path = host};
    int rc;

    (void)snprintf(host, sizeof(host), "%s/../../glia-module-host",
                   b->modules != NULL ? b->modules : ".");

    if (gl_loop_new(&b->loop, &why) != 0 ||
        gl_stores_open(&b->store, &config, b->loop, &why) != 0) {
        bench_fail("open", &why);
    }
    b->entropy = gl_random_entropy();
    ports.store = b->store;
    ports.clock = gl_loop_clock(b->loop);
    ports.entropy = &b->entropy;
    if (b->record) {
        (void)snprintf(folder, sizeof(folder), "%s/" GL_RECORDER_FOLDER, b->data);
        if (gl_recorder_open(&b->recorder, folder, RECORD_BYTES, &why) != 0) {
            bench_fail("recorder", &why);
        }
        ports.record = gl_recorder_port(b->recorder);
    }
    b->node = gl_node_new(&node, &ports);
    events = gl_node_exec_events(b->node);
    if (b->quiet) {
        events.up = on_quiet;
    }
    rc = b->with_keeper    ? gl_keeper_exec_open(&b->exec, &keeper, b->loop, &events, &why)
         : b->with_modules ? gl_module_exec_open(&b->exec, &modules, b->loop, &events, &why)
                           : gl_noop_exec_open(&b->exec, &noop, b->loop, &events, &why);
    if (rc != 0) {
        bench_fail("executor", &why);
    }
    gl_node_set_exec(b->node, b->exec);
    if (b->store->ops->shared) {
        heard = gl_node_store_events(b->node);
        b->store->ops->listen(b->store, &heard);
    }
    gl_node_start(b->node);
    gl_loop_run(b->loop);
}

void bench_close(struct bench *b)
{
    const struct gl_core_counts *counts = gl_core_counts(b->node->core);
    struct gl_why why;

    if (counts->jobs_failed > 0) { /* however fast it was */
        (void)gl_why(&why, GL_E_INVALID, "%llu jobs", (unsigned long long)counts->jobs_failed);
        bench_fail("failed", &why);
    }
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

double bench_run(struct bench *b, gl_str flow, size_t total, size_t window)
{
    double began;

    b->flow = flow;
    b->total = total;
    b->window = window;
    b->submitted = b->answered = b->ended = 0;
    began = bench_now();
    post_refill(b);
    gl_loop_run(b->loop);
    return bench_now() - began;
}
