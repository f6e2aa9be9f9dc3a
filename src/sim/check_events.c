/* check_events.c - a job's event log has no gap and no duplicate: each transaction appends the
 * events since the last one, numbered by its last event. */
#include "sim/sim_checks.h"

static void on_log(struct sim_checks *c, void *me, const struct sim_change *ch,
                   const struct gl_write *w)
{
    (void)me;
    if (!gl_str_is(w->kind, "events") || !gl_str_eq(w->id, ch->job->id)) {
        sim_world_fail(c->world, "events: a transaction of job %.*s wrote to the log %.*s/%.*s",
                       GL_STR_ARG(ch->job->id), GL_STR_ARG(w->kind), GL_STR_ARG(w->id));
        return;
    }
    int64_t lines = 0;
    for (size_t i = 0; i < w->value.n; i++) {
        lines += w->value.p[i] == '\n' ? 1 : 0;
    }
    if (w->seq != ch->job_now->last_seq || w->seq - lines != ch->job->r.last_seq) {
        sim_world_fail(c->world, "events: job %.*s logged %lld events up to %lld after %lld",
                       GL_STR_ARG(ch->job->id), (long long)lines, (long long)w->seq,
                       (long long)ch->job->r.last_seq);
    }
}

const struct sim_check sim_check_events = {.name = "events", .on_log = on_log};
