/* quotas_why.c - the sentence that explains why a limit holds a step back. */
#include "base/check.h"
#include "core/scheduling/quotas_parts.h"

static void explain_concurrency(struct gl_core *c, const struct gl_quota *l, struct gl_buf *out)
{
    GL_ASSERT(l->others_n <= l->seats_n);
    gl_buf_fmt(out, "concurrency key '%.*s' (%u of %u in use", GL_STR_ARG(gl_quotas_key(l)),
               l->in_use + l->others_n, l->max);
    if (l->others_n > 0) {
        gl_buf_fmt(out, ", %u by other nodes", l->others_n);
    }
    gl_slots_write_holders(c, -1, l, out);
    gl_buf_c(out, ")");
}

static void explain_rate(const struct gl_core *c, const struct gl_quota *l, struct gl_buf *out)
{
    char when[GL_TIMES_BYTES], span[GL_TIMES_BYTES];

    gl_buf_fmt(out, "rate key '%.*s' (one start per ", GL_STR_ARG(gl_quotas_key(l)));
    gl_buf_str(out, gl_times_format_span(l->every_ms, span));
    if (l->next_at > c->now) {
        gl_buf_c(out, ", next at ");
        gl_buf_str(out, gl_times_format(l->next_at, when));
    } else if (l->in_use > 0) {
        gl_buf_c(out, ", and one is starting");
    }
    gl_buf_c(out, ")");
}

/* Names the key that is used up; both, if both are. */
enum gl_why_code gl_quotas_explain(struct gl_core *c, const struct gl_wait *w, struct gl_buf *out)
{
    enum gl_why_code code = GL_BECAUSE_WAITS_FOR_RATE;
    const struct gl_quota_group *g;
    const struct gl_quota *a, *b;
    size_t ahead;

    if (!w->limited || w->state != GL_WAIT_HELD) {
        return GL_BECAUSE_NONE;
    }
    g = gl_quotas_group_of(w);
    a = g->concurrency.limit;
    b = g->rate.limit;
    ahead = gl_heap_ahead(&g->held, &w->place, GL_AHEAD_MAX);
    GL_ASSERT(a != NULL || b != NULL);
    gl_buf_c(out, "waits for ");
    if (gl_quotas_lacks_keys(c, g)) {
        code = GL_BECAUSE_LIMITS_USED_UP;
        gl_buf_fmt(out, "a free concurrency or rate key: all %d are in use", GL_LIMITS_MAX);
    } else if (a != NULL &&
               (b == NULL || gl_quotas_available(c, a) == 0 || gl_quotas_available(c, b) > 0)) {
        code = GL_BECAUSE_WAITS_FOR_CONCURRENCY;
        explain_concurrency(c, a, out);
        if (b != NULL && gl_quotas_available(c, b) == 0) {
            gl_buf_c(out, " and ");
            explain_rate(c, b, out);
        }
    } else {
        explain_rate(c, b, out);
    }
    if (ahead > 0) {
        gl_buf_fmt(out, "; %zu%s ahead of it in the queue", ahead,
                   ahead < GL_AHEAD_MAX ? "" : " or more");
    }
    return code;
}
