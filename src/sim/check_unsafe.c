/* check_unsafe.c - unsafe work is never started again without a person's word, unless it is known
 * how the try before it ended; and no attempt of any step ever starts twice. */
#include "sim/sim_checks.h"

static void on_start(struct sim_checks *c, void *me, struct sim_fact_job *j,
                     struct sim_fact_step *st, const struct sim_process *p)
{
    (void)me;
    const struct sim_process *last = st->last;
    if (last != NULL && last->number >= p->number) {
        sim_world_fail(c->world, "unsafe: %.*s of job %.*s started after attempt %u had started",
                       GL_STR_ARG(p->attempt), GL_STR_ARG(j->id), last->number);
    }
    if (st->spec->safety != GL_SAFETY_UNSAFE || last == NULL || st->reruns > st->reruns_at_last) {
        return;
    }
    if (last->ended_at == 0 || !last->recorded) {
        sim_world_fail(c->world,
                       "unsafe: %.*s of job %.*s started though nobody knows how attempt %u ended",
                       GL_STR_ARG(p->attempt), GL_STR_ARG(j->id), last->number);
    }
}

const struct sim_check sim_check_unsafe = {.name = "unsafe", .on_start = on_start};
