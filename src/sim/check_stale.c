/* check_stale.c - a step that runs something completes from the result of its current attempt, or
 * by a person's word; nothing else is accepted. */
#include "sim/sim_checks.h"

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    (void)me;
    const struct sim_fact_step *st = ch->step;
    if (st == NULL || ch->job->flow->bundle != NULL || ch->step_now->status != GL_STEP_COMPLETED ||
        st->r.status == GL_STEP_COMPLETED || ch->step_now->decided_at != st->r.decided_at) {
        return;
    }
    bool is_group = st->spec->foreach.n > 0 && st->group == NULL;
    if (is_group || gl_flow_waits(st->spec) || (ch->step_now->gate & GL_GATE_REUSED) != 0) {
        return; /* others look at these */
    }
    const struct sim_process *p = st->last;
    gl_str id = ch->step_now->step_id;
    if (p == NULL || p->number != ch->step_now->attempt_count) {
        sim_world_fail(c->world,
                       "stale: step %.*s of job %.*s completed from attempt %u, which never ran",
                       GL_STR_ARG(id), GL_STR_ARG(ch->job->id), ch->step_now->attempt_count);
    } else if (!p->recorded || p->end != GL_EXEC_EXITED || p->exit_code != 0) {
        sim_world_fail(
            c->world,
            "stale: step %.*s of job %.*s completed, but its attempt %u did not exit with 0",
            GL_STR_ARG(id), GL_STR_ARG(ch->job->id), p->number);
    }
}

const struct sim_check sim_check_stale = {.name = "stale", .on_change = on_change};
