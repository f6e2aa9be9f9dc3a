/* taken_attempts.c - what this node's executor does with taken attempts, and what it reports. */
#include "base/check.h"
#include "core/cluster/taken_parts.h"
#include "core/component.h"
#include "core/recovery/attempts.h"
#include "core/recovery/safety.h"
#include "core/scheduling/slots.h"

enum {
    START_BY_MS = 30000, /* the executor refuses a START that reaches it later than this */
    PROBE_MS = 5000,     /* between two ATTACHes, while the executor does not answer */
    OVERDUE_MS = 5000,   /* the executor is asked about an attempt this long after its deadline */
};

static const char *const end_words[] = {
#define X(name, word) word,
    GL_EXEC_ENDS(X)
#undef X
};

static const struct gl_step_spec *spec_of(const struct gl_taken *t)
{
    GL_ASSERT(t->job->spec != NULL);
    GL_ASSERT(t->of < t->job->spec->flow->steps.n);
    return gl_flow_step(t->job->spec->flow, t->of);
}

/* The keeper refuses a token below the highest it has seen for the job: that of any later owner,
 * this node perhaps. Which attempt may run is decided by its record, not by the token. */
static uint64_t token_of(struct gl_core *c, const struct gl_taken *t)
{
    const struct gl_job *j = gl_job_find(c, t->job->id);
    uint64_t token = t->token > t->job->token ? t->token : t->job->token;

    return j != NULL && j->memory == GL_MEM_HOT && !j->token_in_flight && j->token > token
               ? j->token
               : token;
}

static struct gl_effect *effect(struct gl_core *c, const struct gl_taken *t,
                                enum gl_effect_type type)
{
    struct gl_effect *e = gl_effect_add(c->out, type, 0);
    struct gl_arena *a = c->out->arena;

    GL_ASSERT(t->phase >= GL_TAKEN_RUNNING_HERE);
    GL_ASSERT(t->attempt.n > 0);
    GL_ASSERT(t->job->attempts_n > 0);
    e->context = gl_str_dup(a, c->context);
    e->job = gl_str_dup(a, t->job->id);
    e->attempt = gl_str_dup(a, t->attempt);
    e->attempt_number = t->number;
    e->epoch = gl_str_dup(a, t->epoch);
    e->token = token_of(c, t);
    return e;
}

void gl_taken_start(struct gl_core *c, struct gl_taken *t)
{
    const struct gl_step_spec *spec = spec_of(t);
    struct gl_effect *e = effect(c, t, GL_FX_START);

    GL_ASSERT(t->phase == GL_TAKEN_RUNNING_HERE);
    GL_ASSERT(t->starting == 0);
    GL_ASSERT(t->stopping == GL_STOP_NONE);
    GL_ASSERT(!c->stopping);
    e->spec = t->job->spec;
    gl_spec_ref(e->spec);
    e->step_number = e->of = t->of;
    e->item = t->item;
    e->step_id = gl_str_dup(c->out->arena, t->step_id);
    e->submitted_at = t->job->submitted_at;
    e->run_id = gl_str_dup(c->out->arena, t->job->run_id);
    e->idempotency_key =
        gl_str_fmt(c->out->arena, "%.*s:%.*s", GL_STR_ARG(t->job->id), GL_STR_ARG(t->step_id));
    e->start_by = c->now + START_BY_MS;
    e->deadline_at = spec->timeout_ms > 0 ? c->now + spec->timeout_ms : 0;
    e->needs_session = gl_safety_spec_needs_session(c, spec, spec->limit_key.n > 0);
    t->starting = e->start_number = ++c->last_start;
    t->heartbeat_at = spec->heartbeat_ms > 0 ? c->now + spec->heartbeat_ms : 0;
    t->probe_at =
        spec->timeout_ms > 0 ? c->now + spec->timeout_ms + spec->grace_ms + OVERDUE_MS : 0;
    gl_taken_set_due(c, t);
    GL_ASSERT(t->starting == c->last_start);
    GL_TRACE(c->trace, EXEC, .job = t->job->id, .step = t->step_id, .token = t->token,
             .number = t->number, .what = "start for another node");
}

void gl_taken_attach(struct gl_core *c, struct gl_taken *t)
{
    GL_ASSERT(t->phase == GL_TAKEN_RUNNING_HERE);
    if (c->exec_up) {
        (void)effect(c, t, GL_FX_ATTACH);
    }
    t->probe_at = c->now + PROBE_MS;
    gl_taken_set_due(c, t);
    GL_ASSERT(t->probe_at > c->now);
    GL_ASSERT(t->due <= t->probe_at);
}

void gl_taken_stop(struct gl_core *c, struct gl_taken *t, enum gl_stop why)
{
    GL_ASSERT(why != GL_STOP_NONE);
    if (t->phase != GL_TAKEN_RUNNING_HERE) {
        return;
    }
    t->stopping = (uint8_t)why;
    t->heartbeat_at = 0;
    t->probe_at = c->now + spec_of(t)->grace_ms + OVERDUE_MS;
    gl_taken_set_due(c, t);
    GL_ASSERT(t->probe_at > c->now);
    GL_ASSERT(t->due == t->probe_at);
    (void)effect(c, t, GL_FX_STOP);
}

/* The process is certainly gone: its slots are free, and its record is to say what became of it. */
void gl_taken_end(struct gl_core *c, struct gl_taken *t, enum gl_taken_state state)
{
    GL_ASSERT(state < GL_TAKEN_STATE_COUNT);
    GL_ASSERT(!t->is_written);
    GL_ASSERT(!t->is_inherited);
    GL_ASSERT(t->phase == GL_TAKEN_RUNNING_HERE);
    GL_ASSERT(state != GL_TAKEN_RUNNING && state != GL_TAKEN_WITHDRAWN);
    t->phase = GL_TAKEN_OVER;
    t->end.state = (uint8_t)state;
    t->starting = 0;
    t->heartbeat_at = t->probe_at = 0;
    gl_taken_set_due(c, t);
    GL_ASSERT(t->due == INT64_MAX);
    if (t->has_slots) {
        t->has_slots = false;
        gl_slots_give_back(c, (int)t->pool, t->slots);
    }
    GL_TRACE(c->trace, EXEC, .job = t->job->id, .step = t->step_id, .token = t->token,
             .number = t->number, .what = "ended for another node");
    if (t->is_unwanted) {
        (void)effect(c, t, GL_FX_ACK);
        gl_taken_drop(c, t);
        return;
    }
    gl_taken_write(c, t);
}

static void on_result(struct gl_core *c, struct gl_taken *t, const struct gl_event_result *how)
{
    if (t->phase != GL_TAKEN_RUNNING_HERE) {
        return; /* reported again */
    }
    GL_ASSERT(how->end < GL_COUNT(end_words));
    gl_core_set(c, &t->end.end, gl_str_of(end_words[how->end]));
    t->end.exit_code = how->exit_code;
    t->end.signal = how->signal;
    t->end.started_at = how->started_at;
    t->end.ended_at = how->ended_at;
    gl_core_set(c, &t->end.error, how->error);
    gl_core_set(c, &t->end.output, how->output);
    t->end.stopped = t->stopping == GL_STOP_HEARTBEAT ? t->stopping : GL_STOP_NONE;
    gl_taken_end(c, t, GL_TAKEN_ENDED);
}

/* It would be refused every time. */
static void on_impossible(struct gl_core *c, struct gl_taken *t, gl_str why)
{
    GL_ASSERT(t->phase == GL_TAKEN_RUNNING_HERE);
    GL_ASSERT(t->starting == 0);
    gl_core_set(c, &t->end.end, gl_str_of(end_words[GL_EXEC_NOT_EXECUTED]));
    t->end.is_final = true;
    gl_core_set(c, &t->end.error, why);
    gl_taken_end(c, t, GL_TAKEN_ENDED);
}

static void on_started(struct gl_core *c, struct gl_taken *t, const struct gl_event_started *s)
{
    GL_ASSERT(t->starting <= c->last_start);
    GL_ASSERT(t->phase != GL_TAKEN_QUEUED);
    if (t->phase != GL_TAKEN_RUNNING_HERE || t->starting != s->number) {
        return;
    }
    t->starting = 0;
    if (s->code == GL_E_LIMIT || s->code == GL_E_INVALID) {
        on_impossible(c, t, s->why);
    } else if (s->code == GL_E_UNAVAILABLE && c->exec_up) {
        t->probe_at = c->now + gl_attempts_start_pause(c->now - t->taken_at);
        gl_taken_set_due(c, t);
    } else if (s->code != 0) {
        gl_taken_attach(c, t);
    }
}

/* Taken before this node knew of it, so that its slots have gone to others meanwhile. */
static bool are_slots_exceeded(const struct gl_core *c, const struct gl_taken *t)
{
    GL_ASSERT(t->pool < (int64_t)c->pools_n);
    return t->has_slots && t->pool >= 0 && c->pools[t->pool].in_use > c->pools[t->pool].slots;
}

static void on_never(struct gl_core *c, struct gl_taken *t)
{
    GL_ASSERT(t->phase == GL_TAKEN_RUNNING_HERE);
    GL_ASSERT(t->starting == 0);
    if (t->stopping != GL_STOP_NONE) {
        gl_taken_end(c, t, GL_TAKEN_NEVER);
    } else if (are_slots_exceeded(c, t)) { /* its owner finds a place for it */
        GL_MARK(c->trace, "taken.never_started_and_no_slot");
        gl_taken_end(c, t, GL_TAKEN_NEVER);
    } else if (!c->stopping) {
        gl_taken_start(c, t);
    }
}

static void on_attached(struct gl_core *c, struct gl_taken *t, const struct gl_event_attached *a)
{
    GL_ASSERT(t->phase != GL_TAKEN_QUEUED);
    if (t->phase != GL_TAKEN_RUNNING_HERE || t->starting != 0 || a->token < t->token) {
        return;
    }
    if (a->code == GL_E_STALE) { /* the job has a later owner */
        gl_taken_ask_token(c, t->job);
        return;
    }
    if (a->code != 0) {
        return; /* the timer asks again */
    }
    switch ((enum gl_exec_state)a->state) {
    case GL_EXEC_RUNNING:
        if (t->stopping != GL_STOP_NONE) {
            (void)effect(c, t, GL_FX_STOP);
        } else if (spec_of(t)->timeout_ms == 0) {
            t->probe_at = 0;
            gl_taken_set_due(c, t);
        }
        break;
    case GL_EXEC_ENDED:
        on_result(c, t, &a->result);
        break;
    case GL_EXEC_NEVER:
        on_never(c, t);
        break;
    case GL_EXEC_LOST:
        gl_taken_end(c, t, GL_TAKEN_LOST);
        break;
    case GL_EXEC_STATE_COUNT:
        GL_UNREACHABLE();
    }
}

static void on_beacon(struct gl_core *c, struct gl_taken *t)
{
    GL_ASSERT(GL_IMPLIES(t->heartbeat_at != 0, t->phase == GL_TAKEN_RUNNING_HERE));
    if (t->heartbeat_at != 0) {
        t->heartbeat_at = c->now + spec_of(t)->heartbeat_ms;
        gl_taken_set_due(c, t);
    }
}

/* Before it is known what was taken, a report about a job that is not ours is left alone: the
 * executor will repeat it, or be asked. */
static bool is_too_early(struct gl_core *c, gl_str job)
{
    GL_ASSERT(c->shared);
    return !gl_taken_is_known(c) && gl_components_are_on(c) && !gl_core_owns(c, job);
}

bool gl_taken_on_event(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_taken *t;

    if (!c->shared) {
        return false;
    }
    t = gl_taken_find(c, ev->job, gl_event_attempt(ev));
    if (t == NULL || t->phase == GL_TAKEN_QUEUED) {
        return ev->type == GL_EV_ENDED && is_too_early(c, ev->job);
    }
    GL_ASSERT(gl_str_eq(t->job->id, ev->job));
    switch ((enum gl_event_type)ev->type) {
    case GL_EV_STARTED:
        on_started(c, t, &ev->started);
        return true;
    case GL_EV_ATTACHED:
        on_attached(c, t, &ev->attached);
        return true;
    case GL_EV_ENDED:
        on_result(c, t, &ev->ended.result);
        return true;
    case GL_EV_BEACON:
        on_beacon(c, t);
        return true;
    default:
        return false;
    }
}

bool gl_taken_on_listed(struct gl_core *c, const struct gl_event_info *info)
{
    struct gl_taken *t;

    if (!c->shared) {
        return false;
    }
    t = gl_taken_find(c, info->job, info->attempt);
    if (t == NULL || t->phase == GL_TAKEN_QUEUED) {
        if (is_too_early(c, info->job)) {
            gl_attempts_list_soon(c);
            return true;
        }
        return false;
    }
    GL_ASSERT(gl_str_eq(t->job->id, info->job));
    if (t->phase == GL_TAKEN_RUNNING_HERE && t->starting == 0 &&
        (info->token > t->token || info->state == GL_EXEC_ENDED)) {
        t->token = info->token > t->token ? info->token : t->token;
        gl_taken_attach(c, t);
    }
    return true;
}

void gl_taken_on_up(struct gl_core *c)
{
    struct gl_taken *t;

    GL_ASSERT(c->exec_up);
    for (size_t i = 0; (t = gl_map_next(&c->taken.all, &i)) != NULL;) {
        if (t->phase == GL_TAKEN_RUNNING_HERE && t->starting == 0) {
            gl_taken_attach(c, t);
        }
    }
}

void gl_taken_on_gone(struct gl_core *c, struct gl_taken *t)
{
    GL_ASSERT(t->phase >= GL_TAKEN_RUNNING_HERE);
    GL_ASSERT(t->call == 0);
    GL_ASSERT(!t->is_unwanted);
    if (t->phase == GL_TAKEN_OVER) {
        (void)effect(c, t, GL_FX_ACK);
        gl_taken_drop(c, t);
        return;
    }
    /* Nobody wants its result, and others may run it again. Its slots are free when it has ended.
     */
    GL_MARK(c->trace, "taken.unwanted");
    t->is_unwanted = true;
    t->stopping = GL_STOP_JOB_ENDS;
    t->heartbeat_at = 0;
    t->probe_at = c->now + PROBE_MS;
    gl_taken_set_due(c, t);
    gl_taken_set_check(c, t, INT64_MAX);
    gl_list_remove(&t->link);
    effect(c, t, GL_FX_STOP)->grace_ms = 1;
    GL_ASSERT(!gl_heap_has(&t->check));
}

void gl_taken_on_timer(struct gl_core *c, struct gl_taken *t)
{
    GL_ASSERT(gl_heap_has(&t->timer));
    GL_ASSERT(t->due <= c->now);
    GL_ASSERT(t->phase == GL_TAKEN_QUEUED || t->phase == GL_TAKEN_RUNNING_HERE);
    if (t->phase == GL_TAKEN_QUEUED) { /* its owner may have withdrawn it: it is read again */
        gl_taken_drop(c, t);
        return;
    }
    if (t->heartbeat_at != 0 && t->heartbeat_at <= c->now) {
        gl_taken_stop(c, t, GL_STOP_HEARTBEAT);
    }
    if (t->probe_at != 0 && t->probe_at <= c->now) {
        gl_taken_attach(c, t);
    }
    gl_taken_set_due(c, t);
    GL_ASSERT(t->due > c->now);
}
