#include "model/bundle/agent.h"

#include "base/check.h"
#include "model/flow/flow_graph.h"

#define WORDS(name, list)        \
    const char *const name[] = { \
        list(WORD) NULL,         \
    };
#define WORD(name, word) word,

WORDS(gl_agent_kind_words, GL_AGENT_KINDS)
WORDS(gl_route_mode_words, GL_ROUTE_MODES)
WORDS(gl_agent_output_words, GL_AGENT_OUTPUTS)
WORDS(gl_delay_words, GL_DELAYS)
WORDS(gl_recovery_words, GL_RECOVERIES)
WORDS(gl_job_type_words, GL_JOB_TYPES)

#define TABLE(what, of, text)                \
    static const struct gl_schema what = {   \
        .name = #of,                         \
        .doc = text,                         \
        .bytes = sizeof(struct of),          \
        .fields = what##_fields,             \
        .fields_n = GL_COUNT(what##_fields), \
    }

static const struct gl_field restart_fields[] = {
    GL_FIELD(gl_restart, attempts, U32, 0, "restarts allowed within the window"),
    GL_FIELD(gl_restart, interval_ms, SPAN, 0, "the window"),
    GL_FIELD(gl_restart, delay_ms, SPAN, 0, "before the first"),
    GL_FIELD(gl_restart, max_delay_ms, SPAN, 0, "the longest delay"),
    GL_FIELD_ENUM(gl_restart, delay_function, gl_delay_words, 0, "how the delay grows"),
    GL_FIELD(gl_restart, waits, BOOL, 0,
             "mode delay: when restarts are used up, it waits for the "
             "window"),
};
TABLE(restart, gl_restart, "How often a failed agent is restarted.");

static const struct gl_field policies_fields[] = {
    GL_FIELD_ENUM(gl_policies, job_type, gl_job_type_words, 0, "batch or service"),
    GL_FIELD_ENUM(gl_policies, recovery_mode, gl_recovery_words, 0, "recovery mode"),
    GL_FIELD_SUB(gl_policies, restart, OBJECT, &restart, 0, "restarts"),
};
TABLE(policies, gl_policies, "What happens when agents fail.");

static const struct gl_field upload_fields[] = {
    GL_FIELD(gl_upload, source, STR, 0, "below payloads/"),
    GL_FIELD(gl_upload, target, STR, 0, "below the workspace"),
};
TABLE(upload, gl_upload, "Files of the bundle that an agent's worker gets.");

static const struct gl_field agent_fields[] = {
    GL_FIELD(gl_agent_spec, id, STR, GL_FF_REQUIRED, "name of the agent"),
    GL_FIELD_ENUM(gl_agent_spec, kind, gl_agent_kind_words, 0, "its type"),
    GL_FIELD(gl_agent_spec, template_type, STR, 0, "its template"),
    GL_FIELD(gl_agent_spec, role, STR, 0, "its role"),
    GL_FIELD(gl_agent_spec, alias, STR, 0, "its display name"),
    GL_FIELD(gl_agent_spec, config, RAW, 0, "its configuration, as written"),
    GL_FIELD(gl_agent_spec, module, STR, 0, "name of its native module"),
    GL_FIELD_SUB(gl_agent_spec, uploads, LIST, &upload, 0, "files its worker gets"),
    GL_FIELD(gl_agent_spec, pass_env, STRS, 0, "variables copied from the node"),
    GL_FIELD(gl_agent_spec, runner, STR, 0, "its runner; none is named if absent"),
    GL_FIELD(gl_agent_spec, python_env, RAW, 0, "its Python environment"),
    GL_FIELD(gl_agent_spec, allocation, RAW, 0, "what was allocated for it"),
    GL_FIELD_ENUM(gl_agent_spec, output, gl_agent_output_words, 0, "whether it sends its result"),
    GL_FIELD(gl_agent_spec, output_type, STR, 0, "type of that message"),
    GL_FIELD(gl_agent_spec, emit_type, STR, 0, "type of the messages a router passes on"),
    GL_FIELD(gl_agent_spec, failure_type, STR, 0,
             "type of the message it sends instead of failing"),
    GL_FIELD(gl_agent_spec, leaves_step, BOOL, 0, "its success does not complete its step"),
    GL_FIELD(gl_agent_spec, terminal_sink, BOOL, 0, "it ends the graph"),
    GL_FIELD(gl_agent_spec, complete_run, BOOL, 0, "it completes the job"),
    GL_FIELD(gl_agent_spec, complete_on_message, BOOL, 0, "it completes with its first message"),
    GL_FIELD(gl_agent_spec, complete_after, U32, 0, "it completes after this many messages"),
    GL_FIELD(gl_agent_spec, tries, U32, 0, "immediate attempts when a failure looks transient"),
    GL_FIELD(gl_agent_spec, try_backoff_ms, SPAN, 0, "wait before the second attempt"),
    GL_FIELD(gl_agent_spec, stdout_max, U32, 0, "bytes of stdout that are kept"),
    GL_FIELD(gl_agent_spec, startup_delay_ms, SPAN, 0, "wait before its first message"),
    GL_FIELD(gl_agent_spec, lease_timeout_ms, SPAN, 0, "longest wait for slots"),
    GL_FIELD(gl_agent_spec, lease_queue_max, U32, 0, "longest queue for slots"),
    GL_FIELD(gl_agent_spec, beacons, BOOL, 0, "the runner reports that its worker is alive"),
    GL_FIELD(gl_agent_spec, beacon_required, BOOL, 0, "the worker must send beacons, too"),
    GL_FIELD(gl_agent_spec, beacon_ms, SPAN, 0, "how often"),
    GL_FIELD(gl_agent_spec, beacon_timeout_ms, SPAN, 0, "the longest time without a beacon"),
    GL_FIELD(gl_agent_spec, depth_max, U32, 0, "backpressure: full"),
    GL_FIELD(gl_agent_spec, high_mark, U32, 0, "backpressure: begins"),
    GL_FIELD(gl_agent_spec, low_mark, U32, 0, "backpressure: ends"),
    GL_FIELD(gl_agent_spec, retry_after_ms, SPAN, 0, "when a refused message may be sent again"),
    GL_FIELD(gl_agent_spec, has_restart, BOOL, 0, "its own restart policy"),
    GL_FIELD_SUB(gl_agent_spec, restart, OBJECT, &restart, 0, "restarts"),
};
TABLE(agent, gl_agent_spec, "A logical worker.");

static const struct gl_field route_fields[] = {
    GL_FIELD(gl_route, id, STR, 0, "name of the edge"),
    GL_FIELD(gl_route, from_node, STR, GL_FF_REQUIRED, "who sends"),
    GL_FIELD(gl_route, to_node, STR, GL_FF_REQUIRED, "who receives"),
    GL_FIELD(gl_route, type, STR, GL_FF_REQUIRED, "type of the messages; * for all"),
    GL_FIELD_ENUM(gl_route, mode, gl_route_mode_words, 0, "which of the matching edges are taken"),
    GL_FIELD(gl_route, conditions, RAW, 0, "conditions for taking it"),
};
TABLE(route, gl_route, "An edge for messages.");

static const struct gl_field seed_fields[] = {
    GL_FIELD(gl_seed, agent, STR, GL_FF_REQUIRED, "the agent that gets it"),
    GL_FIELD(gl_seed, message, RAW, GL_FF_REQUIRED, "the message, as written"),
};
TABLE(seed, gl_seed, "A message that starts the job.");

static const struct gl_field region_fields[] = {
    GL_FIELD(gl_region, id, STR, GL_FF_REQUIRED, "name of the region"),
    GL_FIELD(gl_region, is_fanout, BOOL, 0, "strategy checkpoint_fanout"),
    GL_FIELD(gl_region, controller, STR, 0, "the step that changes it"),
    GL_FIELD(gl_region, exit, STR, 0, "the step after it"),
    GL_FIELD(gl_region, templates, STRS, 0, "what may be added"),
    GL_FIELD(gl_region, mutable_edges, STRS, 0, "which edges may be removed"),
};
TABLE(region, gl_region, "A part of the flow that may change.");

static const struct gl_field template_fields[] = {
    GL_FIELD(gl_template, id, STR, GL_FF_REQUIRED, "name of the template"),
    GL_FIELD(gl_template, agent, STR, GL_FF_REQUIRED, "the agent of its instances"),
    GL_FIELD(gl_template, label, STR, 0, "for people"),
    GL_FIELD(gl_template, control, RAW, 0, "timeouts, retry, failure policy"),
};
TABLE(template, gl_template, "A step that can be added.");

static const struct gl_field dynamic_fields[] = {
    GL_FIELD(gl_dynamic, enabled, BOOL, 0, "whether the flow may change"),
    GL_FIELD_SUB(gl_dynamic, regions, LIST, &region, 0, "where"),
    GL_FIELD_SUB(gl_dynamic, templates, LIST, &template, 0, "with what"),
    GL_FIELD(gl_dynamic, patches_max, U32, 0, "how often"),
    GL_FIELD(gl_dynamic, active_max, U32, 0, "added steps at a time"),
    GL_FIELD(gl_dynamic, operations_max, U32, 0, "operations of one patch"),
};
TABLE(dynamic, gl_dynamic, "How the flow may change.");

static const struct gl_field payload_fields[] = {
    GL_FIELD(gl_payload, path, STR, GL_FF_REQUIRED, "below payloads/"),
    GL_FIELD(gl_payload, blob, STR, GL_FF_REQUIRED, "SHA-256 of the content, in hex"),
    GL_FIELD(gl_payload, executable, BOOL, 0, "whether it may be executed"),
};
TABLE(payload, gl_payload, "A file of the bundle.");

static const struct gl_field bundle_fields[] = {
    GL_FIELD(gl_bundle_spec, graph_id, STR, 0, "graph_id of the manifest"),
    GL_FIELD(gl_bundle_spec, hash, STR, 0, "SHA-256 of the listing of its files"),
    GL_FIELD(gl_bundle_spec, manifest, STR, 0, "SHA-256 of the manifest, in hex"),
    GL_FIELD_SUB(gl_bundle_spec, agents, LIST, &agent, GL_FF_REQUIRED, "its agents"),
    GL_FIELD_SUB(gl_bundle_spec, routes, LIST, &route, 0, "the routes of messages"),
    GL_FIELD_SUB(gl_bundle_spec, seeds, LIST, &seed, 0, "messages that start it"),
    GL_FIELD_SUB(gl_bundle_spec, payloads, LIST, &payload, 0, "its files"),
    GL_FIELD_SUB(gl_bundle_spec, policies, OBJECT, &policies, 0, "its policies"),
    GL_FIELD_SUB(gl_bundle_spec, dynamic, OBJECT, &dynamic, 0, "how it may change"),
    GL_FIELD(gl_bundle_spec, config, RAW, 0, "its configuration"),
    GL_FIELD(gl_bundle_spec, scenario, RAW, 0, "its scenario"),
    GL_FIELD(gl_bundle_spec, notes, STRS, 0, "where Glia deviates from the manifest"),
};

const struct gl_schema gl_bundle_schema = {
    .name = "bundle",
    .doc = "What a bundle adds to a flow.",
    .bytes = sizeof(struct gl_bundle_spec),
    .fields = bundle_fields,
    .fields_n = GL_COUNT(bundle_fields),
};

/* The compiled form omits defaults, because there can be many agents. */

static void usual_limits(struct gl_agent_spec *a)
{
    a->try_backoff_ms = 500;
    a->lease_timeout_ms = 30000;
    a->lease_queue_max = 1000;
    a->beacon_ms = 15000;
    a->beacon_timeout_ms = 45000;
    a->depth_max = 100;
    a->high_mark = 75;
    a->low_mark = 25;
    a->retry_after_ms = 250;
}

static bool has_usual_limits(const struct gl_agent_spec *a)
{
    struct gl_agent_spec u = {0};

    usual_limits(&u);
    return a->try_backoff_ms == u.try_backoff_ms && a->lease_timeout_ms == u.lease_timeout_ms &&
           a->lease_queue_max == u.lease_queue_max && a->beacon_ms == u.beacon_ms &&
           a->beacon_timeout_ms == u.beacon_timeout_ms && a->depth_max == u.depth_max &&
           a->high_mark == u.high_mark && a->low_mark == u.low_mark &&
           a->retry_after_ms == u.retry_after_ms;
}

static gl_str usual_type(const struct gl_agent_spec *a)
{
    if (a->output != GL_OUTPUT_USUAL) {
        return (gl_str){0};
    }
    return a->kind == GL_AGENT_EXECUTOR ? GL_S(GL_AGENT_EXECUTOR_TYPE)
           : a->kind == GL_AGENT_SENSOR ? GL_S(GL_AGENT_SENSOR_TYPE)
                                        : (gl_str){0};
}

static void remove_defaults(struct gl_agent_spec *a)
{
    a->template_type = gl_str_is(a->template_type, "generic") ? (gl_str){0} : a->template_type;
    a->allocation = gl_str_is(a->allocation, GL_AGENT_ALLOCATION) ? (gl_str){0} : a->allocation;
    a->output_type = gl_str_eq(a->output_type, usual_type(a)) ? (gl_str){0} : a->output_type;
    a->tries = a->tries == 1 ? 0 : a->tries;
    a->stdout_max = a->stdout_max == GL_STDOUT_BYTES ? 0 : a->stdout_max;
    if (has_usual_limits(a)) {
        a->try_backoff_ms = a->lease_timeout_ms = a->beacon_ms = a->beacon_timeout_ms = 0;
        a->lease_queue_max = a->depth_max = a->high_mark = a->low_mark = 0;
        a->retry_after_ms = 0;
    }
}

void gl_agent_defaults(struct gl_agent_spec *a)
{
    a->template_type = a->template_type.n > 0 ? a->template_type : GL_S("generic");
    a->allocation = a->allocation.n > 0 ? a->allocation : GL_S(GL_AGENT_ALLOCATION);
    a->output_type = a->output_type.n > 0 ? a->output_type : usual_type(a);
    a->tries = a->tries > 0 ? a->tries : 1;
    a->stdout_max = a->stdout_max > 0 ? a->stdout_max : GL_STDOUT_BYTES;
    if (a->depth_max == 0) { /* all of them have their defaults, or none */
        usual_limits(a);
    }
}

void gl_bundle_write(const struct gl_bundle_spec *b, struct gl_jw *w)
{
    const struct gl_agent_spec *agents = b->agents.items;
    struct gl_bundle_spec rest = *b;

    rest.agents = (struct gl_items){0};
    gl_schema_write(&gl_bundle_schema, &rest, w, GL_FOR_STORE);
    gl_jw_key(w, "agents");
    gl_jw_array(w);
    for (size_t i = 0; i < b->agents.n; i++) {
        struct gl_agent_spec a = agents[i];

        remove_defaults(&a);
        gl_jw_object(w);
        gl_schema_write(&agent, &a, w, GL_FOR_STORE);
        gl_jw_end(w);
    }
    gl_jw_end(w);
}

int64_t gl_flow_find_agent(const struct gl_flow *f, gl_str id)
{
    char name[GL_ID_BYTES_MAX + 2] = "@";
    int64_t number;

    if (f->bundle == NULL || id.n == 0 || id.n > GL_ID_BYTES_MAX) {
        return -1;
    }
    memcpy(name + 1, id.p, id.n);
    number = gl_flow_find(f, (gl_str){.p = name, .n = id.n + 1});
    return number >= 0 && gl_flow_is_unit(f, (uint32_t)number) ? number : -1;
}

static struct gl_agent_spec *agent_at(struct gl_flow *f, uint32_t number)
{
    return &((struct gl_agent_spec *)f->bundle->agents.items)[number];
}

static int link_units(struct gl_flow *f, struct gl_why *why)
{
    if (f->bundle->agents.n > f->steps.n) {
        return gl_why(why, GL_E_INVALID, "there are more agents than units");
    }
    for (uint32_t i = 0; i < f->bundle->agents.n; i++) {
        struct gl_agent_spec *a = agent_at(f, i);
        gl_str unit = gl_flow_step(f, i)->id;

        if (unit.n != a->id.n + 1 || unit.p[0] != '@' ||
            memcmp(unit.p + 1, a->id.p, a->id.n) != 0) {
            return gl_why(why, GL_E_INVALID, "agent %.*s has no unit", GL_STR_ARG(a->id));
        }
        a->step = -1;
        a->routes_n = 0; /* it may have been linked before */
        gl_agent_defaults(a);
    }
    return 0;
}

static int link_steps(struct gl_flow *f, struct gl_why *why)
{
    for (uint32_t i = gl_flow_agents_n(f); i < f->steps.n; i++) {
        struct gl_step_spec *s = gl_flow_graph_step(f, i);

        for (size_t k = 0; k < s->agent_ids.n; k++) {
            int64_t number = gl_flow_find_agent(f, s->agent_ids.items[k]);

            if (number < 0) {
                return gl_why(why, GL_E_INVALID, "step %.*s: there is no agent %.*s",
                              GL_STR_ARG(s->id), GL_STR_ARG(s->agent_ids.items[k]));
            }
            if (k == 0) {
                s->agent = (uint32_t)number;
            }
            if (agent_at(f, (uint32_t)number)->step < 0 && s->template_id.n == 0) {
                agent_at(f, (uint32_t)number)->step = i;
            }
        }
        if (s->is_bound && s->agent_ids.n == 0) {
            return gl_why(why, GL_E_INVALID, "step %.*s has no agent", GL_STR_ARG(s->id));
        }
    }
    return 0;
}

/* Count, then give each agent its part of one array, then fill. */
static int link_routes(struct gl_flow *f, struct gl_arena *a, struct gl_why *why)
{
    struct gl_route *routes = f->bundle->routes.items;
    uint32_t *at = GL_NEW_ARRAY(a, uint32_t, f->bundle->routes.n);

    for (size_t i = 0; i < f->bundle->routes.n; i++) {
        int64_t from = gl_flow_find_agent(f, routes[i].from_node);
        int64_t to = gl_flow_find_agent(f, routes[i].to_node);

        if (from < 0 || to < 0) {
            return gl_why(why, GL_E_INVALID,
                          "an edge goes from or to an agent that does not exist");
        }
        routes[i].from = (uint32_t)from;
        routes[i].to = (uint32_t)to;
        agent_at(f, routes[i].from)->routes_n++;
    }
    for (uint32_t i = 0; i < f->bundle->agents.n; i++) {
        agent_at(f, i)->routes = at;
        at += agent_at(f, i)->routes_n;
        agent_at(f, i)->routes_n = 0;
    }
    for (uint32_t i = 0; i < f->bundle->routes.n; i++) {
        struct gl_agent_spec *from = agent_at(f, routes[i].from);

        from->routes[from->routes_n++] = i;
    }
    return 0;
}

/* In the order in which gl_flow_graph_link() has given parents their children. */
int gl_bundle_link_accepts(struct gl_flow *f, struct gl_arena *a, struct gl_why *reterr_why)
{
    uint32_t *told = GL_NEW_ARRAY(a, uint32_t, f->steps.n);

    for (uint32_t i = gl_flow_agents_n(f); i < f->steps.n; i++) {
        struct gl_step_spec *s = gl_flow_graph_step(f, i);

        if (s->edges.n != 0 && s->edges.n != s->needs_n) {
            return gl_why(reterr_why, GL_E_INVALID, "step %.*s: its edges do not match its needs",
                          GL_STR_ARG(s->id));
        }
        s->tells = gl_arena_alloc(a, s->children_n + 1);
    }
    for (uint32_t i = gl_flow_agents_n(f); i < f->steps.n; i++) {
        const struct gl_step_spec *s = gl_flow_step(f, i);
        const struct gl_step_edge *edges = s->edges.items;

        for (uint32_t k = 0; k < s->needs_n; k++) {
            struct gl_step_spec *parent = gl_flow_graph_step(f, s->needs[k]);

            if (parent->tells == NULL) {
                return gl_why(reterr_why, GL_E_INVALID, "step %.*s needs an agent",
                              GL_STR_ARG(s->id));
            }
            GL_ASSERT(parent->children[told[s->needs[k]]] == i);
            parent->tells[told[s->needs[k]]++] =
                (uint8_t)(s->edges.n > 0 ? edges[k].accepts : GL_ACCEPT_DONE);
        }
    }
    return 0;
}

static int link_seeds(const struct gl_flow *f, struct gl_why *why)
{
    const struct gl_seed *seeds = f->bundle->seeds.items;

    for (size_t i = 0; i < f->bundle->seeds.n; i++) {
        if (gl_flow_find_agent(f, seeds[i].agent) < 0) {
            return gl_why(why, GL_E_INVALID,
                          "a first message goes to an agent that does not exist");
        }
    }
    return 0;
}

int gl_bundle_link(struct gl_flow *f, struct gl_arena *a, struct gl_why *reterr_why)
{
    int rc = link_units(f, reterr_why);

    rc = rc == 0 ? link_steps(f, reterr_why) : rc;
    rc = rc == 0 ? link_routes(f, a, reterr_why) : rc;
    rc = rc == 0 ? link_seeds(f, reterr_why) : rc;
    return rc == 0 ? gl_bundle_link_accepts(f, a, reterr_why) : rc;
}
