/* check_rules.c - a step runs only when its trigger rule holds for how its parents really ended,
 * and is skipped only when the rule can never hold; a job's end follows from its steps. Recomputed
 * from the records, not from the core's counters. */
#include "model/bundle/agent.h"
#include "sim/sim_checks.h"

struct parents_tally {
    uint32_t all, ended, success, failed, accepted;
};

static bool accepts(const struct sim_fact_step *parent, const struct gl_step_edge *edge)
{
    const struct gl_step_record *r = &parent->r;
    uint32_t usual = parent->spec->is_bound ? GL_ACCEPT_DONE : GL_ACCEPT_DONE | GL_ACCEPT_PARTIAL;
    uint32_t how = r->status == GL_STEP_COMPLETED ? GL_ACCEPT_DONE
                   : r->status == GL_STEP_PARTIAL ? GL_ACCEPT_PARTIAL
                   : r->status == GL_STEP_SKIPPED ? GL_ACCEPT_SKIPPED
                                                  : GL_ACCEPT_FAILED;
    return ((edge != NULL ? edge->accepts : usual) & how) != 0 && how != GL_ACCEPT_FAILED;
}

static void add(struct parents_tally *t, const struct sim_fact_step *parent,
                const struct gl_step_edge *edge)
{
    uint8_t status = parent->r.status;
    if (!parent->known || !gl_step_status_is_terminal(status)) {
        return;
    }
    t->ended++;
    t->success += status == GL_STEP_COMPLETED || parent->r.terminal_outcome == GL_OUTCOME_SUCCESS;
    t->failed += status == GL_STEP_FAILED || parent->r.terminal_outcome == GL_OUTCOME_FAILED;
    t->accepted += accepts(parent, edge);
}

/* The instances that a scatter has made of a ledger step replace it. */
static void add_instances(struct parents_tally *t, const struct sim_fact_step *mapped,
                          const struct gl_step_edge *edge)
{
    uint32_t n = mapped->r.items_n;
    t->all += n - 1;
    for (uint32_t i = 0; i < mapped->items_n; i++) {
        if (mapped->items[i] != NULL) {
            add(t, mapped->items[i], edge);
        }
    }
}

static struct parents_tally count(const struct sim_fact_job *j, const struct sim_fact_step *st)
{
    struct parents_tally t = {.all = st->spec->needs_n};
    const struct gl_step_edge *edges = st->spec->edges.items;
    for (uint32_t i = 0; i < st->spec->needs_n; i++) {
        const struct sim_fact_step *parent = &j->steps[st->spec->needs[i]];
        const struct gl_step_edge *edge = edges != NULL ? &edges[i] : NULL;
        if (parent->known && parent->r.terminal_outcome == GL_OUTCOME_MAPPED) {
            add_instances(&t, parent, edge);
        } else {
            add(&t, parent, edge);
        }
    }
    return t;
}

static bool holds(const struct gl_step_spec *spec, const struct parents_tally *t)
{
    switch ((enum gl_rule)spec->rule) {
    case GL_RULE_ALL_SUCCESS:
        return t->accepted == t->all;
    case GL_RULE_ALL_DONE:
        return t->ended == t->all;
    case GL_RULE_ONE_SUCCESS:
        return t->success > 0;
    case GL_RULE_ONE_DONE:
        return t->ended > 0;
    case GL_RULE_ONE_FAILED:
        return t->failed > 0;
    case GL_RULE_NONE_FAILED:
        return t->ended == t->all && t->failed == 0 && t->success > 0;
    case GL_RULE_QUORUM:
        return t->success >= spec->quorum;
    case GL_RULE_COUNT:
        break;
    }
    return false;
}

static bool is_open(const struct gl_step_spec *spec, const struct parents_tally *t)
{
    if (spec->rule == GL_RULE_QUORUM) {
        return t->success + (t->all - t->ended) >= spec->quorum;
    }
    return t->ended < t->all || holds(spec, t);
}

/* Steps of the transaction being applied that have started or were skipped. Their parents may come
 * after them in it, so they are checked when the job itself is written, which comes last. */
struct rules_state {
    struct sim_fact_step *started[GL_SPREAD_MAX], *passed[GL_SPREAD_MAX];
    size_t started_n, passed_n;
};

static void note_step(struct rules_state *s, const struct sim_change *ch)
{
    const struct gl_step_record *was = &ch->step->r;
    const struct gl_step_record *now = ch->step_now;
    bool is_new_end = gl_step_status_is_terminal(now->status) && now->status != was->status;
    uint32_t passed = GL_GATE_OPEN | GL_GATE_REUSED;
    if (gl_str_starts(ch->step->spec->id, GL_S("@"))) {
        return; /* an agent's unit has no parents */
    }
    bool begins = (now->attempt_count == 1 && was->attempt_count == 0) ||
                  ((now->gate & passed) != 0 && (was->gate & passed) == 0);
    if (ch->step->group != NULL) {
        return; /* an instance has no parents */
    }
    if (begins && s->started_n < GL_SPREAD_MAX) {
        s->started[s->started_n++] = ch->step;
    } else if (is_new_end && s->passed_n < GL_SPREAD_MAX &&
               gl_str_is(now->terminal_reason, "trigger rule cannot be satisfied")) {
        s->passed[s->passed_n++] = ch->step;
    }
}

static void judge(struct sim_checks *c, struct rules_state *s, const struct sim_fact_job *j)
{
    for (size_t i = 0; i < s->started_n; i++) {
        const struct gl_step_spec *spec = s->started[i]->spec;
        struct parents_tally t = count(j, s->started[i]);
        if (!holds(spec, &t)) {
            sim_world_fail(c->world,
                           "rules: step %.*s of job %.*s runs although its rule %s does not hold",
                           GL_STR_ARG(spec->id), GL_STR_ARG(j->id), gl_rule_words[spec->rule]);
        }
    }
    for (size_t i = 0; i < s->passed_n; i++) {
        const struct gl_step_spec *spec = s->passed[i]->spec;
        struct parents_tally t = count(j, s->passed[i]);
        if (is_open(spec, &t)) {
            sim_world_fail(
                c->world,
                "rules: step %.*s of job %.*s was skipped although its rule %s could hold: "
                "%u of %u ended, %u succeeded, %u failed, %u accepted",
                GL_STR_ARG(spec->id), GL_STR_ARG(j->id), gl_rule_words[spec->rule], t.ended, t.all,
                t.success, t.failed, t.accepted);
        }
    }
    s->started_n = s->passed_n = 0;
}

/* What the job's record counts about its steps, recomputed. */
static void recount(struct sim_checks *c, const struct sim_change *ch)
{
    const struct gl_job_record *now = ch->job_now;
    uint32_t n[GL_STEP_STATUS_COUNT] = {0};
    for (uint32_t i = 0; i < ch->job->flow->steps.n; i++) {
        const struct sim_fact_step *st = &ch->job->steps[i];
        uint8_t status = st->known ? st->r.status : GL_STEP_PENDING;
        if (st->spec->is_removed) {
            continue; /* removed by a patch: it does not count any more */
        }
        /* A ledger step has no process, but for its instances it counts as if it ran. */
        n[status] += !st->spec->is_bound || status != GL_STEP_RUNNING;
        for (uint32_t k = 0; k < st->items_n; k++) {
            status = st->items[k] != NULL ? st->items[k]->r.status : GL_STEP_PENDING;
            n[status] += st->spec->is_bound ? status != GL_STEP_RUNNING : status == GL_STEP_RUNNING;
        }
    }
    if (n[GL_STEP_COMPLETED] != now->completed_n || n[GL_STEP_PARTIAL] != now->partial_n ||
        n[GL_STEP_SKIPPED] != now->skipped_n || n[GL_STEP_FAILED] != now->failed_n) {
        sim_world_fail(
            c->world,
            "rules: job %.*s miscounts its steps: %u completed, %u partial, %u skipped, %u failed",
            GL_STR_ARG(ch->job->id), now->completed_n, now->partial_n, now->skipped_n,
            now->failed_n);
    }
    /* A job whose records cannot all be read is paused at once, and its running attempts continue,
     * even if a person then pauses it. If it is cancelled, or was about to end, it ends as it is.
     */
    bool may_run_on = sim_fact_was_spoilt(ch->job) &&
                      (now->hold != GL_HOLD_NONE || gl_job_status_is_terminal(now->status));
    if (n[GL_STEP_RUNNING] > 0 && now->status == GL_JOB_PAUSED && !may_run_on) {
        sim_world_fail(c->world, "rules: job %.*s is paused and %u of its steps run",
                       GL_STR_ARG(ch->job->id), n[GL_STEP_RUNNING]);
    }
    if (n[GL_STEP_RUNNING] > 0 && gl_job_status_is_terminal(now->status) && !may_run_on) {
        sim_world_fail(c->world, "rules: job %.*s is %s and %u of its steps run",
                       GL_STR_ARG(ch->job->id), gl_job_status_words[now->status],
                       n[GL_STEP_RUNNING]);
    }
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    struct rules_state *s = me;
    if (ch->step != NULL) {
        note_step(s, ch);
    } else {
        judge(c, s, ch->job);
        recount(c, ch);
    }
}

/* Every step of a job that ended by itself has ended; skipped ones for a reason that still holds.
 */
static void check_end(struct sim_checks *c, struct sim_fact_job *j)
{
    uint32_t failed = 0;
    for (uint32_t i = 0; i < j->flow->steps.n; i++) {
        const struct sim_fact_step *st = &j->steps[i];
        bool ended = st->known && gl_step_status_is_terminal(st->r.status);
        failed += ended && st->r.status == GL_STEP_FAILED ? 1 : 0;
        if (!ended && j->r.status == GL_JOB_COMPLETED && i >= gl_flow_agents_n(j->flow)) {
            sim_world_fail(c->world, "rules: job %.*s completed and its step %.*s is %s",
                           GL_STR_ARG(j->id), GL_STR_ARG(st->spec->id),
                           gl_step_status_words[st->r.status]);
        }
    }
    if (j->r.status == GL_JOB_COMPLETED && failed > 0) {
        sim_world_fail(c->world, "rules: job %.*s completed with %u failed steps",
                       GL_STR_ARG(j->id), failed);
    }
    if (j->r.status == GL_JOB_FAILED && failed == 0 && j->flow->bundle == NULL) {
        sim_world_fail(c->world, "rules: job %.*s failed without a failed step", GL_STR_ARG(j->id));
    }
}

static void at_end(struct sim_checks *c, void *me)
{
    (void)me;
    struct sim_fact_job *j;
    for (size_t i = 0; (j = gl_map_next(&c->facts.jobs, &i)) != NULL;) {
        if (j->known) {
            check_end(c, j);
        }
    }
}

const struct sim_check sim_check_rules = {.name = "rules",
                                          .state_bytes = sizeof(struct rules_state),
                                          .on_change = on_change,
                                          .at_end = at_end};
