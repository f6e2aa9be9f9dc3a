/* render_bundle.c - the members that only a bundle's job has. */
#include "api/render.h"

#include "api/reason.h"
#include "base/check.h"
#include "model/bundle/agent.h"
#include "model/bundle/error_envelope.h"
#include "model/job.h"

static void put_text(struct gl_jw *w, const char *name, gl_str text)
{
    gl_jw_put_str(w, name, text);
}

static void put_number(struct gl_jw *w, const char *name, uint64_t n)
{
    gl_jw_put_u64(w, name, n);
}

static void write_head(const struct gl_bundle_spec *b, struct gl_jw *w)
{
    gl_jw_put_object(w, "bundle");
    put_text(w, "graph_id", b->graph_id);
    put_text(w, "hash", b->hash);
    put_text(w, "manifest", b->manifest);
    put_number(w, "agents_n", b->agents.n);
    put_number(w, "payloads_n", b->payloads.n);
    gl_jw_end(w);
    put_text(w, "job_type", gl_str_of(gl_job_type_words[b->policies.job_type]));
    put_text(w, "recovery_mode", gl_str_of(gl_recovery_words[b->policies.recovery_mode]));
    gl_jw_put_texts(w, "notes", b->notes.items, b->notes.n);
}

static void write_policy(const struct gl_restart *r, struct gl_jw *w)
{
    gl_jw_put_object(w, "restart_policy");
    put_number(w, "attempts", r->attempts);
    put_number(w, "interval_ms", (uint64_t)r->interval_ms);
    put_number(w, "delay_ms", (uint64_t)r->delay_ms);
    put_text(w, "delay_function", gl_str_of(gl_delay_words[r->delay_function]));
    put_number(w, "max_delay_ms", (uint64_t)r->max_delay_ms);
    put_text(w, "mode", r->waits ? GL_S("delay") : GL_S("fail"));
    gl_jw_end(w);
}

/* For the agents that have been restarted. */
static void write_policy_state(const struct gl_view *v, struct gl_jw *w)
{
    gl_jw_put_object(w, "policy_state");
    for (uint32_t i = 0; i < gl_flow_agents_n(v->flow); i++) {
        if (v->steps[i] != NULL && v->steps[i]->policy_state.n > 0) {
            gl_jw_key_str(w, gl_flow_agent(v->flow, i)->id);
            gl_jw_raw(w, v->steps[i]->policy_state);
        }
    }
    gl_jw_end(w);
}

/* For the agents that have run something; their logs are found from here. */
static void write_executions(const struct gl_view *v, struct gl_jw *w)
{
    gl_jw_put_object(w, "executions");
    for (uint32_t i = 0; i < gl_flow_agents_n(v->flow); i++) {
        const struct gl_step_record *r = v->steps[i];

        if (r != NULL && r->attempt_count > 0) {
            gl_jw_key_str(w, gl_flow_agent(v->flow, i)->id);
            gl_jw_object(w);
            put_number(w, "attempt_count", r->attempt_count);
            put_text(w, "status",
                     gl_reason_is_idle(v, i) ? GL_S("idle")
                                             : gl_str_of(gl_step_status_words[r->status]));
            if (r->node.n > 0) { /* only recorded on a shared store */
                put_text(w, "node", r->node);
            }
            gl_jw_end(w);
        }
    }
    gl_jw_end(w);
}

/* Members that the job's record omits when they are zero. */
static void write_recovery(const struct gl_job_record *r, struct gl_jw *w)
{
    /* Because of an attempt whose outcome is unknown. */
    bool is_for_review = r->hold == GL_HOLD_REVIEW;

    if (r->graph_revision == 0) {
        put_number(w, "graph_revision", 0);
    }
    if (r->recovery_status.n == 0) {
        put_text(w, "recovery_status", is_for_review ? GL_S("paused_for_review") : GL_S("none"));
    }
    if (!r->recovery_requires_review) {
        gl_jw_put_bool(w, "recovery_requires_review", is_for_review);
    }
}

/* ---- why it failed ---- */

struct sign {
    const char *words;
    enum gl_failure failure;
};

/* Classifies a failure by the words of its reason, because the records have no code. Changing the
 * wording of those reasons changes `error`. */
static enum gl_failure failure_of(const struct gl_view *v, const struct gl_step_record *step)
{
    static const struct sign signs[] = {
        {"beacon deadline", GL_FAILURE_BEACON},
        {"timed out", GL_FAILURE_TIMEOUT},
        {"deadline exceeded", GL_FAILURE_TIMEOUT},
        {"exit code", GL_FAILURE_EXIT},
        {"signal", GL_FAILURE_SIGNAL},
        {"slots", GL_FAILURE_LEASE},
        {"patch", GL_FAILURE_PATCH},
        {"complete_job", GL_FAILURE_OUTPUT},
        {"restart", GL_FAILURE_RESTARTS},
        {"could not be started", GL_FAILURE_NOT_STARTED},
        {"cannot be started", GL_FAILURE_NOT_STARTED},
        {"limit", GL_FAILURE_LIMIT},
    };
    gl_str said =
        step != NULL && step->terminal_reason.n > 0 ? step->terminal_reason : v->job.reason;

    if (v->job.status == GL_JOB_CANCELLED) {
        return GL_FAILURE_CANCELLED;
    }
    for (size_t i = 0; i < GL_COUNT(signs) && said.p != NULL; i++) {
        if (memmem(said.p, said.n, signs[i].words, strlen(signs[i].words)) != NULL) {
            return signs[i].failure;
        }
    }
    return step != NULL ? GL_FAILURE_DECLARED : GL_FAILURE_INTERNAL;
}

static const struct gl_step_record *failed_step(const struct gl_view *v, int64_t *ret_number)
{
    gl_str name;
    int64_t item;

    *ret_number =
        gl_str_split_step(v->job.failed_step, &name, &item) ? gl_flow_find(v->flow, name) : -1;
    if (*ret_number < 0) {
        return NULL;
    }
    if (item < 0) {
        return v->steps[*ret_number];
    }
    return item < v->items[*ret_number].n ? v->items[*ret_number].records[item] : NULL;
}

static void write_error(struct gl_arena *a, const struct gl_view *v, struct gl_jw *w)
{
    int64_t number;
    const struct gl_step_record *r = failed_step(v, &number);
    struct gl_error_envelope e = {
        .failure = failure_of(v, r),
        .message = r != NULL && r->terminal_reason.n > 0 ? r->terminal_reason : v->job.reason,
        .step_id = v->job.failed_step,
        .attempt = r != NULL ? r->attempt_count : 0,
        .occurred_at = v->job.ended_at,
        .event_id =
            gl_str_fmt(a, "%.*s:%lld", GL_STR_ARG(v->job.job_id), (long long)v->job.last_seq),
    };

    if (number >= 0) {
        const struct gl_step_spec *s = gl_flow_step(v->flow, (uint32_t)number);

        e.max_attempts = s->retry.attempts;
        e.agent_id = s->agent_ids.n > 0 ? s->agent_ids.items[0] : (gl_str){0};
        if (gl_flow_is_unit(v->flow, (uint32_t)number)) {
            e.agent_id = gl_flow_agent(v->flow, (uint32_t)number)->id;
            e.step_id = (gl_str){0};
        }
    }
    gl_jw_key(w, "error");
    gl_error_envelope_write(&e, a, w);
}

void gl_render_bundle(struct gl_arena *a, const struct gl_view *v, struct gl_jw *w)
{
    const struct gl_bundle_spec *b = v->flow->bundle;

    write_head(b, w);
    write_recovery(&v->job, w);
    write_policy(&b->policies.restart, w);
    write_policy_state(v, w);
    write_executions(v, w);
    if (v->job.error.n == 0 &&
        (v->job.status == GL_JOB_FAILED || v->job.status == GL_JOB_CANCELLED)) {
        write_error(a, v, w);
    }
}

void gl_render_bundle_step(const struct gl_step_spec *spec, struct gl_jw *w)
{
    gl_jw_put_texts(w, "agent_ids", spec->agent_ids.items, spec->agent_ids.n);
    if (spec->label.n > 0) {
        put_text(w, "label", spec->label);
    }
    if (spec->template_id.n > 0) {
        gl_jw_put_bool(w, "dynamic_instance", true);
        put_text(w, "template_id", spec->template_id);
        put_text(w, "region_id", spec->region_id);
        put_text(w, "patch_id", spec->patch_id);
    }
}
