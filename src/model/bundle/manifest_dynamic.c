/* Compiles `dynamic`: templates, regions and limits of changes to a running job's graph. */
#include "base/check.h"
#include "model/bundle/manifest_read.h"

enum {
    PATCHES = 64,
    FANOUT_PATCHES = 10000,
    ACTIVE = 128,
    OPERATIONS = 64,
    REGIONS_MAX = 10000,
};

/* [{id, ...}] or {id: {...}}. */
static gl_jnode entries(struct gl_manifest *m, gl_jnode dynamic, const char *key, const char *what)
{
    gl_jnode n = gl_manifest_get(m, dynamic, key);

    if (n == NULL || (!gl_json_is(n, GL_JSON_ARRAY) && !gl_json_is(n, GL_JSON_OBJECT)) ||
        n->count == 0 || n->count > REGIONS_MAX) {
        gl_manifest_error(m, n != NULL ? n : dynamic, n != NULL ? NULL : key, GL_REASON_TOO_MANY,
                          "expected a list of 1 to %d %s", REGIONS_MAX, what);
        return NULL;
    }
    return n;
}

static bool entry_id(struct gl_manifest *m, gl_jnode e, gl_jnode value, const char *other,
                     gl_str *ret)
{
    if (!gl_manifest_expect(m, value, GL_JSON_OBJECT, "an object")) {
        return false;
    }
    if (e->is_key) {
        *ret = gl_json_str(m->r.j, e, m->r.a);
    } else if (!gl_manifest_text(m, value, "id", ret) && !gl_manifest_text(m, value, other, ret)) {
        if (gl_manifest_either(m, value, "id", other) == NULL) {
            gl_manifest_error(m, value, "id", GL_REASON_MISSING, "it is missing");
        }
        return false;
    }
    return gl_manifest_check_step_id(m, value, *ret);
}

/* Templates. */

/* Includes what its agent's node adds, so that the patch code need not look there. */
static gl_str template_control(struct gl_manifest *m, const struct gl_step_spec *s)
{
    static const char *const policies[] = {"fail_workflow", "continue_partial", "skip"};
    struct gl_buf out = {0};
    struct gl_jw w;
    gl_str ret;

    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    gl_jw_key(&w, "trigger_rule");
    gl_jw_c(&w, gl_rule_words[s->rule]);
    gl_jw_key(&w, "failure_policy");
    gl_jw_c(&w, policies[s->on_failure]);
    gl_jw_key(&w, "timeout_ms");
    gl_jw_i64(&w, s->timeout_ms);
    gl_jw_key(&w, "beacon_timeout_ms");
    gl_jw_i64(&w, s->heartbeat_ms);
    gl_jw_key(&w, "max_attempts");
    gl_jw_u64(&w, s->retry.attempts);
    gl_jw_key(&w, "retry_backoff_ms");
    gl_jw_i64(&w, s->retry.backoff_ms);
    gl_jw_key(&w, "retry_backoff_pct");
    gl_jw_u64(&w, s->retry.factor_pct);
    gl_jw_end(&w);
    ret = gl_str_dup(m->r.a, gl_buf_view(&out));
    gl_buf_done(&out);
    return ret;
}

static bool read_template(struct gl_manifest *m, gl_jnode e, struct gl_map *known,
                          struct gl_template *ret)
{
    gl_jnode n = e->is_key ? gl_json_value(e) : e;
    struct gl_step_spec s = {0};
    struct gl_strs agents;

    if (!entry_id(m, e, n, "template_id", &ret->id)) {
        return false;
    }
    if (gl_map_find(&m->steps_by, ret->id) != NULL || gl_map_find(known, ret->id) != NULL) {
        gl_manifest_error(m, n, "id", GL_REASON_ID_TAKEN,
                          "a step or another template already has the id `%.*s`",
                          GL_STR_ARG(ret->id));
        return false;
    }
    gl_map_add(known, ret->id, ret);
    agents = gl_manifest_step_agents(m, n, ret->id);
    if (agents.n == 0) {
        return false;
    }
    ret->agent = agents.items[0];
    gl_manifest_read(m, GL_TABLE_TEMPLATE, n, &s);
    gl_manifest_control(m, n, gl_map_find(&m->by_id, ret->agent), &s);
    gl_manifest_rule(m, n, UINT32_MAX, &s);
    if (s.rule == GL_RULE_QUORUM) {
        gl_manifest_error(
            m, n, "trigger_rule", GL_REASON_QUORUM_IN_TEMPLATE,
            "a template cannot have a quorum: it is not known yet how many edges there "
            "will be");
    }
    ret->label = s.label;
    ret->control = template_control(m, &s);
    return true;
}

static void read_templates(struct gl_manifest *m, gl_jnode dynamic, struct gl_map *known)
{
    gl_jnode list = entries(m, dynamic, "templates", "templates");
    struct gl_template *templates;
    size_t n = 0;

    if (list == NULL) {
        return;
    }
    templates = GL_NEW_ARRAY(m->r.a, struct gl_template, list->count);
    for (gl_jnode e = gl_json_first(m->r.j, list); e; e = gl_json_after(m->r.j, list, e)) {
        n += read_template(m, e, known, &templates[n]) ? 1 : 0;
    }
    m->b->dynamic.templates = (struct gl_items){.items = templates, .n = n};
}

/* Regions. */

static void read_region_templates(struct gl_manifest *m, gl_jnode n, const struct gl_map *known,
                                  struct gl_region *ret)
{
    const struct gl_template *all = m->b->dynamic.templates.items;
    gl_str *items;

    for (size_t i = 0; i < ret->templates.n; i++) {
        if (gl_map_find(known, ret->templates.items[i]) == NULL) {
            gl_jnode e = gl_manifest_element(m, gl_manifest_get(m, n, "templates"), i);

            gl_manifest_unknown(m, e, GL_REASON_UNKNOWN_TEMPLATE, "template", known,
                                ret->templates.items[i]);
        }
    }
    if (gl_manifest_get(m, n, "templates") == NULL &&
        gl_manifest_add_expansion(m, n, m->b->dynamic.templates.n * 64)) {
        items = GL_NEW_ARRAY(m->r.a, gl_str, m->b->dynamic.templates.n);
        for (size_t i = 0; i < m->b->dynamic.templates.n; i++) {
            items[i] = all[i].id;
        }
        ret->templates = (struct gl_strs){.items = items, .n = m->b->dynamic.templates.n};
    }
}

static void check_mutable(struct gl_manifest *m, gl_jnode n, gl_str id, const struct gl_region *r,
                          struct gl_map *owned)
{
    const struct gl_manifest_edge *edge = gl_map_find(&m->edges_by, id);

    if (edge == NULL) {
        gl_manifest_unknown(m, n, GL_REASON_UNKNOWN_EDGE, "edge", &m->edges_by, id);
    } else if (!gl_str_eq(m->steps[edge->from].id, r->controller) ||
               !gl_str_eq(m->steps[edge->to].id, r->exit)) {
        gl_manifest_error(m, n, NULL, GL_REASON_EDGE_OUTSIDE_REGION,
                          "edge `%.*s` does not lead from the region's controller to its exit",
                          GL_STR_ARG(gl_flow_read_clip(id)));
    } else if (gl_map_find(owned, id) != NULL) {
        gl_manifest_error(m, n, NULL, GL_REASON_EDGE_SHARED,
                          "edge `%.*s` already belongs to another region",
                          GL_STR_ARG(gl_flow_read_clip(id)));
    } else {
        gl_map_add(owned, id, (void *)(uintptr_t)edge);
    }
}

static void read_mutable(struct gl_manifest *m, gl_jnode region, struct gl_region *r,
                         struct gl_map *owned)
{
    gl_jnode n = gl_manifest_get(m, region, "mutable_edges");

    if (r->is_fanout) {
        if (r->mutable_edges.n > 0) {
            gl_manifest_error(
                m, n, NULL, GL_REASON_REGION_EDGES_UNWANTED,
                "a region with the strategy checkpoint_fanout cannot have `mutable_edges`");
        }
        return;
    }
    if (r->mutable_edges.n == 0) {
        gl_manifest_error(m, region, "mutable_edges", GL_REASON_MISSING,
                          "replace_path needs `mutable_edges`: those from controller to exit that "
                          "may be replaced");
    }
    for (size_t i = 0; i < r->mutable_edges.n; i++) {
        check_mutable(m, gl_manifest_element(m, n, i), r->mutable_edges.items[i], r, owned);
    }
}

static bool read_region(struct gl_manifest *m, gl_jnode e, const struct gl_map *templates,
                        struct gl_map *owned, struct gl_region *ret)
{
    gl_jnode n = e->is_key ? gl_json_value(e) : e;

    *ret = (struct gl_region){0};
    if (!entry_id(m, e, n, "region_id", &ret->id)) {
        return false;
    }
    gl_manifest_read(m, GL_TABLE_REGION, n, ret);
    if (!ret->is_fanout && gl_manifest_either(m, n, "exit", "exit_step") == NULL) {
        gl_manifest_error(m, n, "exit", GL_REASON_MISSING, "it is missing: the id of a step");
    }
    read_region_templates(m, n, templates, ret);
    read_mutable(m, n, ret, owned);
    return true;
}

static bool read_regions(struct gl_manifest *m, gl_jnode dynamic, const struct gl_map *templates)
{
    gl_jnode list = entries(m, dynamic, "regions", "regions");
    struct gl_region *regions;
    struct gl_map owned = {0}, ids = {0};
    bool has_fanout = false;
    size_t n = 0;

    if (list == NULL) {
        return false;
    }
    gl_map_init(&owned);
    gl_map_init(&ids);
    regions = GL_NEW_ARRAY(m->r.a, struct gl_region, list->count);
    for (gl_jnode e = gl_json_first(m->r.j, list); e; e = gl_json_after(m->r.j, list, e)) {
        if (!read_region(m, e, templates, &owned, &regions[n])) {
            continue;
        }
        if (gl_map_find(&ids, regions[n].id) != NULL) {
            gl_manifest_error(m, e, "id", GL_REASON_ID_TAKEN,
                              "another region already has the id `%.*s`",
                              GL_STR_ARG(regions[n].id));
            continue;
        }
        gl_map_add(&ids, regions[n].id, &regions[n]);
        has_fanout = has_fanout || regions[n].is_fanout;
        n++;
    }
    gl_map_done(&owned);
    gl_map_done(&ids);
    m->b->dynamic.regions = (struct gl_items){.items = regions, .n = n};
    return has_fanout;
}

static void read_limits(struct gl_manifest *m, gl_jnode dynamic, bool has_fanout)
{
    gl_jnode limits = gl_manifest_object(m, dynamic, "limits");
    struct gl_dynamic *d = &m->b->dynamic;

    limits = limits != NULL ? limits : dynamic;
    d->patches_max = has_fanout ? FANOUT_PATCHES : PATCHES;
    d->active_max = ACTIVE;
    d->operations_max = OPERATIONS;
    gl_manifest_read(m, GL_TABLE_LIMITS, limits, d);
}

static bool is_dynamic(struct gl_manifest *m, gl_jnode dynamic)
{
    static const char *const modes[] = {"static_dag", "dynamic_dag", NULL};
    static const char *const times[] = {"between_steps", NULL};
    bool enabled = m->b->dynamic.enabled;
    uint8_t mode = 0, time = 0;

    if (!gl_manifest_word(m, m->graph, "mode", modes, &mode) &&
        gl_manifest_get(m, m->graph, "mode") != NULL) {
        return false;
    }
    if (mode == 1 && !enabled) {
        gl_manifest_error(m, m->graph, "mode", GL_REASON_DYNAMIC_DISABLED,
                          "`dynamic_dag` needs `dynamic.enabled: true`");
        return false;
    }
    if (enabled && mode == 0 && gl_manifest_get(m, m->graph, "mode") != NULL) {
        gl_manifest_note(m,
                         "workflow.mode is static_dag, but dynamic.enabled is true: the steps may "
                         "change while the job runs");
    }
    if (enabled) {
        (void)gl_manifest_word(m, dynamic, "apply_at", times, &time);
        if (gl_manifest_get(m, dynamic, "apply_at") == NULL) {
            gl_manifest_error(m, dynamic, "apply_at", GL_REASON_MISSING,
                              "it is missing: it must be \"between_steps\"");
        }
    }
    return enabled;
}

void gl_manifest_dynamic(struct gl_manifest *m)
{
    gl_jnode dynamic = gl_manifest_object(m, m->graph, "dynamic");
    bool has_fanout;

    gl_manifest_read(m, GL_TABLE_DYNAMIC, dynamic, &m->b->dynamic);
    if (m->graph == NULL || !is_dynamic(m, dynamic)) {
        return;
    }
    read_templates(m, dynamic, &m->templates_by);
    has_fanout = read_regions(m, dynamic, &m->templates_by);
    read_limits(m, dynamic, has_fanout);
}
