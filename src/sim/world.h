/* world.h - the base of the simulation: virtual time, an agenda of future calls, random numbers,
 * and the trace.
 *
 * Time advances only when the next call of the agenda is due. Calls due at the same millisecond run
 * in the order in which they were made, so one seed has one history. A call may belong to a gate:
 * while the gate is shut (its node is paused) the call is held, and when it opens all held calls
 * run at once, in order.
 *
 * Every trace record of every node, and every action of the simulator itself, becomes a line here:
 * hashed, kept for a failure report, counted if it is a mark, and printed on request. */
#ifndef GL_SIM_WORLD_H
#define GL_SIM_WORLD_H

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/trace.h"
#include "sim/sim_options.h"

enum {
    SIM_TAIL_LINES = 120, /* lines kept for a failure report */
    SIM_LINE_BYTES = 256,
    SIM_FAILURE_BYTES = 1024,
    SIM_CALLS_PER_MS_MAX = 50000, /* more calls than this in one millisecond: an endless loop */
};
#define SIM_EPOCH_MS 1800000000000LL /* the start time of every simulated history */

struct sim_gate {
    bool shut;
    struct gl_link kept; /* calls that came due while it was shut */
};

struct sim_call { /* embedded by the caller */
    struct gl_heap_item item;
    struct gl_link kept;
    gl_ms due;
    uint64_t seq;
    void (*fn)(struct sim_call *call);
    struct sim_gate *gate; /* NULL: never held */
};

struct sim_mark {
    const char *name;
    uint64_t hits;
};

struct sim_world {
    uint64_t seed;
    gl_ms now;         /* true time; a node's own time is in its sim_node */
    gl_ms wall_offset; /* of the machine's wall clock against true time */
    struct gl_heap agenda;
    uint64_t calls_made, calls_run;
    uint64_t calls_now; /* run since time last moved */
    struct gl_rng rng;  /* forked once per subsystem, otherwise never used */
    struct sim_options options;
    struct sim_cluster_options cluster; /* all zero if there is one machine */
    struct sim_agent_options bundles;   /* all zero if there are none */
    bool agents;                        /* bundles among the jobs */
    bool faults;                        /* false: phase two, or a scenario ... */
    gl_ms calm_since;                   /* ... and when that began */
    uint32_t fault_budget;              /* remaining fault budget */
    uint32_t faults_hit;

    uint64_t hash; /* of every line so far */
    uint64_t lines_n;
    char (*tail)[SIM_LINE_BYTES];                 /* the last SIM_TAIL_LINES lines, a ring */
    struct gl_map marks;                          /* name -> struct sim_mark */
    void (*print)(void *owner, const char *line); /* NULL: nothing is printed */
    void (*watch)(void *owner, const struct gl_trace_record *r); /* NULL: no checker observes */
    void *print_owner, *watch_owner;

    bool failed;
    char failure[SIM_FAILURE_BYTES];
};

/* The trace of a node, whose records become lines here. */
struct sim_tracer {
    struct gl_trace trace;
    struct sim_world *world;
};

void sim_world_init(struct sim_world *w, uint64_t seed);
void sim_world_done(struct sim_world *w); /* every call must have been cancelled or run */

/* ---- time ---- */

void sim_call_init(struct sim_call *call, void (*fn)(struct sim_call *call), struct sim_gate *gate);
/* The call must not be waiting already. A time in the past means: next. */
void sim_world_at(struct sim_world *w, struct sim_call *call, gl_ms due);
void sim_world_cancel(struct sim_world *w,
                      struct sim_call *call); /* does nothing if it is not waiting */
bool sim_call_waits(const struct sim_call *call);

bool sim_world_step(struct sim_world *w); /* runs the next call; false: there is none */
/* Runs everything due up to `until` (included), or until a failure; then it is `until`. */
void sim_world_run(struct sim_world *w, gl_ms until);

void sim_gate_init(struct sim_gate *g);
void sim_gate_shut(struct sim_gate *g);
void sim_gate_open(struct sim_world *w, struct sim_gate *g);

/* ---- chance ---- */

/* Does this fault happen now? Never when faults are off or the budget is spent. */
bool sim_world_fault(struct sim_world *w, struct gl_rng *r, uint32_t per_million);

/* ---- the trace ---- */

void sim_tracer_init(struct sim_tracer *t, struct sim_world *w, const char *node);
/* Adds an action of the simulator itself to the trace. */
#define SIM_TRACE(w, k, ...)                       \
    sim_world_trace((w), (struct gl_trace_record){ \
                             .kind = GL_TR_##k, .node = "sim", .now = (w)->now, __VA_ARGS__})
void sim_world_trace(struct sim_world *w, struct gl_trace_record r);
uint64_t sim_world_mark_hits(const struct sim_world *w, const char *name);
/* Calls `each` with each kept line, oldest first. */
void sim_world_tail(const struct sim_world *w, void (*each)(void *owner, const char *line),
                    void *owner);
/* An invariant is violated. The first sentence is kept. */
void sim_world_fail(struct sim_world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
