/* check_items.c - a step with foreach has as many instances as items, no more of them are alive at
 * a time than it allows, each counts once, and the step ends with the last of them, or with the
 * first failure if that fails the job. Recomputed from the records of the instances. */
#include "sim/sim_checks.h"

enum { TOUCHED_MAX = 64 };

struct items_state {
    struct sim_fact_step *touched[TOUCHED_MAX]; /* by the transaction being applied */
    size_t touched_n;
};

struct items_tally {
    uint32_t made, ended, failed;
};

static struct items_tally count(const struct sim_fact_step *group)
{
    struct items_tally t = {0};
    for (uint32_t i = 0; i < group->items_n; i++) {
        const struct sim_fact_step *st = group->items[i];
        if (st != NULL && st->known) {
            t.made++;
            t.ended += gl_step_status_is_terminal(st->r.status);
            t.failed += st->r.terminal_outcome == GL_OUTCOME_FAILED;
        }
    }
    return t;
}

static const char *look_waiting(const struct sim_fact_step *g, const struct items_tally *t,
                                bool ending)
{
    const struct gl_step_record *r = &g->r;
    if (t->made != r->items_made || t->ended != r->items_ended || t->failed != r->items_failed) {
        return "miscounts its items";
    }
    if (g->spec->parallel > 0 && t->made - t->ended > g->spec->parallel) {
        return "has more items alive than max_parallel";
    }
    if (!ending && t->ended == r->items_n) {
        return "waits although its last item has ended";
    }
    if (!ending && t->failed > 0 && g->spec->on_failure == GL_ON_FAILURE_FAIL) {
        return "waits although an item has failed";
    }
    return NULL;
}

static const char *look_ended(const struct sim_fact_step *g, const struct items_tally *t,
                              bool ending)
{
    const struct gl_step_record *r = &g->r;
    bool all = t->ended == r->items_n;
    switch ((enum gl_outcome)r->terminal_outcome) {
    case GL_OUTCOME_SUCCESS:
        return !all || t->failed > 0 ? "completed although not all of its items have" : NULL;
    case GL_OUTCOME_FAILED:
        if (t->failed == 0) {
            return "failed although none of its items has";
        }
        return !all && g->spec->on_failure != GL_ON_FAILURE_FAIL ? "failed before its last item"
                                                                 : NULL;
    default:
        return ending ? NULL : "was skipped although it had items";
    }
}

static void judge(struct sim_checks *c, const struct sim_change *ch, const struct sim_fact_step *g)
{
    struct items_tally t = count(g);
    const char *wrong = NULL;
    bool ending = ch->job_now->verdict != GL_VERDICT_NONE;
    if (g->r.items_n == 0) {
        wrong = t.made > 0 ? "has instances without items" : NULL;
    } else if (t.made > g->r.items_n || g->items_n > g->r.items_n) {
        wrong = "has more instances than items";
    } else if (g->r.status == GL_STEP_WAITING) {
        wrong = look_waiting(g, &t, ending);
    } else if (gl_step_status_is_terminal(g->r.status)) {
        wrong = look_ended(g, &t, ending);
    } else {
        wrong = "has items, but neither waits for them nor has ended";
    }
    if (wrong != NULL) {
        sim_world_fail(c->world, "items: step %.*s of job %.*s %s: %u of %u made, %u ended",
                       GL_STR_ARG(g->spec->id), GL_STR_ARG(ch->job->id), wrong, t.made,
                       g->r.items_n, t.ended);
    }
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    struct items_state *s = me;
    if (ch->step == NULL) {
        for (size_t i = 0; i < s->touched_n; i++) {
            judge(c, ch, s->touched[i]);
        }
        s->touched_n = 0;
        return;
    }
    struct sim_fact_step *g = ch->step->group != NULL ? ch->step->group : ch->step;
    /* When the job ends, remaining instances have no step to report to; its own end was checked
     * already. */
    bool over = ch->step->group != NULL && gl_step_status_is_terminal(g->r.status);
    for (size_t i = 0; i < s->touched_n; i++) {
        over = over || s->touched[i] == g;
    }
    if (g->spec->foreach.n > 0 && !over && s->touched_n < TOUCHED_MAX) {
        s->touched[s->touched_n++] = g;
    }
}

const struct sim_check sim_check_items = {
    .name = "items", .state_bytes = sizeof(struct items_state), .on_change = on_change};
