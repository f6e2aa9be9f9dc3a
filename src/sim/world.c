#include "sim/world.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "base/mem.h"

#define FNV_START 0xcbf29ce484222325ULL
#define FNV_PRIME 0x100000001b3ULL

static struct sim_call *call_of(const struct gl_heap_item *item)
{
    return GL_CONTAINER(item, struct sim_call, item);
}

static bool call_before(const struct gl_heap_item *a, const struct gl_heap_item *b)
{
    const struct sim_call *x = call_of(a);
    const struct sim_call *y = call_of(b);
    return x->due != y->due ? x->due < y->due : x->seq < y->seq;
}

void sim_world_init(struct sim_world *w, uint64_t seed)
{
    *w = (struct sim_world){.seed = seed, .now = SIM_EPOCH_MS, .hash = FNV_START};
    gl_heap_init(&w->agenda, call_before);
    gl_rng_init(&w->rng, seed);
    gl_map_init(&w->marks);
    w->tail = gl_mem_alloc(sizeof(*w->tail) * SIM_TAIL_LINES);
}

void sim_world_done(struct sim_world *w)
{
    GL_ASSERT(gl_heap_top(&w->agenda) == NULL);
    struct sim_mark *m;
    for (size_t i = 0; (m = gl_map_next(&w->marks, &i)) != NULL;) {
        gl_mem_free(m);
    }
    gl_map_done(&w->marks);
    gl_heap_done(&w->agenda);
    gl_mem_free(w->tail);
}

void sim_call_init(struct sim_call *call, void (*fn)(struct sim_call *call), struct sim_gate *gate)
{
    *call = (struct sim_call){.fn = fn, .gate = gate};
    gl_list_init(&call->kept);
}

bool sim_call_waits(const struct sim_call *call)
{
    return gl_heap_has(&call->item) || !gl_list_empty(&call->kept);
}

void sim_world_at(struct sim_world *w, struct sim_call *call, gl_ms due)
{
    GL_ASSERT(call->fn != NULL);
    GL_ASSERT(!sim_call_waits(call));
    call->due = due < w->now ? w->now : due;
    call->seq = w->calls_made++;
    gl_heap_push(&w->agenda, &call->item);
}

void sim_world_cancel(struct sim_world *w, struct sim_call *call)
{
    if (gl_heap_has(&call->item)) {
        gl_heap_remove(&w->agenda, &call->item);
    } else {
        gl_list_remove(&call->kept);
    }
}

bool sim_world_step(struct sim_world *w)
{
    struct gl_heap_item *top = gl_heap_top(&w->agenda);
    if (top == NULL) {
        return false;
    }
    struct sim_call *call = call_of(top);
    gl_heap_remove(&w->agenda, top);
    GL_ASSERT(call->due >= w->now);
    w->calls_now = call->due > w->now ? 0 : w->calls_now + 1;
    if (w->calls_now > SIM_CALLS_PER_MS_MAX) {
        sim_world_fail(w, "time: %d calls in one millisecond: an endless loop",
                       SIM_CALLS_PER_MS_MAX);
    }
    w->now = call->due;
    w->calls_run++;
    if (call->gate != NULL && call->gate->shut) {
        gl_list_push(&call->gate->kept, &call->kept);
    } else {
        call->fn(call);
    }
    return true;
}

void sim_world_run(struct sim_world *w, gl_ms until)
{
    while (!w->failed) {
        struct gl_heap_item *top = gl_heap_top(&w->agenda);
        if (top == NULL || call_of(top)->due > until) {
            w->now = until > w->now ? until : w->now;
            return;
        }
        (void)sim_world_step(w); /* it exists */
    }
}

void sim_gate_init(struct sim_gate *g)
{
    *g = (struct sim_gate){0};
    gl_list_init(&g->kept);
}

void sim_gate_shut(struct sim_gate *g)
{
    GL_ASSERT(!g->shut);
    g->shut = true;
}

void sim_gate_open(struct sim_world *w, struct sim_gate *g)
{
    GL_ASSERT(g->shut);
    g->shut = false;
    struct gl_link *first;
    while ((first = gl_list_first(&g->kept)) != NULL) {
        struct sim_call *call = GL_CONTAINER(first, struct sim_call, kept);
        gl_list_remove(first);
        sim_world_at(w, call, w->now);
    }
}

bool sim_world_fault(struct sim_world *w, struct gl_rng *r, uint32_t per_million)
{
    if (!w->faults || w->fault_budget == 0 || per_million == 0 || !gl_rng_chance(r, per_million)) {
        return false;
    }
    w->fault_budget--;
    w->faults_hit++;
    return true;
}

static void on_trace(struct gl_trace *t, const struct gl_trace_record *r)
{
    struct sim_tracer *me = GL_CONTAINER(t, struct sim_tracer, trace);
    sim_world_trace(me->world, *r);
}

void sim_tracer_init(struct sim_tracer *t, struct sim_world *w, const char *node)
{
    *t = (struct sim_tracer){.trace = {.write = on_trace, .node = node}, .world = w};
}

static void count_mark(struct sim_world *w, const char *name)
{
    struct sim_mark *m = gl_map_find(&w->marks, gl_str_of(name));
    if (m == NULL) {
        m = gl_mem_alloc(sizeof(*m));
        m->name = name;
        gl_map_add(&w->marks, gl_str_of(m->name), m);
    }
    m->hits++;
}

void sim_world_trace(struct sim_world *w, struct gl_trace_record r)
{
    r.now -= SIM_EPOCH_MS; /* so that a reader sees seconds, not an epoch */
    char *line = w->tail[w->lines_n++ % SIM_TAIL_LINES];
    size_t n = gl_trace_format(&r, line, SIM_LINE_BYTES);
    n = n < SIM_LINE_BYTES ? n : SIM_LINE_BYTES - 1;
    uint64_t h = w->hash;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ (uint8_t)line[i]) * FNV_PRIME;
    }
    w->hash = (h ^ '\n') * FNV_PRIME;
    if (r.kind == GL_TR_MARK) {
        GL_ASSERT(r.what != NULL);
        count_mark(w, r.what);
    }
    if (w->print != NULL) {
        w->print(w->print_owner, line);
    }
    if (w->watch != NULL) {
        w->watch(w->watch_owner, &r);
    }
}

uint64_t sim_world_mark_hits(const struct sim_world *w, const char *name)
{
    const struct sim_mark *m = gl_map_find(&w->marks, gl_str_of(name));
    return m == NULL ? 0 : m->hits;
}

void sim_world_tail(const struct sim_world *w, void (*each)(void *owner, const char *line),
                    void *owner)
{
    uint64_t first = w->lines_n > SIM_TAIL_LINES ? w->lines_n - SIM_TAIL_LINES : 0;
    for (uint64_t i = first; i < w->lines_n; i++) {
        each(owner, w->tail[i % SIM_TAIL_LINES]);
    }
}

void sim_world_fail(struct sim_world *w, const char *fmt, ...)
{
    if (w->failed) {
        return;
    }
    w->failed = true;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(w->failure, sizeof(w->failure), fmt,
                    args); /* a truncated sentence is still useful */
    va_end(args);
}
