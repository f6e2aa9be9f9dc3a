/* attempts.c - matches what the executor reports with the ledger.
 *
 * Every report names an attempt ("step:attempt:n") and the owner token it was started under. A
 * report is used only if it is about the current attempt of a running step. One with a higher token
 * than ours shows that our memory of the job is outdated. */
#include "core/recovery/attempts.h"

#include "base/check.h"
#include "core/agents/agents.h"
#include "core/cluster/taken.h"
#include "core/flow/ledger.h"
#include "core/flow/txn.h"
#include "core/recovery/load.h"
#include "core/recovery/safety.h"
#include "core/retention/retention.h"
#include "core/scheduling/slots.h"

enum {
    PROBE_MS = 5000,  /* between two ATTACHes, while the executor does not answer */
    ADOPTION_MS = 50, /* the same, while running attempts are still being adopted */
    REFUSED_MS = 250, /* the least time between a refused START and the next */
    REFUSED_MS_MAX = 15000,
    LIST_AGAIN_MS = 200
};

/* ---- which step is it about? ---- */

/* "step:attempt:n": the step's id and the number. */
static bool split_attempt_id(gl_str attempt, gl_str *ret_step, uint32_t *ret_number)
{
    static const char middle[] = ":attempt:";
    uint64_t n;

    for (size_t at = 0; at + sizeof(middle) - 1 < attempt.n; at++) {
        if (memcmp(attempt.p + at, middle, sizeof(middle) - 1) == 0) {
            gl_str digits = {.p = attempt.p + at + sizeof(middle) - 1,
                             .n = attempt.n - at - sizeof(middle) + 1};

            if (!gl_str_u64(digits, &n) || n > UINT32_MAX) {
                return false;
            }
            *ret_step = (gl_str){.p = attempt.p, .n = at};
            *ret_number = (uint32_t)n;
            GL_ASSERT(ret_step->n + sizeof(middle) - 1 + digits.n == attempt.n);
            return true;
        }
    }
    return false;
}

gl_str gl_attempts_step_of(gl_str attempt)
{
    gl_str step = {0};
    uint32_t number;

    return split_attempt_id(attempt, &step, &number) ? step : (gl_str){0};
}

bool gl_attempts_number_of(gl_str attempt, uint32_t *ret)
{
    gl_str step;

    return split_attempt_id(attempt, &step, ret);
}

struct gl_step *gl_attempts_find(struct gl_job *j, gl_str attempt)
{
    gl_str id;
    uint32_t n;
    struct gl_step *st;

    GL_ASSERT(j->memory == GL_MEM_HOT);
    if (!split_attempt_id(attempt, &id, &n)) {
        return NULL;
    }
    st = gl_step_by_id(j, id);
    if (st == NULL || st->r.status != GL_STEP_RUNNING) {
        return NULL;
    }
    return st->r.attempt_count == n || GL_PLANT(8) ? st : NULL;
}

/* The running step whose current attempt this is; NULL if the attempt is an old one, not ours, or
 * with the executor of another node. */
static struct gl_step *current_step(struct gl_job *j, gl_str attempt)
{
    struct gl_step *st = gl_attempts_find(j, attempt);

    return st != NULL && !st->r.is_elsewhere ? st : NULL;
}

static void attach(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    GL_ASSERT(!st->r.is_elsewhere);
    if (c->exec_up) {
        (void)gl_txn_attempt(c, st, GL_FX_ATTACH);
    }
    st->probe_at = c->now + PROBE_MS;
    gl_step_set_due(c, st);
    GL_ASSERT(gl_step_is_bound(st) || st->due <= st->probe_at);
}

/* ---- how an attempt ended ---- */

static gl_str describe_end(struct gl_core *c, const struct gl_event_result *how)
{
    struct gl_arena *a = c->out->arena;

    if (how->error.n > 0) {
        return (gl_str){.p = how->error.p,
                        .n = how->error.n < GL_REASON_BYTES_MAX ? how->error.n
                                                                : GL_REASON_BYTES_MAX};
    }
    switch ((enum gl_exec_end)how->end) {
    case GL_EXEC_EXITED:
        return gl_str_fmt(a, "exit code %lld", (long long)how->exit_code);
    case GL_EXEC_SIGNALED:
        return gl_str_fmt(a, "killed by signal %lld", (long long)how->signal);
    case GL_EXEC_TIMEOUT:
        return GL_S("timed out");
    case GL_EXEC_STOPPED:
        return GL_S("stopped");
    case GL_EXEC_NOT_EXECUTED:
        return GL_S("could not be started");
    case GL_EXEC_ORPHANED:
        return GL_S("terminated because its node went silent");
    case GL_EXEC_END_COUNT:
        break;
    }
    return GL_S("ended");
}

/* Does `retry.on` name this kind of failure? Without `retry.on` every kind is retried. */
static bool may_retry(const struct gl_step *st, const char *kind)
{
    const struct gl_strs *on = &gl_step_spec_of(st)->retry.on;

    for (size_t i = 0; i < on->n; i++) {
        if (gl_str_is(on->items[i], kind)) {
            return true;
        }
    }
    return on->n == 0;
}

static bool may_retry_end(struct gl_core *c, const struct gl_step *st,
                          const struct gl_event_result *how)
{
    switch ((enum gl_exec_end)how->end) {
    case GL_EXEC_EXITED:
        return may_retry(st, gl_str_fmt(c->out->arena, "%lld", (long long)how->exit_code).p);
    case GL_EXEC_SIGNALED:
        return may_retry(st, "signal");
    case GL_EXEC_TIMEOUT:
        return may_retry(st, "timeout");
    default:
        return gl_step_spec_of(st)->retry.on.n == 0;
    }
}

/* The attempt was ended in the middle of its work. How far it got is unknown, so an unsafe step is
 * retried only if its flow says so explicitly, by `retry.on`. */
static void on_cut_off(struct gl_core *c, struct gl_step *st, gl_str why, bool may_retry)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    bool is_asked = spec->safety == GL_SAFETY_UNSAFE && spec->retry.on.n == 0 &&
                    !gl_step_is_unit(st) && !GL_PLANT(65); /* planted: like any other step */

    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    if (is_asked && may_retry && st->r.counted + 1 < spec->retry.attempts &&
        st->job->r.verdict == GL_VERDICT_NONE) {
        GL_MARK(c->trace, "attempts.cut_off_for_review");
        gl_ledger_block(
            c, st, GL_BLOCK_REVIEW,
            gl_str_fmt(c->out->arena,
                       "the step is unsafe and its attempt was cut off (%.*s), so it may or "
                       "may not have done its work",
                       GL_STR_ARG(why)));
        return;
    }
    gl_ledger_fail(c, st, why, may_retry);
}

/* The attempt was stopped, by us or by the job's previous owner. */
static void on_stopped(struct gl_core *c, struct gl_step *st)
{
    gl_str why;

    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    switch ((enum gl_stop)st->r.stopping) {
    case GL_STOP_NONE:
        gl_safety_lost(c, st);
        return;
    case GL_STOP_PAUSE:
        gl_ledger_rerun(c, st, GL_S("stopped by a pause"));
        return;
    case GL_STOP_JOB_ENDS:
        why = gl_str_fmt(c->out->arena, "stopped: %.*s", GL_STR_ARG(st->job->r.reason));
        gl_ledger_fail(c, st, why, false);
        return;
    case GL_STOP_HEARTBEAT:
        why = GL_S("no sign of life before its heartbeat deadline");
        break;
    case GL_STOP_DEADLINE:
        why = GL_S("timed out");
        break;
    default:
        GL_UNREACHABLE();
    }
    gl_txn_log(c, st->job, st, "workflow_step_attempt_timed_out", why, (gl_str){0});
    on_cut_off(c, st, why, may_retry(st, "timeout"));
}

static void on_failed(struct gl_core *c, struct gl_step *st, const struct gl_event_result *how)
{
    gl_str why = describe_end(c, how);
    bool again = st->r.stopping != GL_STOP_JOB_ENDS && may_retry_end(c, st, how);

    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    if (how->end == GL_EXEC_STOPPED || how->end == GL_EXEC_ORPHANED) {
        on_stopped(c, st);
        return;
    }
    if (how->end == GL_EXEC_TIMEOUT) {
        gl_txn_log(c, st->job, st, "workflow_step_attempt_timed_out", why, (gl_str){0});
    }
    if (how->end == GL_EXEC_TIMEOUT || how->end == GL_EXEC_SIGNALED) {
        on_cut_off(c, st, why, again);
    } else {
        gl_ledger_fail(c, st, why, again);
    }
}

static void acknowledge(struct gl_core *c, struct gl_job *j, gl_str attempt)
{
    GL_ASSERT(j->memory == GL_MEM_HOT);
    gl_txn_effect(c, j, GL_FX_ACK)->attempt = gl_str_dup(c->out->arena, attempt);
}

/* The executor has an attempt of this job that our ledger does not want. May it be discarded? If
 * the job is not ours yet, what we know of it may be outdated: its previous owner may still be
 * writing, and an attempt that looks old to us may be new. Then the job is taken over first, by a
 * transaction that fails if we were wrong; the effect waits for it. */
static bool may_discard(struct gl_core *c, struct gl_job *j)
{
    GL_ASSERT(j->memory == GL_MEM_HOT);
    if (j->inflight_n > 0) {
        return false; /* needed again if that transaction fails: discard it next time */
    }
    if (!gl_job_is_mine(c, j) && !gl_job_status_is_terminal(j->r.status)) {
        GL_MARK(c->trace, "attempts.taken_over_to_discard");
        gl_txn_changed(c, j);
    }
    return true;
}

/* An attempt that was never executed, because its files were missing, counts as neither. */
static void count_unit(struct gl_core *c, const struct gl_event_result *how)
{
    bool is_good = how->end == GL_EXEC_EXITED && how->exit_code == 0 && how->error.n == 0;
    bool has_run = how->end != GL_EXEC_NOT_EXECUTED ||
                   (how->exit_code != GL_E_UNAVAILABLE && how->exit_code != GL_E_DAMAGED);

    GL_ASSERT(GL_IMPLIES(is_good, has_run));
    c->counts.attempts_succeeded += is_good;
    c->counts.attempts_failed += !is_good && has_run;
}

/* The attempt of this running step has ended. */
static void accept_result(struct gl_core *c, struct gl_step *st, const struct gl_event_result *how)
{
    struct gl_job *j = st->job;

    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    /* Once the executor has forgotten it, only the store knows that it ran. */
    j->confirms |= c->shared && gl_step_spec_of(st)->safety == GL_SAFETY_UNSAFE;
    st->r.exit_code = how->end == GL_EXEC_SIGNALED       ? 128 + how->signal
                      : how->end == GL_EXEC_NOT_EXECUTED ? 0
                                                         : how->exit_code;
    GL_TRACE(c->trace, EXEC, .job = j->id, .step = st->r.step_id, .token = j->token,
             .number = st->r.attempt_count, .what = "ended");
    gl_histogram_add(&c->counts.run, c->now - st->r.attempt_at);
    if (gl_step_is_unit(st) && how->end != GL_EXEC_STOPPED && how->end != GL_EXEC_ORPHANED) {
        count_unit(c, how);
        gl_agent_unit_on_result(c, st, how, describe_end(c, how));
    } else if (how->end == GL_EXEC_NOT_EXECUTED && how->exit_code == GL_E_UNAVAILABLE &&
               st->r.stopping == GL_STOP_NONE) {
        gl_ledger_rerun(c, st, describe_end(c, how)); /* its files are fetched again */
    } else if (how->end == GL_EXEC_EXITED && how->exit_code == 0 && how->error.n == 0) {
        c->counts.attempts_succeeded++;
        gl_ledger_succeed(c, st, how->output);
    } else {
        c->counts.attempts_failed++;
        on_failed(c, st, how);
    }
}

static void on_result(struct gl_core *c, struct gl_job *j, gl_str attempt,
                      const struct gl_event_result *how)
{
    struct gl_step *st = current_step(j, attempt);

    GL_ASSERT(j->memory == GL_MEM_HOT);
    if (st == NULL) {
        GL_MARK(c->trace, "attempts.stale_result");
        if (may_discard(c, j)) {
            acknowledge(c, j, attempt);
        }
        return;
    }
    acknowledge(c, j, attempt);
    accept_result(c, st, how);
}

void gl_attempts_on_ended(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_job *j;

    GL_ASSERT(ev->type == GL_EV_ENDED);
    if (gl_taken_on_event(c, ev)) {
        return;
    }
    if (c->session.n > 0 && gl_load_ready(c, ev, &j)) {
        if (ev->ended.token > j->token) {
            gl_load_outbid(c, j, ev->ended.token);
        } else {
            on_result(c, j, ev->ended.attempt, &ev->ended.result);
        }
    }
}

/* ---- answers ---- */

/* The longer a start has been refused, the longer the pause before the next one: each may have to
 * fetch the step's files from another machine. */
gl_ms gl_attempts_start_pause(gl_ms waited)
{
    gl_ms pause = waited / 4;

    return pause < REFUSED_MS ? REFUSED_MS : pause > REFUSED_MS_MAX ? REFUSED_MS_MAX : pause;
}

void gl_attempts_on_started(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_job *j = gl_job_find(c, ev->job);
    struct gl_step *st =
        j != NULL && j->memory == GL_MEM_HOT ? current_step(j, ev->started.attempt) : NULL;

    GL_ASSERT(ev->type == GL_EV_STARTED);
    if (gl_taken_on_event(c, ev)) {
        return;
    }
    GL_ASSERT(GL_IMPLIES(st != NULL, st->starting <= c->last_start));
    if (st == NULL || st->starting != ev->started.number) {
        return; /* answers an earlier START; the answer that counts is still to come */
    }
    st->starting = 0;
    if (ev->started.code == GL_E_NOT_FOUND && gl_step_is_unit(st)) {
        gl_agent_unit_on_missing_files(c, st, ev->started.why);
    } else if (ev->started.code == GL_E_DAMAGED && gl_step_is_unit(st)) {
        gl_agent_unit_on_bad_message(c, st, ev->started.why);
    } else if (ev->started.code == GL_E_LIMIT ||
               ev->started.code == GL_E_INVALID) { /* it would be refused every time */
        st->r.exit_code = 0;
        gl_ledger_fail(c, st, ev->started.why, false);
    } else if (ev->started.code == GL_E_UNAVAILABLE && c->exec_up) {
        /* For example a full disk, which stays full for a while: do not retry in a busy loop. */
        GL_MARK(c->trace, "attempts.start_refused");
        st->probe_at = c->now + gl_attempts_start_pause(c->now - st->r.attempt_at);
        gl_step_set_due(c, st);
    } else if (ev->started.code != 0) {
        GL_MARK(c->trace, "attempts.start_unsure");
        attach(c, st);
    }
}

/* The attempt never started. Nor can it start later: the executor refuses the older token. */
static void on_never_started(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    GL_ASSERT(st->starting == 0);
    switch ((enum gl_stop)st->r.stopping) {
    case GL_STOP_JOB_ENDS:
        gl_ledger_skip(c, st, st->job->r.reason);
        return;
    case GL_STOP_PAUSE:
        gl_ledger_rerun(c, st, GL_S("stopped by a pause"));
        return;
    case GL_STOP_HEARTBEAT:
    case GL_STOP_DEADLINE:
        gl_ledger_fail(c, st, GL_S("it was not started in time"), true);
        return;
    case GL_STOP_NONE:
        break;
    }
    if (st->r.is_elsewhere) {
        gl_ledger_rerun(c, st, GL_S("its node did not start it"));
        return;
    }
    if (gl_slots_are_exceeded(c, st)) { /* from a previous owner: it must queue for slots here */
        GL_MARK(c->trace, "attempts.never_started_and_no_slot");
        gl_ledger_rerun(c, st, GL_S("it was never started"));
        return;
    }
    if (!c->adoption_over) { /* attempts that do run have not all got their slots yet */
        st->probe_at = c->now + ADOPTION_MS;
        gl_step_set_due(c, st);
        return;
    }
    GL_MARK(c->trace, "attempts.never_started");
    if (!c->stopping) {
        gl_ledger_emit_start(c, st);
    }
}

void gl_attempts_on_attached(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_job *j = gl_job_find(c, ev->job);
    struct gl_step *st =
        j != NULL && j->memory == GL_MEM_HOT ? current_step(j, ev->attached.attempt) : NULL;

    GL_ASSERT(ev->type == GL_EV_ATTACHED);
    if (gl_taken_on_event(c, ev)) {
        return;
    }
    if (st == NULL || j->token != ev->attached.token || st->starting != 0) {
        return;
    }
    if (ev->attached.code == GL_E_STALE) { /* the executor has seen a higher token */
        gl_load_outbid(c, j, j->token);
        return;
    }
    if (ev->attached.code != 0) {
        return; /* the step's timer asks again */
    }
    switch ((enum gl_exec_state)ev->attached.state) {
    case GL_EXEC_RUNNING:
        if (st->r.stopping != GL_STOP_NONE) {
            (void)gl_txn_attempt(c, st, GL_FX_STOP);
        } else if (st->r.deadline_at == 0) {
            st->probe_at = 0;
            gl_step_set_due(c, st);
        }
        break;
    case GL_EXEC_ENDED:
        on_result(c, j, ev->attached.attempt, &ev->attached.result);
        break;
    case GL_EXEC_NEVER:
        on_never_started(c, st);
        break;
    case GL_EXEC_LOST:
        gl_safety_lost(c, st);
        break;
    case GL_EXEC_STATE_COUNT:
        GL_UNREACHABLE();
    }
}

void gl_attempts_on_beacon(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_job *j = gl_job_find(c, ev->job);
    struct gl_step *st =
        j != NULL && j->memory == GL_MEM_HOT ? current_step(j, ev->beacon.attempt) : NULL;

    GL_ASSERT(ev->type == GL_EV_BEACON);
    if (gl_taken_on_event(c, ev)) {
        return;
    }
    if (st != NULL && gl_step_is_unit(st)) {
        gl_agent_unit_on_beacon(c, st);
    } else if (st != NULL && st->heartbeat_at != 0) {
        st->heartbeat_at = c->now + gl_step_spec_of(st)->heartbeat_ms;
        gl_step_set_due(c, st);
    }
}

void gl_attempts_on_said(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_job *j = gl_job_find(c, ev->job);
    struct gl_step *st =
        j != NULL && j->memory == GL_MEM_HOT ? current_step(j, ev->said.attempt) : NULL;

    GL_ASSERT(ev->type == GL_EV_SAID);
    /* An adopted worker still reports under the token it was started with. */
    if (st != NULL && gl_step_is_unit(st) &&
        (GL_PLANT(44) ? j->token == ev->said.token : ev->said.token <= j->token) &&
        j->r.verdict == GL_VERDICT_NONE) {
        GL_MARK(c->trace, "attempts.said");
        gl_agent_unit_on_line(c, st, ev->said.why);
    }
}

void gl_attempts_on_timer(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    GL_ASSERT(!gl_step_is_bound(st));
    if (st->heartbeat_at != 0 && st->heartbeat_at <= c->now) {
        st->heartbeat_at = 0;
        gl_ledger_stop(c, st, GL_STOP_HEARTBEAT);
    }
    if (st->probe_at != 0 && st->probe_at <= c->now) {
        if (st->r.deadline_at != 0 && st->r.deadline_at < c->now &&
            st->r.stopping == GL_STOP_NONE) {
            gl_ledger_stop(c, st, GL_STOP_DEADLINE);
        }
        attach(c, st);
    }
    gl_step_set_due(c, st);
    GL_ASSERT(st->heartbeat_at == 0 || st->heartbeat_at > c->now);
    GL_ASSERT(st->probe_at == 0 || st->probe_at > c->now);
}

/* ---- on other nodes ---- */

static enum gl_exec_end end_from(gl_str word)
{
    static const char *const words[] = {
#define X(name, word) word,
        GL_EXEC_ENDS(X)
#undef X
            NULL};
    int end = gl_schema_word(words, word);

    GL_ASSERT(end < GL_EXEC_END_COUNT);
    return end >= 0 ? (enum gl_exec_end)end : GL_EXEC_STOPPED; /* of another release: unknown */
}

static void accept_elsewhere(struct gl_core *c, struct gl_step *st, const struct gl_taken_record *r)
{
    struct gl_event_result how = {.output = r->output,
                                  .end = (uint8_t)end_from(r->end),
                                  .exit_code = r->exit_code,
                                  .signal = r->signal,
                                  .started_at = r->started_at,
                                  .ended_at = r->ended_at,
                                  .error = r->error};

    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    GL_ASSERT(st->r.is_elsewhere);
    GL_ASSERT(r->state == GL_TAKEN_ENDED);
    GL_ASSERT(how.end < GL_EXEC_END_COUNT);
    if (r->stopped != GL_STOP_NONE && st->r.stopping == GL_STOP_NONE) {
        st->r.stopping = r->stopped; /* it was silent: its node has stopped it for us */
    }
    if (r->is_final) { /* it would be refused on every node, every time */
        st->r.exit_code = 0;
        gl_ledger_fail(c, st, describe_end(c, &how), false);
        return;
    }
    accept_result(c, st, &how);
}

void gl_attempts_on_elsewhere(struct gl_core *c, struct gl_step *st,
                              const struct gl_taken_record *r)
{
    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    GL_ASSERT(st->r.is_elsewhere);
    GL_ASSERT(st->r.node.n > 0);
    GL_ASSERT(st->starting == 0);
    GL_ASSERT(r->state < GL_TAKEN_STATE_COUNT);
    GL_ASSERT(r->state != GL_TAKEN_RUNNING);
    switch ((enum gl_taken_state)r->state) {
    case GL_TAKEN_ENDED:
        GL_MARK(c->trace, "attempts.ended_elsewhere");
        accept_elsewhere(c, st, r);
        break;
    case GL_TAKEN_NEVER:
    case GL_TAKEN_WITHDRAWN:
        on_never_started(c, st);
        break;
    case GL_TAKEN_LOST:
        gl_safety_lost(c, st);
        break;
    case GL_TAKEN_RUNNING:
    case GL_TAKEN_STATE_COUNT:
        GL_UNREACHABLE();
    }
}

/* ---- after a restart of either side ---- */

void gl_attempts_adopt(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    GL_ASSERT(!gl_safety_is_foreign(c, st));
    GL_MARK(c->trace, "attempts.adopted");
    attach(c, st);
}

void gl_attempts_on_up(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_job *j;

    GL_ASSERT(ev->type == GL_EV_EXEC_UP);
    gl_core_set(c, &c->epoch, ev->exec_up.epoch);
    c->exec_up = true;
    GL_TRACE(c->trace, NODE, .what = "executor up");
    for (size_t i = 0; (j = gl_map_next(&c->jobs, &i)) != NULL;) {
        if (j->memory != GL_MEM_HOT || gl_job_running(j) == 0) {
            continue;
        }
        for (struct gl_link *l = j->live.next; l != &j->live; l = l->next) {
            struct gl_step *st = GL_CONTAINER(l, struct gl_step, live);

            if (st->r.status == GL_STEP_RUNNING && st->starting == 0 && !gl_step_is_bound(st) &&
                !st->r.is_elsewhere) {
                attach(c, st);
            }
        }
    }
    gl_taken_on_up(c);
    gl_attempts_list(c);
    gl_retention_on_ready(c);
}

void gl_attempts_on_down(struct gl_core *c)
{
    c->exec_up = false;
    GL_TRACE(c->trace, NODE, .what = "executor down");
    GL_ASSERT(!c->exec_up);
}

void gl_attempts_list(struct gl_core *c)
{
    if (c->exec_up && !c->listing && c->session.n > 0) {
        c->listing = true;
        (void)gl_effect_add(c->out, GL_FX_LIST, 0);
    }
}

void gl_attempts_list_soon(struct gl_core *c)
{
    if (c->shared && c->list_due > c->now + LIST_AGAIN_MS) {
        c->list_due = c->now + LIST_AGAIN_MS;
    }
    GL_ASSERT(!c->shared || c->list_due <= c->now + LIST_AGAIN_MS);
}

const struct gl_event_info *gl_attempts_info(const struct gl_event *ev)
{
    return ev->type == GL_EV_LISTED && ev->listed.infos.n > 0 ? ev->listed.infos.items : NULL;
}

void gl_attempts_discard(struct gl_core *c, const struct gl_event *ev, uint64_t token)
{
    const struct gl_event_info *info = gl_attempts_info(ev);
    bool runs = info != NULL && info->state == GL_EXEC_RUNNING;
    struct gl_effect *e;

    GL_ASSERT(ev->job.n == GL_ULID_BYTES);
    if (ev->type != GL_EV_ENDED && info == NULL) {
        return;
    }
    if (runs) {
        gl_attempts_list_soon(c); /* check that it ends: the owner relies on that after the grace */
    }
    e = gl_effect_add(c->out, runs ? GL_FX_STOP : GL_FX_ACK, 0);
    e->grace_ms = c->shared ? 1 : 0; /* the owner assumes that it is dead: end it at once */
    e->context = gl_str_dup(c->out->arena, c->context);
    e->job = gl_str_dup(c->out->arena, ev->job);
    e->attempt = gl_str_dup(c->out->arena, info != NULL ? info->attempt : ev->ended.attempt);
    e->token = token;
}

/* One attempt of the executor's list. */
static void check_listed(struct gl_core *c, struct gl_job *j, const struct gl_event_info *info)
{
    struct gl_step *st = current_step(j, info->attempt);

    GL_ASSERT(j->memory == GL_MEM_HOT);
    GL_ASSERT(gl_str_eq(info->job, j->id));
    if (info->token > j->token) {
        gl_load_outbid(c, j, info->token);
        return;
    }
    if (st != NULL) {
        if (info->state == GL_EXEC_ENDED && st->starting == 0) {
            GL_MARK(c->trace, "attempts.end_was_missed");
            attach(c, st);
        }
        return;
    }
    if (!may_discard(c, j)) {
        gl_attempts_list_soon(c);
        return;
    }
    if (info->state == GL_EXEC_ENDED) {
        acknowledge(c, j, info->attempt);
    } else {
        GL_MARK(c->trace, "attempts.stray_stopped");
        gl_txn_effect(c, j, GL_FX_STOP)->attempt = gl_str_dup(c->out->arena, info->attempt);
    }
}

static void check_or_park(struct gl_core *c, const struct gl_event *list,
                          const struct gl_event_info *info)
{
    struct gl_event one = {.now = list->now,
                           .type = GL_EV_LISTED,
                           .context = info->context,
                           .job = info->job,
                           .listed = {.infos = {.items = (void *)info, .n = 1}}};
    struct gl_job *j;

    GL_ASSERT(list->type == GL_EV_LISTED);
    if (gl_str_eq(info->context, c->context) && gl_load_ready(c, &one, &j)) {
        check_listed(c, j, info);
    }
}

void gl_attempts_on_listed(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_info *infos = ev->listed.infos.items;

    GL_ASSERT(ev->type == GL_EV_LISTED);
    if (ev->job.n == 0) { /* the answer itself, not a parked part of it */
        c->listing = false;
        if (ev->listed.code != 0) {
            gl_attempts_list_soon(c);
        }
    }
    for (size_t i = 0; i < ev->listed.infos.n && ev->listed.code == 0; i++) {
        if (!gl_taken_on_listed(c, &infos[i])) {
            check_or_park(c, ev, &infos[i]);
        }
    }
}
