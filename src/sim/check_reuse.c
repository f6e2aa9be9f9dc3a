/* check_reuse.c - a retry runs no step again that the earlier job completed, as long as nothing
 * above it runs again; it runs every other step. What it reuses is what the earlier job had. A
 * bundle runs again as a whole, because the results of its steps are in messages and states. */
#include "sim/sim_known.h"

struct reuse_state {
    struct sim_fact_step *reused[GL_SPREAD_MAX], *begun[GL_SPREAD_MAX], *same[GL_SPREAD_MAX];
    size_t reused_n, begun_n, same_n; /* of the transaction being applied */
};

static const struct sim_fact_step *earlier_of(struct sim_checks *c, const struct sim_fact_job *j,
                                              const struct sim_fact_step *st)
{
    const struct sim_fact_job *earlier = sim_facts_job(&c->facts, j->retry_of);
    return earlier == NULL ? NULL : &earlier->steps[gl_flow_find(earlier->flow, st->spec->id)];
}

static bool are_parents_reused(const struct sim_fact_job *j, const struct sim_fact_step *st)
{
    for (uint32_t i = 0; i < st->spec->needs_n; i++) {
        if ((j->steps[st->spec->needs[i]].r.gate & (GL_GATE_REUSED | GL_GATE_SAME)) == 0) {
            return false;
        }
    }
    return true;
}

/* A step that does not wait for all of its parents decides before all of them are known. */
static bool waits_for_all(const struct gl_step_spec *spec)
{
    return spec->needs_n < 2 || spec->rule == GL_RULE_ALL_SUCCESS ||
           spec->rule == GL_RULE_ALL_DONE || spec->rule == GL_RULE_NONE_FAILED;
}

static void judge(struct sim_checks *c, const struct sim_fact_job *j,
                  const struct sim_fact_step *st, bool is_reused)
{
    const struct sim_fact_step *e = earlier_of(c, j, st);
    bool completed = e != NULL && e->known && e->r.status == GL_STEP_COMPLETED;
    bool may = completed && are_parents_reused(j, st) && !gl_str_eq(j->retry_from, st->spec->id);
    if (is_reused && !may) {
        sim_world_fail(c->world, "reuse: step %.*s of job %.*s was reused from %.*s, wrongly",
                       GL_STR_ARG(st->spec->id), GL_STR_ARG(j->id), GL_STR_ARG(j->retry_of));
    } else if (is_reused && !gl_str_eq(sim_known_output(c, e), st->output)) {
        sim_world_fail(c->world, "reuse: the output of step %.*s of job %.*s is a different one",
                       GL_STR_ARG(st->spec->id), GL_STR_ARG(j->id));
    } else if (!is_reused && may && waits_for_all(st->spec)) {
        sim_world_fail(c->world,
                       "reuse: step %.*s of job %.*s runs again, although %.*s completed it",
                       GL_STR_ARG(st->spec->id), GL_STR_ARG(j->id), GL_STR_ARG(j->retry_of));
    }
}

/* Skipped as before: no step runs again because of it. */
static void judge_same(struct sim_checks *c, const struct sim_fact_job *j,
                       const struct sim_fact_step *st)
{
    const struct sim_fact_step *e = earlier_of(c, j, st);
    bool by_rule = !st->was_ready;
    bool was = e != NULL && e->known && gl_step_status_is_terminal(e->r.status)
                   ? e->r.status == GL_STEP_SKIPPED
                   : true;
    if (st->r.status != GL_STEP_SKIPPED || !was || gl_str_eq(j->retry_from, st->spec->id) ||
        (!by_rule && !are_parents_reused(j, st))) {
        sim_world_fail(
            c->world,
            "reuse: step %.*s of job %.*s is not skipped as it was: it is %s now (%.*s), "
            "and was %s in job %.*s",
            GL_STR_ARG(st->spec->id), GL_STR_ARG(j->id), gl_step_status_words[st->r.status],
            GL_STR_ARG(st->r.terminal_reason),
            e != NULL ? gl_step_status_words[e->r.status] : "not reached", GL_STR_ARG(j->retry_of));
    }
}

/* A retry has the flow and the inputs of an ended job. */
static void check_birth(struct sim_checks *c, const struct sim_change *ch)
{
    const struct sim_fact_job *e = sim_facts_job(&c->facts, ch->job_now->retry_of);
    if (e == NULL || !gl_job_status_is_terminal(e->r.status)) {
        sim_world_fail(c->world, "reuse: job %.*s is a retry of one that has not ended",
                       GL_STR_ARG(ch->job->id));
    } else if (!gl_str_eq(e->flow_hash, ch->job_now->flow) ||
               !gl_str_eq(e->inputs, ch->job->inputs)) {
        sim_world_fail(c->world,
                       "reuse: job %.*s is a retry with a different flow or different inputs",
                       GL_STR_ARG(ch->job->id));
    } else if (ch->job_now->retry_from.n > 0 &&
               gl_flow_find(ch->job->flow, ch->job_now->retry_from) < 0) {
        sim_world_fail(c->world, "reuse: job %.*s begins with a step that it does not have",
                       GL_STR_ARG(ch->job->id));
    }
}

static void on_job(struct sim_checks *c, struct reuse_state *s, const struct sim_change *ch)
{
    if (!ch->job->known && ch->job_now->retry_of.n > 0) {
        check_birth(c, ch);
    }
    for (size_t i = 0; i < s->reused_n; i++) {
        judge(c, ch->job, s->reused[i], true);
    }
    for (size_t i = 0; i < s->begun_n; i++) {
        judge(c, ch->job, s->begun[i], false);
    }
    for (size_t i = 0; i < s->same_n; i++) {
        judge_same(c, ch->job, s->same[i]);
    }
    s->reused_n = s->begun_n = s->same_n = 0;
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    struct reuse_state *s = me;
    if (ch->step == NULL) {
        on_job(c, s, ch);
        return;
    }
    struct sim_fact_step *st = ch->step;
    const struct gl_step_record *now = ch->step_now;
    bool reused = (now->gate & GL_GATE_REUSED) != 0 && (st->r.gate & GL_GATE_REUSED) == 0;
    bool same = (now->gate & GL_GATE_SAME) != 0 && (st->r.gate & GL_GATE_SAME) == 0;
    bool begins = now->attempt_count == 1 && st->r.attempt_count == 0;
    bool opens = (now->gate & GL_GATE_OPEN) != 0 && (st->r.gate & GL_GATE_OPEN) == 0;
    if (st->group != NULL) {
        return;
    }
    if (ch->job->flow->bundle != NULL) {
        if (reused || same) {
            sim_world_fail(c->world, "reuse: step %.*s of job %.*s, a bundle, is reused",
                           GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id));
        }
        return;
    }
    if (reused && ch->job->known && ch->job->retry_of.n == 0) {
        sim_world_fail(c->world, "reuse: job %.*s is not a retry and reuses step %.*s",
                       GL_STR_ARG(ch->job->id), GL_STR_ARG(now->step_id));
    } else if (reused && s->reused_n < GL_SPREAD_MAX) {
        s->reused[s->reused_n++] = st;
    } else if (same && s->same_n < GL_SPREAD_MAX) {
        s->same[s->same_n++] = st;
    } else if ((begins || opens) && ch->job->retry_of.n > 0 && s->begun_n < GL_SPREAD_MAX) {
        s->begun[s->begun_n++] = st;
    }
}

static void on_answer(struct sim_checks *c, void *me, const struct gl_request *rq,
                      struct sim_fact_job *j)
{
    (void)me;
    if (rq->verb == GL_VERB_RETRY &&
        (!gl_str_eq(j->retry_of, rq->job) || !gl_str_eq(j->retry_from, rq->submission.from))) {
        sim_world_fail(c->world, "reuse: job %.*s is not the retry that was requested",
                       GL_STR_ARG(j->id));
    }
}

const struct sim_check sim_check_reuse = {.name = "reuse",
                                          .state_bytes = sizeof(struct reuse_state),
                                          .on_change = on_change,
                                          .on_answer = on_answer};
