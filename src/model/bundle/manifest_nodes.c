/* The agents: nodes of the message graph, or workers of bindings. */
#include "base/check.h"
#include "model/bundle/manifest_read.h"
#include "model/flow/flow_graph.h"

/* Collecting the agents. */

static gl_str node_id(struct gl_manifest *m, gl_jnode n)
{
    gl_jnode id =
        m->form == GL_MANIFEST_BINDINGS ? NULL : gl_manifest_either(m, n, "node_id", "id");
    gl_str ret = m->form == GL_MANIFEST_BINDINGS ? gl_manifest_worker_id(m, n)
                                                 : gl_json_str(m->r.j, id, m->r.a);

    if (ret.n == 0) {
        gl_manifest_error(m, n, m->form == GL_MANIFEST_BINDINGS ? "id" : "node_id",
                          GL_REASON_MISSING, "it is missing: each agent needs an id");
    } else if (!gl_str_is_id(ret)) {
        gl_manifest_error(
            m, id != NULL ? id : n, NULL, GL_REASON_NAME_INVALID,
            "`%.*s` is not a valid id: use 1 to 128 ASCII letters, digits, _ . and -, and "
            "do not begin with . or -",
            GL_STR_ARG(gl_flow_read_clip(ret)));
        ret.n = 0;
    }
    return ret;
}

/* In the catalog form the later of two wins, for compatibility. */
static void add_node(struct gl_manifest *m, gl_jnode n)
{
    struct gl_manifest_node *node = &m->nodes[m->nodes_n], *same;

    if (!gl_manifest_expect(m, n, GL_JSON_OBJECT, "an agent (an object)")) {
        return;
    }
    node->id = node_id(m, n);
    if (node->id.n == 0) {
        return;
    }
    same = gl_map_find(&m->by_id, node->id);
    if (same != NULL && (m->form == GL_MANIFEST_SUBMITTED || m->form == GL_MANIFEST_OLDER)) {
        gl_manifest_error(m, n, NULL, GL_REASON_ID_TAKEN, "another agent already has the id `%.*s`",
                          GL_STR_ARG(node->id));
        return;
    }
    if (same != NULL && m->form == GL_MANIFEST_CATALOG && gl_manifest_note_has_room(m)) {
        gl_manifest_note(m, "%.*s: agent `%.*s` is defined twice; this definition is used",
                         GL_STR_ARG(gl_manifest_path(m, n)), GL_STR_ARG(node->id));
    }
    if (same == NULL) {
        gl_map_add(&m->by_id, node->id, node);
        m->nodes_n++;
        same = node;
    }
    same->n = n;
    same->config = gl_manifest_object(
        m, n,
        m->form == GL_MANIFEST_BINDINGS && gl_manifest_get(m, n, "with") != NULL ? "with"
                                                                                 : "config");
}

static uint64_t count_workers(struct gl_manifest *m)
{
    uint64_t n = 0;

    for (gl_jnode e = gl_json_first(m->r.j, m->bindings_at); e;
         e = gl_json_after(m->r.j, m->bindings_at, e)) {
        gl_jnode workers = gl_manifest_list(m, gl_json_value(e), "workers");

        n += workers != NULL ? workers->count : 0;
    }
    return n;
}

static void list_workers(struct gl_manifest *m)
{
    for (gl_jnode e = gl_json_first(m->r.j, m->bindings_at); e;
         e = gl_json_after(m->r.j, m->bindings_at, e)) {
        gl_jnode workers = gl_json_get(m->r.j, gl_json_value(e), "workers");

        for (gl_jnode w = gl_json_is(workers, GL_JSON_ARRAY) ? gl_json_first(m->r.j, workers)
                                                             : NULL;
             w; w = gl_json_after(m->r.j, workers, w)) {
            add_node(m, w);
        }
    }
}

static void list_nodes(struct gl_manifest *m)
{
    bool has_bindings = m->form == GL_MANIFEST_BINDINGS;
    gl_jnode n = m->nodes_at;
    uint64_t count = has_bindings ? count_workers(m) : gl_json_is(n, GL_JSON_ARRAY) ? n->count : 0;

    if (n != NULL && !gl_manifest_expect(m, n, GL_JSON_ARRAY, "a list of agents")) {
        return;
    }
    if (count == 0 || count > GL_AGENTS_MAX) {
        const char *const where[] = {"agents.nodes", "flow.nodes", "runtime.bindings", "nodes"};

        gl_manifest_error(m, n != NULL ? n : m->root, n != NULL ? NULL : where[m->form],
                          GL_REASON_TOO_MANY_AGENTS, "a bundle has 1 to %d agents, not %llu",
                          GL_AGENTS_MAX, (unsigned long long)count);
        return;
    }
    m->nodes = GL_NEW_ARRAY(m->r.a, struct gl_manifest_node, count + 1);
    if (has_bindings) {
        list_workers(m);
        return;
    }
    for (gl_jnode e = gl_json_first(m->r.j, n); e; e = gl_json_after(m->r.j, n, e)) {
        add_node(m, e);
    }
}

/* Their types and settings. */

static bool kind_of(gl_str word, uint8_t *ret)
{
    static const struct {
        const char *word;
        uint8_t kind;
    } aliases[] = {
        {"sandbox_worker", GL_AGENT_EXECUTOR},
        {"collector", GL_AGENT_AGGREGATOR},
        {"relay", GL_AGENT_ROUTER},
    };
    int kind = gl_schema_word(gl_agent_kind_words, word);

    for (size_t i = 0; i < GL_COUNT(aliases) && kind < 0; i++) {
        kind = gl_str_is(word, aliases[i].word) ? aliases[i].kind : -1;
    }
    *ret = kind >= 0 ? (uint8_t)kind : *ret;
    return kind >= 0;
}

static void read_kind(struct gl_manifest *m, struct gl_manifest_node *node)
{
    gl_jnode n = gl_manifest_either(m, node->n, "agent_type", "agentType");
    gl_str word = gl_json_str(m->r.j, n, m->r.a);

    if (n == NULL && m->form == GL_MANIFEST_BINDINGS) {
        node->kind = gl_manifest_worker_kind(m, node->n);
        node->is_declared = true;
    } else if (n == NULL && gl_manifest_is_set(gl_manifest_get(m, node->n, "uses"))) {
        gl_manifest_error(
            m, node->n, "uses", GL_REASON_FORM_UNSUPPORTED,
            "it takes an agent from a template, which MirrorNeuron's SDK resolves and "
            "this release does not; write `agent_type` and `config`");
    } else if (n == NULL) {
        gl_manifest_error(m, node->n, "agent_type", GL_REASON_MISSING,
                          "it is missing: executor, aggregator, router, sensor or module");
    } else if (gl_str_is(word, "step_source") || gl_str_is(word, "step_join") ||
               gl_str_is(word, "step_sink")) {
        gl_manifest_error(m, n, NULL, GL_REASON_UNSUPPORTED,
                          "this release does not support agents of the type `%.*s`",
                          GL_STR_ARG(word));
    } else if (!kind_of(word, &node->kind)) {
        gl_manifest_error(m, n, NULL, GL_REASON_UNKNOWN_AGENT_TYPE,
                          "unknown agent type `%.*s`: use executor, aggregator, router, "
                          "sensor or module%s",
                          GL_STR_ARG(gl_flow_read_clip(word)),
                          gl_manifest_near(m, gl_agent_kind_words, word));
    } else {
        node->is_declared = true;
    }
}

static void read_template_type(struct gl_manifest *m, const struct gl_manifest_node *node,
                               struct gl_agent_spec *a)
{
    static const char *const words[] = {"generic", "stream",      "map", "reduce",
                                        "batch",   "accumulator", NULL};
    static const uint8_t fits[GL_AGENT_KIND_COUNT] = {
        [GL_AGENT_EXECUTOR] = 31,  [GL_AGENT_MODULE] = 31, [GL_AGENT_AGGREGATOR] = 1 | 8,
        [GL_AGENT_ROUTER] = 1 | 4, [GL_AGENT_SENSOR] = 1,
    };
    const char *key = gl_manifest_get(m, node->n, "type") != NULL ? "type" : "kind";
    uint8_t word = 0;

    if (m->form == GL_MANIFEST_BINDINGS && gl_manifest_get(m, node->n, "type") == NULL &&
        gl_schema_word(words, gl_json_str(m->r.j, gl_manifest_get(m, node->n, "kind"), m->r.a)) <
            0) {
        a->template_type = GL_S("generic");
        return; /* `kind` of a worker may be any word */
    }
    (void)gl_manifest_word(m, node->n, key, words, &word);
    word = word == 5 ? 3 : word;
    a->template_type = gl_str_of(words[word]);
    if (node->is_declared && (fits[node->kind] >> word & 1) == 0) {
        gl_manifest_error(m, node->n, key, GL_REASON_WRONG_TEMPLATE,
                          "%s %s cannot be of the template `%s`",
                          node->kind == GL_AGENT_AGGREGATOR ? "an" : "a",
                          gl_agent_kind_words[node->kind], words[word]);
    }
}

void gl_manifest_runtime_driver(struct gl_manifest *m, gl_jnode obj, const char *key, void *into)
{
    gl_str driver = {0};

    (void)into;
    if (gl_manifest_text(m, obj, key, &driver) && !gl_str_is(driver, "host_local")) {
        gl_manifest_error(m, obj, key, GL_REASON_UNSUPPORTED,
                          "this release does not support the driver `%.*s`, only host_local",
                          GL_STR_ARG(gl_flow_read_clip(driver)));
    }
}

static void compile_node(struct gl_manifest *m, size_t i)
{
    struct gl_manifest_node *node = &m->nodes[i];
    struct gl_agent_spec *a = &((struct gl_agent_spec *)m->b->agents.items)[i];
    struct gl_manifest_config c = {.node = node, .unit = gl_flow_graph_step(m->f, i)};
    gl_jnode policies = gl_manifest_object(m, node->n, "policies");

    read_kind(m, node);
    gl_manifest_agent(m, node, &c);
    read_template_type(m, node, &c.agent);
    gl_manifest_process(m, &c);
    *a = c.agent;
    gl_manifest_read(m, GL_TABLE_NODE, node->n, a);
    gl_manifest_read(m, GL_TABLE_RESOURCES, gl_manifest_object(m, node->n, "resources"), m);
    if (gl_manifest_is_set(gl_manifest_get(m, policies, "restart")) ||
        gl_manifest_get(m, policies, "max_agent_restart_attempts") != NULL) {
        a->has_restart = true;
        a->restart = m->b->policies.restart;
    }
    gl_manifest_restart(m, policies, a->has_restart ? &a->restart : &(struct gl_restart){0});
    if (m->b->policies.recovery_mode == GL_RECOVERY_MANUAL_RECOVER) {
        a->restart.attempts = 0;
    }
}

/* Resources that agents request and Glia ignores. */
static void note_resources(struct gl_manifest *m)
{
    const struct gl_manifest_table *t = &gl_manifest_tables[GL_TABLE_RESOURCES];

    for (size_t i = 0; i < t->n; i++) {
        uint32_t n = t->rows[i].how == GL_READ_COUNTED
                         ? *(const uint32_t *)((const char *)m + t->rows[i].at)
                         : 0;

        if (n > 0) {
            gl_manifest_note(m,
                             "resources.%s of %u agent%s has no effect: %s is neither limited nor "
                             "reserved",
                             t->rows[i].name, n, n == 1 ? "" : "s", t->rows[i].what);
        }
    }
}

static void note_runners(struct gl_manifest *m)
{
    if (m->unnamed_runners_n == 1) {
        gl_manifest_note(m,
                         "agent `%.*s` names no runner_module: it runs as a process of the node, "
                         "without a sandbox",
                         GL_STR_ARG(m->unnamed_runner));
    } else if (m->unnamed_runners_n > 1) {
        gl_manifest_note(m,
                         "%u agents (the first is `%.*s`) name no runner_module: they run as "
                         "processes of the node, without a sandbox",
                         m->unnamed_runners_n, GL_STR_ARG(m->unnamed_runner));
    }
}

void gl_manifest_nodes(struct gl_manifest *m)
{
    size_t steps_n = gl_json_is(m->steps_at, GL_JSON_ARRAY) ? m->steps_at->count : 0;

    list_nodes(m);
    if (m->nodes_n + steps_n > GL_STEPS_MAX) {
        steps_n = 0; /* gl_manifest_steps() reports it */
    }
    m->b->agents =
        (struct gl_items){GL_NEW_ARRAY(m->r.a, struct gl_agent_spec, m->nodes_n + 1), m->nodes_n};
    m->f->steps.items = GL_NEW_ARRAY(m->r.a, struct gl_step_spec, m->nodes_n + steps_n + 1);
    m->f->steps.n = m->nodes_n;
    for (size_t i = 0; i < m->nodes_n; i++) {
        compile_node(m, i);
    }
    note_runners(m);
    note_resources(m);
}
