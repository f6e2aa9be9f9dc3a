#include "model/bundle/manifest.h"

#include "base/check.h"
#include "model/bundle/manifest_read.h"
#include "model/flow/flow_graph.h"
#include "model/flow/flow_refs.h"

enum { CYCLE_NAMES_MAX = 12 };

/* The names of the bundle. */

static gl_str required(struct gl_manifest *m, gl_jnode obj, const char *key, const char *what)
{
    gl_jnode n = gl_manifest_get(m, obj, key);
    gl_str ret = {0};

    if (n == NULL) {
        gl_manifest_error(m, obj, key, GL_REASON_MISSING, "it is missing: %s", what);
    } else {
        (void)gl_manifest_text(m, obj, key, &ret);
    }
    return ret;
}

static void read_identity(struct gl_manifest *m)
{
    bool is_catalog = m->graph != NULL && gl_json_get(m->r.j, m->root, "flow") == NULL;
    gl_str name = {0}, id = {0};

    m->b->graph_id = is_catalog ? required(m, m->graph, "workflow_id", "the name of the graph")
                                : required(m, m->root, "graph_id", "the name of the graph");
    if (is_catalog && gl_manifest_get(m, m->root, "job_name") == NULL) {
        (void)gl_manifest_text(m, m->root, "id", &id);
        name = id.n > 0 ? id : m->b->graph_id;
    } else {
        name = required(m, m->root, "job_name", "the name of its jobs");
    }
    if (name.n > 0 && !gl_flow_check_name(name)) {
        gl_manifest_error(m, m->root, "job_name", GL_REASON_NAME_INVALID,
                          "a name has 1 to %d bytes of printable text", GL_NAME_BYTES_MAX);
    }
    m->f->name = name;
}

/* The graph as a whole. */

static void report_cycle(struct gl_manifest *m)
{
    uint32_t *cycle, n, shown;
    struct gl_buf names = {0};

    if (!gl_flow_graph_cycle(m->f, m->r.a, &cycle, &n)) {
        return;
    }
    shown = n <= CYCLE_NAMES_MAX ? n : CYCLE_NAMES_MAX;
    for (uint32_t i = 0; i < shown; i++) { /* each leads to the next */
        gl_buf_fmt(&names, "%.*s -> ", GL_STR_ARG(gl_flow_step(m->f, cycle[i])->id));
    }
    if (shown < n) {
        gl_buf_fmt(&names, "... (%u more) -> ", n - shown);
    }
    gl_buf_str(&names, gl_flow_step(m->f, cycle[0])->id);
    gl_manifest_error(m, m->graph_edges_at, NULL, GL_REASON_DEPENDENCY_CYCLE,
                      "the edges form a cycle: %.*s", GL_STR_ARG(gl_buf_view(&names)));
    gl_buf_done(&names);
}

/* A field of the workflow that names a step; -1 if it is absent or names none. */
static int64_t named_step(struct gl_manifest *m, const char *key)
{
    struct gl_manifest_step *step;
    gl_str id;

    if (m->steps_n == 0 || !gl_manifest_text(m, m->graph, key, &id)) {
        return -1;
    }
    step = gl_map_find(&m->steps_by, id);
    if (step == NULL && gl_map_find(&m->by_id, id) == NULL) {
        gl_manifest_unknown(m, gl_manifest_get(m, m->graph, key), GL_REASON_UNKNOWN_STEP, "step",
                            &m->steps_by, id);
    }
    return step != NULL ? step - m->steps : -1;
}

static void check_reached(struct gl_manifest *m, uint32_t source)
{
    uint32_t *queue = GL_NEW_ARRAY(m->r.a, uint32_t, m->f->steps.n);
    bool *reached = GL_NEW_ARRAY(m->r.a, bool, m->f->steps.n);
    size_t head = 0, tail = 0;

    queue[tail++] = (uint32_t)m->nodes_n + source;
    reached[queue[0]] = true;
    while (head < tail) {
        const struct gl_step_spec *s = gl_flow_step(m->f, queue[head++]);

        for (uint32_t k = 0; k < s->children_n; k++) {
            if (!reached[s->children[k]]) {
                reached[s->children[k]] = true;
                queue[tail++] = s->children[k];
            }
        }
    }
    for (size_t i = 0; i < m->steps_n; i++) {
        if (!reached[m->nodes_n + i]) {
            gl_manifest_error(m, m->steps[i].n, NULL, GL_REASON_STEP_UNREACHABLE,
                              "step `%.*s` cannot be reached from the source, `%.*s`",
                              GL_STR_ARG(m->steps[i].id), GL_STR_ARG(m->steps[source].id));
        }
    }
}

static void check_ends(struct gl_manifest *m)
{
    int64_t source = named_step(m, "source"), entry = named_step(m, "entrypoint");

    (void)named_step(m, "sink");
    if (source >= 0 && entry >= 0 && source != entry) {
        gl_manifest_error(m, m->graph, "source", GL_REASON_SOURCE_AND_ENTRYPOINT,
                          "`source` and `entrypoint` must be the same step");
        return;
    }
    source = source >= 0 ? source : entry;
    if (source >= 0) {
        check_reached(m, (uint32_t)source);
    }
}

static void check_bindings(struct gl_manifest *m)
{
    gl_jnode n = m->bindings_at;

    if (m->steps_n == 0) {
        return;
    }
    for (gl_jnode e = gl_json_first(m->r.j, n); e; e = gl_json_after(m->r.j, n, e)) {
        gl_str key = gl_json_str(m->r.j, e, m->r.a);

        if (gl_map_find(&m->steps_by, key) == NULL && gl_map_find(&m->templates_by, key) == NULL &&
            gl_map_find(&m->runs_by, key) == NULL) {
            gl_manifest_unknown(m, e, GL_REASON_UNKNOWN_STEP, "step or template", &m->steps_by,
                                key);
        }
    }
}

/* The agent of a step must not end the job. */
static void check_completion(struct gl_manifest *m)
{
    const struct gl_agent_spec *agents = m->b->agents.items;

    for (size_t i = 0; i < m->nodes_n; i++) {
        if (m->nodes[i].is_bound && agents[i].complete_run) {
            gl_manifest_error(m, gl_manifest_get(m, m->nodes[i].config, "complete_run"), NULL,
                              GL_REASON_ENDS_TWICE,
                              "agent `%.*s` runs a step, so it cannot have `complete_run`: leave "
                              "the end of the job to a terminal sink that runs no step",
                              GL_STR_ARG(m->nodes[i].id));
        }
    }
}

/* All of it. */

static void take_given(struct gl_manifest *m)
{
    struct gl_json j;
    struct gl_why why;
    gl_str config = m->given->config.n > 0 ? m->given->config : GL_S("{}");

    if (gl_json_parse(&j, config, GL_INPUTS_BYTES_MAX, m->r.a, &why) != 0 ||
        !gl_json_is(gl_json_root(&j), GL_JSON_OBJECT) || j.depth > GL_VALUE_DEPTH_MAX) {
        gl_manifest_error(m, m->root, NULL, GL_REASON_CONFIG_NOT_OBJECT,
                          "its configuration must be a JSON object");
    }
    if (m->given->scenario.n > 0 &&
        (gl_json_parse(&j, m->given->scenario, GL_ARG_BYTES_MAX, m->r.a, &why) != 0 ||
         j.depth > GL_VALUE_DEPTH_MAX)) {
        gl_manifest_error(
            m, m->root, NULL, GL_REASON_SCENARIO_INVALID,
            "scenario.json must be a JSON document of at most %d bytes (workers get it in "
            "one variable)",
            GL_ARG_BYTES_MAX);
    }
    if (m->given->payloads.n > GL_PAYLOADS_MAX) {
        gl_manifest_error(m, m->root, NULL, GL_REASON_TOO_MANY, "a bundle has at most %d files",
                          GL_PAYLOADS_MAX);
    }
    m->b->config = config;
    m->b->scenario = m->given->scenario;
    m->b->payloads = m->given->payloads;
    m->b->hash = m->given->hash;
}

static void compile(struct gl_manifest *m)
{
    gl_manifest_read(m, GL_TABLE_MANIFEST, m->root, &m->b->policies);
    read_identity(m);
    gl_manifest_policies(m);
    gl_manifest_skills(m);
    gl_manifest_nodes(m);
    gl_manifest_edges(m);
    gl_manifest_steps(m);
    gl_manifest_graph(m);
    gl_manifest_dynamic(m);
    gl_manifest_seeds(m);
    check_bindings(m);
    check_completion(m);
    gl_flow_graph_index(m->f, m->r.a);
    gl_flow_graph_link(m->f, m->r.a);
    report_cycle(m);
    check_ends(m);
    take_given(m);
    gl_manifest_lint(m);
    m->b->notes = (struct gl_strs){.items = gl_arena_copy(m->r.a, m->notes.p, m->notes.n),
                                   .n = m->notes.n / sizeof(gl_str)};
}

/* Whether the compiled form could be too large to be read back. Apart from what was counted, it is
 * less than sixteen times as long as the manifest. */
static void check_size(struct gl_manifest *m)
{
    const struct gl_payload *payloads = m->b->payloads.items;
    size_t bytes = m->r.j->text.n * 16 + m->expansion_bytes + m->b->config.n + m->b->scenario.n;
    struct gl_buf out = {0};

    for (size_t i = 0; i < m->b->payloads.n; i++) {
        bytes += payloads[i].path.n * 6 + 128;
    }
    if (bytes <= GL_FLOW_BYTES_MAX) {
        return;
    }
    gl_flow_encode(m->f, &out);
    if (out.n > GL_FLOW_BYTES_MAX) {
        gl_manifest_error(m, m->root, NULL, GL_REASON_TOO_LARGE,
                          "the bundle has %zu bytes when compiled; at most %d are allowed", out.n,
                          GL_FLOW_BYTES_MAX);
    }
    gl_buf_done(&out);
}

/* A bundle that was accepted must also be accepted when read back: an error here is a bug, so it
 * has no place in the manifest. */
static void finish(struct gl_manifest *m)
{
    struct gl_why why;

    check_size(m);
    if (gl_flow_check(m->f, &why) != 0 || gl_flow_refs_link(m->f, m->r.a, &why) != 0 ||
        gl_bundle_link(m->f, m->r.a, &why) != 0) {
        gl_flow_read_error(&m->r, NULL, (struct gl_flow_path){0}, why.reason, "%s", why.text);
    }
}

static void sort_errors(struct gl_flow_errors *all)
{
    for (size_t i = 1; i < all->n; i++) {
        struct gl_flow_error e = all->items[i];
        size_t k = i;

        for (; k > 0; k--) {
            const struct gl_flow_error *before = &all->items[k - 1];

            if (before->line < e.line || (before->line == e.line && before->column <= e.column)) {
                break;
            }
            all->items[k] = *before;
        }
        all->items[k] = e;
    }
}

static void done(struct gl_manifest *m)
{
    gl_map_done(&m->by_id);
    gl_map_done(&m->steps_by);
    gl_map_done(&m->edges_by);
    gl_map_done(&m->inputs_by);
    gl_map_done(&m->binding_by);
    gl_map_done(&m->runs_by);
    gl_map_done(&m->templates_by);
    gl_buf_done(&m->notes);
}

int gl_manifest_parse(const struct gl_json *j, gl_jnode root, const struct gl_manifest_given *given,
                      struct gl_arena *a, struct gl_flow **ret, struct gl_flow_errors *reterr)
{
    struct gl_manifest m = {.r = {.j = j, .a = a, .errors = reterr}, .given = given, .root = root};

    *reterr = (struct gl_flow_errors){0};
    m.f = GL_NEW(a, struct gl_flow);
    m.b = m.f->bundle = GL_NEW(a, struct gl_bundle_spec);
    m.r.flow = m.f;
    if (j->text.n > GL_MANIFEST_BYTES_MAX) {
        gl_manifest_error(&m, root, NULL, GL_REASON_TOO_LARGE, "a manifest has at most %d bytes",
                          GL_MANIFEST_BYTES_MAX);
    } else if (gl_manifest_config_bindings(&m) && gl_manifest_find_form(&m)) {
        compile(&m);
    }
    if (reterr->total == 0) {
        finish(&m);
    }
    done(&m);
    if (reterr->total > 0) {
        sort_errors(reterr);
        return GL_E_INVALID;
    }
    *ret = m.f;
    return 0;
}
