/* check_overlap.c - a step runs once at a time: a new attempt starts only when the previous one has
 * ended, wherever it ran and whatever its node could reach. Only idempotent work may start again at
 * once; for idempotent work under a concurrency key see check_limits.c. */
#include "sim/sim_checks.h"

static void on_start(struct sim_checks *c, void *me, struct sim_fact_job *j,
                     struct sim_fact_step *st, const struct sim_process *p)
{
    (void)me;
    const struct sim_process *last = st->last;
    /* A node that is cut off does not start unsafe work, and cannot receive a person's decision. */
    bool by_a_person = last != NULL && st->spec->safety == GL_SAFETY_UNSAFE &&
                       st->reruns > st->reruns_at_last && !gl_str_eq(last->node, p->node);
    if (last == NULL || last->ended_at != 0 || st->spec->safety == GL_SAFETY_IDEMPOTENT ||
        by_a_person) {
        return;
    }
    sim_world_fail(c->world, "overlap: %.*s of job %.*s started while attempt %u was running",
                   GL_STR_ARG(p->attempt), GL_STR_ARG(j->id), last->number);
}

const struct sim_check sim_check_overlap = {
    .name = "overlap", .sees_torn = true, .on_start = on_start};
