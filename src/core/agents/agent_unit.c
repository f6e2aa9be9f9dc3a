/* agent_unit.c - one turn of an agent from the queue for slots to its result, and what its worker
 * reports meanwhile. */
#include "base/check.h"
#include "core/agents/agents.h"

#include "core/flow/ledger.h"
#include "core/flow/txn.h"
#include "core/recovery/safety.h"
#include "core/scheduling/slots.h"
#include "model/bundle/worker_output.h"

static const struct gl_agent_spec *agent_of(const struct gl_step *st)
{
    GL_ASSERT(gl_step_is_unit(st));
    return gl_flow_agent(st->job->spec->flow, st->of);
}

/* The ledger step this unit works for, if the attempt the turn began in still runs; else NULL. */
static struct gl_step *step_of(struct gl_core *c, struct gl_step *st)
{
    struct gl_queued_message *q = st->mailbox != NULL ? st->mailbox->now : NULL;
    struct gl_step *step = q != NULL ? gl_mailbox_step_of(c, st->job, q) : NULL;

    return step != NULL && step->r.status == GL_STEP_RUNNING &&
                   (step->r.attempt_count == st->r.mail_attempt || GL_PLANT(34))
               ? step
               : NULL;
}

gl_str gl_agent_unit_pool(const struct gl_step *st)
{
    gl_str pool = gl_step_spec_of(st)->pool, prefix = GL_S("executor.");

    return gl_str_starts(pool, prefix) ? (gl_str){.p = pool.p + prefix.n, .n = pool.n - prefix.n}
                                       : pool;
}

/* ---- the beginning of a turn ---- */

/* Makes the unit ready; reconciling queues it for slots. */
static void queue(struct gl_core *c, struct gl_step *st)
{
    const struct gl_agent_spec *a = agent_of(st);

    GL_ASSERT(st->r.letter != 0);
    if (a->kind == GL_AGENT_EXECUTOR) {
        gl_agents_log(c, st, "executor_lease_requested", (gl_str){0},
                      gl_str_fmt(c->out->arena, "{\"pool\":\"%.*s\",\"slots\":%u}",
                                 GL_STR_ARG(gl_agent_unit_pool(st)), gl_step_spec_of(st)->slots));
    }
    gl_ledger_move(c, st, GL_STEP_READY);
}

void gl_agent_unit_start(struct gl_core *c, struct gl_step *st)
{
    const struct gl_agent_spec *a = agent_of(st);

    GL_ASSERT(st->r.letter != 0);
    GL_ASSERT(st->r.mail_attempt == 0 || st->r.waits_for.n > 0);
    if (a->startup_delay_ms > 0 && st->r.processed == 0 && st->r.attempt_count == 0) {
        gl_ledger_move(c, st, GL_STEP_RETRY_WAIT);
        st->r.retry_at = c->now + a->startup_delay_ms;
        gl_step_set_due(c, st);
        return;
    }
    queue(c, st);
}

bool gl_agent_unit_may_queue(const struct gl_core *c, const struct gl_step *st, struct gl_why *why)
{
    const struct gl_agent_spec *a = agent_of(st);
    size_t n = gl_slots_queue_length(c, st);

    GL_ASSERT(st->r.status == GL_STEP_QUEUED);
    /* An agent that retries on its lease needs no new slots. */
    if (a->kind != GL_AGENT_EXECUTOR || st->r.keeps_slots || n < a->lease_queue_max) {
        return true;
    }
    (void)gl_why(
        why, GL_E_LIMIT,
        "agent '%.*s' needs slots of pool '%.*s', for which %zu steps are already waiting; "
        "its lease_max_queue_length is %u",
        GL_STR_ARG(a->id), GL_STR_ARG(gl_agent_unit_pool(st)), n, a->lease_queue_max);
    return false;
}

static void log_beacon(struct gl_core *c, struct gl_step *st, const char *status);

void gl_agent_unit_on_slots(struct gl_core *c, struct gl_step *st)
{
    struct gl_step *step = step_of(c, st);

    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    /* The wait for slots does not count against the worker's first sign of life. */
    if (step != NULL && agent_of(st)->beacon_required) {
        gl_agent_step_on_beacon(c, step, agent_of(st)->beacon_timeout_ms);
    }
    st->mailbox->beacons_n = 0;
    st->mailbox->heard_at = 0;
    log_beacon(c, st, "started");
    if (st->r.keeps_slots) { /* a retry on the lease it holds */
        st->r.keeps_slots = false;
        return;
    }
    gl_agents_log(c, st, "executor_lease_acquired", (gl_str){0},
                  gl_str_fmt(c->out->arena,
                             "{\"lease_id\":\"%.*s\",\"pool\":\"%.*s\",\"slots\":%u,"
                             "\"queue_wait_ms\":%lld}",
                             GL_STR_ARG(gl_agent_unit_lease(c, st)),
                             GL_STR_ARG(gl_agent_unit_pool(st)), gl_step_spec_of(st)->slots,
                             (long long)(st->r.attempt_at - st->r.queued_at)));
}

/* The node adds the text of a long message. */
void gl_agent_unit_fill_start(struct gl_core *c, struct gl_step *st, struct gl_effect *e)
{
    struct gl_arena *a = c->out->arena;
    struct gl_queued_message *q = st->mailbox->now;
    struct gl_step *step = step_of(c, st);
    struct gl_turn *t = GL_NEW(a, struct gl_turn);

    GL_ASSERT(e->type == GL_FX_START);
    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    GL_ASSERT(q != NULL);
    if (q->r.large) {
        GL_MARK(c->trace, "agents.large_message");
    }
    t->message_number = q->r.number;
    t->message =
        gl_str_dup(a, GL_PLANT(37) ? q->r.message : gl_mailbox_text(q)); /* planted: the envelope */
    t->state = gl_str_dup(a, st->r.output);
    t->earlier_attempts = st->r.tries;
    t->queue_wait_ms = st->r.attempt_at - st->r.queued_at;
    t->ledger = (struct gl_message_ledger){.run_id = gl_str_dup(a, st->job->r.run_id),
                                           .has_revision = true,
                                           .graph_revision = st->job->r.graph_revision};
    if (step != NULL) {
        const struct gl_step_spec *spec = gl_step_spec_of(step);

        t->ledger.step_id = gl_str_dup(a, step->r.step_id);
        t->ledger.template_id = spec->template_id;
        t->ledger.region_id = spec->region_id;
        t->ledger.attempt = step->r.attempt_count;
        t->ledger.attempt_id =
            gl_str_fmt(a, "%.*s:attempt:%u", GL_STR_ARG(step->r.step_id), step->r.attempt_count);
        t->ledger.idempotency_key = gl_str_fmt(
            a, "%.*s:%.*s:%u:%.*s-%llu", GL_STR_ARG(st->job->r.run_id), GL_STR_ARG(step->r.step_id),
            step->r.attempt_count, GL_STR_ARG(st->job->id), (unsigned long long)q->r.number);
        t->ledger.deadline_at = step->r.deadline_at;
        t->ledger.heartbeat_deadline_at = step->r.heartbeat_at;
        t->ledger.timeout_ms = spec->timeout_ms;
        t->ledger.heartbeat_timeout_ms = spec->heartbeat_ms;
        e->idempotency_key = t->ledger.idempotency_key;
    }
    e->turn = t;
}

/* ---- the end of a turn ---- */

void gl_agent_unit_clear(struct gl_core *c, struct gl_step *st)
{
    gl_slots_unqueue(c, st);
    gl_agent_unit_release(c, st);
    st->mailbox->now = NULL;
    st->r.letter = 0;
    st->r.tries = 0;
    st->r.mail_attempt = 0;
    gl_core_set(c, &st->r.waits_for, (gl_str){0});
    if (st->r.status != GL_STEP_WAITING && st->r.status != GL_STEP_PENDING) {
        gl_ledger_move(c, st, GL_STEP_WAITING);
    } else {
        gl_txn_dirty(c, st);
    }
    if (st->job->known != NULL) { /* from this transaction on the unit has a record */
        st->job->known[st->of / 8] |= (uint8_t)(1u << (st->of % 8));
    }
    st->mailbox->is_fetched = true;
    gl_mailbox_schedule(c, st);
    GL_ASSERT(st->r.letter == 0);
    GL_ASSERT(st->r.status == GL_STEP_WAITING || st->r.status == GL_STEP_PENDING);
}

void gl_agent_unit_ack(struct gl_core *c, struct gl_step *st)
{
    struct gl_job *j = st->job;
    struct gl_queued_message *q = st->mailbox->now;
    struct gl_step *step = gl_mailbox_step_of(c, j, q);
    bool is_its = step != NULL && step->mailbox != NULL && step->mailbox->now == q;

    GL_ASSERT(q->unit == st->of);
    st->r.processed++;
    st->r.beacon_at = c->now;
    gl_agents_log(c, st, "message_acked", (gl_str){0},
                  gl_str_fmt(c->out->arena, "{\"message_id\":\"%.*s-%llu\"}", GL_STR_ARG(j->id),
                             (unsigned long long)q->r.number));
    /* The attempt continues, and a retry of it would need this message. */
    if (is_its && q->r.status != GL_MESSAGE_COUNTED &&
        !gl_step_status_is_terminal(step->r.status)) {
        gl_mailbox_set_status(c, j, q, GL_MESSAGE_KEPT);
        gl_agent_unit_clear(c, st);
        return;
    }
    if (is_its) {
        step->mailbox->now = NULL;
    }
    if (q->r.status != GL_MESSAGE_COUNTED) { /* a counted one stays with its aggregator */
        gl_mailbox_drop(c, j, q);
    }
    gl_agent_unit_clear(c, st);
}

/* The result belongs to an attempt of the ledger step that is over: logs and ignores it. */
static void drop_stale_output(struct gl_core *c, struct gl_step *st)
{
    struct gl_step *step = gl_mailbox_step_of(c, st->job, st->mailbox->now);

    GL_ASSERT(st->r.mail_attempt > 0);
    GL_MARK(c->trace, "agents.stale_output");
    gl_txn_log(c, st->job, step, "workflow_step_stale_output_ignored",
               GL_S("its attempt is no longer the current one"), (gl_str){0});
    gl_agent_unit_ack(c, st);
}

/* Did the turn begin in an attempt of a ledger step that is over? */
static bool is_stale(struct gl_core *c, struct gl_step *st)
{
    return st->r.mail_attempt > 0 && step_of(c, st) == NULL && !GL_PLANT(34);
}

static void log_completed(struct gl_core *c, struct gl_step *st, int64_t exit_code)
{
    GL_ASSERT(agent_of(st)->kind == GL_AGENT_EXECUTOR);
    gl_agents_log(c, st, "sandbox_job_completed", (gl_str){0},
                  gl_str_fmt(c->out->arena,
                             "{\"exit_code\":%lld,\"attempts\":%u,\"lease_id\":\"%.*s\","
                             "\"pool\":\"%.*s\"}",
                             (long long)exit_code, st->r.tries + 1,
                             GL_STR_ARG(gl_agent_unit_lease(c, st)),
                             GL_STR_ARG(gl_agent_unit_pool(st))));
}

gl_str gl_agent_unit_lease(struct gl_core *c, const struct gl_step *st)
{
    GL_ASSERT(st->r.letter != 0);
    return gl_str_fmt(c->out->arena, "%.*s:%.*s:%llu", GL_STR_ARG(st->job->id),
                      GL_STR_ARG(agent_of(st)->id), (unsigned long long)st->r.letter);
}

void gl_agent_unit_release(struct gl_core *c, struct gl_step *st)
{
    if (st->hold == NULL && !st->r.keeps_slots) {
        return;
    }
    if (agent_of(st)->kind == GL_AGENT_EXECUTOR) {
        gl_agents_log(c, st, "executor_lease_released", (gl_str){0},
                      gl_str_fmt(c->out->arena, "{\"lease_id\":\"%.*s\"}",
                                 GL_STR_ARG(gl_agent_unit_lease(c, st))));
    }
    st->r.keeps_slots = false;
    gl_txn_dirty(c, st);
    gl_slots_return(c, st);
    GL_ASSERT(!st->r.keeps_slots);
}

/* The worker exited with 0: carries out what it asked for and ends the turn. */
static void on_success(struct gl_core *c, struct gl_step *st, const struct gl_event_result *how)
{
    struct gl_turn_end t = {.unit = st, .agent = agent_of(st), .step = step_of(c, st)};
    struct gl_queued_message *q = st->mailbox->now;
    gl_str why = {0};

    GL_ASSERT(how->end == GL_EXEC_EXITED);
    GL_ASSERT(how->exit_code == 0);
    if (agent_of(st)->kind == GL_AGENT_EXECUTOR) {
        log_completed(c, st, how->exit_code);
    }
    if (!gl_apply_output(c, &t, how, &why)) {
        gl_agent_unit_fail(c, st, why);
        return;
    }
    /* A rejected patch may have failed the attempt and ended the turn. */
    if (st->mailbox->now == q) {
        gl_agent_unit_ack(c, st);
    }
}

/* May the turn be retried at once? Only an executor's, after an error that looks transient. */
static bool may_retry(struct gl_core *c, const struct gl_step *st,
                      const struct gl_event_result *how, gl_str why)
{
    const struct gl_agent_spec *a = agent_of(st);
    struct gl_worker_result r = {0};

    if (a->kind != GL_AGENT_EXECUTOR || st->r.tries + 1 >= a->tries ||
        st->job->r.verdict != GL_VERDICT_NONE) {
        return false;
    }
    if (how != NULL) {
        (void)gl_worker_result_read(how->output, c->out->arena, &r,
                                    NULL); /* unreadable: no texts */
    }
    return gl_worker_output_is_transient(why, r.stdout_text, r.stderr_text);
}

/* Retries the turn after a short backoff, with the same message and the same slots. An agent of a
 * paused job returns its slots, as an attempt that is stopped by a pause does. */
static bool schedule_retry(struct gl_core *c, struct gl_step *st, const struct gl_event_result *how,
                           gl_str why)
{
    gl_ms wait = agent_of(st)->try_backoff_ms;

    if (!may_retry(c, st, how, why)) {
        return false;
    }
    for (uint32_t i = 0; i < st->r.tries && wait < 3600000; i++) {
        wait *= 2;
    }
    st->r.tries++;
    st->r.keeps_slots = st->hold != NULL && st->job->r.status == GL_JOB_RUNNING;
    gl_core_set(c, &st->r.last_error, why);
    gl_ledger_move(c, st, GL_STEP_RETRY_WAIT);
    st->r.retry_at = c->now + wait;
    gl_step_set_due(c, st);
    gl_agents_log(c, st, "message_retry_scheduled", why,
                  gl_str_fmt(c->out->arena, "{\"attempt\":%u,\"retry_in_ms\":%lld}",
                             st->r.tries + 1, (long long)wait));
    GL_ASSERT(st->r.tries > 0);
    return true;
}

/* An agent with failure_message_type reports its failure in a message, and its own counts as
 * handled. */
static bool send_fallback(struct gl_core *c, struct gl_step *st, gl_str why)
{
    const struct gl_agent_spec *a = agent_of(st);
    struct gl_turn_end t = {.unit = st, .agent = a, .step = step_of(c, st)};
    struct gl_message shape;
    struct gl_buf buf = {0};
    struct gl_jw w;

    if (a->failure_type.n == 0) {
        return false;
    }
    gl_apply_read_message(c, &t);
    gl_jw_init(&w, &buf);
    gl_jw_object(&w);
    gl_jw_key(&w, "agent_id");
    gl_jw_str(&w, a->id);
    gl_jw_key(&w, "outputs");
    gl_jw_object(&w);
    gl_jw_key(&w, "error");
    gl_jw_str(&w, why);
    gl_jw_key(&w, "fallback_used");
    gl_jw_bool(&w, true);
    gl_jw_key(&w, "failed_agent_id");
    gl_jw_str(&w, a->id);
    gl_jw_end(&w);
    gl_jw_key(&w, "status");
    gl_jw_c(&w, "failed");
    gl_jw_end(&w);
    shape = (struct gl_message){.type = a->failure_type,
                                .body = gl_str_dup(c->out->arena, gl_buf_view(&buf))};
    gl_buf_done(&buf);
    gl_agents_log(c, st, "executor_fallback_dispatched", why, (gl_str){0});
    if (st->r.status != GL_STEP_RUNNING) { /* or the end of its ledger step would end the turn */
        gl_ledger_move(c, st, GL_STEP_WAITING);
    }
    gl_apply_step(c, &t, shape.body, true);
    gl_route_emit(c, &t, &shape);
    gl_agent_unit_ack(c, st);
    return true;
}

void gl_agent_unit_on_failure(struct gl_core *c, struct gl_step *st,
                              const struct gl_event_result *how, gl_str why)
{
    struct gl_step *step = step_of(c, st);

    GL_ASSERT(gl_step_is_unit(st));
    gl_core_set(c, &st->r.last_error, why);
    /* In this order: a job that is ending retries nothing, and a result for an attempt that is over
     * must not fail the current one. */
    if (st->job->r.verdict != GL_VERDICT_NONE) {
        gl_agent_unit_ack(c, st);
    } else if (is_stale(c, st)) {
        drop_stale_output(c, st);
    } else if (schedule_retry(c, st, how, why) || send_fallback(c, st, why)) {
        return;
    } else if (step != NULL) {
        gl_agent_unit_ack(c, st);
        gl_agent_step_fail(c, step, why);
    } else {
        gl_agent_restart_apply(c, st, why);
    }
}

void gl_agent_unit_fail(struct gl_core *c, struct gl_step *st, gl_str why)
{
    gl_agent_unit_on_failure(c, st, NULL, why);
}

/* Attempts the turn again from the beginning, with a new lease. Not counted. */
static void requeue(struct gl_core *c, struct gl_step *st, gl_str why)
{
    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    gl_agent_unit_release(c, st);
    st->r.tries = 0;
    gl_ledger_rerun(c, st, why);
}

/* The attempt never ran. Puts the message back and pauses the job, unless the turn is void anyway.
 */
static void requeue_and_pause(struct gl_core *c, struct gl_step *st, gl_str why, gl_str reason)
{
    if (st->mailbox == NULL || st->mailbox->now == NULL || st->job->r.verdict != GL_VERDICT_NONE ||
        is_stale(c, st)) {
        gl_agent_unit_fail(c, st, why);
        return;
    }
    GL_MARK(c->trace, "unit.no_files");
    requeue(c, st, why);
    gl_safety_pause(c, st->job, reason);
}

void gl_agent_unit_on_missing_files(struct gl_core *c, struct gl_step *st, gl_str why)
{
    requeue_and_pause(
        c, st, why,
        gl_str_fmt(c->out->arena,
                   "agent '%.*s' cannot start because its bundle is incomplete: %.*s; restore "
                   "that file, or submit the bundle again to restore it",
                   GL_STR_ARG(agent_of(st)->id), GL_STR_ARG(why)));
}

void gl_agent_unit_on_bad_message(struct gl_core *c, struct gl_step *st, gl_str why)
{
    gl_str reason =
        gl_str_fmt(c->out->arena,
                   "agent '%.*s' cannot receive message %llu: %.*s; repair the store "
                   "and resume the job, or cancel the job",
                   GL_STR_ARG(agent_of(st)->id), (unsigned long long)st->r.letter, GL_STR_ARG(why));

    GL_ASSERT(st->r.letter != 0);
    if (st->r.status == GL_STEP_RUNNING) {
        requeue_and_pause(c, st, why, reason);
    } else { /* a built-in agent: its message is read again when the job is resumed */
        GL_MARK(c->trace, "unit.no_message");
        gl_safety_pause(c, st->job, reason);
    }
}

void gl_agent_unit_on_result(struct gl_core *c, struct gl_step *st,
                             const struct gl_event_result *how, gl_str why)
{
    GL_ASSERT(gl_step_is_unit(st));
    GL_ASSERT(st->r.status == GL_STEP_RUNNING || st->r.status == GL_STEP_BLOCKED);
    if (st->mailbox == NULL || st->mailbox->now == NULL) { /* the records contradict each other */
        gl_ledger_move(c, st, GL_STEP_WAITING);
        return;
    }
    if (how->end == GL_EXEC_NOT_EXECUTED && !is_stale(c, st) &&
        st->job->r.verdict == GL_VERDICT_NONE) {
        if (how->exit_code == GL_E_DAMAGED) {
            gl_agent_unit_on_missing_files(c, st, why);
            return;
        }
        if (how->exit_code == GL_E_UNAVAILABLE) { /* its files are fetched again */
            requeue(c, st, why);
            return;
        }
    }
    bool is_good = how->end == GL_EXEC_EXITED && how->exit_code == 0 && how->error.n == 0;

    why = how->end == GL_EXEC_TIMEOUT ? GL_S("host local command timed out")
          : is_good                   ? why
                                      : gl_failure_text(c, st, how, why);
    /* The process is gone: free the slots now, unless a retry is to keep them. */
    if (is_good || is_stale(c, st) || !may_retry(c, st, how, why)) {
        gl_agent_unit_release(c, st);
    }
    if (agent_of(st)->kind == GL_AGENT_EXECUTOR) {
        log_beacon(c, st, "completed");
    }
    if (st->job->r.verdict != GL_VERDICT_NONE) {
        gl_agent_unit_ack(c, st);
    } else if (is_stale(c, st)) {
        drop_stale_output(c, st);
    } else if (is_good) {
        on_success(c, st, how);
    } else {
        gl_agent_unit_on_failure(c, st, how, why);
    }
}

void gl_agent_unit_mark_done(struct gl_core *c, struct gl_step *st, gl_str output)
{
    struct gl_event_result how = {.end = GL_EXEC_EXITED, .output = output};
    struct gl_worker_result r = {.stdout_text = output.n > 0 ? output : GL_S("{}")};
    struct gl_buf buf = {0};

    GL_ASSERT(st->r.status == GL_STEP_BLOCKED);
    if (agent_of(st)->kind == GL_AGENT_EXECUTOR) {
        gl_worker_result_write(&r, &buf);
        how.output = gl_str_dup(c->out->arena, gl_buf_view(&buf));
        gl_buf_done(&buf);
    }
    gl_agent_unit_on_result(c, st, &how, (gl_str){0});
}

/* ---- beacons and events ---- */

/* Logs a beacon of the runtime's own: the worker has started, works, or has ended. Unless the agent
 * must send beacons itself, this extends the heartbeat deadline of its step. */
static void log_beacon(struct gl_core *c, struct gl_step *st, const char *status)
{
    const struct gl_agent_spec *a = agent_of(st);
    struct gl_step *step = step_of(c, st);
    gl_str since = GL_S("null");
    char when[GL_TIMES_BYTES];

    st->r.beacon_at = c->now;
    if (!a->beacons) {
        return;
    }
    if (st->mailbox->heard_at > 0) {
        since = gl_str_fmt(c->out->arena, "%lld", (long long)(c->now - st->mailbox->heard_at));
    }
    gl_agents_log(
        c, st, "agent_beacon", (gl_str){0},
        gl_str_fmt(c->out->arena,
                   "{\"schema\":\"mn.agent.beacon.v1\",\"job_id\":\"%.*s\",\"agent_id\":\"%.*s\","
                   "\"step\":\"%.*s\",\"attempt\":%u,\"source\":\"runtime\",\"status\":\"%s\","
                   "\"sequence\":%u,\"message\":\"the worker has %s\",\"interval_ms\":%lld,"
                   "\"timeout_ms\":%lld,\"elapsed_ms\":%lld,\"ms_since_last_agent_beacon\":%.*s,"
                   "\"emitted_at\":\"%.*s\"}",
                   GL_STR_ARG(st->job->id), GL_STR_ARG(a->id), GL_STR_ARG(st->r.waits_for),
                   st->r.mail_attempt, status, ++st->mailbox->beacons_n,
                   strcmp(status, "working") == 0     ? "not ended"
                   : strcmp(status, "completed") == 0 ? "ended"
                                                      : "started",
                   (long long)a->beacon_ms, (long long)a->beacon_timeout_ms,
                   (long long)(c->now - st->r.attempt_at), GL_STR_ARG(since),
                   GL_STR_ARG(gl_times_format(c->now, when))));
    if (step != NULL && !a->beacon_required) {
        gl_agent_step_on_beacon(c, step, a->beacon_timeout_ms);
    }
}

void gl_agent_unit_on_beacon(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    log_beacon(c, st, "working");
}

void gl_agent_unit_on_line(struct gl_core *c, struct gl_step *st, gl_str line)
{
    struct gl_turn_end t = {.unit = st, .agent = agent_of(st), .step = step_of(c, st)};
    gl_str beacon = GL_S(GL_EXEC_BEACON), event = GL_S(GL_EXEC_SAYS);
    bool is_beacon = gl_str_starts(line, beacon);
    gl_str text = is_beacon || gl_str_starts(line, event)
                      ? (gl_str){.p = line.p + (is_beacon ? beacon.n : event.n),
                                 .n = line.n - (is_beacon ? beacon.n : event.n)}
                      : (gl_str){0};
    struct gl_json json;
    gl_jnode type, payload;
    int64_t timeout = 0;

    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    /* A line is the worker's own text: anything unreadable is ignored. */
    if (st->mailbox == NULL || st->mailbox->now == NULL ||
        gl_json_parse(&json, text, GL_RECORD_BYTES_MAX, c->out->arena, NULL) != 0 ||
        !gl_json_is(gl_json_root(&json), GL_JSON_OBJECT)) {
        return;
    }
    if (is_beacon) {
        (void)gl_json_i64(&json, gl_json_get(&json, gl_json_root(&json), "timeout_ms"), &timeout);
        st->mailbox->heard_at = c->now;
        gl_agents_log(c, st, "agent_beacon", (gl_str){0}, text);
        if (t.step != NULL) {
            gl_agent_step_on_beacon(c, t.step, timeout > 0 ? timeout : t.agent->beacon_timeout_ms);
        }
        return;
    }
    type = gl_json_get(&json, gl_json_root(&json), "type");
    payload = gl_json_get(&json, gl_json_root(&json), "payload");
    if (type != NULL && gl_json_is(type, GL_JSON_STRING)) {
        gl_apply_read_message(c, &t);
        for (int again = GL_PLANT(45); again > 0; again--) { /* planted: applied twice */
            gl_agent_events_take(c, &t, gl_json_str(&json, type, c->out->arena),
                                 gl_json_raw(&json, payload));
        }
        gl_agent_events_take(c, &t, gl_json_str(&json, type, c->out->arena),
                             payload != NULL && gl_json_is(payload, GL_JSON_OBJECT)
                                 ? gl_json_raw(&json, payload)
                                 : GL_S("{}"));
    }
}

void gl_agent_unit_on_refused(struct gl_core *c, struct gl_step *st, gl_str why)
{
    GL_ASSERT(st->r.status == GL_STEP_QUEUED);
    gl_agents_log(c, st, "executor_lease_rejected", why, (gl_str){0});
    gl_agent_unit_on_failure(c, st, NULL, why);
}

void gl_agent_unit_on_timer(struct gl_core *c, struct gl_step *st)
{
    if (st->r.status == GL_STEP_QUEUED) {
        gl_slots_unqueue(c, st);
        gl_agents_log(c, st, "executor_lease_rejected", GL_S("lease queue timed out"), (gl_str){0});
        gl_agent_unit_on_failure(c, st, NULL, GL_S("the wait for executor slots timed out"));
    }
}

void gl_agent_unit_list_idle(struct gl_core *c, struct gl_step *st)
{
    struct gl_mailbox *m = st->mailbox;

    GL_ASSERT(m->unit == st);
    if (m->n > 0 || m->now != NULL || m->asked != 0 || m->counted_n > 0 ||
        st->r.status != GL_STEP_WAITING || !gl_list_empty(&m->idle)) {
        return;
    }
    gl_list_push(&c->idle, &m->idle);
    c->idle_n++;
    GL_ASSERT(c->idle_n > 0);
}
