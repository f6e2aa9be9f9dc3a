/* ledger.c - the moves of steps and jobs, how steps end, and reconciling.
 *
 * Attempts are begun and stopped in ledger_attempts.c. Reconciling spends a budget of steps: when
 * it is used up, the job stays in core->busy and the next step of the core continues. */
#include "core/flow/ledger.h"

#include "base/check.h"
#include "core/agents/agents.h"
#include "core/cluster/node_pools.h"
#include "core/cluster/offers.h"
#include "core/cluster/other_nodes.h"
#include "core/flow/backoff.h"
#include "core/flow/gate.h"
#include "core/flow/items.h"
#include "core/flow/rule.h"
#include "core/flow/submit.h"
#include "core/flow/txn.h"
#include "core/recovery/load.h"
#include "core/recovery/safety.h"
#include "core/recovery/sweep.h"
#include "core/scheduling/seats.h"
#include "core/scheduling/slots.h"

/* ---- the writers of status ---- */

static bool may_move(const struct gl_step *st, enum gl_step_status next)
{
    GL_ASSERT(next < GL_STEP_STATUS_COUNT);
    if (gl_step_is_unit(st)) {
        return gl_agent_unit_may_move(st->r.status, (uint8_t)next);
    }
    return gl_step_is_bound(st) ? gl_agent_step_may_move(st->r.status, (uint8_t)next)
                                : gl_step_may_move(st->r.status, (uint8_t)next);
}

static void leave_running(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    if (!gl_step_is_bound(st)) {
        GL_ASSERT(c->running_n > 0);
        c->running_n--;
    }
    if (st->r.is_elsewhere) {
        gl_offers_end(c, st);
    }
    st->heartbeat_at = st->probe_at = 0;
    st->r.deadline_at = 0;
    st->r.heartbeat_at = 0;
    st->r.stopping = GL_STOP_NONE;
    st->starting = 0;
}

/* The step keeps its slots while it runs, and an agent also while it waits for an immediate retry.
 * Every other move returns them. */
static void release_slots(struct gl_core *c, struct gl_step *st, enum gl_step_status next)
{
    bool waits = next == GL_STEP_RETRY_WAIT || next == GL_STEP_READY || next == GL_STEP_QUEUED;

    if (waits && st->r.keeps_slots && GL_PLANT(60)) { /* planted: returned in spite of that */
        gl_slots_return(c, st);
    }
    if (next == GL_STEP_RUNNING || (waits && st->r.keeps_slots)) {
        return;
    }
    if (gl_step_is_unit(st)) {
        gl_agent_unit_release(c, st);
    } else {
        gl_slots_return(c, st);
    }
    GL_ASSERT(st->hold == NULL);
}

/* Everything derived from the status follows here and nowhere else: slots, the seat, counters,
 * lists, timers, the record. */
void gl_ledger_move(struct gl_core *c, struct gl_step *st, enum gl_step_status next)
{
    struct gl_job *j = st->job;
    bool is_bound = gl_step_is_bound(st);

    GL_ASSERT(j->memory == GL_MEM_HOT);
    GL_ASSERT(may_move(st, next));
    GL_TRACE(c->trace, STEP, .job = j->id, .step = st->r.step_id, .number = st->r.attempt_count,
             .from = gl_step_status_words[st->r.status], .to = gl_step_status_words[next]);
    /* A seat is freed in the transaction that records the end of the attempt; unless the attempt
     * may still run on a machine that cannot be asked. */
    if (st->r.seat > 0 && next != GL_STEP_RUNNING && !gl_safety_keeps_seat(c, st, next)) {
        gl_seats_release(c, st);
    } else if (st->r.seat > 0 && next != GL_STEP_RUNNING && st->hold != NULL) {
        gl_quotas_leave_seat(c, st->hold);
    }
    if (st->r.status == GL_STEP_RUNNING) {
        leave_running(c, st);
    }
    if (st->hold != NULL || st->r.keeps_slots) {
        release_slots(c, st, next);
    }
    c->running_n += next == GL_STEP_RUNNING && !is_bound;
    /* Every list that refers to the status: the step leaves the old one here and joins the new one
     * below. */
    gl_list_remove(&st->work);
    gl_job_recount(st, (uint8_t)next);
    j->reviews_n -= st->r.status == GL_STEP_BLOCKED && st->r.blocked_on == GL_BLOCK_REVIEW;
    j->items_live -= st->item >= 0 && gl_step_status_is_terminal((uint8_t)next);
    st->r.status = (uint8_t)next;
    st->r.retry_at = 0;
    st->r.due_at = 0;
    st->r.blocked_on = GL_BLOCK_NONE;
    st->resolving = false;
    st->r.queued_at = next == GL_STEP_QUEUED ? c->now : st->r.queued_at;
    if (next == GL_STEP_READY && !is_bound) {
        gl_list_push(&j->ready, &st->work);
    } else if (gl_step_status_is_terminal((uint8_t)next)) {
        st->r.ended_at = c->now;
        if (st->item < 0 || is_bound) {
            gl_list_push(&j->spread, &st->work);
        }
    }
    gl_txn_dirty(c, st);
    gl_step_set_due(c, st);
    GL_ASSERT(st->r.status == (uint8_t)next);
    GL_ASSERT(!gl_list_empty(&st->dirty));
    GL_ASSERT(GL_IMPLIES(st->hold != NULL, next == GL_STEP_RUNNING || st->r.keeps_slots));
}

void gl_ledger_move_job(struct gl_core *c, struct gl_job *j, enum gl_job_status next)
{
    GL_ASSERT(gl_job_may_move(j->r.status, (uint8_t)next));
    GL_TRACE(c->trace, JOB, .job = j->id, .token = j->token,
             .from = gl_job_status_words[j->r.status], .to = gl_job_status_words[next]);
    j->r.status = (uint8_t)next;
    gl_txn_changed(c, j);
    GL_ASSERT(j->changed);
}

/* ---- how steps end ---- */

/* Moves a step to a terminal status and counts it in the job. */
static void end_step(struct gl_core *c, struct gl_step *st, enum gl_step_status status,
                     enum gl_outcome outcome, gl_str why)
{
    struct gl_job_record *r = &st->job->r;

    GL_ASSERT(gl_step_status_is_terminal((uint8_t)status));
    GL_ASSERT(outcome != GL_OUTCOME_NONE);
    gl_slots_unqueue(c, st);
    gl_ledger_move(c, st, status);
    st->r.terminal_outcome = (uint8_t)outcome;
    gl_core_set(c, &st->r.terminal_reason, why);
    if (st->item >= 0 && !gl_step_is_bound(st)) {
        return; /* an instance: its step counts it */
    }
    r->completed_n += status == GL_STEP_COMPLETED;
    r->partial_n += status == GL_STEP_PARTIAL;
    r->skipped_n += status == GL_STEP_SKIPPED;
    r->failed_n += status == GL_STEP_FAILED;
    if (gl_step_is_bound(st)) {
        gl_agent_step_on_ended(c, st);
    }
}

void gl_ledger_end(struct gl_core *c, struct gl_step *st, enum gl_step_status status,
                   enum gl_outcome outcome, gl_str output)
{
    GL_ASSERT(gl_step_is_bound(st));
    GL_ASSERT(status != GL_STEP_FAILED);
    st->r.counted += st->r.status == GL_STEP_RUNNING;
    gl_core_set(c, &st->r.output, output);
    end_step(c, st, status, outcome, (gl_str){0});
    gl_txn_log(c, st->job, st,
               status == GL_STEP_COMPLETED ? "workflow_step_completed"
               : status == GL_STEP_PARTIAL ? "workflow_step_partial"
                                           : "workflow_step_skipped",
               (gl_str){0}, (gl_str){0});
}

/* If the step is an instance of foreach: reports its end to the step. */
static void notify_foreach(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(gl_step_status_is_terminal(st->r.status));
    if (st->item >= 0 && !gl_step_is_bound(st)) {
        gl_items_on_end(c, st);
    }
}

/* Event fields that name the job a completed step was taken from. */
static gl_str reuse_fields(struct gl_core *c, const struct gl_step *st)
{
    GL_ASSERT(GL_IMPLIES((st->r.gate & GL_GATE_REUSED) != 0, st->r.reused_from.n > 0));
    return (st->r.gate & GL_GATE_REUSED) == 0
               ? (gl_str){0}
               : gl_str_fmt(c->out->arena, "\"reused_from\":\"%.*s\"",
                            GL_STR_ARG(st->r.reused_from));
}

void gl_ledger_succeed(struct gl_core *c, struct gl_step *st, gl_str output)
{
    if (gl_step_is_unit(st)) {
        gl_agent_unit_mark_done(c, st, output);
        return;
    }
    st->r.counted++;
    gl_core_set(c, &st->r.output, output);
    gl_core_set(c, &st->r.last_error, (gl_str){0});
    end_step(c, st, GL_STEP_COMPLETED, GL_OUTCOME_SUCCESS, (gl_str){0});
    gl_txn_log(c, st->job, st, "workflow_step_completed", (gl_str){0}, reuse_fields(c, st));
    notify_foreach(c, st);
}

void gl_ledger_skip(struct gl_core *c, struct gl_step *st, gl_str why)
{
    GL_ASSERT(!gl_step_status_is_terminal(st->r.status));
    if (gl_step_is_unit(st)) {
        gl_agent_unit_fail(c, st, why);
        return;
    }
    if (gl_gate_skip_is_same(st)) {
        st->r.gate |= GL_GATE_SAME;
    }
    end_step(c, st, GL_STEP_SKIPPED, GL_OUTCOME_SKIPPED, why);
    gl_txn_log(c, st->job, st, "workflow_step_skipped", why, (gl_str){0});
    notify_foreach(c, st);
}

/* The step has no attempts left: ends it as `on_failure` says, and perhaps the job with it. */
static void fail_for_good(struct gl_core *c, struct gl_step *st, gl_str why)
{
    struct gl_job *j = st->job;
    gl_str handled = GL_S("\"handled\":true");

    GL_ASSERT(!gl_step_status_is_terminal(st->r.status));
    if (st->item >= 0 && !gl_step_is_bound(st)) { /* the foreach step applies `on_failure` */
        end_step(c, st, GL_STEP_FAILED, GL_OUTCOME_FAILED, why);
        gl_txn_log(c, j, st, "workflow_step_failed", why, (gl_str){0});
        notify_foreach(c, st);
        return;
    }
    switch ((enum gl_failure_policy)gl_step_spec_of(st)->on_failure) {
    case GL_ON_FAILURE_CONTINUE:
        end_step(c, st, GL_STEP_PARTIAL, GL_OUTCOME_FAILED, why);
        gl_txn_log(c, j, st, "workflow_step_failed", why, handled);
        return;
    case GL_ON_FAILURE_SKIP:
        end_step(c, st, GL_STEP_SKIPPED, GL_OUTCOME_FAILED, why);
        gl_txn_log(c, j, st, "workflow_step_failed", why, handled);
        return;
    case GL_ON_FAILURE_FAIL:
    case GL_ON_FAILURE_COUNT:
        break;
    }
    end_step(c, st, GL_STEP_FAILED, GL_OUTCOME_FAILED, why);
    gl_txn_log(c, j, st, "workflow_step_failed", why, (gl_str){0});
    if (j->r.verdict == GL_VERDICT_NONE) {
        gl_core_set(c, &j->r.failed_step, st->r.step_id);
        if (gl_step_is_bound(st)) {
            gl_failure_record(c, st, why);
        }
        gl_ledger_set_verdict(c, j, GL_VERDICT_FAILED,
                              gl_str_fmt(c->out->arena, "step '%.*s' failed: %.*s",
                                         GL_STR_ARG(st->r.step_id), GL_STR_ARG(why)));
    }
}

/* Differs between steps and attempts, and is the same in every replay. */
static uint64_t jitter_seed(const struct gl_step *st)
{
    return (gl_str_hash(st->job->id) ^ gl_str_hash(st->r.step_id)) + st->r.counted * 0x9e3779b9u;
}

void gl_ledger_fail(struct gl_core *c, struct gl_step *st, gl_str why, bool may_retry)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    gl_ms wait;

    GL_ASSERT(!gl_step_status_is_terminal(st->r.status));
    if (gl_step_is_unit(st)) {
        gl_agent_unit_fail(c, st, why);
        return;
    }
    if (!GL_PLANT(6)) { /* planted: a retry that forgets its count */
        st->r.counted++;
    }
    gl_core_set(c, &st->r.last_error, why);
    if (!may_retry || st->r.counted >= spec->retry.attempts) {
        fail_for_good(c, st, why);
        return;
    }
    if (st->job->r.verdict != GL_VERDICT_NONE) { /* the job is ending: no retry */
        gl_ledger_skip(c, st, st->job->r.reason);
        return;
    }
    wait = gl_backoff_jitter(&spec->retry, gl_backoff_after(&spec->retry, st->r.counted),
                             jitter_seed(st));
    gl_ledger_move(c, st, GL_STEP_RETRY_WAIT);
    st->r.retry_at = c->now + wait;
    gl_step_set_due(c, st);
    gl_txn_log(c, st->job, st, "workflow_step_attempt_retry_scheduled", why,
               gl_str_fmt(c->out->arena, "\"retry_in_ms\":%lld", (long long)wait));
}

void gl_ledger_rerun(struct gl_core *c, struct gl_step *st, gl_str why)
{
    gl_core_set(c, &st->r.last_error, why);
    gl_ledger_move(c, st, GL_STEP_READY);
    gl_txn_log(c, st->job, st, "workflow_step_attempt_retry_scheduled", why,
               GL_S("\"retry_in_ms\":0,\"counted\":false"));
    GL_ASSERT(st->r.status == GL_STEP_READY);
}

void gl_ledger_rerun_after(struct gl_core *c, struct gl_step *st, gl_ms wait, gl_str why)
{
    GL_ASSERT(wait >= 0);
    gl_core_set(c, &st->r.last_error, why);
    gl_ledger_move(c, st, GL_STEP_RETRY_WAIT);
    st->r.retry_at = c->now + wait;
    gl_step_set_due(c, st);
    gl_txn_log(
        c, st->job, st, "workflow_step_attempt_retry_scheduled", why,
        gl_str_fmt(c->out->arena, "\"retry_in_ms\":%lld,\"counted\":false", (long long)wait));
}

void gl_ledger_block(struct gl_core *c, struct gl_step *st, enum gl_block kind, gl_str why)
{
    GL_ASSERT(kind != GL_BLOCK_NONE);
    gl_ledger_move(c, st, GL_STEP_BLOCKED);
    st->r.blocked_on = (uint8_t)kind;
    st->job->reviews_n += kind == GL_BLOCK_REVIEW;
    c->counts.reviews_asked += kind == GL_BLOCK_REVIEW;
    c->counts.approvals_asked += kind == GL_BLOCK_APPROVAL;
    gl_core_set(c, &st->r.last_error, why);
    gl_txn_log(c, st->job, st, "workflow_step_blocked", why,
               gl_str_fmt(c->out->arena, "\"blocked_on\":\"%s\"", gl_block_words[kind]));
}

/* ---- reconciling ---- */

void gl_ledger_evaluate(struct gl_core *c, struct gl_step *st)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    struct gl_rule_parents parents = {.all = gl_step_needs(st),
                                      .ended = st->r.up_ended,
                                      .success = st->r.up_success,
                                      .failed = st->r.up_failed,
                                      .accepted = st->r.up_accepted};

    if (gl_scatter_has_more(st) && gl_list_empty(&st->work)) {
        gl_list_push(&st->job->making, &st->work);
    }
    if (st->r.status != GL_STEP_PENDING &&
        !(st->r.status == GL_STEP_BLOCKED && st->r.blocked_on == GL_BLOCK_DEPENDENCY)) {
        return;
    }
    switch (gl_rule_evaluate((enum gl_rule)spec->rule, spec->quorum, &parents)) {
    case GL_RULE_RUN:
        gl_ledger_move(c, st, GL_STEP_READY);
        if (spec->is_bound) {
            gl_agent_step_on_ready(c, st);
        }
        break;
    case GL_RULE_IMPOSSIBLE:
        gl_ledger_skip(c, st, GL_S("trigger rule cannot be satisfied"));
        break;
    case GL_RULE_WAIT:
        break;
    }
    GL_ASSERT(parents.ended <= parents.all);
}

/* Does the edge to the parent's kth child accept how the parent ended? */
static bool edge_accepts(const struct gl_step *parent, uint32_t k)
{
    static const uint8_t bits[] = {[GL_STEP_COMPLETED] = GL_ACCEPT_DONE,
                                   [GL_STEP_PARTIAL] = GL_ACCEPT_PARTIAL,
                                   [GL_STEP_SKIPPED] = GL_ACCEPT_SKIPPED,
                                   [GL_STEP_FAILED] = GL_ACCEPT_FAILED};
    const uint8_t *tells = gl_step_spec_of(parent)->tells;

    GL_ASSERT(gl_step_status_is_terminal(parent->r.status));
    GL_ASSERT(k < gl_step_spec_of(parent)->children_n);
    if (tells == NULL) {
        return parent->r.status == GL_STEP_COMPLETED || parent->r.status == GL_STEP_PARTIAL;
    }
    return (tells[k] & bits[parent->r.status]) != 0 && parent->r.status != GL_STEP_FAILED;
}

/* Counts the parent's end in its kth child and evaluates the child's rule. st->r.spread says how
 * many children have been notified, so a crash neither repeats nor skips one. */
static void notify_child(struct gl_core *c, const struct gl_step *parent, uint32_t k)
{
    struct gl_step *child = gl_step_get(c, parent->job, gl_step_spec_of(parent)->children[k]);
    uint8_t status = parent->r.status, outcome = parent->r.terminal_outcome;

    GL_ASSERT(gl_step_status_is_terminal(status));
    if (child->r.up_ended == gl_step_needs(child)) {
        return; /* records that contradict each other: all parents are counted already */
    }
    child->r.up_ended++;
    child->r.up_success += status == GL_STEP_COMPLETED || outcome == GL_OUTCOME_SUCCESS;
    child->r.up_failed += status == GL_STEP_FAILED || outcome == GL_OUTCOME_FAILED;
    child->r.up_accepted += edge_accepts(parent, k);
    child->r.up_reused += (parent->r.gate & (GL_GATE_REUSED | GL_GATE_SAME)) != 0;
    gl_txn_dirty(c, child);
    gl_ledger_evaluate(c, child);
    GL_ASSERT(child->r.up_ended <= gl_step_needs(child));
}

/* Evaluates the steps without parents; a new job has nothing else to do. */
static uint32_t spread_roots(struct gl_core *c, struct gl_job *j, uint32_t budget)
{
    const struct gl_flow *flow = j->spec->flow;

    GL_ASSERT(j->r.verdict == GL_VERDICT_NONE);
    GL_ASSERT(budget <= GL_SPREAD_MAX);
    while (j->r.roots_spread < flow->roots_n && budget > 0) {
        struct gl_step *st = gl_step_get(c, j, flow->roots[j->r.roots_spread++]);

        gl_txn_dirty(c, st);
        gl_ledger_evaluate(c, st);
        budget--;
    }
    return budget;
}

/* Notifies the children of ended steps. */
static uint32_t spread_ends(struct gl_core *c, struct gl_job *j, uint32_t budget)
{
    for (struct gl_link *l; budget > 0 && (l = gl_list_first(&j->spread)) != NULL;) {
        struct gl_step *st = GL_CONTAINER(l, struct gl_step, work);
        const struct gl_step_spec *spec = gl_step_spec_of(st);
        GL_ASSERT(gl_step_status_is_terminal(st->r.status));

        while (st->r.spread < spec->children_n && budget > 0) {
            notify_child(c, st, st->r.spread++);
            budget--;
        }
        gl_txn_dirty(c, st);
        if (st->r.spread == spec->children_n) {
            gl_list_remove(&st->work);
        } else {
            GL_MARK(c->trace, "ledger.spread_continues");
        }
    }
    return budget;
}

/* Sends ready steps through their gates and into the queues for slots. */
static uint32_t queue_ready(struct gl_core *c, struct gl_job *j, uint32_t budget)
{
    struct gl_why why;
    bool is_possible;

    GL_ASSERT(j->r.status == GL_JOB_RUNNING);
    for (struct gl_link *l; budget > 0 && (l = gl_list_first(&j->ready)) != NULL; budget--) {
        struct gl_step *st = GL_CONTAINER(l, struct gl_step, work);

        if (!gl_gate_pass(c, st)) {
            continue;
        }
        gl_ledger_move(c, st, GL_STEP_QUEUED);
        is_possible = gl_slots_possible(c, gl_step_spec_of(st), &why);
        if (is_possible && (!gl_step_is_unit(st) || gl_agent_unit_may_queue(c, st, &why))) {
            gl_slots_queue(c, st);
        } else if (!is_possible && gl_slots_may_queue_away(c, st)) {
            gl_slots_queue(c, st);
        } else if (!is_possible && c->shared && !GL_PLANT(72)) { /* planted: as if it were alone */
            gl_node_pools_lack(c, st); /* another node may offer the pool */
            gl_step_set_due(c, st);
        } else if (gl_step_is_unit(st)) {
            gl_agent_unit_on_refused(c, st, gl_str_dup(c->out->arena, gl_str_of(why.text)));
        } else {
            gl_core_set(c, &st->r.last_error, gl_str_of(why.text));
        }
    }
    return budget;
}

/* Skips the steps of an ending job that have not ended, within the budget. Running attempts have
 * been asked to stop and end by themselves. */
static uint32_t wind_down(struct gl_core *c, struct gl_job *j, uint32_t budget)
{
    struct gl_link *next;

    GL_ASSERT(j->r.verdict != GL_VERDICT_NONE);
    for (struct gl_link *l = j->live.next; l != &j->live && budget > 0; l = next) {
        struct gl_step *st = GL_CONTAINER(l, struct gl_step, live);

        next = l->next;
        if (gl_step_is_unit(st) || gl_step_is_bound(st)) {
            budget -= gl_agents_wind_down(c, st, budget);
            continue;
        }
        if (st->r.status == GL_STEP_RUNNING || gl_txn_may_drop(st) || gl_safety_delays_end(j, st)) {
            continue;
        }
        if (!gl_step_status_is_terminal(st->r.status)) {
            gl_ledger_skip(c, st, j->r.reason);
        }
        /* Its children are skipped here too: mark it as having nothing left to propagate. */
        if (st->item < 0) {
            st->r.spread = gl_step_spec_of(st)->children_n;
            st->r.up_ended = gl_step_spec_of(st)->needs_n;
        }
        gl_list_remove(&st->work);
        gl_txn_dirty(c, st);
        budget--;
    }
    return budget;
}

/* The job has ended. */
static void finish(struct gl_core *c, struct gl_job *j)
{
    static const char *const events[] = {
        [GL_JOB_COMPLETED] = "job_completed",
        [GL_JOB_FAILED] = "job_failed",
        [GL_JOB_CANCELLED] = "job_cancelled",
    };
    enum gl_job_status status = j->r.verdict == GL_VERDICT_CANCELLED ? GL_JOB_CANCELLED
                                : j->r.verdict == GL_VERDICT_FAILED  ? GL_JOB_FAILED
                                                                     : GL_JOB_COMPLETED;

    GL_ASSERT(!gl_job_status_is_terminal(j->r.status));
    GL_ASSERT(gl_job_running(j) == 0);
    c->counts.jobs_completed += status == GL_JOB_COMPLETED;
    c->counts.jobs_failed += status == GL_JOB_FAILED;
    c->counts.jobs_cancelled += status == GL_JOB_CANCELLED;
    gl_ledger_move_job(c, j, status);
    j->r.ended_at = c->now;
    j->r.hold = GL_HOLD_NONE;
    gl_txn_log(c, j, NULL, events[status], j->r.reason, (gl_str){0});
}

/* Is the job ending, with no attempt that runs, or may run on a machine that cannot be asked? */
static bool is_wound_down(const struct gl_job *j)
{
    if (j->r.verdict == GL_VERDICT_NONE || gl_job_running(j) > 0) {
        return false;
    }
    for (const struct gl_link *l = j->live.next; l != &j->live; l = l->next) {
        if (gl_safety_delays_end(j, GL_CONTAINER(l, const struct gl_step, live))) {
            return false;
        }
    }
    return true;
}

/* Will the job progress without a person's help? */
static bool has_runnable(const struct gl_job *j)
{
    return gl_job_count(j, GL_STEP_READY) + gl_job_count(j, GL_STEP_QUEUED) +
               gl_job_count(j, GL_STEP_RUNNING) + j->count[GL_STEP_RETRY_WAIT] >
           0;
}

/* Pauses a job whose only way forward is a person's decision about a lost attempt, and says so in
 * its status. */
static void pause_for_review(struct gl_core *c, struct gl_job *j)
{
    struct gl_link *l = j->live.next;

    GL_ASSERT(j->reviews_n > 0);
    GL_ASSERT(j->r.status == GL_JOB_RUNNING);
    while (GL_CONTAINER(l, struct gl_step, live)->r.blocked_on != GL_BLOCK_REVIEW) {
        l = l->next;
    }
    j->r.hold = GL_HOLD_REVIEW;
    gl_core_set(c, &j->r.reason,
                gl_str_fmt(c->out->arena, "step '%.*s' waits for a decision",
                           GL_STR_ARG(GL_CONTAINER(l, struct gl_step, live)->r.step_id)));
    gl_ledger_move_job(c, j, GL_JOB_PAUSED);
    gl_txn_log(c, j, NULL, "job_paused", j->r.reason, (gl_str){0});
    for (l = j->live.next; l != &j->live;
         l = l->next) { /* deadlines do not run while it is paused */
        gl_step_set_due(c, GL_CONTAINER(l, struct gl_step, live));
    }
}

/* Ends or pauses the job if nothing is left to do. */
static void conclude(struct gl_core *c, struct gl_job *j)
{
    bool is_bundle = j->spec->flow->bundle != NULL;

    GL_ASSERT(j->memory == GL_MEM_HOT);
    GL_ASSERT(!gl_job_status_is_terminal(j->r.status));
    GL_ASSERT(j->reviews_n <= j->count[GL_STEP_BLOCKED]);
    GL_ASSERT(gl_job_ended_steps(&j->r) <= j->r.steps_n);
    if (is_bundle && j->r.verdict == GL_VERDICT_NONE) {
        gl_agents_conclude(c, j);
        if (j->r.verdict != GL_VERDICT_NONE) { /* wind its agents down first */
            gl_txn_changed(c, j);
            gl_list_push(&c->busy, &j->busy);
            return;
        }
    }
    if (is_wound_down(j) || (j->r.verdict == GL_VERDICT_NONE && !is_bundle &&
                             gl_job_ended_steps(&j->r) == j->r.steps_n)) {
        finish(c, j);
    } else if (j->r.status == GL_JOB_PAUSING && gl_job_running(j) == 0) {
        gl_ledger_move_job(c, j, GL_JOB_PAUSED);
        gl_txn_log(c, j, NULL, "job_paused", j->r.reason, (gl_str){0});
    } else if (j->r.status == GL_JOB_RUNNING && j->r.verdict == GL_VERDICT_NONE &&
               j->reviews_n > 0 && j->reviews_n == gl_job_count(j, GL_STEP_BLOCKED) &&
               !has_runnable(j)) {
        pause_for_review(c, j);
    }
}

static bool has_limited(const struct gl_job *j)
{
    for (const struct gl_link *l = j->ready.next; l != &j->ready; l = l->next) {
        const struct gl_step_spec *spec =
            gl_step_spec_of(GL_CONTAINER(l, const struct gl_step, work));

        if (spec->limit_key.n > 0 || spec->rate_key.n > 0) {
            return true;
        }
    }
    return false;
}

/* On a shared store the guards of a start under a limit may refuse the transaction, because another
 * node was faster. Whatever else has happened to the job must not be refused along with it: that
 * goes first, in a transaction of its own, and the start follows in the next step of the core. */
static bool defers_start(const struct gl_core *c, struct gl_job *j)
{
    bool was_deferred = j->is_deferred;

    j->is_deferred = false;
    if (!c->shared || was_deferred || (!j->changed && j->rev > 0) || !has_limited(j)) {
        return false;
    }
    j->is_deferred = true;
    GL_ASSERT(c->shared);
    return true;
}

/* One round of reconciling. Each part may make work for the next one. */
static uint32_t advance(struct gl_core *c, struct gl_job *j, uint32_t budget)
{
    GL_ASSERT(budget > 0);
    GL_ASSERT(j->memory == GL_MEM_HOT);
    if (j->r.verdict != GL_VERDICT_NONE) {
        return budget;
    }
    budget = spread_roots(c, j, budget);
    budget = spread_ends(c, j, budget);
    if (j->r.status == GL_JOB_RUNNING) {
        budget = gl_items_make(c, j, budget);
        if (defers_start(c, j)) {
            gl_list_push(&c->busy, &j->busy);
            return budget;
        }
    }
    if (j->spec->flow->bundle != NULL && (j->r.status == GL_JOB_RUNNING || GL_PLANT(38))) {
        budget = gl_agents_dispatch(c, j, budget); /* planted: also while the job is paused */
    }
    if (j->r.status == GL_JOB_RUNNING) {
        budget = queue_ready(c, j, budget);
    }
    return budget;
}

/* Has the round made more work? A step may have ended at its gate, or become many instances. */
static bool has_more_work(const struct gl_job *j)
{
    return !gl_list_empty(&j->spread) ||
           (j->r.status == GL_JOB_RUNNING &&
            (!gl_list_empty(&j->making) ||
             (j->spec->flow->bundle != NULL && gl_agents_have_work(j))));
}

void gl_ledger_reconcile(struct gl_core *c, struct gl_job *j)
{
    uint32_t budget = GL_SPREAD_MAX;

    GL_ASSERT(j->memory == GL_MEM_HOT);
    GL_ASSERT(!gl_list_empty(&j->touched));
    if (gl_job_status_is_terminal(j->r.status) || j->releases ||
        (j->is_damaged && j->r.verdict == GL_VERDICT_NONE)) {
        return;
    }
    gl_list_remove(&j->busy);
    do {
        budget = advance(c, j, budget);
    } while (budget > 0 && gl_list_empty(&j->busy) && j->r.verdict == GL_VERDICT_NONE &&
             has_more_work(j));
    if (j->r.verdict != GL_VERDICT_NONE) {
        budget = wind_down(c, j, budget);
    }
    if (budget == 0) { /* the transaction is full: the rest follows in the next step of the core */
        gl_txn_changed(c, j);
        gl_list_push(&c->busy, &j->busy);
        return;
    }
    conclude(c, j);
}

void gl_ledger_reconcile_all(struct gl_core *c)
{
    /* Reconciling a job touches no other job. Granting slots may touch many, but those need only be
     * flushed: a step that starts makes nothing else ready. */
    for (struct gl_link *l = c->touched.next; l != &c->touched; l = l->next) {
        gl_ledger_reconcile(c, GL_CONTAINER(l, struct gl_job, touched));
    }
    gl_slots_grant(c);
    for (struct gl_link *l; (l = gl_list_first(&c->touched)) != NULL;) {
        struct gl_job *j = GL_CONTAINER(l, struct gl_job, touched);

        gl_txn_flush(c, j);
        if (j->is_suspect) {
            gl_load_forget(c, j);
        }
    }
    GL_ASSERT(gl_list_empty(&c->touched));
}

/* Stops the attempts of an ending job and takes its steps out of the queues. */
static void stop_running(struct gl_core *c, struct gl_job *j)
{
    GL_ASSERT(j->r.verdict != GL_VERDICT_NONE);
    for (struct gl_link *l = j->live.next; l != &j->live; l = l->next) {
        struct gl_step *st = GL_CONTAINER(l, struct gl_step, live);

        gl_slots_unqueue(c, st);
        if (st->r.keeps_slots) {
            gl_agent_unit_release(c, st);
        }
        /* Killing an unsafe attempt may leave its work half done. A failing job does not do that;
         * only a cancellation, or the completion of the job, does. */
        if (st->r.status == GL_STEP_RUNNING && !gl_step_is_bound(st) &&
            (j->r.verdict == GL_VERDICT_CANCELLED || j->r.verdict == GL_VERDICT_COMPLETED ||
             gl_step_spec_of(st)->safety != GL_SAFETY_UNSAFE)) {
            gl_ledger_stop(c, st, GL_STOP_JOB_ENDS);
        }
    }
}

void gl_ledger_set_verdict(struct gl_core *c, struct gl_job *j, enum gl_verdict verdict, gl_str why)
{
    GL_ASSERT(!gl_job_status_is_terminal(j->r.status));
    GL_ASSERT(j->r.verdict == GL_VERDICT_NONE); /* decided once */
    j->r.verdict = (uint8_t)verdict;
    gl_core_set(c, &j->r.reason, why);
    gl_txn_changed(c, j);
    stop_running(c, j);
}
