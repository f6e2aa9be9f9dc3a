/* check_approvals.c - an approval ends only by a decision that was really sent and that it offers,
 * or when its time is over; and its result follows from that decision. */
#include "sim/sim_checks.h"

static void on_ask(struct sim_checks *c, void *me, const struct gl_request *rq,
                   struct sim_fact_job *j)
{
    (void)c;
    (void)me;
    struct sim_fact_step *st =
        rq->verb == GL_VERB_RESPOND ? sim_facts_step(j, rq->command.about) : NULL;
    bool known = st == NULL;
    for (uint32_t i = 0; !known && i < st->asked_n; i++) {
        known = gl_str_eq(st->asked[i], rq->command.decision);
    }
    if (!known && st->asked_n < GL_COUNT(st->asked)) {
        st->asked[st->asked_n++] = gl_str_dup(&j->arena, rq->command.decision);
    }
}

static bool was_sent(const struct sim_fact_step *st, gl_str decision)
{
    for (uint32_t i = 0; i < st->asked_n; i++) {
        if (gl_str_eq(st->asked[i], decision)) {
            return true;
        }
    }
    return false;
}

static bool offers(const struct gl_step_spec *spec, gl_str decision)
{
    for (size_t i = 0; i < spec->decisions.n; i++) {
        if (gl_str_eq(spec->decisions.items[i], decision)) {
            return true;
        }
    }
    return false;
}

static const char *look_end(const struct sim_fact_step *st, const struct gl_step_record *now)
{
    bool by_hand = now->decided_at != st->r.decided_at;
    gl_str decision = by_hand ? now->decision : st->spec->on_timeout;
    bool yes = gl_str_eq(decision, st->spec->decisions.items[0]);
    if (by_hand && (!offers(st->spec, decision) || !was_sent(st, decision))) {
        return "ended with a decision that no client has sent";
    }
    if (!by_hand && (st->r.due_at == 0 || now->ended_at < st->r.due_at)) {
        return "ended without a decision, and before its time was over";
    }
    if (yes != (now->terminal_outcome == GL_OUTCOME_SUCCESS)) {
        return "did not end as was decided";
    }
    return NULL;
}

static const char *look_begin(const struct sim_fact_step *st, const struct gl_step_record *now)
{
    gl_ms timeout = st->spec->timeout_ms;
    gl_ms due = timeout > 0 ? now->started_at + timeout : 0;
    return now->due_at != due ? "does not wait as long as it should" : NULL;
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    (void)me;
    const struct sim_fact_step *st = ch->step;
    if (st == NULL || st->spec->approval.n == 0 || (ch->step_now->gate & GL_GATE_REUSED) != 0) {
        return;
    }
    const struct gl_step_record *now = ch->step_now;
    const char *wrong = NULL;
    bool asked = st->known && st->r.status == GL_STEP_BLOCKED;
    bool ends =
        gl_step_status_is_terminal(now->status) && !gl_step_status_is_terminal(st->r.status);
    if (now->status == GL_STEP_BLOCKED) {
        wrong = asked && now->due_at != st->r.due_at ? "changed its due time"
                : asked                              ? NULL
                                                     : look_begin(st, now);
    } else if (ends && asked && now->terminal_outcome != GL_OUTCOME_SKIPPED) {
        wrong = look_end(st, now);
    } else if (ends && now->terminal_outcome == GL_OUTCOME_SUCCESS) {
        wrong = "completed without asking";
    }
    if (wrong != NULL) {
        sim_world_fail(c->world, "approvals: step %.*s of job %.*s %s", GL_STR_ARG(now->step_id),
                       GL_STR_ARG(ch->job->id), wrong);
    }
}

const struct sim_check sim_check_approvals = {
    .name = "approvals", .on_change = on_change, .on_ask = on_ask};
