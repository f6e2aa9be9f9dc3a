/* check_overlap.c - one step runs once at a time: a new try starts only when the one before it has
 * ended. Idempotent work alone may be started again at once. */
#include "sim/sim_checks.h"

static void on_start(struct sim_checks *c, void *me, struct sim_fact_job *j,
                     struct sim_fact_step *st, const struct sim_process *p)
{
    (void)me;
    if (st->last != NULL && st->last->ended_at == 0 && st->spec->safety != GL_SAFETY_IDEMPOTENT) {
        sim_world_fail(c->world, "overlap: %.*s of job %.*s started while attempt %u was running",
                       GL_STR_ARG(p->attempt), GL_STR_ARG(j->id), st->last->number);
    }
}

const struct sim_check sim_check_overlap = {.name = "overlap", .on_start = on_start};
