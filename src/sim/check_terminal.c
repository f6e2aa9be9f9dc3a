/* check_terminal.c - a step completes at most once, and a terminal state never changes. */
#include "sim/sim_checks.h"

static void check_job(struct sim_checks *c, const struct sim_change *ch)
{
    const struct sim_fact_job *j = ch->job;
    bool same = ch->job_now->status == j->r.status && ch->job_now->ended_at == j->r.ended_at;
    if (j->known && gl_job_status_is_terminal(j->r.status) && !same) {
        sim_world_fail(c->world, "terminal: job %.*s is %s and was written again, as %s",
                       GL_STR_ARG(j->id), gl_job_status_words[j->r.status],
                       gl_job_status_words[ch->job_now->status]);
    }
    if (j->known && j->r.verdict != GL_VERDICT_NONE && ch->job_now->verdict != j->r.verdict) {
        sim_world_fail(c->world, "terminal: the verdict of job %.*s was set and then changed",
                       GL_STR_ARG(j->id));
    }
    bool ends = gl_job_status_is_terminal(ch->job_now->status);
    if (ends == ch->job_live_now) {
        sim_world_fail(c->world, "terminal: job %.*s is %s and its record is %s", GL_STR_ARG(j->id),
                       gl_job_status_words[ch->job_now->status],
                       ch->job_live_now ? "live" : "not live");
    }
}

static void check_step(struct sim_checks *c, const struct sim_change *ch)
{
    const struct gl_step_record *was = &ch->step->r;
    const struct gl_step_record *now = ch->step_now;
    if (!ch->step->known || !gl_step_status_is_terminal(was->status)) {
        return;
    }
    if (now->status != was->status || now->terminal_outcome != was->terminal_outcome ||
        now->attempt_count != was->attempt_count || now->ended_at != was->ended_at) {
        sim_world_fail(c->world, "terminal: step %.*s of job %.*s was %s and became %s",
                       GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id),
                       gl_step_status_words[was->status], gl_step_status_words[now->status]);
    }
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    (void)me;
    if (ch->step == NULL) {
        check_job(c, ch);
    } else {
        check_step(c, ch);
    }
}

const struct sim_check sim_check_terminal = {
    .name = "terminal", .sees_torn = true, .on_change = on_change};
