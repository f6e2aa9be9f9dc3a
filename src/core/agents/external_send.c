/* external_send.c - messages from outside the job: `send`, by a person or a program, and `redrive`,
 * which sends a dead letter again. */
#include "base/check.h"
#include "core/agents/agents.h"

#include "core/flow/txn.h"

/* The agent that a command names. -1: it cannot receive a message now, and the command is answered.
 */
static int64_t find_receiver(struct gl_core *c, struct gl_job *j, const struct gl_event *ev,
                             gl_str name)
{
    int64_t to = gl_flow_find_agent(j->spec->flow, name);
    const struct gl_step *unit;

    GL_ASSERT(ev->type == GL_EV_COMMAND);
    if (j->spec->flow->bundle == NULL) {
        gl_txn_reply(c, j, ev->command.request, GL_R_JOB_NO_AGENTS, "job %.*s has no agents",
                     GL_STR_ARG(j->id));
        return -1;
    }
    if (to < 0) {
        gl_txn_reply(c, j, ev->command.request, GL_R_NO_SUCH_AGENT, "job %.*s has no agent '%.*s'",
                     GL_STR_ARG(j->id), GL_STR_ARG(name));
        return -1;
    }
    if (j->r.verdict != GL_VERDICT_NONE) {
        gl_txn_reply(c, j, ev->command.request, GL_R_JOB_ENDING, "job %.*s is already ending",
                     GL_STR_ARG(j->id));
        return -1;
    }
    unit = gl_step_find(j, (uint32_t)to);
    if (unit != NULL && unit->mailbox != NULL && unit->mailbox->is_pressed) {
        const struct gl_agent_spec *a = gl_flow_agent(j->spec->flow, (uint32_t)to);

        gl_agents_log(c, unit, "external_input_rejected", GL_S("backpressure"), (gl_str){0});
        gl_txn_reply(c, j, ev->command.request, GL_R_INBOX_FULL,
                     "agent '%.*s' has %u messages waiting: try again in %lld ms", GL_STR_ARG(name),
                     unit->mailbox->n, (long long)a->retry_after_ms);
        return -1;
    }
    return to;
}

/* Delivers and answers. A message that became a dead letter was not accepted. */
static void deliver(struct gl_core *c, struct gl_job *j, const struct gl_event *ev,
                    struct gl_message *m, uint32_t to)
{
    uint32_t dead = j->r.dead_n;

    GL_ASSERT(to < gl_flow_agents_n(j->spec->flow));
    if (!GL_PLANT(40)) { /* planted: answered, but not sent */
        gl_agents_deliver(c, j, m, to, NULL, NULL);
    }
    GL_MARK(c->trace, "agents.sent_from_outside");
    if (j->r.dead_n > dead) {
        gl_txn_reply(c, j, ev->command.request, GL_E_LIMIT,
                     "the message could not be delivered; its dead letter says why");
    } else {
        gl_txn_reply(c, j, ev->command.request, 0, NULL);
    }
}

void gl_agents_on_send(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    int64_t to = find_receiver(c, j, ev, ev->command.step);
    struct gl_message m;
    struct gl_why why;

    GL_ASSERT(ev->command.verb == GL_CMD_SEND);
    if (to < 0) {
        return;
    }
    gl_message_defaults(&m);
    m.from = ev->command.who.n > 0 ? ev->command.who : GL_S("external");
    m.type = GL_S("input");
    m.class_name = GL_S("command");
    m.correlation_id = gl_str_fmt(c->out->arena, "%.*s-c%llu", GL_STR_ARG(j->id),
                                  (unsigned long long)j->r.letters_n + 1);
    if (gl_message_seed(ev->command.output, c->out->arena, &m, &why) != 0) {
        gl_txn_reply(c, j, ev->command.request, GL_E_INVALID, "%s", why.text);
        return;
    }
    deliver(c, j, ev, &m, (uint32_t)to);
}

/* Has another command redriven the dead letter in this same transaction? The transaction's guard
 * would not notice: it sees the store as it was before. */
static bool is_redriven_already(const struct gl_job *j, gl_str id)
{
    GL_ASSERT(j->extra_n <= j->extra_cap);
    for (size_t i = 0; i < j->extra_n; i++) {
        const struct gl_write *w = &j->extra[i];

        if (w->type == GL_WRITE_DELETE && gl_str_is(w->kind, "deadletter") &&
            gl_str_eq(w->id, id)) {
            return true;
        }
    }
    return false;
}

/* command.step is the dead letter's number, command.output the message it carries. */
void gl_agents_on_redrive(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    struct gl_body_ref ref;
    struct gl_message m;
    struct gl_why why;
    uint64_t number;
    int64_t to;
    gl_str id;

    GL_ASSERT(ev->command.verb == GL_CMD_REDRIVE);
    if (!gl_str_u64(ev->command.step, &number) ||
        gl_message_read(ev->command.output, c->out->arena, &m, &why) != 0) {
        gl_txn_reply(c, j, ev->command.request, GL_R_LETTER_UNUSABLE,
                     "'%.*s' is not a message that can be delivered again",
                     GL_STR_ARG(ev->command.step));
        return;
    }
    to = find_receiver(c, j, ev, m.to);
    if (to < 0) {
        return;
    }
    id = gl_str_fmt(c->out->arena, "%.*s/%012llu", GL_STR_ARG(j->id), (unsigned long long)number);
    if (is_redriven_already(j, id)) {
        GL_MARK(c->trace, "agents.redriven_at_once");
        gl_txn_reply(c, j, ev->command.request, GL_R_LETTER_GONE,
                     "job %.*s no longer has dead letter %llu", GL_STR_ARG(j->id),
                     (unsigned long long)number);
        return;
    }
    /* Dead letters are not in memory: the guard makes sure that this one still exists. */
    (void)gl_txn_guard(c, j, GL_GUARD_PRESENT, GL_S("deadletter"), id);
    if (!GL_PLANT(39)) { /* planted: it can be sent any number of times */
        (void)gl_txn_write(c, j, GL_WRITE_DELETE, GL_S("deadletter"), id);
    }
    (void)gl_txn_write(c, j, GL_WRITE_DELETE, GL_S("message"), id);
    j->r.dead_n -= j->r.dead_n > 0;
    GL_MARK(c->trace, "agents.redriven");
    if (m.body.n == 0 && gl_message_body_ref(m.artifacts, c->out->arena, &ref)) {
        GL_MARK(c->trace, "bodies.redriven");
    }
    deliver(c, j, ev, &m, (uint32_t)to);
}
