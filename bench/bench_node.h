/* bench_node.h - one node over a store, in this process, and jobs for it.
 *
 *   bench_node.c   the node and its load      bench_wire.c   traffic of its connections
 *   bench_flows.c  the flows                  bench.c        the workloads, and main()
 *
 * Call order: bench_open(), bench_run() for each workload, bench_close(). */
#ifndef GL_BENCH_NODE_H
#define GL_BENCH_NODE_H

#include "base/mem.h"
#include "node/node.h"
#include "os/loop.h"

struct bench {
    const char *store_url; /* "" : SQLite in the data folder */
    const char *data;
    const char *name;    /* of the node */
    const char *keeper;  /* path of glia-keeper */
    const char *modules; /* folder with pingpong.so, to run native modules; NULL: run nothing */
    const char *figures;
    unsigned percent; /* share of the jobs of a full run */
    unsigned nodes;   /* for the workload `nodes` */
    bool record;
    struct gl_recorder *recorder;
    struct gl_loop *loop;
    struct gl_store *store;
    struct gl_exec *exec;
    struct gl_node *node;
    struct gl_trace trace;
    struct gl_entropy entropy;
    bool with_modules, with_keeper,
        quiet; /* quiet: the executor never comes up, so everything waits for slots */

    /* The current workload. */
    gl_str flow;
    size_t total, window, submitted, answered, ended;
    double *began, *took; /* per job, for latencies; NULL: not measured */
    struct gl_loop_task task;
    bool refilling;
    unsigned quiet_looks;
    struct gl_arena arena;
};

_Noreturn void bench_fail(const char *what, const struct gl_why *why);
double bench_now(void); /* seconds */

/* Ready when it returns; with `quiet`, as soon as there is a session. `hot`: 0 as it comes. */
void bench_open(struct bench *b, uint32_t slots, uint32_t hot);
void bench_close(struct bench *b);
void bench_submit(struct bench *b);
/* Wait until the core has been idle for a while. */
void bench_until_quiet(struct bench *b);
/* Seconds until `total` jobs have ended, with `window` of them outstanding. */
double bench_run(struct bench *b, gl_str flow, size_t total, size_t window);

gl_str bench_one_step(struct bench *b, const char *action);
gl_str bench_chain(struct bench *b, unsigned n);
gl_str bench_fan_out(struct bench *b, unsigned n); /* a root, n children, a join */
/* Agents (bench_agents.c): pairs that send each other `hops` messages, one after the other; ... */
gl_str bench_balls(struct bench *b, unsigned pairs, unsigned hops);
/* ... one step that becomes `items`, and one after them; ... */
gl_str bench_scatter(struct bench *b, unsigned items);
/* ... agents that get one message each, and then wait. */
gl_str bench_idlers(struct bench *b, unsigned agents);

struct bench_wire { /* over all TCP connections of this process that are open now */
    double bytes_out, bytes_in;
    double sends; /* data segments sent: on the loopback about one per write */
};
struct bench_wire bench_wire(void);

#endif
