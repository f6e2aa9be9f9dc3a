/* builtin_agents.c - agents that need no process: aggregator, router, sensor. Their turn is one
 * call, within the step of the core that finds the message. */
#include "base/check.h"
#include "core/agents/agents.h"
#include "core/agents/message_order.h"

#include "core/flow/txn.h"
#include "model/bundle/route.h"

/* Fills in `t` from the message the unit handles. t->step stays NULL if the attempt of the ledger
 * step is over. */
static void read_turn(struct gl_core *c, struct gl_turn_end *t, struct gl_step *unit, gl_str text)
{
    struct gl_queued_message *q = unit->mailbox->now;
    struct gl_body_ref ref;

    GL_ASSERT(gl_step_is_unit(unit));
    *t = (struct gl_turn_end){.unit = unit,
                              .agent = gl_flow_agent(unit->job->spec->flow, unit->of),
                              .step = gl_mailbox_step_of(c, unit->job, q),
                              .state = unit->r.output};
    if (gl_message_read(text, c->out->arena, &t->in, NULL) != 0) {
        t->in = (struct gl_message){
            .from = q->r.from, .to = q->r.to, .type = q->r.type, .priority = GL_MESSAGE_PRIORITY};
    }
    if (q->body != NULL && gl_message_body_ref(t->in.artifacts, c->out->arena, &ref)) {
        gl_body_remember(c, t->in.body, ref.sha256, q->body); /* shared if it is passed on */
    }
    if (t->step != NULL && (t->step->r.status != GL_STEP_RUNNING ||
                            t->step->r.attempt_count != unit->r.mail_attempt)) {
        t->step = NULL;
    }
}

/* ---- aggregator ---- */

/* The key in job->seen: one aggregator, one sender. */
static gl_str key_of(struct gl_core *c, const struct gl_step *unit, gl_str sender)
{
    return gl_str_fmt(c->out->arena, "%u %.*s", unit->of, GL_STR_ARG(sender));
}

void gl_builtin_agent_count(struct gl_core *c, struct gl_step *unit, struct gl_queued_message *q)
{
    GL_ASSERT(q->unit == unit->of);
    gl_str key;
    gl_str *kept;

    GL_ASSERT(gl_step_is_unit(unit));
    unit->mailbox->counted_n++;
    if (q->r.sender.n == 0) {
        return;
    }
    key = key_of(c, unit, q->r.sender);
    if (gl_map_find(&unit->job->seen, key) == NULL) {
        kept = gl_pool_alloc(&c->mem, sizeof(*kept));
        *kept = (gl_str){0};
        gl_core_set(c, kept, key);
        gl_map_add(&unit->job->seen, *kept, kept);
    }
}

void gl_builtin_agent_forget(struct gl_core *c, struct gl_job *j)
{
    gl_str *kept;

    for (size_t i = 0; (kept = gl_map_next(&j->seen, &i)) != NULL;) {
        gl_core_set(c, kept, (gl_str){0});
        gl_pool_free(&c->mem, kept, sizeof(*kept));
    }
    gl_map_done(&j->seen);
    gl_map_init(&j->seen);
    GL_ASSERT(gl_map_count(&j->seen) == 0);
}

/* The count is reached: completes the step, sends the result, and perhaps completes the run. */
static void complete_turn(struct gl_core *c, struct gl_turn_end *t, gl_str result)
{
    struct gl_message shape = {.type = t->agent->output_type, .body = result};

    GL_ASSERT(gl_step_is_unit(t->unit));
    gl_apply_step(c, t, result, true);
    if (t->agent->output == GL_OUTPUT_TYPED) {
        gl_route_emit(c, t, &shape);
    }
    if (t->agent->terminal_sink && t->agent->complete_run) {
        gl_apply_run(c, t, result);
    }
    gl_agent_unit_ack(c, t->unit);
}

/* The result {messages, count, last_message}. False: not all counted messages are in memory. */
static bool build_result(struct gl_core *c, const struct gl_turn_end *t, gl_str *ret)
{
    struct gl_buf buf = {0};
    struct gl_jw w;
    struct gl_message m;
    bool ok = true;

    gl_jw_init(&w, &buf);
    gl_jw_object(&w);
    gl_jw_key(&w, "messages");
    gl_jw_array(&w);
    for (struct gl_link *k = t->unit->mailbox->counted.next; k != &t->unit->mailbox->counted && ok;
         k = k->next) {
        struct gl_queued_message *q = GL_CONTAINER(k, struct gl_queued_message, link);

        if (q == t->unit->mailbox->now) {
            m = t->in;
        } else {
            ok = gl_mailbox_text(q).n > 0 &&
                 gl_message_read(q->r.message, c->out->arena, &m, NULL) == 0;
        }
        if (ok) {
            gl_jw_raw(&w, m.body.n > 0 ? m.body : GL_S("null"));
        }
    }
    gl_jw_end(&w);
    gl_jw_key(&w, "count");
    gl_jw_u64(&w, t->unit->mailbox->counted_n);
    gl_jw_key(&w, "last_message");
    gl_jw_raw(&w, t->in.body.n > 0 ? t->in.body : GL_S("null"));
    gl_jw_end(&w);
    *ret = ok ? gl_str_dup(c->out->arena, gl_buf_view(&buf)) : (gl_str){0};
    gl_buf_done(&buf);
    return ok;
}

/* Counts the message unless its sender was counted before, and completes when the count is reached.
 */
static void aggregate(struct gl_core *c, struct gl_turn_end *t)
{
    struct gl_step *unit = t->unit;
    struct gl_queued_message *q = unit->mailbox->now;
    gl_str result;

    GL_ASSERT(t->agent->kind == GL_AGENT_AGGREGATOR);
    if (!GL_PLANT(33) && q->r.sender.n > 0 &&
        gl_map_find(&unit->job->seen, key_of(c, unit, q->r.sender)) != NULL) {
        gl_agents_log(c, unit, "aggregator_duplicate_ignored", (gl_str){0}, (gl_str){0});
        gl_agent_unit_ack(c, unit);
        return;
    }
    /* Counted messages stay in the store until the job winds down: they are the aggregator's state,
     * and its result is built from them. */
    gl_mailbox_set_status(c, unit->job, q, GL_MESSAGE_COUNTED);
    gl_message_order_collect(unit, q);
    gl_builtin_agent_count(c, unit, q);
    gl_agents_log(c, unit, "aggregator_received", (gl_str){0},
                  gl_str_fmt(c->out->arena, "{\"count\":%u}", unit->mailbox->counted_n));
    if (!t->agent->complete_on_message &&
        (t->agent->complete_after == 0 || unit->mailbox->counted_n < t->agent->complete_after)) {
        gl_agent_unit_ack(c, unit);
    } else if (build_result(c, t, &result)) {
        complete_turn(c, t, result);
    } else {
        GL_MARK(c->trace, "relay.gathers");
        gl_agents_fetch_counted(c, unit);
    }
}

void gl_builtin_agent_on_counted(struct gl_core *c, struct gl_step *unit, gl_str text,
                                 gl_str result)
{
    struct gl_turn_end t;

    GL_ASSERT(result.n > 0);
    read_turn(c, &t, unit, text);
    complete_turn(c, &t, result);
}

/* ---- router, sensor ---- */

/* Passes the message on along the agent's routes. */
static void forward(struct gl_core *c, struct gl_turn_end *t, gl_str type)
{
    struct gl_message shape = t->in;

    GL_ASSERT(t->agent->kind != GL_AGENT_AGGREGATOR);
    shape.type = type;
    shape.job_id = t->unit->job->id; /* marks the shape as a whole envelope */
    shape.causation_id = t->in.message_id;
    gl_apply_step(c, t, t->in.body, true);
    gl_route_emit(c, t, &shape);
    gl_agent_unit_ack(c, t->unit);
}

bool gl_builtin_agent_ignores_body(const struct gl_step *unit, const struct gl_queued_message *q)
{
    const struct gl_flow *flow = unit->job->spec->flow;
    const struct gl_agent_spec *a = gl_flow_agent(flow, unit->of);
    const struct gl_route *routes = flow->bundle->routes.items;

    GL_ASSERT(q->unit == unit->of);
    if (q->r.large || q->body == NULL || a->kind == GL_AGENT_AGGREGATOR || a->step >= 0 ||
        unit->r.waits_for.n > 0) {
        return false; /* the agent of a ledger step completes the step with the body */
    }
    for (uint32_t i = 0; i < a->routes_n; i++) {
        gl_str conditions = routes[a->routes[i]].conditions;

        if (conditions.n > 0 && !gl_str_is(conditions, "{}")) {
            return false;
        }
    }
    return true;
}

void gl_builtin_agent_handle(struct gl_core *c, struct gl_step *unit, gl_str text)
{
    struct gl_turn_end t;

    GL_ASSERT(unit->mailbox->asked == 0);
    read_turn(c, &t, unit, text);
    switch ((enum gl_agent_kind)t.agent->kind) {
    case GL_AGENT_AGGREGATOR:
        aggregate(c, &t);
        break;
    case GL_AGENT_SENSOR:
        gl_agents_log(c, unit, "sensor_observed", (gl_str){0},
                      gl_str_fmt(c->out->arena, "{\"count\":%llu}",
                                 (unsigned long long)unit->r.processed + 1));
        forward(c, &t, t.agent->output_type.n > 0 ? t.agent->output_type : GL_S("sensor_ready"));
        break;
    default:
        forward(c, &t, t.agent->emit_type.n > 0 ? t.agent->emit_type : t.in.type);
        break;
    }
}
