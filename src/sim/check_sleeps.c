/* check_sleeps.c - a sleep lasts as long as the flow says: it keeps its due time through every
 * restart, never ends before it, and without faults ends soon after it. */
#include "sim/sim_known.h"

enum { LATE_MS = 60000 }; /* by then a paused job has been resumed, too */

struct sleeps_state {
    gl_ms calm_since; /* by the node's clock; 0: there are still faults */
};

static void check_due(struct sim_checks *c, const struct sim_change *ch, bool is_over)
{
    const struct gl_step_record *now = ch->step_now;
    struct gl_json facts;
    gl_ms due = 0;
    if (!ch->step->is_settled && ch->step->spec->reads_n > 0) {
        return;
    }
    bool ok = sim_known_facts(c, ch->job, ch->step, &facts) &&
              sim_known_due(c, ch->step, &facts, now->started_at, &due);
    if (!ok) {
        sim_world_fail(
            c->world, "sleeps: step %.*s of job %.*s sleeps, but its duration cannot be determined",
            GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id));
    } else if (is_over ? due > now->ended_at : due != now->due_at) {
        sim_world_fail(c->world, "sleeps: step %.*s of job %.*s sleeps until %lld instead of %lld",
                       GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id),
                       (long long)(is_over ? now->ended_at : now->due_at), (long long)due);
    }
}

static void check_end(struct sim_checks *c, const struct sleeps_state *s,
                      const struct sim_change *ch)
{
    const struct gl_step_record *was = &ch->step->r;
    const struct gl_step_record *now = ch->step_now;
    gl_ms from = was->due_at > s->calm_since ? was->due_at : s->calm_since;
    if (now->ended_at < was->due_at) {
        sim_world_fail(c->world, "sleeps: step %.*s of job %.*s woke up %lld ms too early",
                       GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id),
                       (long long)(was->due_at - now->ended_at));
    } else if (s->calm_since > 0 && now->ended_at > from + LATE_MS) {
        sim_world_fail(c->world, "sleeps: step %.*s of job %.*s woke up %lld ms too late",
                       GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id),
                       (long long)(now->ended_at - from));
    }
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    struct sleeps_state *s = me;
    if (!c->world->faults && s->calm_since == 0) {
        s->calm_since = ch->job_now->updated_at;
    }
    const struct sim_fact_step *st = ch->step;
    bool sleeps = st != NULL && (st->spec->sleep.n > 0 || st->spec->until.n > 0);
    if (!sleeps || (ch->step_now->gate & GL_GATE_REUSED) != 0 ||
        gl_step_status_is_terminal(st->r.status)) {
        return;
    }
    const struct gl_step_record *now = ch->step_now;
    bool slept = st->known && st->r.status == GL_STEP_BLOCKED;
    bool completes = now->status == GL_STEP_COMPLETED;
    if (now->status == GL_STEP_BLOCKED && slept && now->due_at != st->r.due_at) {
        sim_world_fail(c->world, "sleeps: step %.*s of job %.*s has changed its due time",
                       GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id));
    } else if (completes && slept) {
        check_end(c, s, ch);
    } else if (now->status == GL_STEP_BLOCKED || completes) {
        check_due(c, ch, completes);
    } else if (slept && now->terminal_outcome == GL_OUTCOME_FAILED) {
        sim_world_fail(c->world, "sleeps: step %.*s of job %.*s failed while sleeping",
                       GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id));
    }
}

const struct sim_check sim_check_sleeps = {
    .name = "sleeps", .state_bytes = sizeof(struct sleeps_state), .on_change = on_change};
