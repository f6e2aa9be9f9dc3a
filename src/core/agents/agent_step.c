/* agent_step.c - the steps of a bundle's ledger, whose attempts are the work of an agent.
 *
 * An attempt has no process and no slots of its own. It begins with a message to the step's agent
 * and ends when the agent reports a result, when it fails, or when a deadline passes. */
#include "base/check.h"
#include "core/agents/agents.h"

#include "core/flow/ledger.h"
#include "core/flow/txn.h"
#include "core/scheduling/slots.h"

/* ---- attempts ---- */

static void set_heartbeat(struct gl_core *c, struct gl_step *st, gl_ms timeout_ms)
{
    GL_ASSERT(gl_step_is_bound(st));
    st->r.heartbeat_at = timeout_ms > 0 ? c->now + timeout_ms : 0;
    gl_step_set_due(c, st);
}

/* How long its worker may be silent: the longer of what the step and its agent allow. */
static gl_ms heartbeat_timeout_of(const struct gl_step *st)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    gl_ms agents = gl_flow_agent(st->job->spec->flow, spec->agent)->beacon_timeout_ms;

    GL_ASSERT(gl_step_is_bound(st));
    return spec->heartbeat_ms > agents ? spec->heartbeat_ms : agents;
}

/* While no node had the job, the worker's beacons could not be received. It gets the whole
 * heartbeat timeout again. */
void gl_agent_step_on_load(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(gl_step_is_bound(st));
    if (st->r.status == GL_STEP_RUNNING && st->r.heartbeat_at != 0 &&
        st->r.heartbeat_at < c->now + heartbeat_timeout_of(st)) {
        st->r.heartbeat_at = c->now + heartbeat_timeout_of(st);
    }
    if (gl_scatter_has_more(st)) {
        gl_list_push(&st->job->making, &st->work);
    } else if (gl_step_status_is_terminal(st->r.status) &&
               st->r.spread < gl_step_spec_of(st)->children_n) {
        gl_list_push(&st->job->spread, &st->work);
    }
    gl_step_set_due(c, st);
}

void gl_agent_step_resume(struct gl_core *c, struct gl_step *st)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);

    GL_ASSERT(gl_step_is_bound(st));
    if (st->r.status == GL_STEP_RUNNING) {
        st->r.deadline_at = spec->timeout_ms > 0 ? c->now + spec->timeout_ms : 0;
        set_heartbeat(c, st, spec->heartbeat_ms);
        gl_txn_dirty(c, st);
    }
}

void gl_agent_step_begin(struct gl_core *c, struct gl_step *st, struct gl_queued_message *q)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    struct gl_job *j = st->job;

    GL_ASSERT(gl_step_is_bound(st));
    GL_ASSERT(st->r.status == GL_STEP_WAITING || st->r.status == GL_STEP_READY);
    (void)q; /* gl_agent_step_set_message() takes it */
    if (st->r.status == GL_STEP_WAITING) {
        gl_ledger_move(c, st, GL_STEP_READY);
    }
    gl_ledger_move(c, st, GL_STEP_RUNNING);
    st->r.attempt_count++;
    st->r.attempt_at = c->now;
    st->r.started_at = st->r.started_at == 0 ? c->now : st->r.started_at;
    j->r.started_at = j->r.started_at == 0 ? c->now : j->r.started_at;
    st->r.deadline_at = spec->timeout_ms > 0 ? c->now + spec->timeout_ms : 0;
    set_heartbeat(c, st, spec->heartbeat_ms);
    gl_txn_log(c, j, st, "workflow_step_attempt_started", (gl_str){0}, (gl_str){0});
}

void gl_agent_step_set_message(struct gl_core *c, struct gl_step *st, struct gl_queued_message *q)
{
    struct gl_mailbox *m = gl_mailbox_of(c, st);

    GL_ASSERT(gl_step_is_bound(st));
    GL_ASSERT(q->r.number > 0);
    /* Only the last message of an attempt is kept; a retry begins with it. */
    if (m->now != NULL && m->now != q && m->now->r.status == GL_MESSAGE_KEPT) {
        gl_mailbox_drop(c, st->job, m->now);
    }
    m->now = q;
    st->r.letter = q->r.number;
    gl_txn_dirty(c, st);
}

void gl_agent_step_on_beacon(struct gl_core *c, struct gl_step *st, gl_ms timeout_ms)
{
    GL_ASSERT(gl_step_is_bound(st));
    st->r.beacon_at = c->now;
    if (timeout_ms > 0) {
        set_heartbeat(c, st, timeout_ms);
    }
    /* Not worth a transaction: a load grants the whole timeout again. */
}

/* Stops the turn that works for the attempt: the worker if it runs, else the unit's wait. */
static void stop_worker(struct gl_core *c, struct gl_step *st, enum gl_stop why)
{
    struct gl_queued_message *q = st->mailbox != NULL ? st->mailbox->now : NULL;
    struct gl_step *unit = q != NULL ? gl_step_find(st->job, q->unit) : NULL;

    GL_ASSERT(why != GL_STOP_NONE);
    if (unit == NULL || unit->mailbox == NULL || unit->mailbox->now != q) {
        return;
    }
    if (unit->r.status == GL_STEP_RUNNING) {
        gl_ledger_stop(c, unit, why);
    } else if ((unit->r.status == GL_STEP_READY || unit->r.status == GL_STEP_QUEUED ||
                unit->r.status == GL_STEP_RETRY_WAIT) &&
               unit->mailbox->asked == 0) { /* a WAITING unit is ending the step itself */
        gl_slots_unqueue(c, unit);
        gl_agent_unit_ack(c, unit);
    }
}

void gl_agent_step_fail(struct gl_core *c, struct gl_step *st, gl_str why)
{
    GL_ASSERT(gl_step_is_bound(st));
    if (st->r.status != GL_STEP_RUNNING) {
        return;
    }
    stop_worker(c, st, GL_STOP_DEADLINE); /* its result, if it still comes, is stale */
    gl_ledger_fail(c, st, why, true);
}

void gl_agent_step_on_ended(struct gl_core *c, struct gl_step *st)
{
    struct gl_queued_message *q = st->mailbox != NULL ? st->mailbox->now : NULL;
    struct gl_step *unit = q != NULL ? gl_step_find(st->job, q->unit) : NULL;

    GL_ASSERT(gl_step_status_is_terminal(st->r.status));
    /* If others have ended the step while its turn waits, the turn ends, too. A running worker is
     * stopped only if the step was skipped: otherwise its own result is what ends the step. */
    if (unit != NULL && unit->mailbox != NULL && unit->mailbox->now == q &&
        unit->r.status != GL_STEP_RUNNING && unit->r.status != GL_STEP_BLOCKED &&
        unit->r.status != GL_STEP_PENDING && unit->r.status != GL_STEP_WAITING &&
        unit->mailbox->asked == 0) {
        stop_worker(c, st, GL_STOP_JOB_ENDS);
    } else if (unit != NULL && unit->mailbox != NULL && unit->mailbox->now == q &&
               st->r.status == GL_STEP_SKIPPED && unit->r.status == GL_STEP_RUNNING) {
        gl_ledger_stop(c, unit, GL_STOP_DEADLINE);
    }
    gl_mailbox_discard(c, st);
    if (gl_step_spec_of(st)->patch_id.n > 0) {
        gl_patch_apply_on_step_ended(c, st);
    }
}

/* Is a person being asked whether the worker has done its work? */
static bool is_under_review(const struct gl_step *st)
{
    const struct gl_queued_message *q = st->mailbox != NULL ? st->mailbox->now : NULL;
    const struct gl_step *unit = q != NULL ? gl_step_find(st->job, q->unit) : NULL;

    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    return unit != NULL && unit->mailbox != NULL && unit->mailbox->now == q &&
           unit->r.status == GL_STEP_BLOCKED && unit->r.blocked_on == GL_BLOCK_REVIEW;
}

void gl_agent_step_on_timer(struct gl_core *c, struct gl_step *st)
{
    gl_str why;

    GL_ASSERT(gl_step_is_bound(st));
    if (st->r.status == GL_STEP_RETRY_WAIT) {
        gl_ledger_move(c, st, GL_STEP_READY);
        gl_agent_step_redeliver(c, st);
        return;
    }
    if (st->r.status != GL_STEP_RUNNING) {
        return;
    }
    /* Timing out now would repeat the work before the person has decided whether it was done. */
    if (is_under_review(st)) {
        GL_MARK(c->trace, "bound.waits_for_review");
        gl_agent_step_resume(c, st);
        return;
    }
    why = st->r.deadline_at != 0 && st->r.deadline_at <= c->now
              ? GL_S("step attempt deadline exceeded")
              : GL_S("agent beacon deadline exceeded");
    GL_MARK(c->trace, "bound.timed_out");
    if (gl_str_is(why, "agent beacon deadline exceeded") &&
        gl_flow_agent(st->job->spec->flow, gl_step_spec_of(st)->agent)->beacon_required) {
        gl_txn_log(c, st->job, st, "agent_beacon_missed", why,
                   gl_str_fmt(c->out->arena, "\"agent_id\":\"%.*s\"",
                              GL_STR_ARG(gl_step_spec_of(st)->agent_ids.items[0])));
    }
    gl_txn_log(c, st->job, st, "workflow_step_attempt_timed_out", why, (gl_str){0});
    gl_agent_step_fail(c, st, why);
}

/* ---- messages for a step ---- */

void gl_agent_step_redeliver(struct gl_core *c, struct gl_step *st)
{
    struct gl_queued_message *q = st->mailbox != NULL ? st->mailbox->now : NULL;

    GL_ASSERT(gl_step_is_bound(st));
    GL_ASSERT(st->r.status == GL_STEP_READY);
    if (q != NULL && q->r.status == GL_MESSAGE_KEPT) {
        st->mailbox->now = NULL;
        q->r.again = true;
        gl_list_push(st->mailbox->messages.next, &q->link);
        st->mailbox->n++;
    }
    if (st->mailbox == NULL || st->mailbox->n == 0) {
        gl_agent_step_trigger(c, st);
        return;
    }
    gl_mailbox_release(c, st);
}

/* Must the ledger send the step a message? For its rule, parents may have ended without sending
 * one: they failed, or were skipped. */
static bool needs_trigger(const struct gl_step *st)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);

    GL_ASSERT(gl_step_is_bound(st));
    switch ((enum gl_rule)spec->rule) {
    case GL_RULE_ONE_FAILED:
        return true;
    case GL_RULE_ALL_DONE:
        return st->r.up_failed > 0;
    case GL_RULE_ONE_DONE:
        return st->r.up_success == 0;
    default:
        return gl_agent_step_is_managed(st);
    }
}

/* Such a step cannot rely on a message from another agent: its edges may change while the job runs.
 */
bool gl_agent_step_is_managed(const struct gl_step *st)
{
    const struct gl_bundle_spec *b = st->job->spec->flow->bundle;
    const struct gl_region *r = b->dynamic.regions.items;
    const struct gl_step_spec *spec = gl_step_spec_of(st);

    GL_ASSERT(gl_step_is_bound(st));
    if (spec->template_id.n > 0) {
        return true;
    }
    for (size_t i = 0; i < b->dynamic.regions.n; i++) {
        if (gl_str_eq(r[i].exit, spec->id)) {
            return true;
        }
    }
    return false;
}

void gl_agent_step_on_ready(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(gl_step_is_bound(st));
    GL_ASSERT(st->r.status == GL_STEP_READY);
    if (st->mailbox != NULL && st->mailbox->n > 0) {
        gl_mailbox_release(c, st);
    } else if (needs_trigger(st)) {
        gl_agent_step_trigger(c, st);
    }
}

/* Do the parents' outputs still fit into one message? */
static bool fits_message(const struct gl_jw *w, gl_str output)
{
    return output.n > 0 && w->out->n + output.n <= GL_MESSAGE_BYTES_MAX / 2;
}

/* The ends of its parents, with their outputs as far as they fit. */
static void write_parents(struct gl_core *c, struct gl_step *st, struct gl_jw *w)
{
    const struct gl_flow *flow = st->job->spec->flow;
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    const struct gl_step_edge *edges = spec->edges.items;

    GL_ASSERT(gl_step_is_bound(st));
    (void)c;
    gl_jw_key(w, "parents");
    gl_jw_array(w);
    for (uint32_t i = 0; i < spec->needs_n; i++) {
        struct gl_step *p = gl_step_find(st->job, spec->needs[i]);

        gl_jw_object(w);
        gl_jw_key(w, "step_id");
        gl_jw_str(w, gl_flow_step(flow, spec->needs[i])->id);
        gl_jw_key(w, "status");
        gl_jw_c(w, gl_step_status_words[p != NULL ? p->r.status : GL_STEP_PENDING]);
        gl_jw_key(w, "outcome");
        gl_jw_c(w, gl_outcome_words[p != NULL ? p->r.terminal_outcome : GL_OUTCOME_NONE]);
        gl_jw_key(w, "output");
        gl_jw_raw(w, p != NULL && fits_message(w, p->r.output) ? p->r.output : GL_S("null"));
        if (edges != NULL && edges[i].id.n > 0) {
            gl_jw_key(w, "edge_id");
            gl_jw_str(w, edges[i].id);
        }
        gl_jw_end(w);
    }
    gl_jw_end(w);
}

void gl_agent_step_send(struct gl_core *c, struct gl_step *st, const char *type, gl_str body)
{
    struct gl_message m = {0};

    GL_ASSERT(gl_step_is_bound(st));
    gl_message_defaults(&m);
    m.from = GL_S("workflow_ledger");
    m.type = gl_str_of(type);
    m.class_name = GL_S("command");
    m.correlation_id = gl_str_fmt(c->out->arena, "%.*s-c%llu", GL_STR_ARG(st->job->id),
                                  (unsigned long long)st->job->r.letters_n + 1);
    m.body = body;
    gl_agents_deliver(c, st->job, &m, gl_step_spec_of(st)->agent, st, NULL);
}

void gl_agent_step_trigger(struct gl_core *c, struct gl_step *st)
{
    struct gl_buf buf = {0};
    struct gl_jw w;

    GL_ASSERT(gl_step_is_bound(st));
    GL_ASSERT(st->r.status == GL_STEP_READY);
    gl_jw_init(&w, &buf);
    gl_jw_object(&w);
    gl_jw_key(&w, "trigger_rule");
    gl_jw_c(&w, gl_rule_words[gl_step_spec_of(st)->rule]);
    write_parents(c, st, &w);
    if (st->r.asked.n > 0) { /* the input that a patch gave it */
        gl_jw_key(&w, "step_input");
        gl_jw_raw(&w, st->r.asked);
    }
    gl_jw_end(&w);
    gl_txn_log(c, st->job, st, "workflow_step_triggered", (gl_str){0}, (gl_str){0});
    gl_agent_step_send(c, st, "workflow_trigger", gl_str_dup(c->out->arena, gl_buf_view(&buf)));
    gl_buf_done(&buf);
}
