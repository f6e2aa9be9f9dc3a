/* Compiles the edges between agents, and checks the agents that end steps and jobs. */
#include "base/check.h"
#include "model/bundle/manifest_read.h"
#include "model/bundle/route.h"

void gl_manifest_conditions(struct gl_manifest *m, gl_jnode obj, const char *key, void *into)
{
    struct gl_route *ret = into;
    gl_jnode n = gl_manifest_object(m, obj, key);
    struct gl_why why = {0};

    if (n == NULL || n->count == 0) {
        return;
    }
    if (gl_route_check(m->r.j, n, &why) != 0) {
        gl_manifest_error(m, n, NULL, why.reason, "%s", why.text);
        return;
    }
    ret->conditions = gl_manifest_compact(m, n);
}

static bool read_edge(struct gl_manifest *m, gl_jnode n, struct gl_route *ret)
{
    if (!gl_manifest_expect(m, n, GL_JSON_OBJECT, "an edge")) {
        return false;
    }
    gl_manifest_read(m, GL_TABLE_EDGE, n, ret);
    return ret->from_node.n > 0 && ret->to_node.n > 0 && ret->type.n > 0;
}

/* The slot of an edge: a new one, or in the catalog form that of the edge with the same id. NULL
 * with an error where ids must be unique. */
static struct gl_route *place_of(struct gl_manifest *m, gl_jnode n, const struct gl_route *edge,
                                 struct gl_route *fresh, struct gl_map *ids)
{
    struct gl_route *same = edge->id.n > 0 ? gl_map_find(ids, edge->id) : NULL;

    if (same == NULL) {
        if (edge->id.n > 0) {
            gl_map_add(ids, edge->id, fresh);
        }
        return fresh;
    }
    if (m->form == GL_MANIFEST_SUBMITTED) {
        gl_manifest_error(m, n, NULL, GL_REASON_ID_TAKEN, "another edge already has the id `%.*s`",
                          GL_STR_ARG(gl_flow_read_clip(edge->id)));
        return NULL;
    }
    return m->form == GL_MANIFEST_CATALOG ? same : fresh;
}

static size_t read_list(struct gl_manifest *m, gl_jnode list, struct gl_route *routes, size_t n,
                        struct gl_map *ids)
{
    for (gl_jnode e = gl_json_first(m->r.j, list); e; e = gl_json_after(m->r.j, list, e)) {
        struct gl_route edge = {0}, *place;

        if (!read_edge(m, e, &edge)) {
            continue;
        }
        place = place_of(m, e, &edge, &routes[n], ids);
        if (place != NULL) {
            *place = edge;
            n += place == &routes[n] ? 1 : 0;
        }
    }
    return n;
}

/* A list of edges; NULL, with an error if it is not a list. */
static gl_jnode edge_list(struct gl_manifest *m, gl_jnode n)
{
    if (n != NULL && !gl_manifest_expect(m, n, GL_JSON_ARRAY, "a list of edges")) {
        return NULL;
    }
    return n;
}

static void read_routes(struct gl_manifest *m, struct gl_map *ids)
{
    gl_jnode list = edge_list(m, m->edges_at), b = m->bindings_at;
    size_t count = list != NULL ? list->count : 0, n = 0;
    struct gl_route *routes;

    if (m->form != GL_MANIFEST_BINDINGS) {
        b = NULL;
    }
    for (gl_jnode e = gl_json_first(m->r.j, b); e; e = gl_json_after(m->r.j, b, e)) {
        gl_jnode of =
            edge_list(m, gl_manifest_either(m, gl_json_value(e), "routes", "worker_edges"));

        count += of != NULL ? of->count : 0;
    }
    routes = GL_NEW_ARRAY(m->r.a, struct gl_route, count + 1);
    n = list != NULL ? read_list(m, list, routes, n, ids) : 0;
    for (gl_jnode e = gl_json_first(m->r.j, b); e; e = gl_json_after(m->r.j, b, e)) {
        gl_jnode of = gl_manifest_either(m, gl_json_value(e), "routes", "worker_edges");

        n = gl_json_is(of, GL_JSON_ARRAY) ? read_list(m, of, routes, n, ids) : n;
    }
    m->b->routes = (struct gl_items){.items = routes, .n = n};
}

static void name_routes(struct gl_manifest *m)
{
    struct gl_route *routes = m->b->routes.items;

    for (size_t i = 0; i < m->b->routes.n; i++) {
        if (routes[i].id.n == 0) {
            routes[i].id = gl_str_fmt(m->r.a, "%.*s->%.*s", GL_STR_ARG(routes[i].from_node),
                                      GL_STR_ARG(routes[i].to_node));
        }
    }
}

void gl_manifest_edges(struct gl_manifest *m)
{
    const struct gl_agent_spec *agents = m->b->agents.items;
    const struct gl_route *routes;
    struct gl_map ids;

    gl_map_init(&ids);
    read_routes(m, &ids);
    gl_map_done(&ids);
    name_routes(m);
    routes = m->b->routes.items;
    for (size_t i = 0; i < m->b->routes.n; i++) {
        const struct gl_manifest_node *from = gl_map_find(&m->by_id, routes[i].from_node);

        if (agents[from - m->nodes].terminal_sink) {
            gl_manifest_error(m, from->config, "terminal_sink", GL_REASON_SINK_HAS_EDGES,
                              "a `terminal_sink` cannot have outgoing edges: remove edge `%.*s`",
                              GL_STR_ARG(gl_flow_read_clip(routes[i].id)));
        }
    }
}
