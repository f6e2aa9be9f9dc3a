/* ledger_attempts.c - begins and stops attempts: the START and STOP effects of the ledger. */
#include "base/check.h"
#include "core/agents/agents.h"
#include "core/cluster/offers.h"
#include "core/flow/ledger.h"
#include "core/flow/txn.h"
#include "core/recovery/safety.h"

enum {
    START_BY_MS = 30000, /* the executor refuses a START that reaches it later than this */
    OVERDUE_MS = 5000,   /* the executor is asked about an attempt this long after its deadline */
};

void gl_ledger_emit_start(struct gl_core *c, struct gl_step *st)
{
    struct gl_job *j = st->job;
    struct gl_effect *e = gl_txn_attempt(c, st, GL_FX_START);

    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    GL_ASSERT(st->starting == 0);
    e->spec = j->spec;
    gl_spec_ref(j->spec); /* the node reads the flow after this step of the core */
    e->step_number = st->number;
    e->of = st->of;
    e->item = st->item;
    e->step_id = gl_str_dup(c->out->arena, st->r.step_id);
    e->submitted_at = j->r.submitted_at;
    e->run_id = gl_str_dup(c->out->arena, j->r.run_id);
    /* The same for every attempt of the step, so that a program can recognise repeated work. */
    e->idempotency_key =
        gl_str_fmt(c->out->arena, "%.*s:%.*s", GL_STR_ARG(j->id), GL_STR_ARG(st->r.step_id));
    e->start_by = c->now + START_BY_MS;
    e->deadline_at = st->r.deadline_at;
    e->needs_session = gl_safety_needs_session(c, st);
    st->starting = e->start_number = ++c->last_start;
    if (gl_step_is_unit(st)) {
        gl_agent_unit_fill_start(c, st, e);
    }
    GL_TRACE(c->trace, EXEC, .job = j->id, .step = st->r.step_id, .token = j->token,
             .number = st->r.attempt_count, .what = "start");
}

/* The attempt runs on another node, whose executor keeps its deadline and heartbeat. */
static void offer(struct gl_core *c, struct gl_step *st, const struct gl_place_node *node)
{
    gl_core_set(c, &st->r.epoch, (gl_str){0});
    gl_core_set(c, &st->r.node, node->id);
    st->r.orphan_grace_ms = node->grace_ms > 0 ? node->grace_ms : GL_ORPHAN_GRACE_MS_OLD;
    st->r.is_elsewhere = true;
    gl_txn_log(c, st->job, st, "workflow_step_attempt_started", (gl_str){0},
               gl_str_fmt(c->out->arena, "\"node\":\"%.*s\"", GL_STR_ARG(node->id)));
    gl_offers_make(c, st);
}

void gl_ledger_start(struct gl_core *c, struct gl_step *st, const struct gl_place_node *node)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    struct gl_job *j = st->job;

    GL_ASSERT(st->r.status == GL_STEP_QUEUED);
    GL_ASSERT(st->hold != NULL);
    GL_ASSERT(j->r.status == GL_JOB_RUNNING);
    gl_ledger_move(c, st, GL_STEP_RUNNING);
    /* A crash after the commit and before the START leaves a RUNNING attempt that never started.
     * The record names the keeper's epoch, so that the next owner can tell "never" from "lost". */
    c->counts.attempts_started++;
    gl_histogram_add(&c->counts.schedule_to_start, c->now - st->r.queued_at);
    st->r.attempt_count = gl_step_is_unit(st) ? ++j->r.turns_n : st->r.attempt_count + 1;
    st->r.attempt_at = c->now;
    st->r.started_at = st->r.started_at == 0 ? c->now : st->r.started_at;
    j->r.started_at = j->r.started_at == 0 ? c->now : j->r.started_at;
    j->confirms |= c->shared && spec->safety == GL_SAFETY_UNSAFE;
    if (node != NULL) {
        offer(c, st, node);
        gl_step_set_due(c, st);
        return;
    }
    gl_core_set(c, &st->r.epoch, c->epoch);
    if (c->shared) { /* another node must know how long to wait should this one die */
        gl_core_set(c, &st->r.node, c->node);
        st->r.orphan_grace_ms = c->orphan_grace_ms;
    }
    st->heartbeat_at = spec->heartbeat_ms > 0 ? c->now + spec->heartbeat_ms : 0;
    if (spec->timeout_ms > 0) {
        st->r.deadline_at = c->now + spec->timeout_ms;
        st->probe_at = st->r.deadline_at + spec->grace_ms + OVERDUE_MS;
    }
    gl_step_set_due(c, st);
    if (!gl_step_is_unit(st)) {
        gl_txn_log(c, j, st, "workflow_step_attempt_started", (gl_str){0}, (gl_str){0});
    } else if (gl_flow_agent(j->spec->flow, st->of)->kind == GL_AGENT_EXECUTOR) {
        gl_agent_unit_on_slots(c, st);
    }
    gl_ledger_emit_start(c, st);
    GL_ASSERT(st->r.attempt_count > 0);
    GL_ASSERT(st->starting == c->last_start);
}

void gl_ledger_stop(struct gl_core *c, struct gl_step *st, enum gl_stop why)
{
    GL_ASSERT(why != GL_STOP_NONE);
    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    if (st->r.stopping == why || st->r.stopping == GL_STOP_JOB_ENDS) {
        return; /* asked already, and for no weaker reason */
    }
    st->r.stopping = (uint8_t)why;
    st->heartbeat_at = 0;
    if (st->r.is_elsewhere) {
        gl_txn_dirty(c, st);
        gl_offers_stop(c, st);
        return;
    }
    st->probe_at = c->now + gl_step_spec_of(st)->grace_ms + OVERDUE_MS;
    gl_step_set_due(c, st);
    gl_txn_dirty(c, st);
    (void)gl_txn_attempt(c, st, GL_FX_STOP);
}
