#include "sim/sim_node.h"

#include <stdio.h>

#include "base/check.h"
#include "base/mem.h"

static gl_ms clock_now(struct gl_clock *c)
{
    const struct sim_node *n = GL_CONTAINER(c, struct sim_node, clock);
    return n->world->now + n->offset;
}

static void clock_alarm(struct gl_clock *c, gl_ms at)
{
    struct sim_node *n = GL_CONTAINER(c, struct sim_node, clock);
    sim_world_cancel(n->world, &n->alarm);
    if (n->stopped && at != INT64_MAX) { /* it may have been freed by then */
        sim_world_fail(n->world, "node: it has stopped, and still has an alarm set");
        return;
    }
    if (at != INT64_MAX && !n->fuse.blown) {
        sim_world_at(n->world, &n->alarm, at - n->offset);
    }
}

static void on_alarm(struct sim_call *call)
{
    struct sim_node *n = GL_CONTAINER(call, struct sim_node, alarm);
    n->clock.fire(n->clock.owner);
}

static void entropy_fill(struct gl_entropy *e, void *bytes, size_t n)
{
    struct sim_node *me = GL_CONTAINER(e, struct sim_node, entropy);
    gl_rng_fill(&me->chance, bytes, (uint32_t)n);
}

/* Like the daemon: the executor is opened when the incarnation is known. */
static void on_session(void *owner, uint64_t incarnation)
{
    struct sim_node *n = owner;
    n->exec.name = n->name;
    n->exec.incarnation = incarnation;
    n->exec.offset = n->offset;
    n->exec.gate = &n->gate;
    n->exec.fuse = &n->fuse;
    n->exec.events = gl_node_exec_events(n->node);
    n->has_exec = true;
    sim_exec_open(&n->exec, n->world, n->keeper);
}

static void on_ready(void *owner)
{
    struct sim_node *n = owner;
    n->ready = true;
    SIM_TRACE(n->world, NODE, .what = "ready");
}

static void on_session_lost(void *owner, const char *why)
{
    struct sim_node *n = owner;
    (void)why;
    n->lost = true;
    SIM_TRACE(n->world, NODE, .what = "has lost its session");
    if (n->on_lost != NULL) {
        n->on_lost(n->owner, n);
    }
}

static void on_event(void *owner, const struct gl_event *ev)
{
    struct sim_node *n = owner;
    (void)ev;
    if (n->renew > 0 && gl_rng_chance(&n->whim, n->renew)) {
        gl_node_restore_core(n->node);
    }
}

static struct gl_blob *open_folder(struct sim_node *n, struct gl_blob *given)
{
    if (n->keeper->folder == NULL) {
        return given;
    }
    sim_blobs_open(&n->blobs, n->keeper->folder, &n->gate, &n->fuse);
    return &n->blobs.port;
}

enum { SIM_POOLS_N = 3 };

static size_t list_pools(const struct sim_pools *p, struct gl_pool_config ret[static SIM_POOLS_N])
{
    const struct gl_pool_config all[SIM_POOLS_N] = {
        {.name = GL_S("default"), .slots = p->default_slots},
        {.name = GL_S("gpu"), .slots = p->gpu_slots},
        {.name = GL_S("executor.default"), .slots = p->executor_slots},
    };
    size_t n = 0;
    for (size_t i = 0; i < SIM_POOLS_N; i++) {
        if (all[i].slots > 0) {
            ret[n++] = all[i];
        }
    }
    return n;
}

struct sim_node *sim_node_new(struct sim_world *w, struct sim_disk *disk, struct sim_keeper *keeper,
                              const struct sim_node_options *options)
{
    struct sim_node *n = gl_mem_alloc(sizeof(*n));
    n->world = w;
    n->keeper = keeper;
    n->offset = *keeper->wall;
    n->on_lost = options->on_lost;
    n->owner = options->owner;
    uint32_t machine = options->machine == 0 ? 1 : options->machine;
    (void)snprintf(n->machine, sizeof(n->machine), "n%u", machine);
    (void)snprintf(n->name, sizeof(n->name), "n%u.%u", machine, options->incarnation);
    gl_list_init(&n->link);
    gl_list_init(&n->asks);
    sim_tracer_init(&n->tracer, w, n->name);
    sim_gate_init(&n->gate);
    n->fuse = (struct sim_fuse){.calls_left = -1};
    gl_rng_fork(&w->rng, &n->chance, n->name);
    gl_rng_init(&n->whim, w->seed ^ options->incarnation ^ ((uint64_t)options->machine << 32));
    n->renew = options->renew;
    n->has_record = options->record;
    if (n->has_record) {
        sim_record_init(&n->record, w,
                        w->seed ^ options->incarnation ^ ((uint64_t)options->machine << 32));
    }
    sim_store_open(&n->store, w, disk, &n->gate, &n->fuse, n->name);
    sim_call_init(&n->alarm, on_alarm, &n->gate);
    n->clock = (struct gl_clock){.now = clock_now, .alarm = clock_alarm};
    n->entropy = (struct gl_entropy){.fill = entropy_fill};
    struct gl_pool_config pools[SIM_POOLS_N];
    size_t pools_n = list_pools(&options->pools, pools);
    struct gl_node_config config = {.name = gl_str_of(n->machine),
                                    .context = SIM_CONTEXT,
                                    .stack = gl_str_of(options->stack),
                                    .guest = options->guest,
                                    .session_ttl_ms = options->session_ttl_ms,
                                    .orphan_grace_ms = options->orphan_grace_ms,
                                    .pools = pools,
                                    .pools_n = pools_n,
                                    .hot_jobs_max = options->hot_jobs_max,
                                    .body_bytes = w->bundles.body_bytes,
                                    .keep = options->keep,
                                    .log_bytes = options->log_bytes,
                                    .trace = &n->tracer.trace,
                                    .round_trip_events = options->round_trip,
                                    .on_event = on_event,
                                    .on_session = on_session,
                                    .on_ready = on_ready,
                                    .on_session_lost = on_session_lost,
                                    .owner = n};
    struct gl_node_ports ports = {.store = &n->store.port,
                                  .exec = &n->exec.port,
                                  .clock = &n->clock,
                                  .entropy = &n->entropy,
                                  .blob = open_folder(n, options->blob),
                                  .logs = options->logs,
                                  .record = options->record ? &n->record.port : NULL};
    n->node = gl_node_new(&config, &ports);
    if (disk->shared) {
        struct gl_store_events events = gl_node_store_events(n->node);
        n->store.port.ops->listen(&n->store.port, &events);
    }
    SIM_TRACE(w, NODE, .number = options->incarnation, .what = "starts",
              .from = options->machine == 0 ? NULL : n->name);
    gl_node_start(n->node);
    return n;
}

void sim_ask_free(struct sim_ask *ask)
{
    gl_list_remove(&ask->link);
    gl_arena_done(&ask->arena);
    gl_mem_free(ask);
}

void sim_node_kill(struct sim_node *n)
{
    SIM_TRACE(n->world, NODE, .what = "killed", .from = n->name);
    sim_world_cancel(n->world, &n->alarm);
    sim_store_crash(&n->store);
    if (n->keeper->folder != NULL) {
        sim_blobs_done(&n->blobs);
    }
    if (n->has_exec) {
        sim_exec_crash(&n->exec);
    }
    gl_node_free(n->node);
    if (n->has_record) {
        sim_record_done(&n->record);
    }
    GL_ASSERT(!sim_call_waits(&n->alarm));
    struct gl_link *l;
    while ((l = gl_list_first(&n->asks)) != NULL) {
        struct sim_ask *ask = GL_CONTAINER(l, struct sim_ask, link);
        gl_list_remove(l);
        ask->done(ask->owner, ask, false);
        sim_ask_free(ask);
    }
    gl_list_remove(&n->link);
    gl_mem_free(n);
}

static void on_stopped(void *owner)
{
    struct sim_node *n = owner;
    n->stopped = true;
    struct gl_link *left = gl_list_first(&n->asks);
    if (left != NULL) {
        sim_world_fail(n->world, "client: a node stopped in order without answering: %s",
                       gl_verbs[GL_CONTAINER(left, struct sim_ask, link)->rq.verb].word);
    }
}

void sim_node_stop(struct sim_node *n)
{
    SIM_TRACE(n->world, NODE, .what = "stops", .from = n->name);
    n->stopping = true;
    gl_node_stop(n->node, on_stopped, n);
}

void sim_node_sleep(struct sim_node *n)
{
    SIM_TRACE(n->world, NODE, .what = "sleeps", .from = n->name);
    sim_gate_shut(&n->gate);
}

void sim_node_wake(struct sim_node *n)
{
    SIM_TRACE(n->world, NODE, .what = "wakes up", .from = n->name);
    sim_gate_open(n->world, &n->gate);
}

struct sim_ask *sim_ask_new(enum gl_verb verb)
{
    struct sim_ask *ask = gl_mem_alloc(sizeof(*ask));
    gl_list_init(&ask->link);
    gl_request_init(&ask->rq, verb, SIM_CONTEXT);
    return ask;
}

static void on_answer(struct gl_request *rq)
{
    struct sim_ask *ask = rq->owner;
    gl_list_remove(&ask->link);
    ask->done(ask->owner, ask, true);
    sim_ask_free(ask);
}

void sim_node_ask(struct sim_node *n, struct sim_ask *ask)
{
    GL_ASSERT(!n->gate.shut);
    ask->rq.done = on_answer;
    ask->rq.owner = ask;
    gl_list_push(&n->asks, &ask->link);
    gl_node_request(n->node, &ask->rq);
}
