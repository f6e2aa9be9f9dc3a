/* outgoing.c - routes the messages that agents send, and logs what agents do. */
#include "base/check.h"
#include "core/agents/agents.h"

#include "core/flow/txn.h"
#include "model/bundle/route.h"

/* Copies only if something must be replaced, which is rare. */
gl_str gl_agents_json_safe(struct gl_core *c, gl_str s)
{
    char *p;

    for (size_t i = 0; i < s.n; i++) {
        unsigned char ch = (unsigned char)s.p[i];

        if (ch < 0x20 || ch == '"' || ch == '\\') {
            p = gl_arena_alloc(c->out->arena, s.n);
            for (size_t k = 0; k < s.n; k++) {
                ch = (unsigned char)s.p[k];
                p[k] = ch < 0x20 || ch == '"' || ch == '\\' ? '?' : s.p[k];
            }
            return (gl_str){.p = p, .n = s.n};
        }
    }
    return s;
}

void gl_agents_log(struct gl_core *c, const struct gl_step *unit, const char *type, gl_str reason,
                   gl_str payload)
{
    gl_str id = gl_flow_agent(unit->job->spec->flow, unit->of)->id;

    GL_ASSERT(gl_step_is_unit(unit));
    gl_txn_log(c, unit->job, NULL, type, reason,
               payload.n > 0 ? gl_str_fmt(c->out->arena, "\"agent_id\":\"%.*s\",\"payload\":%.*s",
                                          GL_STR_ARG(id), GL_STR_ARG(payload))
                             : gl_str_fmt(c->out->arena, "\"agent_id\":\"%.*s\"", GL_STR_ARG(id)));
}

/* A message of this shape from the turn's agent, in reply to the message it has handled. */
static struct gl_message make_message(struct gl_core *c, const struct gl_turn_end *t,
                                      const struct gl_message *shape)
{
    struct gl_message m = *shape;

    if (m.job_id.n == 0) { /* the shape gives only type and body */
        gl_message_defaults(&m);
        gl_message_inherit(&m, &t->in, c->out->arena);
        m.type = shape->type;
        m.body = shape->body;
    }
    m.attempt = 1;
    m.from = t->agent->id;
    GL_ASSERT(m.from.n > 0);
    return m;
}

/* Delivers to agent `to`, for the ledger step that agent works for. */
static void send_to(struct gl_core *c, const struct gl_turn_end *t, const struct gl_message *shape,
                    uint32_t to)
{
    struct gl_message m = make_message(c, t, shape);

    GL_ASSERT(to < gl_flow_agents_n(t->unit->job->spec->flow));
    gl_agents_deliver(c, t->unit->job, &m, to, NULL, t->step);
}

static bool matches_type(const struct gl_route *r, gl_str type)
{
    return gl_str_is(r->type, "*") || gl_str_eq(r->type, type);
}

static void log_route(struct gl_core *c, const struct gl_turn_end *t, const char *what,
                      const struct gl_route *r, gl_str type)
{
    GL_ASSERT(r->to < gl_flow_agents_n(t->unit->job->spec->flow));
    gl_agents_log(c, t->unit, what, (gl_str){0},
                  gl_str_fmt(c->out->arena,
                             "{\"edge_id\":\"%.*s\",\"to\":\"%.*s\",\"type\":\"%.*s\"}",
                             GL_STR_ARG(gl_agents_json_safe(c, r->id)), GL_STR_ARG(r->to_node),
                             GL_STR_ARG(gl_agents_json_safe(c, type))));
}

void gl_route_emit(struct gl_core *c, const struct gl_turn_end *t, const struct gl_message *shape)
{
    const struct gl_route *routes = t->unit->job->spec->flow->bundle->routes.items;
    struct gl_route_facts facts = {.payload = shape->body, .incoming = &t->in, .state = t->state};
    bool only_first = false, any = false;

    /* One matching route in first_match mode makes the whole emission stop at the first match. */
    GL_ASSERT(gl_step_is_unit(t->unit));
    for (uint32_t i = 0; i < t->agent->routes_n; i++) {
        const struct gl_route *r = &routes[t->agent->routes[i]];

        only_first |= matches_type(r, shape->type) && r->mode == GL_ROUTE_FIRST_MATCH;
    }
    for (uint32_t i = 0; i < t->agent->routes_n && !(any && only_first); i++) {
        const struct gl_route *r = &routes[t->agent->routes[i]];

        if (!matches_type(r, shape->type)) {
            continue;
        }
        log_route(c, t, "route_evaluated", r, shape->type);
        if (gl_route_holds(r->conditions, &facts, c->out->arena)) {
            log_route(c, t, "route_selected", r, shape->type);
            send_to(c, t, shape, r->to);
            any = true;
        }
    }
    if (!any && t->agent->routes_n > 0) {
        gl_agents_log(c, t->unit, "route_not_matched", (gl_str){0},
                      gl_str_fmt(c->out->arena, "{\"type\":\"%.*s\"}",
                                 GL_STR_ARG(gl_agents_json_safe(c, shape->type))));
    }
}

void gl_route_emit_to(struct gl_core *c, const struct gl_turn_end *t,
                      const struct gl_message *shape)
{
    struct gl_job *j = t->unit->job;
    int64_t to = gl_flow_find_agent(j->spec->flow, shape->to);
    struct gl_message m;

    GL_ASSERT(shape->to.n > 0);
    if (to >= 0) {
        send_to(c, t, shape, (uint32_t)to);
        return;
    }
    m = make_message(c, t, shape); /* a worker's mistake must not fail its turn */
    m.to = shape->to;
    gl_agents_log(c, t->unit, "delivery_failed", GL_S("there is no such agent"),
                  gl_str_fmt(c->out->arena, "{\"to\":\"%.*s\"}",
                             GL_STR_ARG(gl_agents_json_safe(c, shape->to))));
    gl_mailbox_send_dead(c, j, &m, GL_S("there is no such agent"));
}
