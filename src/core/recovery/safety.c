/* safety.c - applies the table in safety.h to steps whose attempts were lost. */
#include "core/recovery/safety.h"

#include "base/check.h"
#include "core/agents/agents.h"
#include "core/flow/ledger.h"
#include "core/flow/txn.h"
#include "core/scheduling/slots.h"

/* Record the loss; true if there have been too many in a short time. */
static bool record_loss(struct gl_core *c, struct gl_step *st)
{
    gl_ms oldest = st->r.lost_at_3;

    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    static_assert(GL_LOSSES_MAX == 3, "three times are kept in the record");
    st->r.lost_at_3 = st->r.lost_at_2;
    st->r.lost_at_2 = st->r.lost_at_1;
    st->r.lost_at_1 = c->now;
    gl_txn_dirty(c, st);
    GL_ASSERT(!gl_list_empty(&st->dirty));
    return oldest != 0 && c->now - oldest < GL_LOSSES_WINDOW_MS;
}

bool gl_safety_is_foreign(const struct gl_core *c, const struct gl_step *st)
{
    if (st->r.is_elsewhere) {
        return st->is_orphaned;
    }
    return c->shared && st->r.node.n > 0 &&
           (st->job->r.is_strayed || !gl_str_eq(st->r.node, c->node));
}

/* Is it a step of a bundle that asks a person about every loss, whatever its marks? */
static bool is_manual(const struct gl_step *st)
{
    const struct gl_bundle_spec *b = st->job->spec->flow->bundle;

    return b != NULL && b->policies.recovery_mode == GL_RECOVERY_MANUAL_RECOVER;
}

void gl_safety_lost(struct gl_core *c, struct gl_step *st)
{
    struct gl_job *j = st->job;
    bool unsafe = gl_step_spec_of(st)->safety == GL_SAFETY_UNSAFE && !GL_PLANT(7);
    bool is_asked = unsafe || (is_manual(st) && !GL_PLANT(7));
    gl_str why = gl_safety_is_foreign(c, st)
                     ? gl_str_fmt(c->out->arena, "the attempt was lost with node '%.*s'",
                                  GL_STR_ARG(st->r.node))
                     : GL_S("the attempt was lost with its executor");

    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    c->counts.attempts_lost++;
    if (j->r.verdict != GL_VERDICT_NONE) {
        gl_ledger_fail(
            c, st, unsafe ? GL_S("the attempt was lost; whether it did its work is unknown") : why,
            false);
    } else if (is_asked) {
        GL_MARK(c->trace, "safety.blocked_for_review");
        gl_ledger_block(
            c, st, GL_BLOCK_REVIEW,
            unsafe
                ? GL_S(
                      "the step is unsafe and its attempt was lost, so it may or may not have done "
                      "its work")
                : gl_str_fmt(c->out->arena,
                             "%.*s; recovery_mode is manual_recover, so a person decides "
                             "whether it runs again",
                             GL_STR_ARG(why)));
    } else if (record_loss(c, st)) {
        GL_MARK(c->trace, "safety.lost_too_often");
        gl_ledger_fail(c, st, GL_S("lost with its executor four times in ten minutes"), false);
    } else {
        GL_MARK(c->trace, "safety.runs_again");
        gl_ledger_rerun(c, st, why);
    }
}

bool gl_safety_spec_needs_session(const struct gl_core *c, const struct gl_step_spec *spec,
                                  bool has_seat)
{
    has_seat = has_seat && !GL_PLANT(66); /* planted: seats do not matter */
    return c->shared && (spec->safety == GL_SAFETY_UNMARKED ||
                         (spec->safety == GL_SAFETY_IDEMPOTENT && has_seat));
}

bool gl_safety_needs_session(const struct gl_core *c, const struct gl_step *st)
{
    return !is_manual(st) &&
           gl_safety_spec_needs_session(c, gl_step_spec_of(st), st->r.limit_key.n > 0);
}

/* How long the attempt's keeper may still run it. The grace period may be configured differently on
 * both nodes, and neither knows the other's setting at the time, so the longer one counts. */
static gl_ms grace_of(const struct gl_core *c, const struct gl_step *st)
{
    gl_ms theirs = st->r.orphan_grace_ms > 0 ? st->r.orphan_grace_ms : GL_ORPHAN_GRACE_MS_OLD;

    return theirs > c->orphan_grace_ms && !GL_PLANT(68) ? theirs : c->orphan_grace_ms;
}

bool gl_safety_keeps_seat(const struct gl_core *c, const struct gl_step *st,
                          enum gl_step_status next)
{
    bool may_run = st->r.status != GL_STEP_RUNNING || gl_safety_is_foreign(c, st);

    GL_ASSERT(next < GL_STEP_STATUS_COUNT);
    return may_run && (next == GL_STEP_RETRY_WAIT || next == GL_STEP_BLOCKED) &&
           !GL_PLANT(67); /* planted: a lost attempt frees its seat at once */
}

bool gl_safety_delays_end(const struct gl_job *j, const struct gl_step *st)
{
    /* By cancelling the job, a person has decided about its unsafe work as well. */
    return st->r.seat > 0 &&
           (st->r.status == GL_STEP_RETRY_WAIT ||
            (st->r.status == GL_STEP_BLOCKED && j->r.verdict != GL_VERDICT_CANCELLED));
}

static void wait_for_end(struct gl_core *c, struct gl_step *st)
{
    gl_ms grace = grace_of(c, st);

    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    GL_ASSERT(grace >= c->orphan_grace_ms);
    st->r.orphan_grace_ms = grace;
    gl_ledger_rerun_after(
        c, st, grace,
        gl_str_fmt(c->out->arena,
                   "the attempt was lost with node '%.*s', whose keeper ends it within %lld s",
                   GL_STR_ARG(st->r.node), (long long)(grace + 999) / 1000));
}

void gl_safety_node_died(struct gl_core *c, struct gl_step *st)
{
    uint8_t safety = gl_step_spec_of(st)->safety;
    bool has_seat = st->r.seat > 0;
    bool is_ending = st->job->r.verdict != GL_VERDICT_NONE;

    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    GL_ASSERT(c->shared);
    GL_ASSERT(gl_safety_is_foreign(c, st));
    GL_ASSERT(!gl_step_is_bound(st));
    GL_MARK(c->trace, "safety.inherited");
    if (GL_PLANT(25) && safety == GL_SAFETY_UNSAFE) { /* planted: treated as idempotent */
        gl_ledger_rerun(c, st, GL_S("planted"));
        return;
    }
    if (safety == GL_SAFETY_UNSAFE && has_seat && st->job->r.verdict == GL_VERDICT_FAILED) {
        GL_MARK(c->trace, "safety.seat_outlives_verdict");
        gl_ledger_block(c, st, GL_BLOCK_REVIEW,
                        GL_S("the step is unsafe; its attempt was lost, may still be running, and "
                             "holds a slot of its concurrency key"));
        st->r.lost_at_1 = c->now;
        return;
    }
    if (!gl_safety_needs_session(c, st) || (is_ending && !has_seat) || GL_PLANT(24)) {
        gl_safety_lost(c, st);
        st->r.lost_at_1 = c->now; /* also if unsafe: see gl_safety_rest() */
        return;
    }
    c->counts.attempts_lost++;
    if (record_loss(c, st) && !is_ending) {
        if (!has_seat) {
            gl_ledger_fail(c, st, GL_S("lost with its node four times in ten minutes"), false);
            return;
        }
        st->r.is_given_up = true;
    }
    wait_for_end(c, st);
}

/* Does the step wait for another node's keeper to end its attempt? An earlier release did not
 * record the grace period; its waits are recognised by their length. */
static bool is_waiting_for_end(const struct gl_core *c, const struct gl_step *st)
{
    gl_ms waits = st->r.retry_at - st->r.lost_at_1;

    GL_ASSERT(st->r.status == GL_STEP_RETRY_WAIT);
    if (!c->shared || st->r.lost_at_1 == 0 || !gl_safety_needs_session(c, st)) {
        return false;
    }
    return st->r.orphan_grace_ms > 0
               ? waits == st->r.orphan_grace_ms
               : waits == c->orphan_grace_ms || waits == GL_ORPHAN_GRACE_MS_OLD;
}

void gl_safety_restart_wait(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(st->r.status == GL_STEP_RETRY_WAIT);
    if (is_waiting_for_end(c, st)) {
        GL_MARK(c->trace, "safety.waits_on");
        st->r.orphan_grace_ms = grace_of(c, st);
        st->r.lost_at_1 = c->now;
        st->r.retry_at = c->now + st->r.orphan_grace_ms;
        gl_txn_dirty(c, st);
        GL_ASSERT(st->r.retry_at - c->now >= c->orphan_grace_ms);
    }
}

void gl_safety_on_timer(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(st->r.status == GL_STEP_RETRY_WAIT);
    GL_ASSERT(st->r.retry_at <= c->now);
    if (st->r.is_given_up) {
        st->r.is_given_up = false;
        gl_ledger_fail(c, st, GL_S("lost with its node four times in ten minutes"), false);
    } else if (st->job->r.verdict != GL_VERDICT_NONE) {
        GL_MARK(c->trace, "safety.seat_outlived_verdict");
        gl_ledger_skip(c, st, st->job->r.reason);
    } else {
        gl_ledger_move(c, st, GL_STEP_READY);
    }
}

gl_ms gl_safety_rest(const struct gl_core *c, const struct gl_step *st)
{
    gl_ms ends_at = st->r.lost_at_1 + grace_of(c, st);

    return gl_safety_is_foreign(c, st) && ends_at > c->now ? ends_at - c->now : 0;
}

void gl_safety_pause(struct gl_core *c, struct gl_job *j, gl_str why)
{
    GL_ASSERT(j->memory == GL_MEM_HOT);
    GL_ASSERT(why.n > 0);
    GL_ASSERT(!gl_job_status_is_terminal(j->r.status));
    if (j->r.status != GL_JOB_RUNNING || j->r.verdict != GL_VERDICT_NONE) {
        return; /* paused already, or ending */
    }
    GL_MARK(c->trace, "safety.paused");
    c->counts.reviews_asked++;
    j->r.hold = GL_HOLD_REVIEW;
    j->r.recovery_requires_review = true;
    gl_core_set(c, &j->r.recovery_status, GL_S("paused_for_review"));
    gl_core_set(c, &j->r.reason, why);
    gl_ledger_move_job(c, j, GL_JOB_PAUSING);
    gl_txn_log(c, j, NULL, "job_pausing", why, GL_S("\"recovery_requires_review\":true"));
    for (struct gl_link *l = j->live.next; l != &j->live; l = l->next) {
        struct gl_step *st = GL_CONTAINER(l, struct gl_step, live);

        gl_slots_unqueue(c, st);
        if (st->r.keeps_slots) {
            gl_agent_unit_release(c, st);
        }
        gl_step_set_due(c, st);
    }
}
