/* agent_events.c - events that an agent reports. Every one is logged; those about a step or the
 * flow are also applied: completed, failed, partial, skipped, branch, scatter, beacon, graph patch.
 */
#include "base/check.h"
#include "core/agents/agents.h"

#include "core/flow/ledger.h"
#include "core/flow/txn.h"
#include "model/bundle/worker_output.h"

/* The step an event is about: the one it names, if the job has it, else the ledger step the agent
 * works for. */
static struct gl_step *step_of_event(struct gl_core *c, const struct gl_turn_end *t, gl_str payload)
{
    struct gl_job *j = t->unit->job;
    gl_str name = gl_worker_output_event_step(payload, c->out->arena);
    uint32_t of;
    int32_t item;

    if (name.n > 0 && gl_step_split_id(j->spec->flow, name, &of, &item) &&
        !gl_flow_is_unit(j->spec->flow, of)) {
        return item < 0 ? gl_step_get(c, j, of) : gl_step_by_id(j, name);
    }
    return t->step;
}

static gl_str string_field(struct gl_core *c, const struct gl_json *json, const char *name)
{
    gl_jnode n = gl_json_get(json, gl_json_root(json), name);

    return n != NULL && gl_json_is(n, GL_JSON_STRING) ? gl_json_str(json, n, c->out->arena)
                                                      : (gl_str){0};
}

static bool bool_field(const struct gl_json *json, const char *name)
{
    gl_jnode n = gl_json_get(json, gl_json_root(json), name);

    return n != NULL && gl_json_is(n, GL_JSON_TRUE);
}

/* ---- branch ---- */

static bool is_listed(const struct gl_json *json, gl_jnode list, gl_str id, struct gl_arena *a)
{
    if (list == NULL) {
        return false;
    }
    if (gl_json_is(list, GL_JSON_STRING)) {
        return gl_str_eq(gl_json_str(json, list, a), id);
    }
    if (!gl_json_is(list, GL_JSON_ARRAY)) {
        return false;
    }
    for (gl_jnode e = gl_json_first(json, list); e != NULL; e = gl_json_after(json, list, e)) {
        if (gl_json_is(e, GL_JSON_STRING) && gl_str_eq(gl_json_str(json, e, a), id)) {
            return true;
        }
    }
    return false;
}

/* Appends `id` to a list of JSON strings. */
static void append_quoted(struct gl_buf *out, gl_str id)
{
    gl_buf_str(out, out->n > 0 ? GL_S(",\"") : GL_S("\""));
    gl_buf_str(out, id);
    gl_buf_char(out, '"');
}

/* Skips the children that the event does not select. */
static void apply_branch(struct gl_core *c, struct gl_step *st, const struct gl_json *json)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    gl_jnode list = gl_json_get(json, gl_json_root(json), "branches");
    struct gl_buf selected = {0}, skipped = {0};
    gl_str reason;

    GL_ASSERT(gl_step_is_bound(st));
    list = list != NULL ? list : gl_json_get(json, gl_json_root(json), "branch");
    reason = gl_str_fmt(c->out->arena, "not selected by branch %.*s", GL_STR_ARG(st->r.step_id));
    for (uint32_t i = 0; i < spec->children_n; i++) {
        struct gl_step *child = gl_step_get(c, st->job, spec->children[i]);

        if (is_listed(json, list, child->r.step_id, c->out->arena)) {
            append_quoted(&selected, child->r.step_id);
        } else if (!gl_step_status_is_terminal(child->r.status)) {
            append_quoted(&skipped, child->r.step_id);
            gl_ledger_skip(c, child, reason);
        }
    }
    gl_txn_log(c, st->job, st, "workflow_branch_selected", (gl_str){0},
               gl_str_fmt(c->out->arena, "\"selected\":[%.*s],\"skipped\":[%.*s]", (int)selected.n,
                          selected.n > 0 ? selected.p : "", (int)skipped.n,
                          skipped.n > 0 ? skipped.p : ""));
    gl_buf_done(&selected);
    gl_buf_done(&skipped);
}

/* ---- skip ---- */

/* Skips every step downstream of `st` that has not ended. */
static void skip_downstream(struct gl_core *c, struct gl_step *st, gl_str why)
{
    const struct gl_flow *flow = st->job->spec->flow;
    uint32_t *stack = GL_NEW_ARRAY(c->out->arena, uint32_t, flow->steps.n);
    bool *seen = GL_NEW_ARRAY(c->out->arena, bool, flow->steps.n);
    size_t n = 0;

    stack[n++] = st->of;
    while (n > 0) {
        const struct gl_step_spec *spec = gl_flow_step(flow, stack[--n]);

        for (uint32_t i = 0; i < spec->children_n; i++) {
            uint32_t number = spec->children[i];
            struct gl_step *child;

            if (seen[number]) {
                continue;
            }
            seen[number] = true;
            stack[n++] = number;
            GL_ASSERT(n <= flow->steps.n);
            child = gl_step_get(c, st->job, number);
            if (!gl_step_status_is_terminal(child->r.status)) {
                gl_ledger_skip(c, child, why);
            }
        }
    }
}

static void apply_skip(struct gl_core *c, struct gl_step *st, const struct gl_json *json)
{
    gl_str why = string_field(c, json, "reason");

    GL_ASSERT(!gl_step_status_is_terminal(st->r.status));
    why = why.n > 0 ? why : GL_S("skipped by its agent");
    gl_ledger_skip(c, st, why);
    if (bool_field(json, "skip_downstream")) {
        skip_downstream(c, st, why);
    }
}

/* ---- applying events ---- */

static void apply_failure(struct gl_core *c, struct gl_step *st, const struct gl_json *json)
{
    gl_str why = string_field(c, json, "reason");

    GL_ASSERT(gl_step_is_bound(st));
    why = why.n > 0 ? why : string_field(c, json, "error");
    gl_agent_step_fail(c, st, why.n > 0 ? why : GL_S("the agent reported a failure"));
}

/* Has the step ended? Then the event is logged as stale and changes nothing. */
static bool is_stale(struct gl_core *c, const struct gl_turn_end *t, const struct gl_step *st)
{
    GL_ASSERT(gl_step_is_bound(st));
    if (!gl_step_status_is_terminal(st->r.status)) {
        return false;
    }
    gl_txn_log(c, t->unit->job, st, "workflow_step_stale_event_ignored", (gl_str){0}, (gl_str){0});
    return true;
}

/* Does the event name an attempt other than the current one? Then it is ignored, too. */
static bool is_for_other_attempt(struct gl_core *c, const struct gl_turn_end *t,
                                 const struct gl_step *st, const struct gl_json *json)
{
    gl_str named = string_field(c, json, "attempt_id"),
           key = string_field(c, json, "idempotency_key");
    gl_str current = gl_str_fmt(c->out->arena, "%.*s:attempt:%u", GL_STR_ARG(st->r.step_id),
                                st->r.attempt_count);
    gl_str prefix = gl_str_fmt(c->out->arena, "%.*s:%.*s:%u:", GL_STR_ARG(st->job->r.run_id),
                               GL_STR_ARG(st->r.step_id), st->r.attempt_count);
    bool runs = st->r.status == GL_STEP_RUNNING;

    GL_ASSERT(st->r.attempt_count > 0 || st->r.status != GL_STEP_RUNNING);
    if ((named.n == 0 || (runs && gl_str_eq(named, current))) &&
        (key.n == 0 || (runs && gl_str_starts(key, prefix)))) {
        return false;
    }
    gl_txn_log(c, t->unit->job, st, "workflow_step_stale_output_ignored",
               GL_S("the event names another attempt"), (gl_str){0});
    return true;
}

static void apply_event(struct gl_core *c, const struct gl_turn_end *t, gl_str type, gl_str payload)
{
    struct gl_step *st;
    struct gl_json json;

    if (gl_str_is(type, "workflow_graph_patch")) {
        gl_patch_apply_on_event(c, t, payload);
        return;
    }
    st = step_of_event(c, t, payload);
    if (st == NULL ||
        gl_json_parse(&json, payload, GL_RECORD_BYTES_MAX, c->out->arena, NULL) != 0 ||
        is_stale(c, t, st) || is_for_other_attempt(c, t, st, &json)) {
        return;
    }
    if (gl_str_is(type, "workflow_step_failed")) {
        apply_failure(c, st, &json);
    } else if (gl_str_is(type, "workflow_step_completed") ||
               gl_str_is(type, "workflow_step_attempt_completed")) {
        gl_ledger_end(c, st, GL_STEP_COMPLETED, GL_OUTCOME_SUCCESS, payload);
    } else if (gl_str_is(type, "workflow_step_partial")) {
        gl_ledger_end(c, st, GL_STEP_PARTIAL, GL_OUTCOME_PARTIAL, payload);
    } else if (gl_str_is(type, "workflow_step_skipped")) {
        apply_skip(c, st, &json);
    } else if (gl_str_is(type, "workflow_step_branch")) {
        apply_branch(c, st, &json);
    } else if (gl_str_is(type, "workflow_step_scatter")) {
        gl_scatter_on_event(c, t, payload);
    } else {
        st->r.beacon_at = c->now;
        if (gl_str_is(type, "agent_beacon")) {
            gl_agent_step_on_beacon(c, st, t->agent->beacon_timeout_ms);
        }
    }
}

/* What is logged of a patch: its head, without the steps it carries. */
static gl_str patch_head(struct gl_core *c, gl_str payload)
{
    static const char *const names[] = {"patch_id", "base_revision", "region_id"};
    struct gl_buf buf = {0};
    struct gl_json json;
    struct gl_jw w;
    gl_str head;

    if (gl_json_parse(&json, payload, GL_RECORD_BYTES_MAX, c->out->arena, NULL) != 0) {
        return GL_S("{}");
    }
    gl_jw_init(&w, &buf);
    gl_jw_object(&w);
    for (size_t i = 0; i < GL_COUNT(names); i++) {
        gl_jnode n = gl_json_get(&json, gl_json_root(&json), names[i]);

        if (n != NULL) {
            gl_jw_key(&w, names[i]);
            gl_jw_raw(&w, gl_json_raw(&json, n));
        }
    }
    gl_jw_end(&w);
    head = gl_str_dup(c->out->arena, gl_buf_view(&buf));
    gl_buf_done(&buf);
    return head;
}

void gl_agent_events_take(struct gl_core *c, const struct gl_turn_end *t, gl_str type,
                          gl_str payload)
{
    bool is_patch = gl_str_is(type, "workflow_graph_patch");
    const char *name = gl_str_dup(c->out->arena, gl_agents_json_safe(c, type)).p;

    GL_ASSERT(gl_step_is_unit(t->unit));
    gl_agents_log(c, t->unit, name, (gl_str){0}, is_patch ? patch_head(c, payload) : payload);
    apply_event(c, t, type, payload);
}
