/* trace.h - the typed trace: one stream of records, read by the log, the tests, the simulator's
 * hash and its marks.
 *
 * The pure rooms report their decisions as records to a sink they were given; they format no text.
 * GL_MARK names a rare branch: tests and the swarm list the marks that must be reached. */
#ifndef GL_BASE_TRACE_H
#define GL_BASE_TRACE_H

#include "base/times.h"

#define GL_TRACES(X)  \
    X(JOB, "job")     \
    X(STEP, "step")   \
    X(OWNER, "owner") \
    X(TX, "tx")       \
    X(EXEC, "exec")   \
    X(SLOT, "slot")   \
    X(NODE, "node")   \
    X(MARK, "mark")

enum gl_trace_kind {
#define X(name, word) GL_TR_##name,
    GL_TRACES(X)
#undef X
        GL_TR_COUNT
};

struct gl_trace_record {
    gl_ms now;
    const char *node; /* the reporting node; may be NULL */
    enum gl_trace_kind kind;
    gl_str job, step;      /* empty: not applicable */
    uint64_t token;        /* 0: none */
    int64_t number;        /* attempt, slots, revision: depends on the kind */
    const char *what;      /* a static word: "taken", "started", a mark's name */
    const char *from, *to; /* a state change; static words or NULL */
};

struct gl_trace {
    void (*write)(struct gl_trace *t, const struct gl_trace_record *r); /* NULL: no sink */
    const char *node;
    gl_ms now; /* set by the driver at each step */
};

void gl_trace_write(struct gl_trace *t, struct gl_trace_record r); /* fills in now and node */
/* "t=3000 n1 owner job=a7 token=2 taken" without a newline; returns the length (truncates). */
size_t gl_trace_format(const struct gl_trace_record *r, char *buf, size_t bytes);

#define GL_TRACE(t, k, ...) \
    gl_trace_write((t), (struct gl_trace_record){.kind = GL_TR_##k, __VA_ARGS__})
#define GL_MARK(t, name) GL_TRACE(t, MARK, .what = (name))

/* A planted bug: compiled in only with -Dplant=true, selected at run time by glia-sim --plant N. In
 * every other build it is the constant false and has no cost. */
#ifdef GL_WITH_PLANTS
extern int gl_planted;
#define GL_PLANT(n) (gl_planted == (n))
#else
#define GL_PLANT(n) 0
#endif

#endif
