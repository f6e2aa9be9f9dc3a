/* Notes about likely typos: unknown field names close to known ones, and messages that no
 * edge carries. Such a bundle runs, so these are notes, not errors. */
#include "base/check.h"
#include "model/bundle/manifest_read.h"

enum {
    TYPO_NOTES_MAX = 8,
    NAME_BYTES_MIN = 4, /* shorter words resemble too many names to suggest one */
    TYPES_LOOKED_AT = 64,
};

static void look_at_name(struct gl_manifest *m, gl_jnode e, enum gl_manifest_table_id of)
{
    gl_str key = gl_json_str(m->r.j, e, m->r.a);
    struct gl_suggest near;

    if (key.n < NAME_BYTES_MIN || gl_manifest_field(of, key) != NULL) {
        return;
    }
    gl_suggest_init(&near, key);
    for (; of != GL_TABLE_NONE; of = gl_manifest_tables[of].more) {
        for (size_t i = 0; i < gl_manifest_tables[of].n; i++) {
            if (gl_manifest_tables[of].rows[i].doc != NULL) {
                gl_suggest_offer(&near, gl_str_of(gl_manifest_tables[of].rows[i].name));
            }
        }
    }
    if (near.best.n > 0) {
        gl_manifest_note(m, "%.*s is not read%s", GL_STR_ARG(gl_manifest_path(m, e)),
                         gl_flow_read_suggestion(&m->r, &near));
        m->typo_notes_n++;
    }
}

/* A table, and then the tables in it. */
static void look_at(struct gl_manifest *m, gl_jnode obj, enum gl_manifest_table_id of)
{
    const struct gl_manifest_table *t = &gl_manifest_tables[of];

    if (!gl_json_is(obj, GL_JSON_OBJECT) || m->typo_notes_n >= TYPO_NOTES_MAX) {
        return;
    }
    for (gl_jnode e = gl_json_first(m->r.j, obj); e && m->typo_notes_n < TYPO_NOTES_MAX;
         e = gl_json_after(m->r.j, obj, e)) {
        look_at_name(m, e, of);
    }
    for (size_t i = 0; i < t->n; i++) {
        if (t->rows[i].table != GL_TABLE_NONE) {
            look_at(m, gl_manifest_get(m, obj, t->rows[i].name), t->rows[i].table);
        }
    }
}

/* Each of [{...}] or {id: {...}}. */
static void look_at_each(struct gl_manifest *m, gl_jnode list, enum gl_manifest_table_id of)
{
    bool is_list = gl_json_is(list, GL_JSON_ARRAY);

    if (!is_list && !gl_json_is(list, GL_JSON_OBJECT)) {
        return;
    }
    for (gl_jnode e = gl_json_first(m->r.j, list); e; e = gl_json_after(m->r.j, list, e)) {
        look_at(m, is_list ? e : gl_json_value(e), of);
    }
}

static void look_at_list(struct gl_manifest *m, gl_jnode list, enum gl_manifest_table_id of)
{
    look_at_each(m, gl_json_is(list, GL_JSON_ARRAY) ? list : NULL, of);
}

static void look_at_agents(struct gl_manifest *m)
{
    gl_jnode b = m->bindings_at;

    for (size_t i = 0; i < m->nodes_n && m->typo_notes_n < TYPO_NOTES_MAX; i++) {
        look_at(m, m->nodes[i].n, GL_TABLE_NODE);
        look_at(m, m->nodes[i].config, GL_TABLE_CONFIG);
    }
    look_at_list(m, m->edges_at, GL_TABLE_EDGE);
    look_at_each(m, b, GL_TABLE_BINDING);
    for (gl_jnode e = gl_json_first(m->r.j, b); e; e = gl_json_after(m->r.j, b, e)) {
        look_at_each(m, gl_manifest_either(m, gl_json_value(e), "routes", "worker_edges"),
                     GL_TABLE_EDGE);
    }
}

static void look_at_steps(struct gl_manifest *m)
{
    gl_jnode dynamic = gl_manifest_get(m, m->graph, "dynamic");

    for (size_t i = 0; i < m->steps_n && m->typo_notes_n < TYPO_NOTES_MAX; i++) {
        look_at(m, m->steps[i].n, GL_TABLE_STEP);
    }
    look_at_list(m, m->graph_edges_at, GL_TABLE_STEP_EDGE);
    look_at(m, dynamic, GL_TABLE_DYNAMIC);
    look_at_each(m, gl_manifest_get(m, dynamic, "templates"), GL_TABLE_TEMPLATE);
    look_at_each(m, gl_manifest_get(m, dynamic, "regions"), GL_TABLE_REGION);
}

static bool is_documented(gl_str name)
{
    const struct gl_manifest_field *f = NULL;

    for (int t = GL_TABLE_NONE + 1; t < GL_TABLE_COUNT && (f == NULL || f->doc == NULL); t++) {
        f = gl_manifest_field((enum gl_manifest_table_id)t, name);
    }
    return f != NULL && f->doc != NULL;
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

        if (name.n >= NAME_BYTES_MIN && gl_suggest_distance(name, wanted, 2) <= 2 &&
            !is_documented(name)) {
            return name;
        }
    }
    return (gl_str){0};
}

/* Messages that no agent receives. */

/* Whether an edge takes messages of a type. `*ret_near`: the type of an edge that nearly does. */
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
    gl_manifest_note(
        m,
        "agent `%.*s` sends `%.*s` (%s), but no edge from it takes that type: no agent "
        "receives it%s%.*s%s",
        GL_STR_ARG(node->id), GL_STR_ARG(gl_flow_read_clip(type)), key,
        near.n > 0 ? "; an edge takes `" : "", GL_STR_ARG(near), near.n > 0 ? "`" : "");
    m->typo_notes_n++;
}

/* The edges by their sender: those of agent i are firsts[i] to firsts[i + 1]. */
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

/* An agent without edges is an end of the graph: its types do not matter. */
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
    look_at(m, m->root, GL_TABLE_MANIFEST);
    look_at(m, m->graph, GL_TABLE_WORKFLOW);
    if (m->form == GL_MANIFEST_CATALOG) {
        look_at(m, gl_manifest_get(m, m->root, "agents"), GL_TABLE_AGENTS);
    }
    look_at(m, gl_manifest_get(m, m->root, "runtime"), GL_TABLE_RUNTIME);
    look_at(m, gl_manifest_get(m, m->root, "policies"), GL_TABLE_POLICIES);
    look_at_agents(m);
    look_at_steps(m);
    check_types(m);
}
