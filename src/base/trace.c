/* trace.c - passes records to the sink, and formats them for those who want text. */
#include "base/trace.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"

#ifdef GL_WITH_PLANTS
int gl_planted; /* the only global: it exists only in builds that are wrong on purpose */
#endif

static const char *const kind_words[GL_TR_COUNT] = {
#define X(name, word) word,
    GL_TRACES(X)
#undef X
};

void gl_trace_write(struct gl_trace *t, struct gl_trace_record r)
{
    if (!t || !t->write) {
        return;
    }
    r.now = t->now;
    r.node = t->node;
    t->write(t, &r);
}

struct line {
    char *buf;
    size_t n, bytes;
};

static void add(struct line *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct line *l, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(l->buf + l->n, l->bytes - l->n, fmt, args);
    va_end(args);
    l->n += n < 0 ? 0 : (size_t)n;
    if (l->n >= l->bytes) {
        l->n = l->bytes - 1;
    }
}

size_t gl_trace_format(const struct gl_trace_record *r, char *buf, size_t bytes)
{
    GL_ASSERT(bytes > 0);
    GL_ASSERT(r->kind < GL_TR_COUNT);
    struct line l = {.buf = buf, .bytes = bytes};
    add(&l, "t=%lld", (long long)r->now);
    if (r->node) {
        add(&l, " %s", r->node);
    }
    add(&l, " %s", kind_words[r->kind]);
    if (r->job.n) {
        add(&l, " job=%.*s", GL_STR_ARG(r->job));
    }
    if (r->step.n) {
        add(&l, " step=%.*s", GL_STR_ARG(r->step));
    }
    if (r->token) {
        add(&l, " token=%llu", (unsigned long long)r->token);
    }
    if (r->number) {
        add(&l, " n=%lld", (long long)r->number);
    }
    if (r->what) {
        add(&l, " %s", r->what);
    }
    if (r->from || r->to) {
        add(&l, " %s->%s", r->from ? r->from : "", r->to ? r->to : "");
    }
    return l.n;
}
