/* Notes about likely typing errors: unknown field names close to known ones, and messages that no
 * edge carries. Such a bundle runs, so these are notes and not errors. */
#include "base/check.h"
#include "model/bundle/manifest_read.h"

enum {
    TYPO_NOTES_MAX = 8,
    NAME_BYTES_MIN = 4, /* shorter words resemble too many names */
    TYPES_LOOKED_AT = 64,
};

/* Names that are read, are missing in the reference, and resemble a name that is not. */
static const struct {
    const char *of, *name;
} also_read[] = {
    {"manifest", "schedules"},   {"manifest", "job_type"},
    {"node", "devices"},         {"step_edge", "edge_id"},
    {"template", "template_id"}, {"template", "agent_ids"},
    {"region", "region_id"},     {"region", "controller_step"},
    {"region", "exit_step"},     {"binding", "entrypoints"},
    {"edge", "event"},
};

/* The rows of one table, which are contiguous. */
struct field_rows {
    const struct gl_flow_field *first;
    size_t n;
};

static struct field_rows rows_of(const char *of)
{
    struct field_rows ret = {0};

    for (size_t i = 0; i < gl_manifest_fields_n; i++) {
        if (strcmp(gl_manifest_fields[i].of, of) == 0) {
            ret.first = ret.n == 0 ? &gl_manifest_fields[i] : ret.first;
            ret.n++;
        } else if (ret.n > 0) {
            break;
        }
    }
    return ret;
}

static bool is_read(struct field_rows rows, const char *of, gl_str key)
{
    for (size_t i = 0; i < rows.n; i++) {
        if (gl_str_is(key, rows.first[i].name)) {
            return true;
        }
    }
    for (size_t i = 0; i < GL_COUNT(also_read); i++) {
        if (gl_str_is(key, also_read[i].name) && strcmp(of, also_read[i].of) == 0) {
            return true;
        }
    }
    return false;
}

static void look_at(struct gl_manifest *m, gl_jnode obj, const char *of)
{
    struct field_rows rows;

    if (!gl_json_is(obj, GL_JSON_OBJECT) || m->typo_notes_n >= TYPO_NOTES_MAX) {
        return;
    }
    rows = rows_of(of);
    for (gl_jnode e = gl_json_first(m->r.j, obj); e; e = gl_json_after(m->r.j, obj, e)) {
        gl_str key = gl_json_str(m->r.j, e, m->r.a);
        struct gl_suggest near;

        if (m->typo_notes_n >= TYPO_NOTES_MAX || key.n < NAME_BYTES_MIN || is_read(rows, of, key)) {
            continue;
        }
        gl_suggest_init(&near, key);
        for (size_t i = 0; i < rows.n; i++) {
            gl_suggest_offer(&near, gl_str_of(rows.first[i].name));
        }
        if (near.best.n > 0) {
            gl_manifest_note(m, "%.*s is not read%s", GL_STR_ARG(gl_manifest_path(m, e)),
                             gl_flow_read_suggestion(&m->r, &near));
            m->typo_notes_n++;
        }
    }
}

/* Each of [{...}] or {id: {...}}. */
static void look_at_each(struct gl_manifest *m, gl_jnode list, const char *of)
{
    bool is_list = gl_json_is(list, GL_JSON_ARRAY);

    if (!is_list && !gl_json_is(list, GL_JSON_OBJECT)) {
        return;
    }
    for (gl_jnode e = gl_json_first(m->r.j, list); e; e = gl_json_after(m->r.j, list, e)) {
        look_at(m, is_list ? e : gl_json_value(e), of);
    }
}

static void look_at_policies(struct gl_manifest *m, gl_jnode obj)
{
    gl_jnode policies = gl_manifest_get(m, obj, "policies");

    look_at(m, policies, "policies");
    look_at(m, gl_manifest_get(m, policies, "restart"), "restart");
    look_at(m, gl_manifest_get(m, policies, "reschedule"), "restart");
}

static void look_at_agents(struct gl_manifest *m)
{
    for (size_t i = 0; i < m->nodes_n && m->typo_notes_n < TYPO_NOTES_MAX; i++) {
        const struct gl_manifest_node *node = &m->nodes[i];

        look_at(m, node->n, "node");
        look_at(m, gl_manifest_get(m, node->n, "resources"), "resources");
        look_at_policies(m, node->n);
        look_at(m, node->config, "config");
        look_at(m, gl_manifest_get(m, node->config, "backpressure"), "backpressure");
    }
    look_at_each(m, gl_json_is(m->edges_at, GL_JSON_ARRAY) ? m->edges_at : NULL, "edge");
}

static void look_at_bindings(struct gl_manifest *m)
{
    gl_jnode b = m->bindings_at;

    look_at_each(m, b, "binding");
    for (gl_jnode e = gl_json_first(m->r.j, b); e; e = gl_json_after(m->r.j, b, e)) {
        look_at_each(m, gl_manifest_either(m, gl_json_value(e), "routes", "worker_edges"), "edge");
    }
}

static void look_at_control(struct gl_manifest *m, gl_jnode step)
{
    gl_jnode control = gl_manifest_get(m, step, "control");

    look_at(m, control, "control");
    look_at(m, gl_manifest_get(m, control, "retry"), "retry");
}

static void look_at_steps(struct gl_manifest *m)
{
    gl_jnode dynamic = gl_manifest_get(m, m->graph, "dynamic");
    gl_jnode templates = gl_manifest_get(m, dynamic, "templates");

    for (size_t i = 0; i < m->steps_n && m->typo_notes_n < TYPO_NOTES_MAX; i++) {
        look_at(m, m->steps[i].n, "step");
        look_at_control(m, m->steps[i].n);
    }
    look_at_each(m, gl_json_is(m->graph_edges_at, GL_JSON_ARRAY) ? m->graph_edges_at : NULL,
                 "step_edge");
    look_at(m, dynamic, "dynamic");
    look_at(m, gl_manifest_get(m, dynamic, "limits"), "limits");
    look_at_each(m, templates, "template");
    for (gl_jnode e = gl_json_first(m->r.j, templates); e;
         e = gl_json_after(m->r.j, templates, e)) {
        look_at_control(m, e->is_key ? gl_json_value(e) : e);
    }
    look_at_each(m, gl_manifest_get(m, dynamic, "regions"), "region");
}

/* A missing field may be present under a mistyped name. */
gl_str gl_manifest_lint_typo_of(struct gl_manifest *m, gl_jnode obj, const char *key)
{
    gl_str wanted = {.p = key, .n = strcspn(key, ".")}, first = gl_str_dup(m->r.a, wanted);

    if (!gl_json_is(obj, GL_JSON_OBJECT) || wanted.n < NAME_BYTES_MIN ||
        gl_json_get(m->r.j, obj, first.p) != NULL) {
        return (gl_str){0};
    }
    for (gl_jnode e = gl_json_first(m->r.j, obj); e; e = gl_json_after(m->r.j, obj, e)) {
        gl_str name = gl_json_str(m->r.j, e, m->r.a);
        bool is_known = false;

        for (size_t i = 0; i < gl_manifest_fields_n && !is_known; i++) {
            is_known = gl_str_is(name, gl_manifest_fields[i].name);
        }
        if (!is_known && name.n >= NAME_BYTES_MIN && gl_suggest_distance(name, wanted, 2) <= 2) {
            return name;
        }
    }
    return (gl_str){0};
}

/* Messages that no agent receives. */

/* Whether an edge takes messages of a type on. `*ret_near`: the type of one that nearly does. */
static bool is_taken(const struct gl_route *routes, const uint32_t *of, size_t n, gl_str type,
                     gl_str *ret_near)
{
    struct gl_suggest near;

    gl_suggest_init(&near, type);
    for (size_t i = 0; i < n; i++) {
        gl_str edge = routes[of[i]].type;

        if (gl_str_eq(edge, type) || gl_str_is(edge, "*")) {
            return true;
        }
        if (i < TYPES_LOOKED_AT) {
            gl_suggest_offer(&near, edge);
        }
    }
    *ret_near = near.best;
    return false;
}

static void check_type(struct gl_manifest *m, const struct gl_manifest_node *node,
                       const uint32_t *of, size_t n, const char *key, gl_str type)
{
    gl_str near = {0};

    if (m->typo_notes_n >= TYPO_NOTES_MAX || type.n == 0 ||
        gl_manifest_get(m, node->config, key) == NULL ||
        is_taken(m->b->routes.items, of, n, type, &near)) {
        return;
    }
    near = gl_flow_read_clip(near);
    gl_manifest_note(m,
                     "agent `%.*s` sends `%.*s` (%s), but no edge from it takes that type: nobody "
                     "gets it%s%.*s%s",
                     GL_STR_ARG(node->id), GL_STR_ARG(gl_flow_read_clip(type)), key,
                     near.n > 0 ? "; an edge takes `" : "", GL_STR_ARG(near),
                     near.n > 0 ? "`" : "");
    m->typo_notes_n++;
}

/* The edges by the agent they lead from: those of agent i stand from firsts[i] to firsts[i + 1]. */
static uint32_t *edges_by_sender(struct gl_manifest *m, size_t *firsts)
{
    const struct gl_route *routes = m->b->routes.items;
    uint32_t *sorted = GL_NEW_ARRAY(m->r.a, uint32_t, m->b->routes.n + 1);

    for (int turn = 0; turn < 2; turn++) { /* count, then fill */
        for (size_t i = 0; i < m->b->routes.n; i++) {
            const struct gl_manifest_node *from = gl_map_find(&m->by_id, routes[i].from_node);
            size_t *place = &firsts[from - m->nodes + (turn == 0 ? 2 : 1)];

            if (turn == 1) {
                sorted[*place] = (uint32_t)i;
            }
            ++*place;
        }
        for (size_t i = 2; turn == 0 && i < m->nodes_n + 2; i++) {
            firsts[i] += firsts[i - 1];
        }
    }
    return sorted;
}

/* An agent without edges is the last one: its types do not matter. */
static void check_types(struct gl_manifest *m)
{
    size_t *firsts = GL_NEW_ARRAY(m->r.a, size_t, m->nodes_n + 2);
    const uint32_t *sorted = edges_by_sender(m, firsts);
    const struct gl_agent_spec *agents = m->b->agents.items;

    for (size_t i = 0; i < m->nodes_n && m->typo_notes_n < TYPO_NOTES_MAX; i++) {
        const struct gl_manifest_node *node = &m->nodes[i];
        const uint32_t *of = sorted + firsts[i];
        size_t n = firsts[i + 1] - firsts[i];

        if (n == 0) {
            continue;
        }
        if (agents[i].output == GL_OUTPUT_TYPED && node->kind != GL_AGENT_ROUTER) {
            check_type(m, node, of, n, "output_message_type", agents[i].output_type);
        }
        if (node->kind == GL_AGENT_ROUTER) {
            check_type(m, node, of, n, "emit_type", agents[i].emit_type);
        }
        check_type(m, node, of, n, "failure_message_type", agents[i].failure_type);
    }
}

void gl_manifest_lint(struct gl_manifest *m)
{
    gl_jnode runtime = gl_manifest_get(m, m->root, "runtime");

    look_at(m, m->root, "manifest");
    look_at(m, m->graph, "workflow");
    look_at(m, gl_manifest_get(m, m->graph, "graph"), "graph");
    if (m->form == GL_MANIFEST_CATALOG) {
        look_at(m, gl_manifest_get(m, m->root, "agents"), "agents");
    }
    look_at(m, runtime, "runtime");
    look_at_policies(m, m->root);
    look_at_agents(m);
    look_at_bindings(m);
    look_at_steps(m);
    check_types(m);
}
