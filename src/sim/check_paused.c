/* check_paused.c - a paused job stays paused, also after a takeover, until a client resumes it. */
#include "sim/sim_checks.h"

static void on_ask(struct sim_checks *c, void *me, const struct gl_request *rq,
                   struct sim_fact_job *j)
{
    (void)c;
    (void)me;
    bool frees =
        rq->verb == GL_VERB_RESUME || rq->verb == GL_VERB_RESPOND || rq->verb == GL_VERB_CANCEL;
    j->free_asks_n += frees ? 1 : 0;
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    (void)me;
    struct sim_fact_job *j = ch->job;
    bool was = j->known && (j->r.status == GL_JOB_PAUSED || j->r.status == GL_JOB_PAUSING);
    if (ch->step != NULL || !was || ch->job_now->status != GL_JOB_RUNNING) {
        return;
    }
    j->freed_n++;
    if (j->freed_n > j->free_asks_n) {
        sim_world_fail(c->world, "paused: job %.*s continues, and no client has resumed it",
                       GL_STR_ARG(j->id));
    }
}

const struct sim_check sim_check_paused = {
    .name = "paused", .on_change = on_change, .on_ask = on_ask};
