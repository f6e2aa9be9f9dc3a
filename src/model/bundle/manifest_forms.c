/* The four forms of a manifest, and the places of their parts. */
#include "base/check.h"
#include "model/bundle/manifest_read.h"

bool gl_manifest_is(const struct gl_json *j, gl_jnode root)
{
    gl_jnode api = gl_json_get(j, root, "apiVersion");
    gl_jnode flow = gl_json_get(j, root, "flow");
    struct gl_arena a = {0};
    gl_str version = gl_json_str(j, api, &a);
    bool ret = gl_str_starts(version, GL_S("mn.")) || gl_str_starts(version, GL_S("blueprint/"));

    gl_arena_done(&a);
    return ret || gl_json_get(j, root, "graph_id") != NULL ||
           gl_json_get(j, root, "manifest_version") != NULL || gl_json_is(flow, GL_JSON_OBJECT) ||
           gl_json_is(gl_json_get(j, root, "nodes"), GL_JSON_ARRAY) ||
           (gl_json_get(j, root, "workflow") != NULL && gl_json_get(j, root, "agents") != NULL) ||
           gl_json_get(j, gl_json_get(j, root, "runtime"), "bindings") != NULL;
}

/* The version of the catalog form. False: it cannot be run. */
static bool check_version(struct gl_manifest *m, bool *ret_catalog)
{
    gl_jnode n = gl_manifest_get(m, m->root, "apiVersion");
    gl_str version = gl_json_str(m->r.j, n, m->r.a);

    if (n == NULL) {
        *ret_catalog = gl_manifest_get(m, m->root, "workflow") != NULL;
        return true;
    }
    if (gl_str_is(version, "mn.workflow/v2") || gl_str_is(version, "mn.workflow/v1")) {
        *ret_catalog = true;
        return true;
    }
    if (gl_str_starts(version, GL_S("mn.workflow.source/"))) {
        gl_manifest_error(m, n, NULL, GL_REASON_FORM_UNSUPPORTED,
                          "this is the source of a workflow (`%.*s`), which MirrorNeuron's SDK "
                          "compiles and whose workers need that SDK; run what it was compiled to, "
                          "a manifest with apiVersion mn.workflow/v2",
                          GL_STR_ARG(gl_flow_read_clip(version)));
    } else if (gl_str_starts(version, GL_S("blueprint/"))) {
        gl_manifest_error(m, n, NULL, GL_REASON_FORM_UNSUPPORTED,
                          "this is a blueprint (`%.*s`), whose workflow is in a separate file: "
                          "this release does not read it; run a manifest with apiVersion "
                          "mn.workflow/v2",
                          GL_STR_ARG(gl_flow_read_clip(version)));
    } else {
        gl_manifest_error(m, n, NULL, GL_REASON_UNKNOWN_WORD,
                          "expected mn.workflow/v2 or mn.workflow/v1, not `%.*s`",
                          GL_STR_ARG(gl_flow_read_clip(version)));
    }
    return false;
}

static bool lower_catalog(struct gl_manifest *m)
{
    gl_jnode agents = gl_manifest_object(m, m->root, "agents");
    gl_jnode runtime = gl_manifest_object(m, m->root, "runtime");

    m->form = GL_MANIFEST_CATALOG;
    m->graph = gl_manifest_object(m, m->root, "workflow");
    if (m->graph == NULL) {
        gl_manifest_error(m, m->root, "workflow", GL_REASON_MISSING,
                          "it is missing: the steps and their edges");
    }
    m->steps_at = gl_manifest_get(m, m->graph, "steps");
    m->graph_edges_at = gl_manifest_get(m, m->graph, "edges");
    m->nodes_at = gl_manifest_get(m, agents, "nodes");
    m->edges_at = gl_manifest_get(m, agents, "edges");
    m->entrypoints_in = gl_manifest_get(m, agents, "entrypoints") != NULL ? agents : m->root;
    m->inputs_at = gl_manifest_get(m, runtime, "initial_inputs");
    if (m->inputs_at == NULL) {
        m->inputs_at = gl_manifest_get(m, m->root, "initial_inputs");
    }
    return true;
}

/* Fields of the older form next to `flow`. */
static void refuse_mixture(struct gl_manifest *m)
{
    static const char *const old[] = {"nodes", "edges", "daemon"};

    for (size_t i = 0; i < GL_COUNT(old); i++) {
        gl_jnode n = gl_json_get(m->r.j, m->root, old[i]);

        if (n != NULL) {
            gl_manifest_error(m, n, NULL, GL_REASON_FORM_UNSUPPORTED,
                              "a manifest with `flow` has no `%s` at its root%s", old[i],
                              i < 2 ? ": put it into `flow`" : "; write type \"service\"");
        }
    }
}

static bool lower_rest(struct gl_manifest *m)
{
    gl_jnode flow = gl_manifest_object(m, m->root, "flow");

    m->entrypoints_in = m->root;
    m->inputs_at = gl_manifest_get(m, m->root, "initial_inputs");
    if (flow == NULL && gl_manifest_get(m, m->root, "nodes") != NULL) {
        m->form = GL_MANIFEST_OLDER;
        m->nodes_at = gl_manifest_get(m, m->root, "nodes");
        m->edges_at = gl_manifest_get(m, m->root, "edges");
        return true;
    }
    m->form = GL_MANIFEST_SUBMITTED;
    if (flow != NULL) {
        refuse_mixture(m);
        m->graph = flow;
        m->nodes_at = gl_manifest_get(m, flow, "nodes");
        m->edges_at = gl_manifest_get(m, flow, "edges");
        m->steps_at = gl_manifest_get(m, flow, "steps");
        m->graph_edges_at = gl_manifest_get(m, gl_manifest_object(m, flow, "graph"), "edges");
    }
    return true;
}

static void index_bindings(struct gl_manifest *m)
{
    gl_jnode n = m->bindings_at;

    for (gl_jnode e = gl_json_first(m->r.j, n); e; e = gl_json_after(m->r.j, n, e)) {
        gl_str key = gl_json_str(m->r.j, e, m->r.a);

        if (!gl_manifest_expect(m, gl_json_value(e), GL_JSON_OBJECT, "an object")) {
        } else if (gl_map_find(&m->binding_by, key) == NULL) {
            gl_map_add(&m->binding_by, key, (void *)(uintptr_t)e);
        }
    }
}

bool gl_manifest_find_form(struct gl_manifest *m)
{
    bool is_catalog = false;

    if (!gl_manifest_expect(m, m->root, GL_JSON_OBJECT, "a manifest (an object)")) {
        return false;
    }
    if (m->r.j->depth > GL_VALUE_DEPTH_MAX) {
        gl_manifest_error(m, m->root, NULL, GL_REASON_TOO_LARGE,
                          "the manifest is nested deeper than %d levels", GL_VALUE_DEPTH_MAX);
        return false;
    }
    if (!check_version(m, &is_catalog) || !(is_catalog ? lower_catalog(m) : lower_rest(m))) {
        return false;
    }
    m->entrypoints_at = gl_manifest_get(m, m->entrypoints_in, "entrypoints");
    m->bindings_at = gl_manifest_object(m, gl_manifest_object(m, m->root, "runtime"), "bindings");
    index_bindings(m);
    if (m->nodes_at == NULL && m->bindings_at != NULL) {
        m->form = GL_MANIFEST_BINDINGS;
    }
    return true;
}

/* Workers of bindings. */

gl_str gl_manifest_worker_id(struct gl_manifest *m, gl_jnode worker)
{
    gl_jnode n = gl_manifest_either(m, worker, "node_id", "node");

    n = n != NULL ? n : gl_manifest_get(m, worker, "id");
    return gl_json_str(m->r.j, n, m->r.a);
}

static bool contains(gl_str text, const char *part)
{
    return text.n > 0 && memmem(text.p, text.n, part, strlen(part)) != NULL;
}

uint8_t gl_manifest_worker_kind(struct gl_manifest *m, gl_jnode worker)
{
    gl_str uses = gl_json_str(m->r.j, gl_manifest_get(m, worker, "uses"), m->r.a);
    gl_str role = gl_json_str(m->r.j, gl_manifest_get(m, worker, "role"), m->r.a);
    gl_str kind = gl_json_str(m->r.j, gl_manifest_get(m, worker, "kind"), m->r.a);

    if (contains(uses, "control_router") || contains(role, "control_router")) {
        return GL_AGENT_ROUTER;
    }
    if (contains(uses, "control_join") || contains(role, "control_join") ||
        gl_str_is(role, "aggregator") || gl_str_is(role, "sink") || gl_str_is(role, "join")) {
        return GL_AGENT_AGGREGATOR;
    }
    return contains(uses, "data_module") || contains(role, "data_module") ||
                   gl_str_is(kind, "stream")
               ? GL_AGENT_MODULE
               : GL_AGENT_EXECUTOR;
}
