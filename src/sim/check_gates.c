/* check_gates.c - a step whose condition is false is skipped and never runs; a step whose condition
 * is true is not skipped because of it; and a step with foreach has as many instances as its list
 * has items. Conditions and lists are evaluated again from the records on the disk. */
#include "model/text/cond.h"
#include "model/text/ref.h"
#include "sim/sim_known.h"

enum gate_answer { RUN, SKIP, FAIL };

static const char *const words[] = {"run", "be skipped", "fail"};

static enum gate_answer judge_when(struct sim_checks *c, const struct sim_fact_step *st,
                                   const struct gl_json *facts)
{
    const struct gl_cond *cond;
    size_t at;
    bool yes = true;
    if (st->spec->when.n == 0) {
        return RUN;
    }
    if (gl_cond_parse(st->spec->when, &c->arena, &cond, &at, NULL) != 0 ||
        gl_cond_eval(cond, facts, &c->arena, &yes, NULL) != 0) {
        return FAIL;
    }
    return yes ? RUN : SKIP;
}

/* What must happen to it, and how many items it has. */
static enum gate_answer judge(struct sim_checks *c, const struct sim_change *ch,
                              uint32_t *ret_items)
{
    struct gl_json facts, list;
    if (!sim_known_facts(c, ch->job, ch->step, &facts)) {
        return FAIL;
    }
    enum gate_answer v = judge_when(c, ch->step, &facts);
    *ret_items = 0;
    if (v != RUN || ch->step->spec->foreach.n == 0) {
        return v;
    }
    bool ok = sim_known_items(c, ch->step, &facts, &list, ret_items);
    return ok && *ret_items <= ch->step->spec->items_max ? RUN : FAIL;
}

static void check_items(struct sim_checks *c, const struct sim_change *ch, uint32_t n)
{
    const struct gl_step_record *now = ch->step_now;
    bool right = n == 0 ? now->status == GL_STEP_COMPLETED && gl_str_is(now->output, "[]")
                        : now->items_n == n;
    if (ch->step->spec->foreach.n > 0 && !right) {
        sim_world_fail(c->world,
                       "gates: step %.*s of job %.*s iterates over %u items instead of %u",
                       GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id), now->items_n, n);
    }
}

/* The key of its limit, with its references resolved. */
static void check_key(struct sim_checks *c, const struct sim_change *ch)
{
    const struct sim_fact_step *st = ch->step;
    const struct sim_fact_step *settled = st->group != NULL ? st->group : st;
    struct gl_json facts;
    gl_str key = {0};
    if (ch->step_now->attempt_count != 1 || st->r.attempt_count > 0 || !settled->is_settled) {
        return;
    }
    bool ok = sim_known_facts(c, ch->job, st, &facts) &&
              gl_ref_expand(st->spec->limit_key, &facts, &c->arena, &key, NULL) == 0;
    if (!ok || !gl_str_eq(key, ch->step_now->limit_key)) {
        sim_world_fail(c->world, "gates: step %.*s of job %.*s runs under the key %.*s, not %.*s",
                       GL_STR_ARG(ch->step_now->step_id), GL_STR_ARG(ch->job->id),
                       GL_STR_ARG(ch->step_now->limit_key), GL_STR_ARG(key));
    }
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    (void)me;
    const struct sim_fact_step *st = ch->step;
    if (st != NULL && ch->job->flow->bundle == NULL) {
        check_key(c, ch);
    }
    if (st == NULL || st->group != NULL || !st->is_settled ||
        (st->spec->when.n == 0 && st->spec->foreach.n == 0)) {
        return;
    }
    const struct gl_step_record *now = ch->step_now;
    uint32_t was = st->r.gate;
    bool opens = (now->gate & GL_GATE_OPEN) != 0 && (was & GL_GATE_OPEN) == 0;
    bool fails = gl_step_status_is_terminal(now->status) && now->gate == 0 &&
                 !gl_step_status_is_terminal(st->r.status) &&
                 now->terminal_outcome == GL_OUTCOME_FAILED;
    bool skips = opens && gl_str_starts(now->terminal_reason, GL_S("its condition is false"));
    if (!opens && !fails) {
        return;
    }
    enum gate_answer is = fails ? FAIL : skips ? SKIP : RUN;
    uint32_t items_n = 0;
    enum gate_answer must = judge(c, ch, &items_n);
    if (is != must) {
        sim_world_fail(c->world, "gates: step %.*s of job %.*s had to %s and did %s: %.*s",
                       GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id), words[must], words[is],
                       GL_STR_ARG(st->spec->when));
    } else if (is == RUN) {
        check_items(c, ch, items_n);
    }
}

const struct sim_check sim_check_gates = {.name = "gates", .on_change = on_change};
