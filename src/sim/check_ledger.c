/* check_ledger.c - a step of a bundle's ledger completes only through its current attempt: in the
 * transaction in which the agent that works for that attempt has handled its message. Its attempt
 * numbers rise by one, and it counts no more of them than allowed. */
#include "model/bundle/agent.h"
#include "sim/sim_bundles.h"
#include "sim/sim_checks.h"

enum { ENDS_MAX = 64 };

struct ledger_state {
    const struct sim_fact_step *ends[ENDS_MAX]; /* that completed in this transaction */
    size_t ends_n;
    uint32_t worked_for[SIM_AGENTS_MAX]; /* by agent: the attempt it has worked for; 0: none */
};

static void check_attempts(struct sim_checks *c, const struct sim_change *ch)
{
    const struct gl_step_record *was = &ch->step->r, *now = ch->step_now;
    if (now->attempt_count < was->attempt_count || now->attempt_count > was->attempt_count + 1) {
        sim_world_fail(c->world, "ledger: step %.*s of job %.*s went from attempt %u to %u",
                       GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id), was->attempt_count,
                       now->attempt_count);
    } else if (now->counted > ch->step->spec->retry.attempts ||
               (now->attempt_count > was->attempt_count &&
                was->counted >= ch->step->spec->retry.attempts)) {
        sim_world_fail(c->world, "ledger: step %.*s of job %.*s is at attempt %u, %u counted of %u",
                       GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id), now->attempt_count,
                       now->counted, ch->step->spec->retry.attempts);
    }
}

static void note(struct sim_checks *c, struct ledger_state *s, const struct sim_change *ch)
{
    const struct gl_step_record *was = &ch->step->r, *now = ch->step_now;
    size_t number = (size_t)(ch->step - ch->job->steps);
    if (ch->step->spec->is_bound) {
        bool ends_well = now->status == GL_STEP_COMPLETED || now->status == GL_STEP_PARTIAL;
        check_attempts(c, ch);
        if (ends_well && now->terminal_outcome != GL_OUTCOME_FAILED && was->status != now->status &&
            s->ends_n < ENDS_MAX) {
            s->ends[s->ends_n++] = ch->step;
        }
    } else if (ch->step->group == NULL && number < SIM_AGENTS_MAX &&
               now->processed > was->processed) {
        s->worked_for[number] = was->mail_attempt;
    }
}

static bool may_end(const struct ledger_state *s, const struct sim_fact_job *j,
                    const struct sim_fact_step *st)
{
    for (size_t i = 0; i < st->spec->agent_ids.n; i++) {
        int64_t agent = gl_flow_find_agent(j->flow, st->spec->agent_ids.items[i]);
        if (agent >= 0 && agent < SIM_AGENTS_MAX &&
            (gl_str_is(j->steps[agent].spec->driver, "relay") || /* begins and ends at once */
             s->worked_for[agent] == st->r.attempt_count)) {
            return true;
        }
    }
    return false;
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    struct ledger_state *s = me;
    if (ch->job->flow->bundle == NULL) {
        return;
    }
    if (ch->step != NULL) {
        note(c, s, ch);
        return;
    }
    for (size_t i = 0; i < s->ends_n; i++) {
        const struct sim_fact_step *st = s->ends[i];
        if (!may_end(s, ch->job, st)) {
            sim_world_fail(c->world,
                           "ledger: step %.*s of job %.*s is %s, and no agent has worked for its "
                           "attempt %u",
                           GL_STR_ARG(st->spec->id), GL_STR_ARG(ch->job->id),
                           gl_step_status_words[st->r.status], st->r.attempt_count);
        }
    }
    *s = (struct ledger_state){0};
}

const struct sim_check sim_check_ledger = {
    .name = "ledger", .state_bytes = sizeof(struct ledger_state), .on_change = on_change};
