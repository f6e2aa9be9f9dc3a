/* command.c - applies commands to a job.
 *
 * A command is first checked against the status of its job and step; one that does not fit is
 * refused and changes nothing. To pause, resume or cancel a job again is not an error: the command
 * succeeds and changes nothing. */
#include "core/flow/command.h"

#include "base/check.h"
#include "core/agents/agents.h"
#include "core/cluster/inbox.h"
#include "core/cluster/node_pools.h"
#include "core/flow/gate.h"
#include "core/flow/ledger.h"
#include "core/flow/signals.h"
#include "core/flow/txn.h"
#include "core/recovery/load.h"
#include "core/recovery/safety.h"
#include "core/scheduling/slots.h"

/* "paused by alice: reason" */
static gl_str describe_command(struct gl_core *c, const struct gl_event *ev, const char *what)
{
    gl_str who = ev->command.who.n > 0 ? ev->command.who : GL_S("someone");

    GL_ASSERT(ev->type == GL_EV_COMMAND);
    if (ev->command.reason.n == 0) {
        return gl_str_fmt(c->out->arena, "%s by %.*s", what, GL_STR_ARG(who));
    }
    return gl_str_fmt(c->out->arena, "%s by %.*s: %.*s", what, GL_STR_ARG(who),
                      GL_STR_ARG(ev->command.reason));
}

/* Takes the job's steps out of the queues and asks running attempts to stop. */
static void pause_steps(struct gl_core *c, struct gl_job *j)
{
    GL_ASSERT(j->r.status == GL_JOB_PAUSING);
    GL_ASSERT(j->r.hold == GL_HOLD_PERSON);
    for (struct gl_link *l = j->live.next; l != &j->live; l = l->next) {
        struct gl_step *st = GL_CONTAINER(l, struct gl_step, live);

        gl_slots_unqueue(c, st);
        if (st->r.keeps_slots && !GL_PLANT(62)) { /* planted: kept while the job is paused */
            gl_agent_unit_release(c, st);
        }
        gl_step_set_due(c, st);
        /* The outcome of an unsafe attempt that is stopped would be unknown, so it may finish. */
        if (st->r.status == GL_STEP_RUNNING && !gl_step_is_bound(st) &&
            gl_step_spec_of(st)->safety != GL_SAFETY_UNSAFE) {
            gl_ledger_stop(c, st, GL_STOP_PAUSE);
        }
    }
}

static void on_pause(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    GL_ASSERT(ev->command.verb == GL_CMD_PAUSE);
    GL_ASSERT(!gl_job_status_is_terminal(j->r.status));
    if (j->r.status == GL_JOB_CANCELLING || j->r.verdict != GL_VERDICT_NONE) {
        gl_txn_reply(c, j, ev->command.request, GL_R_JOB_ENDING, "job %.*s is already ending",
                     GL_STR_ARG(j->id));
        return;
    }
    if (j->r.hold != GL_HOLD_PERSON) {
        j->r.hold = GL_HOLD_PERSON;
        gl_core_set(c, &j->r.reason, describe_command(c, ev, "paused"));
        gl_txn_changed(c, j);
    }
    if (j->r.status == GL_JOB_RUNNING) {
        gl_ledger_move_job(c, j, GL_JOB_PAUSING);
        gl_txn_log(c, j, NULL, "job_pausing", j->r.reason, (gl_str){0});
        pause_steps(c, j);
    }
    gl_txn_reply(c, j, ev->command.request, 0, NULL);
}

static void requeue(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(st->r.status == GL_STEP_QUEUED);
    if (gl_slots_possible(c, gl_step_spec_of(st), NULL)) {
        st->r.queued_at = gl_step_is_unit(st) ? c->now : st->r.queued_at;
        gl_slots_queue(c, st);
    } else if (c->shared && !gl_step_is_bound(st)) {
        gl_node_pools_lack(c, st);
    }
}

/* The job runs again, after a pause or a review: queues and timers start where they must. */
static void resume_job(struct gl_core *c, struct gl_job *j, gl_str why)
{
    GL_ASSERT(j->r.status == GL_JOB_PAUSING || j->r.status == GL_JOB_PAUSED);
    j->r.hold = GL_HOLD_NONE;
    j->r.recovery_requires_review = false;
    gl_core_set(c, &j->r.recovery_status, (gl_str){0});
    gl_core_set(c, &j->r.reason, (gl_str){0});
    gl_ledger_move_job(c, j, GL_JOB_RUNNING);
    gl_txn_log(c, j, NULL, "job_resumed", why, (gl_str){0});
    for (struct gl_link *l = j->live.next; l != &j->live; l = l->next) {
        struct gl_step *st = GL_CONTAINER(l, struct gl_step, live);

        if (st->r.status == GL_STEP_QUEUED && st->wait == NULL) {
            requeue(c, st);
        }
        if (gl_step_is_bound(st)) {
            gl_agent_step_resume(c, st);
        } else if (gl_step_is_unit(st) && st->mailbox != NULL) {
            gl_agents_resume(c, st);
        }
        gl_step_set_due(c, st);
    }
}

static void on_resume(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    GL_ASSERT(ev->command.verb == GL_CMD_RESUME);
    GL_ASSERT(!gl_job_status_is_terminal(j->r.status));
    if (j->r.status == GL_JOB_CANCELLING) {
        gl_txn_reply(c, j, ev->command.request, GL_R_JOB_ENDING, "job %.*s is being cancelled",
                     GL_STR_ARG(j->id));
        return;
    }
    if (j->r.verdict == GL_VERDICT_NONE &&
        (j->r.status == GL_JOB_PAUSING || j->r.status == GL_JOB_PAUSED)) {
        resume_job(c, j, describe_command(c, ev, "resumed"));
    }
    gl_txn_reply(c, j, ev->command.request, 0, NULL);
}

static void on_cancel(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    GL_ASSERT(ev->command.verb == GL_CMD_CANCEL);
    GL_ASSERT(!gl_job_status_is_terminal(j->r.status));
    if (j->r.verdict == GL_VERDICT_FAILED) {
        gl_txn_reply(c, j, ev->command.request, GL_R_JOB_ENDING, "job %.*s is already failing",
                     GL_STR_ARG(j->id));
        return;
    }
    if (j->r.verdict == GL_VERDICT_NONE) {
        gl_ledger_move_job(c, j, GL_JOB_CANCELLING);
        j->r.recovery_requires_review = false; /* the cancellation decides it */
        gl_ledger_set_verdict(c, j, GL_VERDICT_CANCELLED, describe_command(c, ev, "cancelled"));
        gl_txn_log(c, j, NULL, "job_cancelling", j->r.reason, (gl_str){0});
    }
    gl_txn_reply(c, j, ev->command.request, 0, NULL);
}

/* A decision about an approval or a review. */
static void apply_decision(struct gl_core *c, struct gl_step *st, const struct gl_event *ev)
{
    struct gl_job *j = st->job;
    gl_str why = describe_command(c, ev, "decided");
    bool approves = st->r.blocked_on == GL_BLOCK_APPROVAL;

    GL_ASSERT(gl_step_asks_a_person(&st->r));
    GL_ASSERT(ev->command.verb == GL_CMD_RESPOND);
    gl_core_set(c, &st->r.decision, ev->command.decision);
    gl_core_set(c, &st->r.decided_by, ev->command.who);
    st->r.decided_at = c->now;
    gl_txn_log(
        c, j, st, "human_input_received", why,
        gl_str_fmt(c->out->arena, "\"decision\":\"%.*s\"", GL_STR_ARG(ev->command.decision)));
    if (j->r.status == GL_JOB_PAUSED && j->r.hold == GL_HOLD_REVIEW) {
        resume_job(c, j, why);
    } else if (gl_step_is_unit(st) && st->mailbox != NULL && st->mailbox->now != NULL) {
        struct gl_step *step = gl_mailbox_step_of(c, j, st->mailbox->now);

        if (step != NULL) { /* the wait for the decision does not count against its deadlines */
            gl_agent_step_resume(c, step);
        }
    }
    if (approves) {
        gl_gate_decide(c, st, ev->command.decision, why, ev->command.output);
    } else if (gl_str_is(ev->command.decision, "rerun") && gl_safety_rest(c, st) > 0) {
        gl_ledger_rerun_after(c, st, gl_safety_rest(c, st), why);
    } else if (gl_str_is(ev->command.decision, "rerun")) {
        gl_ledger_rerun(c, st, why);
    } else if (gl_str_is(ev->command.decision, "done")) {
        gl_ledger_succeed(c, st, ev->command.output);
    } else {
        gl_ledger_fail(c, st, why, false);
    }
}

/* Is `s` an answer to what the step asks? */
static bool is_decision(const struct gl_step *st, gl_str s)
{
    GL_ASSERT(st->r.status == GL_STEP_BLOCKED);
    if (st->r.blocked_on == GL_BLOCK_APPROVAL) {
        return gl_gate_accepts_decision(gl_step_spec_of(st), s);
    }
    return gl_str_is(s, "rerun") || gl_str_is(s, "done") || gl_str_is(s, "failed");
}

static void on_respond(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    uint32_t of;
    int32_t item;
    bool exists = gl_step_split_id(j->spec->flow, ev->command.step, &of, &item);
    struct gl_step *st = exists ? gl_step_by_id(j, ev->command.step) : NULL;

    GL_ASSERT(ev->command.verb == GL_CMD_RESPOND);
    if (!exists) {
        gl_txn_reply(c, j, ev->command.request, GL_R_NO_SUCH_STEP,
                     "job %.*s has no step '%.*s'; 'glia job status' lists its steps",
                     GL_STR_ARG(j->id), GL_STR_ARG(ev->command.step));
    } else if (st == NULL || !gl_step_asks_a_person(&st->r)) {
        gl_txn_reply(c, j, ev->command.request, GL_R_STEP_DECIDED,
                     "step '%.*s' is not waiting for a decision%s%s", GL_STR_ARG(ev->command.step),
                     st != NULL ? ": its status is " : "; 'glia job status' shows its status",
                     st != NULL ? gl_step_status_words[st->r.status] : "");
    } else if (!is_decision(st, ev->command.decision)) {
        gl_txn_reply(
            c, j, ev->command.request, GL_R_DECISION_INVALID, "the decision must be one of: %.*s",
            GL_STR_ARG(st->r.blocked_on == GL_BLOCK_APPROVAL ? st->r.choices
                                                             : GL_S("rerun, done, failed")));
    } else if (j->r.verdict != GL_VERDICT_NONE && !gl_safety_delays_end(j, st)) {
        gl_txn_reply(c, j, ev->command.request, GL_R_JOB_ENDING, "job %.*s is already ending",
                     GL_STR_ARG(j->id));
    } else {
        apply_decision(c, st, ev);
        gl_txn_reply(c, j, ev->command.request, 0, NULL);
    }
}

/* The command came through the job's inbox. The transaction that carries it out guards on the entry
 * and deletes it, so the command takes effect exactly once or not at all. */
static void consume_inbox_entry(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    GL_ASSERT(ev->command.inbox.n > 0);
    GL_ASSERT(!gl_job_status_is_terminal(j->r.status));
    GL_MARK(c->trace, "command.from_inbox");
    if (GL_PLANT(28)) {
        return; /* planted: the entry stays, and the command is repeated */
    }
    gl_inbox_on_consumed(c, ev->command.request);
    (void)gl_txn_guard(c, j, GL_GUARD_PRESENT, GL_S("inbox"), ev->command.inbox);
    (void)gl_txn_write(c, j, GL_WRITE_DELETE, GL_S("inbox"), ev->command.inbox);
    gl_txn_write(c, j, GL_WRITE_UNINDEX,
                 gl_job_index(c->out->arena, "inbox", j->r.stack, j->r.env_scope),
                 ev->command.inbox)
        ->score = ev->command.sent_at;
}

void gl_command_on_request(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_job *j;

    GL_ASSERT(ev->type == GL_EV_COMMAND);
    GL_ASSERT(ev->command.verb < GL_CMD_COUNT);
    if (!gl_load_ready(c, ev, &j)) {
        return;
    }
    if (ev->command.inbox.n > 0 && !gl_job_status_is_terminal(j->r.status)) {
        consume_inbox_entry(c, j, ev);
    }
    /* A job with a damaged record must not progress, but may be cancelled. */
    if (j->is_damaged && ev->command.verb != GL_CMD_CANCEL) {
        gl_txn_reply(c, j, ev->command.request, GL_R_JOB_DAMAGED,
                     "%.*s; cancel the job, or repair that record and resume the job",
                     GL_STR_ARG(gl_job_is_paused_for_damage(&j->r)
                                    ? j->r.reason
                                    : gl_str_fmt(c->out->arena, "a record of job %.*s is damaged",
                                                 GL_STR_ARG(j->id))));
        return;
    }
    if (gl_job_status_is_terminal(j->r.status)) {
        gl_txn_reply(c, j, ev->command.request, GL_R_JOB_ENDED,
                     "job %.*s has already ended: it %s%s", GL_STR_ARG(j->id),
                     j->r.status == GL_JOB_CANCELLED ? "was " : "",
                     gl_job_status_words[j->r.status]);
        return;
    }
    switch ((enum gl_command)ev->command.verb) {
    case GL_CMD_PAUSE:
        on_pause(c, j, ev);
        break;
    case GL_CMD_RESUME:
        on_resume(c, j, ev);
        break;
    case GL_CMD_CANCEL:
        on_cancel(c, j, ev);
        break;
    case GL_CMD_RESPOND:
        on_respond(c, j, ev);
        break;
    case GL_CMD_SIGNAL:
        gl_signals_on_command(c, j, ev);
        break;
    case GL_CMD_SEND:
        gl_agents_on_send(c, j, ev);
        break;
    case GL_CMD_REDRIVE:
        gl_agents_on_redrive(c, j, ev);
        break;
    case GL_CMD_COUNT:
        GL_UNREACHABLE();
    }
}
