/* dispatch.c - hands messages to agent units: seed messages, what the ledger decides about a
 * message, the next turn of a unit, and what happens when no message is left. */
#include "base/check.h"
#include "core/agents/agents.h"
#include "core/agents/message_order.h"

#include "core/flow/ledger.h"
#include "core/flow/txn.h"
#include "core/recovery/load.h"
#include "core/recovery/safety.h"
#include "core/scheduling/slots.h"

/* ---- seed messages ---- */

/* Sends a seed of the manifest: from "runtime", type "init". */
static void send_seed(struct gl_core *c, struct gl_job *j, const struct gl_seed *seed)
{
    struct gl_message m = {0};
    struct gl_step *unit;
    int64_t to = gl_flow_find_agent(j->spec->flow, seed->agent);
    struct gl_why why;

    GL_ASSERT(to >= 0); /* checked when the manifest was read */
    gl_message_defaults(&m);
    m.from = GL_S("runtime");
    m.type = GL_S("init");
    m.class_name = GL_S("command");
    m.correlation_id = gl_str_fmt(c->out->arena, "%.*s-c%llu", GL_STR_ARG(j->id),
                                  (unsigned long long)j->r.letters_n + 1);
    unit = gl_step_get(c, j, (uint32_t)to);
    if (gl_message_seed(seed->message, c->out->arena, &m, &why) != 0) {
        gl_agents_log(c, unit, "external_input_rejected", gl_str_of(why.text), (gl_str){0});
        return;
    }
    gl_agents_deliver(c, j, &m, (uint32_t)to, NULL, NULL);
}

/* Seeds become messages only as far ahead as units can use them: the flow has them anyway, and
 * messages take room in the store and in memory. */
enum { SEEDS_AHEAD = 1024 };

static bool may_seed(const struct gl_job *j)
{
    bool is_busy =
        !gl_list_empty(&j->due_units) || j->asked_n > 0 ||
        j->units[GL_STEP_READY] + j->units[GL_STEP_QUEUED] + j->units[GL_STEP_RUNNING] > 0;

    GL_ASSERT(j->r.seeds_n <= j->spec->flow->bundle->seeds.n);
    /* Messages that aggregators have counted or the ledger has deferred count as waiting, too. They
     * may need all seeds before they go away, so an idle job gets more seeds in any case. */
    return j->r.seeds_n < j->spec->flow->bundle->seeds.n &&
           (j->r.waiting_n < SEEDS_AHEAD || !is_busy);
}

static uint32_t send_seeds(struct gl_core *c, struct gl_job *j, uint32_t budget)
{
    const struct gl_items *seeds = &j->spec->flow->bundle->seeds;

    GL_ASSERT(budget <= GL_SPREAD_MAX);
    while (may_seed(j) && budget > 0) {
        send_seed(c, j, &((const struct gl_seed *)seeds->items)[j->r.seeds_n++]);
        gl_txn_changed(c, j);
        budget--;
    }
    GL_ASSERT(j->r.seeds_n <= seeds->n);
    return budget;
}

/* ---- which step is a message for? ---- */

/* The ledger step of a sending agent; "": it has none. */
static gl_str source_of(const struct gl_flow *f, gl_str agent)
{
    int64_t from = gl_flow_find_agent(f, agent);
    int64_t step = from >= 0 ? gl_flow_agent(f, (uint32_t)from)->step : -1;

    return step >= 0 ? gl_flow_step(f, (uint32_t)step)->id : (gl_str){0};
}

void gl_agents_deliver(struct gl_core *c, struct gl_job *j, struct gl_message *m, uint32_t to,
                       const struct gl_step *step, const struct gl_step *source)
{
    const struct gl_agent_spec *a = gl_flow_agent(j->spec->flow, to);
    struct gl_message_ledger l = {.run_id = j->r.run_id, .has_revision = true};

    GL_ASSERT(to < gl_flow_agents_n(j->spec->flow));
    if (step == NULL && a->step >= 0) {
        step = gl_step_get(c, j, (uint32_t)a->step);
    }
    l.graph_revision = j->r.graph_revision;
    l.source_step_id = source != NULL ? source->r.step_id : source_of(j->spec->flow, m->from);
    if (step != NULL) {
        l.step_id = step->r.step_id;
        l.template_id = gl_step_spec_of(step)->template_id;
        l.region_id = gl_step_spec_of(step)->region_id;
    }
    m->headers = gl_message_headers(c->out->arena, m->headers, &l);
    (void)gl_mailbox_send(c, j, m, to, step);
}

/* ---- asking the ledger ---- */

enum ledger_answer { HANDLE, DEFER, IGNORE };

/* What the status of the ledger step says about a message for it. Begins an attempt of a step that
 * may run. */
static enum ledger_answer ask_ledger(struct gl_core *c, struct gl_step *step,
                                     struct gl_queued_message *q)
{
    GL_ASSERT(gl_step_is_bound(step));
    switch ((enum gl_step_status)step->r.status) {
    case GL_STEP_PENDING:
    case GL_STEP_BLOCKED:
    case GL_STEP_RETRY_WAIT:
        return DEFER;
    case GL_STEP_READY:
    case GL_STEP_WAITING:
        gl_agent_step_begin(c, step, q);
        return HANDLE;
    case GL_STEP_RUNNING:
        return HANDLE;
    default:
        return IGNORE;
    }
}

static void defer_message(struct gl_core *c, struct gl_step *step, struct gl_queued_message *q)
{
    GL_ASSERT(gl_step_is_bound(step));
    if (step->r.status == GL_STEP_PENDING) {
        gl_ledger_block(c, step, GL_BLOCK_DEPENDENCY,
                        gl_str_fmt(c->out->arena, "%u of %u parent steps have ended",
                                   step->r.up_ended, gl_step_needs(step)));
    }
    gl_mailbox_defer(c, step, q);
}

/* ---- the next turn of a unit ---- */

/* Emits RESOLVE for the unit: its record, its message, or its counted messages. The unit begins
 * nothing until the answer comes; losing the answer is harmless, because a load asks again. */
static void fetch(struct gl_core *c, struct gl_step *unit, uint32_t wants)
{
    struct gl_effect *e = gl_txn_effect(c, unit->job, GL_FX_RESOLVE);

    GL_ASSERT(gl_step_is_unit(unit));
    GL_ASSERT(wants != 0);
    GL_ASSERT(unit->mailbox->asked == 0);
    unit->mailbox->asked = e->start_number = ++c->last_start;
    unit->job->asked_n++;
    e->spec = unit->job->spec;
    gl_spec_ref(e->spec);
    e->step_number = e->of = unit->of;
    e->step_id = gl_str_dup(c->out->arena, unit->r.step_id);
    e->run_id = gl_str_dup(c->out->arena, unit->job->r.run_id);
    e->item = -1;
    e->wants = wants;
    e->message_number = unit->mailbox->now != NULL ? unit->mailbox->now->r.number : 0;
}

void gl_agents_fetch_counted(struct gl_core *c, struct gl_step *unit)
{
    GL_ASSERT(gl_step_is_unit(unit));
    if (unit->r.status != GL_STEP_READY) { /* written, so that a load asks again */
        gl_ledger_move(c, unit, GL_STEP_READY);
        gl_list_remove(&unit->work);
    }
    fetch(c, unit, GL_WANT_COUNTED | GL_WANT_MESSAGE);
}

static bool has_process(const struct gl_step *unit)
{
    GL_ASSERT(gl_step_is_unit(unit));
    return !gl_str_is(gl_step_spec_of(unit)->driver, "relay");
}

/* Begins a turn with a message that is in no mailbox any more. A built-in agent runs the whole turn
 * if the message is in memory. */
static void begin_message(struct gl_core *c, struct gl_step *unit, struct gl_queued_message *q,
                          struct gl_step *step)
{
    struct gl_mailbox *m = unit->mailbox;

    GL_ASSERT(m->asked == 0);
    GL_ASSERT(q->unit == unit->of);
    m->now = q;
    unit->r.letter = q->r.number;
    unit->r.tries = 0;
    unit->r.mail_attempt = step != NULL ? step->r.attempt_count : 0;
    gl_core_set(c, &unit->r.waits_for, q->r.step);
    if (step != NULL) {
        gl_agent_step_set_message(c, step, q);
    }
    gl_agents_log(c, unit, "agent_message_received", (gl_str){0},
                  gl_str_fmt(c->out->arena, "{\"message_id\":\"%.*s-%llu\",\"type\":\"%.*s\"}",
                             GL_STR_ARG(unit->job->id), (unsigned long long)q->r.number,
                             GL_STR_ARG(gl_agents_json_safe(c, q->r.type))));
    if (!has_process(unit)) {
        if (gl_mailbox_text(q).n > 0 || gl_builtin_agent_ignores_body(unit, q)) {
            gl_builtin_agent_handle(c, unit, q->r.message);
        } else {
            q->r.status = GL_MESSAGE_HANDLING; /* not written: the unit's record names it */
            gl_ledger_move(c, unit, GL_STEP_READY);
            gl_list_remove(&unit->work);
            fetch(c, unit, GL_WANT_MESSAGE);
        }
        return;
    }
    q->r.status = GL_MESSAGE_HANDLING; /* not written: the unit's record names it */
    gl_agent_unit_start(c, unit);
}

static bool is_free(const struct gl_step *unit)
{
    GL_ASSERT(gl_step_is_unit(unit));
    return (unit->r.status == GL_STEP_PENDING || unit->r.status == GL_STEP_WAITING) &&
           unit->mailbox->asked == 0;
}

/* Takes the next message of an idle unit and begins a turn with it, defers it, or drops it. */
static void handle_next(struct gl_core *c, struct gl_step *unit)
{
    struct gl_job *j = unit->job;
    struct gl_queued_message *q = gl_message_order_next(unit);
    struct gl_step *step = gl_mailbox_step_of(c, j, q);

    GL_ASSERT(is_free(unit));
    GL_ASSERT(unit->mailbox->n > 0);
    gl_mailbox_take(c, unit, q);
    if (q->r.expires_at != 0 && q->r.expires_at <= c->now && !GL_PLANT(36)) {
        GL_MARK(c->trace, "agents.message_expired");
        gl_mailbox_make_dead(c, j, q, GL_S("its time to live has expired"));
        return;
    }
    if (step == NULL) {
        begin_message(c, unit, q, NULL);
        return;
    }
    switch (ask_ledger(c, step, q)) {
    case HANDLE:
        begin_message(c, unit, q, step);
        break;
    case DEFER:
        defer_message(c, step, q);
        break;
    case IGNORE:
        GL_MARK(c->trace, "agents.message_too_late");
        gl_txn_log(c, j, step, "workflow_step_duplicate_message_ignored",
                   GL_S("the step has ended"), (gl_str){0});
        gl_mailbox_drop(c, j, q);
        break;
    }
}

/* Is the unit's record in memory, or known not to exist? If neither, asks for it. A new unit costs
 * no read: j->known has a bit for each unit with a record. */
static bool is_loaded(struct gl_core *c, struct gl_step *unit)
{
    const struct gl_job *j = unit->job;

    GL_ASSERT(gl_step_is_unit(unit));
    if (!unit->mailbox->is_fetched && unit->r.status == GL_STEP_PENDING && j->known != NULL &&
        (j->known[unit->of / 8] & (1u << (unit->of % 8))) == 0) {
        unit->mailbox->is_fetched = true;
    }
    if (unit->mailbox->is_fetched || unit->r.status != GL_STEP_PENDING) {
        return true;
    }
    fetch(c, unit, GL_WANT_UNIT);
    return false;
}

uint32_t gl_agents_dispatch(struct gl_core *c, struct gl_job *j, uint32_t budget)
{
    GL_ASSERT(budget <= GL_SPREAD_MAX);
    GL_ASSERT(j->memory == GL_MEM_HOT);
    budget = send_seeds(c, j, budget);
    for (struct gl_link *k; budget > 0 && (k = gl_list_first(&j->due_units)) != NULL;) {
        struct gl_mailbox *m = GL_CONTAINER(k, struct gl_mailbox, due);
        struct gl_step *unit = m->unit;

        if (!is_free(unit) || m->n == 0 || j->r.verdict != GL_VERDICT_NONE || !is_loaded(c, unit)) {
            gl_list_remove(k);
            gl_agent_unit_list_idle(c, unit);
            continue;
        }
        handle_next(c, unit);
        budget--;
    }
    return budget;
}

bool gl_agents_have_work(const struct gl_job *j)
{
    return !gl_list_empty(&j->due_units) || may_seed(j);
}

/* ---- the answers to RESOLVE ---- */

/* The record of an idle unit has been read. */
static bool load_unit(struct gl_core *c, struct gl_step *unit, gl_str record)
{
    struct gl_step_record r;
    struct gl_json json;

    GL_ASSERT(gl_step_is_unit(unit));
    GL_ASSERT(unit->mailbox->asked == 0);
    if (record.n == 0) { /* no record: its first message */
        unit->mailbox->is_fetched = true;
        return true;
    }
    if (gl_json_parse(&json, record, GL_RECORD_BYTES_MAX, c->out->arena, NULL) != 0 ||
        gl_schema_read(&gl_step_schema, &json, gl_json_root(&json), false, c->out->arena, &r,
                       NULL) != 0) {
        return false;
    }
    unit->mailbox->is_fetched = true;
    GL_MARK(c->trace, "agents.woken");
    r.status = unit->r.status; /* as it is in memory: PENDING; the store has it WAITING */
    gl_core_adopt(c, &gl_step_schema, &unit->r, &r);
    return true;
}

static gl_str raw_of(const struct gl_json *json, const char *name)
{
    gl_jnode n = gl_json_get(json, gl_json_root(json), name);

    return n != NULL && !gl_json_is(n, GL_JSON_NULL) ? gl_json_raw(json, n) : (gl_str){0};
}

/* The agent's state cannot be read, and continuing without it would lose it. Pauses the job; a
 * resume reads it again. */
static void pause_for_damaged_state(struct gl_core *c, struct gl_step *unit)
{
    gl_str agent = gl_flow_agent(unit->job->spec->flow, unit->of)->id;

    GL_ASSERT(gl_step_is_unit(unit));
    GL_MARK(c->trace, "agents.state_damaged");
    gl_safety_pause(
        c, unit->job,
        gl_str_fmt(c->out->arena, "the state of agent '%.*s' is damaged", GL_STR_ARG(agent)));
}

void gl_agents_on_resolved(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    struct gl_step *unit = gl_step_find(j, (uint32_t)ev->resolved.step_number);
    struct gl_json json;
    gl_str text;

    GL_ASSERT(ev->type == GL_EV_RESOLVED);
    /* The job may have been loaded again meanwhile, and the unit may be handling another message.
     */
    if (unit == NULL || unit->mailbox == NULL || unit->mailbox->asked == 0) {
        return;
    }
    if (unit->mailbox->asked != ev->resolved.number) {
        GL_MARK(c->trace, "agents.late_answer");
        if (!GL_PLANT(50)) { /* planted: the stale answer is used */
            return;
        }
    }
    if (ev->resolved.code == GL_E_UNAVAILABLE) {
        /* `asked` stays set, or the job would seem to have nothing in flight. */
        gl_load_distrust(c, j); /* load the job again once the store can be read */
        return;
    }
    unit->mailbox->asked = 0;
    GL_ASSERT(j->asked_n > 0);
    j->asked_n--;
    gl_txn_touch(c, j);
    if (j->r.verdict != GL_VERDICT_NONE) { /* the job is ending, and has closed the unit */
        GL_MARK(c->trace, "agents.read_too_late");
        return;
    }
    if (ev->resolved.code == GL_E_DAMAGED && unit->mailbox->now != NULL) {
        gl_agent_unit_on_bad_message(c, unit, ev->resolved.why);
        return;
    }
    if (ev->resolved.code != 0 ||
        gl_json_parse(&json, ev->resolved.facts, GL_RECORD_BYTES_MAX, c->out->arena, NULL) != 0) {
        if (unit->mailbox->now != NULL) {
            gl_agent_unit_fail(c, unit,
                               ev->resolved.why.n > 0 ? ev->resolved.why
                                                      : GL_S("its message cannot be read"));
        } else {
            pause_for_damaged_state(c, unit);
        }
        return;
    }
    if (unit->mailbox->now == NULL) {
        if (load_unit(c, unit, raw_of(&json, "unit"))) {
            gl_mailbox_schedule(c, unit);
        } else {
            pause_for_damaged_state(c, unit);
        }
        return;
    }
    if (unit->r.status == GL_STEP_READY) { /* or the end of its ledger step would stop the turn */
        gl_ledger_move(c, unit, GL_STEP_WAITING);
    }
    text = raw_of(&json, "message");
    if (raw_of(&json, "counted").n > 0) {
        gl_builtin_agent_on_counted(c, unit, text, raw_of(&json, "counted"));
    } else {
        gl_builtin_agent_handle(c, unit, text);
    }
}

bool gl_agents_refetch(struct gl_core *c, struct gl_step *unit)
{
    GL_ASSERT(gl_step_is_unit(unit));
    if (has_process(unit) || unit->mailbox == NULL || unit->mailbox->now == NULL) {
        return false;
    }
    if (unit->mailbox->now->r.status == GL_MESSAGE_COUNTED) {
        gl_agents_fetch_counted(c, unit);
    } else {
        fetch(c, unit, GL_WANT_MESSAGE);
    }
    return true;
}

void gl_agents_resume(struct gl_core *c, struct gl_step *unit)
{
    GL_ASSERT(gl_step_is_unit(unit));
    if (unit->r.status != GL_STEP_READY || unit->mailbox->asked != 0 ||
        !gl_agents_refetch(c, unit)) {
        gl_mailbox_schedule(c, unit);
    }
}

/* ---- when no message is left ---- */

/* Is nothing in flight that could still send a message or make a step ready? */
static bool is_quiet(const struct gl_job *j)
{
    GL_ASSERT(j->r.seeds_n <= j->spec->flow->bundle->seeds.n);
    return j->units[GL_STEP_READY] + j->units[GL_STEP_QUEUED] + j->units[GL_STEP_RUNNING] +
                   j->units[GL_STEP_RETRY_WAIT] + j->units[GL_STEP_BLOCKED] ==
               0 &&
           j->bound[GL_STEP_RETRY_WAIT] == 0 && j->asked_n == 0 && !gl_agents_have_work(j) &&
           j->r.seeds_n == j->spec->flow->bundle->seeds.n && gl_list_empty(&j->spread) &&
           gl_list_empty(&j->making) && j->r.roots_spread == j->spec->flow->roots_n;
}

/* A step is ready but no agent will send it a message: triggers the first such step. */
static bool trigger_one(struct gl_core *c, struct gl_job *j)
{
    for (struct gl_link *l = j->live.next; l != &j->live; l = l->next) {
        struct gl_step *st = GL_CONTAINER(l, struct gl_step, live);

        if (gl_step_is_bound(st) && st->r.status == GL_STEP_READY) {
            GL_MARK(c->trace, "agents.triggered_because_quiet");
            gl_agent_step_trigger(c, st);
            return true;
        }
    }
    return false;
}

void gl_agents_conclude(struct gl_core *c, struct gl_job *j)
{
    const struct gl_policies *p = &j->spec->flow->bundle->policies;
    bool is_done = gl_job_ended_steps(&j->r) == j->r.steps_n;

    GL_ASSERT(j->memory == GL_MEM_HOT);
    if (j->r.verdict != GL_VERDICT_NONE || j->r.status != GL_JOB_RUNNING) {
        return;
    }
    if (is_done && j->r.completion.n > 0) {
        gl_txn_log(c, j, NULL, "workflow_completion_resumed", (gl_str){0}, (gl_str){0});
        gl_core_set(c, &j->r.result, j->r.completion);
        gl_core_set(c, &j->r.completion, (gl_str){0});
        gl_ledger_set_verdict(c, j, GL_VERDICT_COMPLETED, (gl_str){0});
    } else if (is_quiet(j)) {
        if (!is_done && trigger_one(c, j)) {
            if (gl_list_empty(&j->busy)) { /* dispatch the message in the next step of the core */
                gl_list_push(&c->busy, &j->busy);
            }
            return;
        }
        if (is_done && (p->job_type == GL_TYPE_BATCH || GL_PLANT(43))) {
            gl_ledger_set_verdict(c, j, GL_VERDICT_COMPLETED, (gl_str){0});
        }
    }
}

/* Drops the messages an aggregator has counted, within the budget. */
static uint32_t drop_counted(struct gl_core *c, struct gl_step *unit, uint32_t budget)
{
    uint32_t n = 0;

    GL_ASSERT(gl_step_is_unit(unit));
    while (unit->mailbox != NULL && unit->mailbox->now == NULL && n < budget &&
           !gl_list_empty(&unit->mailbox->counted)) {
        gl_mailbox_drop(
            c, unit->job,
            GL_CONTAINER(gl_list_first(&unit->mailbox->counted), struct gl_queued_message, link));
        GL_ASSERT(unit->mailbox->counted_n > 0);
        unit->mailbox->counted_n--;
        n++;
    }
    return n;
}

/* Messages that have not been handled stay in the store; retention removes them with the job. */
uint32_t gl_agents_wind_down(struct gl_core *c, struct gl_step *st, uint32_t budget)
{
    uint32_t n = gl_step_is_unit(st) ? drop_counted(c, st, budget) : 0;

    GL_ASSERT(st->job->r.verdict != GL_VERDICT_NONE);
    GL_ASSERT(budget > 0);
    if (n == budget) {
        return n; /* the rest follows in the next step of the core */
    }
    if (gl_step_is_unit(st)) {
        if (st->r.status == GL_STEP_RUNNING || st->r.status == GL_STEP_WAITING ||
            st->r.status == GL_STEP_PENDING) {
            return n;
        }
        gl_slots_unqueue(c, st);
        gl_ledger_move(c, st, GL_STEP_WAITING);
        return n + 1;
    }
    if (gl_step_status_is_terminal(st->r.status)) {
        gl_list_remove(&st->work);
        return 0;
    }
    if (st->r.status == GL_STEP_RUNNING && st->mailbox != NULL && st->mailbox->now != NULL) {
        struct gl_step *unit = gl_step_find(st->job, st->mailbox->now->unit);

        if (unit != NULL && unit->r.status == GL_STEP_RUNNING) {
            return 0; /* its worker ends first */
        }
    }
    gl_ledger_skip(c, st, st->job->r.reason);
    gl_list_remove(&st->work);
    return 1;
}

/* ---- eviction ---- */

void gl_agents_evict_idle(struct gl_core *c)
{
    while (c->idle_n > GL_IDLE_AGENTS_MAX) {
        struct gl_link *k = gl_list_first(&c->idle);
        struct gl_step *unit = GL_CONTAINER(k, struct gl_mailbox, idle)->unit;

        gl_step_free(c, unit);
    }
    GL_ASSERT(c->idle_n <= GL_IDLE_AGENTS_MAX);
}
