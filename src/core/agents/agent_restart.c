/* agent_restart.c - applies the restart policy when an agent without a ledger step fails.
 *
 * The agent is restarted, at most `attempts` times within the policy's window; then it waits for
 * the window to move on, or a person is asked, or the job fails. The times of restarts are in the
 * unit's record, so a restart of the node does not reset the count. */
#include "base/check.h"
#include "core/agents/agents.h"

#include "core/flow/ledger.h"
#include "core/flow/txn.h"

enum { HISTORY_MAX = 100 };

static const struct gl_restart *policy_of(const struct gl_step *st)
{
    const struct gl_agent_spec *a = gl_flow_agent(st->job->spec->flow, st->of);

    GL_ASSERT(gl_step_is_unit(st));
    return a->has_restart ? &a->restart : &st->job->spec->flow->bundle->policies.restart;
}

/* The times of earlier restarts within the window, oldest first. */
static size_t read_history(struct gl_core *c, const struct gl_step *st, gl_ms since,
                           gl_ms ret[static HISTORY_MAX])
{
    struct gl_json json;
    gl_jnode list;
    size_t n = 0;
    int64_t at;

    if (st->r.policy_state.n == 0 ||
        gl_json_parse(&json, st->r.policy_state, GL_RECORD_BYTES_MAX, c->out->arena, NULL) != 0) {
        return 0;
    }
    list = gl_json_get(&json, gl_json_root(&json), "restarts");
    for (gl_jnode e = list != NULL ? gl_json_first(&json, list) : NULL;
         e != NULL && n < HISTORY_MAX; e = gl_json_after(&json, list, e)) {
        if (gl_json_i64(&json, e, &at) && at > since) {
            ret[n++] = at;
        }
    }
    GL_ASSERT(n <= HISTORY_MAX);
    return n;
}

/* The delay before a restart, after `earlier` restarts within the window. */
static gl_ms delay_after(const struct gl_restart *p, size_t earlier)
{
    gl_ms delay = p->delay_ms, before = p->delay_ms, sum;

    GL_ASSERT(earlier <= HISTORY_MAX);
    for (size_t i = 0; i < earlier && delay < p->max_delay_ms; i++) {
        switch ((enum gl_delay)p->delay_function) {
        case GL_DELAY_CONSTANT:
            return delay;
        case GL_DELAY_EXPONENTIAL:
            delay *= 2;
            break;
        case GL_DELAY_FIBONACCI:
            sum = delay + (i == 0 ? 0 : before);
            before = delay;
            delay = sum;
            break;
        }
    }
    return p->max_delay_ms > 0 && delay > p->max_delay_ms ? p->max_delay_ms : delay;
}

/* Records the restarts and what happens next in the unit's record. */
static void write_policy_state(struct gl_core *c, struct gl_step *st, const gl_ms *history,
                               size_t n, gl_str why, const char *next, gl_ms next_at)
{
    char when[GL_TIMES_BYTES];
    struct gl_buf buf = {0};
    struct gl_jw w;

    GL_ASSERT(n <= HISTORY_MAX);
    gl_jw_init(&w, &buf);
    gl_jw_object(&w);
    gl_jw_key(&w, "restarts");
    gl_jw_array(&w);
    for (size_t i = 0; i < n; i++) {
        gl_jw_i64(&w, history[i]);
    }
    gl_jw_end(&w);
    gl_jw_key(&w, "active_attempts");
    gl_jw_u64(&w, n);
    gl_jw_key(&w, "last_failure");
    gl_jw_str(&w, why);
    gl_jw_key(&w, "next_action");
    gl_jw_c(&w, next);
    if (next_at > 0) {
        gl_jw_key(&w, "next_eligible_at");
        gl_jw_str(&w, gl_times_format(next_at, when));
    }
    gl_jw_end(&w);
    gl_core_set(c, &st->r.policy_state, gl_str_dup(c->out->arena, gl_buf_view(&buf)));
    gl_buf_done(&buf);
    gl_txn_dirty(c, st);
}

static void restart_after(struct gl_core *c, struct gl_step *st, gl_ms wait, gl_str why,
                          const char *event)
{
    GL_ASSERT(wait >= 0);
    gl_agent_unit_release(c, st); /* a restart queues for new slots */
    st->r.tries = 0;
    gl_ledger_move(c, st, GL_STEP_RETRY_WAIT);
    st->r.retry_at = c->now + wait;
    gl_step_set_due(c, st);
    gl_agents_log(c, st, event, why,
                  gl_str_fmt(c->out->arena, "{\"delay_ms\":%lld}", (long long)wait));
}

/* Asks a person to decide, as after an attempt with an unknown outcome. */
static void ask_for_review(struct gl_core *c, struct gl_step *st, gl_str why)
{
    struct gl_job *j = st->job;

    GL_ASSERT(gl_step_is_unit(st));
    gl_core_set(c, &j->r.recovery_status, GL_S("paused_for_review"));
    j->r.recovery_requires_review = true;
    gl_txn_log(c, j, NULL, "job_paused_for_manual_restart", why, (gl_str){0});
    gl_ledger_block(c, st, GL_BLOCK_REVIEW, why);
}

void gl_agent_restart_apply(struct gl_core *c, struct gl_step *st, gl_str why)
{
    const struct gl_restart *p = policy_of(st);
    const struct gl_policies *job = &st->job->spec->flow->bundle->policies;
    gl_ms history[HISTORY_MAX + 1], wait;
    size_t n = GL_PLANT(42) ? 0 : read_history(c, st, c->now - p->interval_ms, history);
    gl_str id = gl_flow_agent(st->job->spec->flow, st->of)->id;
    bool was_judged = st->r.status == GL_STEP_BLOCKED; /* a person has just decided: failed */

    GL_ASSERT(gl_step_is_unit(st));
    GL_ASSERT(st->job->r.verdict == GL_VERDICT_NONE);
    if (job->recovery_mode == GL_RECOVERY_MANUAL_RECOVER && !was_judged) {
        write_policy_state(c, st, history, n, why, "review", 0);
        ask_for_review(c, st, why);
    } else if (job->recovery_mode != GL_RECOVERY_MANUAL_RECOVER && n < p->attempts &&
               n < HISTORY_MAX) {
        GL_MARK(c->trace, "restart.scheduled");
        wait = delay_after(p, n);
        history[n++] = c->now; /* it counts from now, not from when the delay is over */
        write_policy_state(c, st, history, n, why, "restart", c->now + wait);
        restart_after(c, st, wait, why, "agent_restart_scheduled");
    } else if (job->recovery_mode != GL_RECOVERY_MANUAL_RECOVER && p->waits && n > 0) {
        GL_MARK(c->trace, "restart.waits_for_window");
        wait = history[0] + p->interval_ms - c->now;
        write_policy_state(c, st, history, n, why, "wait", c->now + wait);
        restart_after(c, st, wait > 0 ? wait : 1, why, "agent_restart_deferred");
    } else if (job->job_type == GL_TYPE_SERVICE && !was_judged) {
        GL_MARK(c->trace, "restart.service_asks");
        write_policy_state(c, st, history, n, why, "exhausted", 0);
        ask_for_review(c, st, why);
    } else {
        write_policy_state(c, st, history, n, why, "exhausted", 0);
        gl_core_set(c, &st->job->r.failed_step, st->r.step_id);
        gl_failure_record(c, st, why);
        gl_ledger_set_verdict(c, st->job, GL_VERDICT_FAILED,
                              gl_str_fmt(c->out->arena, "agent '%.*s' failed: %.*s", GL_STR_ARG(id),
                                         GL_STR_ARG(why)));
        gl_agent_unit_ack(c, st);
    }
}
