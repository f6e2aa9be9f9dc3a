/* The steps of the ledger and the edges between them. */
#include "base/check.h"
#include "model/bundle/manifest_read.h"
#include "model/flow/flow_graph.h"

/* The agents of a step. */

static void note_bound(struct gl_manifest *m, gl_str agent)
{
    struct gl_manifest_node *node = gl_map_find(&m->by_id, agent);

    if (node != NULL) {
        node->is_bound = true;
    }
}

static gl_str first_agent(struct gl_manifest *m, gl_jnode step, gl_str id)
{
    const char *const keys[] = {"agent_id", "run"};

    for (size_t i = 0; i < GL_COUNT(keys); i++) {
        gl_jnode n = gl_manifest_get(m, step, keys[i]);
        gl_str name = gl_json_str(m->r.j, n, m->r.a);

        if (gl_map_find(&m->by_id, name) != NULL) {
            return name;
        }
    }
    return gl_map_find(&m->by_id, id) != NULL ? id : (gl_str){0};
}

/* Those of its binding, if nothing else names any. */
static struct gl_strs bound_workers(struct gl_manifest *m, gl_jnode step, gl_str id)
{
    gl_str run = gl_json_str(m->r.j, gl_manifest_get(m, step, "run"), m->r.a);
    struct gl_json_node *key = gl_map_find(&m->binding_by, run.n > 0 ? run : id);
    gl_jnode workers = key != NULL ? gl_json_get(m->r.j, gl_json_value(key), "workers") : NULL;
    struct gl_strs ret = {0};
    gl_str *items;

    if (!gl_json_is(workers, GL_JSON_ARRAY)) {
        return ret;
    }
    items = GL_NEW_ARRAY(m->r.a, gl_str, workers->count);
    for (gl_jnode e = gl_json_first(m->r.j, workers); e; e = gl_json_after(m->r.j, workers, e)) {
        gl_str worker = gl_manifest_worker_id(m, e);

        if (gl_map_find(&m->by_id, worker) != NULL) {
            items[ret.n++] = worker;
        }
    }
    ret.items = items;
    return ret;
}

static struct gl_strs with_first(struct gl_manifest *m, gl_str first, struct gl_strs rest)
{
    gl_str *items = GL_NEW_ARRAY(m->r.a, gl_str, rest.n + 1);
    struct gl_strs ret = {.items = items};

    if (first.n > 0) {
        items[ret.n++] = first;
    }
    for (size_t i = 0; i < rest.n; i++) {
        if (!gl_str_eq(rest.items[i], first)) {
            items[ret.n++] = rest.items[i];
        }
    }
    return ret;
}

struct gl_strs gl_manifest_step_agents(struct gl_manifest *m, gl_jnode step, gl_str id)
{
    struct gl_strs all = gl_manifest_texts(m, step, "agent_ids");
    gl_jnode run = gl_manifest_get(m, step, "run");
    gl_str asked = gl_json_str(m->r.j, run, m->r.a);

    if (asked.n > 0 && gl_map_find(&m->runs_by, asked) == NULL) {
        gl_map_add(&m->runs_by, asked, (void *)(uintptr_t)run);
    }
    asked.n = 0;
    for (size_t i = 0; i < all.n; i++) {
        if (gl_map_find(&m->by_id, all.items[i]) == NULL) {
            gl_jnode list = gl_manifest_get(m, step, "agent_ids");

            gl_manifest_unknown(m, gl_manifest_element(m, list, i), GL_REASON_UNKNOWN_AGENT,
                                "agent", &m->by_id, all.items[i]);
            return (struct gl_strs){0};
        }
    }
    all = with_first(m, first_agent(m, step, id), all);
    all = all.n > 0 ? all : bound_workers(m, step, id);
    for (size_t i = 0; i < all.n; i++) {
        note_bound(m, all.items[i]);
    }
    if (all.n == 0) {
        (void)(gl_manifest_text(m, step, "agent_id", &asked) ||
               gl_manifest_text(m, step, "run", &asked));
        asked = asked.n > 0 ? asked : id;
        gl_manifest_error(m, step, NULL, GL_REASON_UNKNOWN_AGENT,
                          "it has no agent: there is none called `%.*s`%s; set `agent_id`",
                          GL_STR_ARG(gl_flow_read_clip(asked)),
                          gl_manifest_suggestion(m, &m->by_id, asked));
    }
    return all;
}

/* Steps. */

static bool read_id(struct gl_manifest *m, struct gl_manifest_step *s)
{
    if (!gl_manifest_expect(m, s->n, GL_JSON_OBJECT, "a step")) {
        return false;
    }
    if (gl_manifest_get(m, s->n, "id") == NULL) {
        gl_manifest_error(m, s->n, "id", GL_REASON_MISSING, "it is missing: each step needs an id");
        return false;
    }
    if (!gl_manifest_text(m, s->n, "id", &s->id)) {
        return false;
    }
    if (!gl_manifest_check_step_id(m, s->n, s->id)) {
        return false;
    }
    if (gl_map_find(&m->steps_by, s->id) != NULL) {
        gl_manifest_error(m, s->n, "id", GL_REASON_ID_TAKEN,
                          "another step already has the id `%.*s`", GL_STR_ARG(s->id));
        return false;
    }
    return true;
}

static gl_jnode step_list(struct gl_manifest *m)
{
    gl_jnode n = m->steps_at;

    if (n != NULL && !gl_manifest_expect(m, n, GL_JSON_ARRAY, "a list of steps")) {
        return NULL;
    }
    if (n != NULL && n->count + m->nodes_n > GL_STEPS_MAX) {
        gl_manifest_error(m, n, NULL, GL_REASON_TOO_MANY_STEPS,
                          "there are at most %d steps and agents together", GL_STEPS_MAX);
        return NULL;
    }
    return n;
}

void gl_manifest_steps(struct gl_manifest *m)
{
    gl_jnode list = step_list(m);

    if (list == NULL) {
        return;
    }
    m->steps = GL_NEW_ARRAY(m->r.a, struct gl_manifest_step, list->count);
    for (gl_jnode e = gl_json_first(m->r.j, list); e; e = gl_json_after(m->r.j, list, e)) {
        struct gl_manifest_step *s = &m->steps[m->steps_n];

        s->n = e;
        if (read_id(m, s)) {
            gl_map_add(&m->steps_by, s->id, s);
            m->steps_n++;
        }
    }
}

/* Edges. */

void gl_manifest_accepts(struct gl_manifest *m, gl_jnode obj, const char *key, void *into)
{
    static const char *const words[] = {"done", "completed", "partial", "skipped", "failed", NULL};
    static const uint8_t bits[] = {GL_ACCEPT_DONE, GL_ACCEPT_DONE, GL_ACCEPT_PARTIAL,
                                   GL_ACCEPT_SKIPPED, GL_ACCEPT_FAILED};
    struct gl_strs accepts = gl_manifest_texts(m, obj, key);
    struct gl_manifest_edge *edge = into;

    edge->accepts = gl_manifest_get(m, obj, key) == NULL ? GL_ACCEPT_DONE : 0;
    for (size_t i = 0; i < accepts.n; i++) {
        int word = gl_schema_word(words, accepts.items[i]);

        if (word >= 0) {
            edge->accepts |= bits[word];
        } else if (gl_manifest_note_has_room(m)) {
            gl_manifest_note(m, "%.*s: no step ever ends as `%.*s`",
                             GL_STR_ARG(gl_manifest_path(m, obj)),
                             GL_STR_ARG(gl_flow_read_clip(accepts.items[i])));
        }
    }
}

static struct gl_manifest_step *edge_end(struct gl_manifest *m, gl_jnode edge, const char *key)
{
    struct gl_manifest_step *s;
    gl_str id;

    if (gl_manifest_get(m, edge, key) == NULL) {
        gl_manifest_error(m, edge, key, GL_REASON_MISSING, "it is missing: the id of a step");
        return NULL;
    }
    if (!gl_manifest_text(m, edge, key, &id)) {
        return NULL;
    }
    s = gl_map_find(&m->steps_by, id);
    if (s == NULL) {
        gl_manifest_unknown(m, gl_manifest_get(m, edge, key), GL_REASON_UNKNOWN_STEP, "step",
                            &m->steps_by, id);
    }
    return s;
}

static bool read_edge(struct gl_manifest *m, gl_jnode n, struct gl_manifest_edge *ret)
{
    struct gl_manifest_step *from, *to;

    if (!gl_manifest_expect(m, n, GL_JSON_OBJECT, "an edge")) {
        return false;
    }
    from = edge_end(m, n, "from");
    to = edge_end(m, n, "to");
    if (from == NULL || to == NULL) {
        return false;
    }
    if (from == to) {
        gl_manifest_error(m, n, NULL, GL_REASON_SELF_DEPENDENCY,
                          "the edge leads from step `%.*s` to itself", GL_STR_ARG(from->id));
        return false;
    }
    *ret = (struct gl_manifest_edge){
        .n = n, .from = (uint32_t)(from - m->steps), .to = (uint32_t)(to - m->steps)};
    gl_manifest_read(m, GL_TABLE_STEP_EDGE, n, ret);
    if (ret->id.n == 0) {
        ret->id = gl_str_fmt(m->r.a, "%.*s->%.*s", GL_STR_ARG(from->id), GL_STR_ARG(to->id));
    }
    return true;
}

static size_t read_edges(struct gl_manifest *m, struct gl_manifest_edge **ret)
{
    gl_jnode list = m->graph_edges_at;
    size_t n = 0;

    *ret = NULL;
    if (list == NULL) {
        return 0;
    }
    if (!gl_manifest_expect(m, list, GL_JSON_ARRAY, "a list of edges")) {
        return 0;
    }
    *ret = GL_NEW_ARRAY(m->r.a, struct gl_manifest_edge, list->count);
    for (gl_jnode e = gl_json_first(m->r.j, list); e; e = gl_json_after(m->r.j, list, e)) {
        struct gl_manifest_edge *edge = &(*ret)[n];

        if (!read_edge(m, e, edge)) {
            continue;
        }
        if (gl_map_find(&m->edges_by, edge->id) != NULL) {
            gl_manifest_error(m, e, "id", GL_REASON_ID_TAKEN,
                              "another edge already has the id `%.*s`",
                              GL_STR_ARG(gl_flow_read_clip(edge->id)));
            continue;
        }
        gl_map_add(&m->edges_by, edge->id, edge);
        n++;
    }
    return n;
}

/* Sort edges by the step they lead to, in the order written: count, then give each step its part,
 * then fill. The edges to step i are firsts[i] to firsts[i + 1]. */
static struct gl_manifest_edge **sort_edges(struct gl_manifest *m, struct gl_manifest_edge *edges,
                                            size_t n, size_t **ret_firsts)
{
    struct gl_manifest_edge **sorted = GL_NEW_ARRAY(m->r.a, struct gl_manifest_edge *, n);
    size_t *firsts = GL_NEW_ARRAY(m->r.a, size_t, m->steps_n + 2);

    for (size_t i = 0; i < n; i++) {
        firsts[edges[i].to + 2]++;
    }
    for (size_t i = 2; i < m->steps_n + 2; i++) {
        firsts[i] += firsts[i - 1];
    }
    for (size_t i = 0; i < n; i++) {
        sorted[firsts[edges[i].to + 1]++] = &edges[i];
    }
    *ret_firsts = firsts;
    return sorted;
}

/* The edges that lead to a step become its needs. If two come from the same parent, both must
 * accept its outcome. */
static void take_needs(struct gl_manifest *m, struct gl_step_spec *s, uint32_t number,
                       struct gl_manifest_edge *const *edges, size_t n, uint32_t *seen)
{
    gl_str *ids = GL_NEW_ARRAY(m->r.a, gl_str, n);
    struct gl_step_edge *out = GL_NEW_ARRAY(m->r.a, struct gl_step_edge, n);
    uint32_t k = 0;

    s->needs = GL_NEW_ARRAY(m->r.a, uint32_t, n);
    for (size_t i = 0; i < n; i++) {
        uint32_t from = edges[i]->from;

        /* seen: twice the index, so that an entry left by another step never matches this one */
        if (seen[from * 2] == number + 1) {
            out[seen[from * 2 + 1]].accepts &= edges[i]->accepts;
            continue;
        }
        seen[from * 2] = number + 1;
        seen[from * 2 + 1] = k;
        ids[k] = m->steps[from].id;
        s->needs[k] = (uint32_t)m->nodes_n + from;
        out[k++] = (struct gl_step_edge){.id = edges[i]->id, .accepts = edges[i]->accepts};
    }
    if (k > GL_NEEDS_MAX) {
        gl_manifest_error(m, m->steps[number].n, NULL, GL_REASON_TOO_MANY,
                          "at most %d steps can lead to one", GL_NEEDS_MAX);
        k = 0;
    }
    s->needs_n = k;
    s->needs_ids = (struct gl_strs){.items = ids, .n = k};
    s->edges = (struct gl_items){.items = out, .n = k};
}

static void compile_step(struct gl_manifest *m, uint32_t number)
{
    struct gl_step_spec *s = gl_flow_graph_step(m->f, m->nodes_n + number);
    const struct gl_manifest_step *source = &m->steps[number];
    const struct gl_manifest_node *node = NULL;

    s->id = source->id;
    s->driver = GL_S("agent");
    s->is_bound = true;
    s->pool = GL_S("default");
    s->slots = 1;
    s->grace_ms = GL_GRACE_MS;
    s->agent_ids = gl_manifest_step_agents(m, source->n, source->id);
    if (s->agent_ids.n > 0) {
        node = gl_map_find(&m->by_id, s->agent_ids.items[0]);
    }
    gl_manifest_read(m, GL_TABLE_STEP, source->n, s);
    gl_manifest_control(m, source->n, node, s);
    gl_manifest_rule(m, source->n, s->needs_n, s);
    if (s->needs_n == 0 && gl_manifest_is_set(gl_manifest_get(m, source->n, "needs"))) {
        gl_manifest_error(m, source->n, "needs", GL_REASON_FORM_UNSUPPORTED,
                          "this form has no `needs`: use edges instead");
    }
}

/* The needs, rules and agents of all steps. */
void gl_manifest_graph(struct gl_manifest *m)
{
    struct gl_manifest_edge *edges, **sorted;
    size_t n = read_edges(m, &edges), *firsts;
    uint32_t *seen = GL_NEW_ARRAY(m->r.a, uint32_t, m->steps_n * 2);

    m->f->steps.n = m->nodes_n + m->steps_n;
    sorted = sort_edges(m, edges, n, &firsts);
    for (uint32_t i = 0; i < m->steps_n; i++) {
        take_needs(m, gl_flow_graph_step(m->f, m->nodes_n + i), i, sorted + firsts[i],
                   firsts[i + 1] - firsts[i], seen);
        compile_step(m, i);
    }
}
