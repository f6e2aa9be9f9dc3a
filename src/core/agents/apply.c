/* apply.c - carries out the result of a turn in the order that the worker contract prescribes:
 * the new state; events; complete_step or complete_run; the implied complete_step; the default
 * output message; the messages in `emit`. All of it is one transaction. */
#include "base/check.h"
#include "core/agents/agents.h"

#include "core/flow/ledger.h"
#include "core/flow/txn.h"
#include "model/bundle/worker_output.h"

/* The body may be missing: messages sent in reply inherit only the envelope. */
void gl_apply_read_message(struct gl_core *c, struct gl_turn_end *t)
{
    struct gl_queued_message *q = t->unit->mailbox->now;

    GL_ASSERT(gl_step_is_unit(t->unit));
    t->state = t->unit->r.output;
    if (gl_message_read(q->r.message, c->out->arena, &t->in, NULL) != 0) {
        t->in = (struct gl_message){
            .from = q->r.from, .to = q->r.to, .type = q->r.type, .priority = GL_MESSAGE_PRIORITY};
    }
    t->in.message_id = gl_str_fmt(c->out->arena, "%.*s-%llu", GL_STR_ARG(t->unit->job->id),
                                  (unsigned long long)q->r.number);
}

/* ---- completion ---- */

/* The output as it is stored: one that is too large for a record is logged and replaced. */
static gl_str limit_output(struct gl_core *c, const struct gl_turn_end *t, gl_str output)
{
    if (output.n <= GL_OUTPUT_BYTES_MAX) {
        return output;
    }
    gl_agents_log(c, t->unit, "workflow_output_omitted",
                  GL_S("larger than 1 MiB: write large results to files in the run folder"),
                  gl_str_fmt(c->out->arena, "{\"bytes\":%zu}", output.n));
    return gl_str_fmt(c->out->arena, "{\"omitted\":true,\"bytes\":%zu,\"limit\":%d}", output.n,
                      GL_OUTPUT_BYTES_MAX);
}

void gl_apply_step(struct gl_core *c, const struct gl_turn_end *t, gl_str output, bool is_implied)
{
    struct gl_step *st = t->step;

    GL_ASSERT(gl_step_is_unit(t->unit));
    GL_ASSERT(st == NULL || gl_step_is_bound(st));
    if (t->agent->step < 0 && t->unit->r.waits_for.n == 0) {
        return; /* the agent works for no ledger step */
    }
    if (is_implied && t->agent->leaves_step) {
        return;
    }
    if (st == NULL || st->r.status != GL_STEP_RUNNING) {
        if (!is_implied) {
            gl_agents_log(c, t->unit, "workflow_step_stale_output_ignored",
                          GL_S("the step has no such attempt"), (gl_str){0});
        }
        return;
    }
    gl_ledger_succeed(c, st, limit_output(c, t, output));
}

void gl_apply_run(struct gl_core *c, const struct gl_turn_end *t, gl_str output)
{
    struct gl_job *j = t->unit->job;
    struct gl_buf buf = {0};
    struct gl_jw w;
    gl_str result;

    GL_ASSERT(gl_step_is_unit(t->unit));
    if (t->agent->step >= 0) {
        gl_agents_log(c, t->unit, "workflow_run_completion_rejected",
                      GL_S("a step's own agent cannot complete the run"), (gl_str){0});
        if (t->step != NULL && t->step->r.status == GL_STEP_RUNNING) {
            gl_agent_step_fail(c, t->step, GL_S("its agent tried to complete the run"));
        }
        return;
    }
    if (!t->agent->terminal_sink || !t->agent->complete_run) {
        gl_agents_log(c, t->unit, "workflow_completion_ignored",
                      GL_S("only a terminal sink with complete_run completes the run"),
                      (gl_str){0});
        return;
    }
    gl_jw_init(&w, &buf);
    gl_jw_object(&w);
    gl_jw_key(&w, "agent_id");
    gl_jw_str(&w, t->agent->id);
    gl_jw_key(&w, "output");
    gl_jw_raw(&w, output.n > 0 ? limit_output(c, t, output) : GL_S("null"));
    gl_jw_end(&w);
    result = gl_str_dup(c->out->arena, gl_buf_view(&buf));
    gl_buf_done(&buf);
    if (j->r.verdict != GL_VERDICT_NONE) {
        return;
    }
    /* A completion that comes before the last step has ended waits in the record (r.completion);
     * gl_agents_conclude() carries it out. */
    if (gl_job_ended_steps(&j->r) == j->r.steps_n && gl_list_empty(&j->making)) {
        gl_core_set(c, &j->r.result, result);
        gl_ledger_set_verdict(c, j, GL_VERDICT_COMPLETED, (gl_str){0});
    } else if (j->r.completion.n == 0) {
        gl_agents_log(c, t->unit, "workflow_completion_deferred", GL_S("steps have not ended yet"),
                      (gl_str){0});
        gl_core_set(c, &j->r.completion, result);
        gl_txn_changed(c, j);
    }
}

/* ---- the output of the turn ---- */

/* The body of an executor's default message. */
static gl_str payload_of(struct gl_core *c, const struct gl_turn_end *t,
                         const struct gl_event_result *how, const struct gl_worker_result *r,
                         const struct gl_worker_output *parsed)
{
    const struct gl_step_spec *spec = gl_step_spec_of(t->unit);
    struct gl_worker_turn_facts facts = {
        .agent_id = t->agent->id,
        .runner = t->agent->runner.n > 0 ? t->agent->runner : GL_S("host_local"),
        .node_name = c->node,
        .exit_code = how->exit_code,
        .attempts = t->unit->r.tries + 1,
        .lease_id = gl_agent_unit_lease(c, t->unit),
        .pool = gl_agent_unit_pool(t->unit),
        .slots = spec->slots,
        .queue_wait_ms = t->unit->r.attempt_at - t->unit->r.queued_at,
        .input_body = t->in.body,
    };

    GL_ASSERT(t->agent->kind == GL_AGENT_EXECUTOR);
    return gl_worker_output_payload(&facts, r, parsed, c->out->arena);
}

/* The message that reports the result, as the manifest's output_message_type says. */
static void send_default(struct gl_core *c, const struct gl_turn_end *t, gl_str payload)
{
    struct gl_message shape = {.body = payload};

    GL_ASSERT(GL_IMPLIES(t->agent->output == GL_OUTPUT_TYPED, t->agent->output_type.n > 0));
    if (t->agent->output == GL_OUTPUT_NOTHING || t->agent->kind != GL_AGENT_EXECUTOR) {
        return;
    }
    shape.type =
        t->agent->output == GL_OUTPUT_TYPED ? t->agent->output_type : GL_S("executor_result");
    gl_route_emit(c, t, &shape);
}

static bool send_emitted(struct gl_core *c, const struct gl_turn_end *t,
                         const struct gl_worker_output *parsed)
{
    gl_jnode list = parsed->emits;
    struct gl_message m;
    struct gl_why why;
    uint32_t n = 0;

    if (list == NULL || (GL_PLANT(31) && parsed->has_state)) {
        return true; /* planted: the message is acknowledged, and those it causes are lost */
    }
    for (gl_jnode e = gl_json_first(&parsed->json, list); e != NULL && n < GL_EMITS_MAX;
         e = gl_json_after(&parsed->json, list, e), n++) {
        if (gl_message_emitted(&parsed->json, e, &t->in, c->out->arena, &m, &why) != 0) {
            gl_agents_log(c, t->unit, "delivery_failed", gl_str_of(why.text), (gl_str){0});
        } else if (m.to.n > 0) {
            gl_route_emit_to(c, t, &m);
        } else {
            gl_route_emit(c, t, &m);
        }
    }
    return true;
}

static void apply_events(struct gl_core *c, const struct gl_turn_end *t,
                         const struct gl_worker_output *parsed)
{
    const struct gl_worker_event *events = parsed->events.items;

    GL_ASSERT(gl_step_is_unit(t->unit));
    for (size_t i = 0; i < parsed->events.n; i++) {
        gl_agent_events_take(c, t, events[i].type, events[i].payload);
    }
}

/* Is the worker's stdout complete enough to be used? Truncated text is. A truncated JSON answer is
 * not: it cannot be carried out, and ignoring it would lose what the worker asked for. */
static bool is_complete(struct gl_core *c, const struct gl_turn_end *t,
                        const struct gl_worker_result *r, gl_str *ret_why)
{
    uint32_t max = t->agent->stdout_max > 0 ? t->agent->stdout_max : GL_STDOUT_BYTES;
    gl_str text = gl_str_trim(r->stdout_text);

    GL_ASSERT(GL_IMPLIES(r->is_cut, r->stdout_bytes > 0));
    if (!r->is_cut) {
        return true;
    }
    if (text.n > 0 && text.p[0] == '{') {
        *ret_why = gl_str_fmt(c->out->arena,
                              "its answer on stdout has %llu bytes, but max_output_bytes is %u: "
                              "raise max_output_bytes in the agent's config (at most 8 MiB), or "
                              "write large data to files in the run folder",
                              (unsigned long long)r->stdout_bytes, max);
        return false;
    }
    gl_agents_log(c, t->unit, "sandbox_output_truncated",
                  GL_S("its stdout is longer than max_output_bytes"),
                  gl_str_fmt(c->out->arena, "{\"bytes\":%llu,\"max_output_bytes\":%u}",
                             (unsigned long long)r->stdout_bytes, max));
    return true;
}

bool gl_apply_output(struct gl_core *c, struct gl_turn_end *t, const struct gl_event_result *how,
                     gl_str *ret_why)
{
    struct gl_worker_result r = {0};
    struct gl_worker_output parsed = {0};
    struct gl_why why;
    bool is_worker = t->agent->kind == GL_AGENT_EXECUTOR;
    gl_str payload;

    GL_ASSERT(gl_step_is_unit(t->unit));
    /* Check everything before the first change: a turn is applied whole or fails whole. */
    gl_apply_read_message(c, t);
    if (is_worker && gl_worker_result_read(how->output, c->out->arena, &r, &why) != 0) {
        *ret_why = gl_str_dup(c->out->arena, gl_str_of(why.text));
        return false;
    }
    if (!is_complete(c, t, &r, ret_why)) {
        return false;
    }
    if (gl_worker_output_read(is_worker ? r.stdout_text : how->output, c->out->arena, &parsed,
                              &why) != 0 ||
        (parsed.has_state && parsed.next_state.n > GL_STATE_BYTES_MAX)) {
        *ret_why = parsed.has_state ? GL_S("its state is larger than 1 MiB")
                                    : gl_str_dup(c->out->arena, gl_str_of(why.text));
        return false;
    }
    payload = is_worker ? payload_of(c, t, how, &r, &parsed) : how->output;
    if (parsed.has_state) {
        gl_core_set(c, &t->unit->r.output, parsed.next_state);
        t->state = t->unit->r.output;
    }
    apply_events(c, t, &parsed);
    if (parsed.completes_step) {
        gl_apply_step(c, t, parsed.step_value.n > 0 ? parsed.step_value : payload, false);
    } else if (parsed.completes_run) {
        gl_apply_run(c, t, parsed.run_value.n > 0 ? parsed.run_value : payload);
    }
    if (is_worker && !parsed.completes_step) {
        gl_apply_step(c, t, payload, true);
    }
    send_default(c, t, payload);
    return send_emitted(c, t, &parsed);
}
