/* patch_ops.c - the operations of a patch: add and remove steps and edges. */
#include "base/check.h"
#include "base/limits.h"
#include "model/bundle/patch_parts.h"
#include "model/flow/flow_check.h"

#define SPAN_MS_MAX ((gl_ms)3650 * 24 * 3600 * 1000) /* ten years, the limit in flows */

/* Names. */

static gl_str clip(gl_str s)
{
    s.n = s.n < 128 ? s.n : 128;
    return s;
}

/* [A-Za-z0-9][A-Za-z0-9_.:-]{0,127} */
static bool is_id(gl_str s)
{
    return gl_str_is_step_id(s) && s.p[0] != '@' && s.p[0] != '_' && s.p[0] != ':';
}

static int take_id(struct gl_patch *p, gl_jnode op, const char *name, const char *at, gl_str *ret)
{
    gl_jnode n = gl_json_get(&p->j, op, name);
    gl_str id = gl_json_str(&p->j, n, p->a);

    if (!is_id(id)) {
        return gl_why(
            p->why, GL_R_PATCH_STEP_ID_INVALID,
            "%s.%s: %s: an id has 1 to 128 ASCII letters, digits, _ . : and -, and begins "
            "with a letter or a digit",
            at, name, n == NULL ? "it is missing" : "that is not an id");
    }
    *ret = gl_str_dup(p->a, id);
    return 0;
}

/* Templates. */

static const struct gl_template *find_template(const struct gl_patch *p, gl_str id)
{
    const struct gl_dynamic *d = &p->f->bundle->dynamic;
    const struct gl_template *all = d->templates.items;
    bool is_known = false;

    for (size_t i = 0; i < p->region->templates.n; i++) {
        is_known = is_known || gl_str_eq(p->region->templates.items[i], id);
    }
    for (size_t i = 0; is_known && i < d->templates.n; i++) {
        if (gl_str_eq(all[i].id, id)) {
            return &all[i];
        }
    }
    return NULL;
}

static void take_span(const struct gl_json *j, const char *name, gl_ms *ret)
{
    int64_t v;

    if (gl_json_i64(j, gl_json_get(j, gl_json_root(j), name), &v) && v >= 0 && v <= SPAN_MS_MAX) {
        *ret = v;
    }
}

static void take_u32(const struct gl_json *j, const char *name, uint32_t least, uint32_t most,
                     uint32_t *ret)
{
    uint64_t v;

    if (gl_json_u64(j, gl_json_get(j, gl_json_root(j), name), &v) && v >= least && v <= most) {
        *ret = (uint32_t)v;
    }
}

/* As compiled from the manifest: includes what the agent's node adds. */
static void take_control(gl_str control, struct gl_arena *a, struct gl_step_spec *s)
{
    static const char *const policies[] = {"fail_workflow", "continue_partial", "skip", NULL};
    struct gl_json j;
    int word;

    if (control.n == 0 || gl_json_parse(&j, control, GL_FLOW_BYTES_MAX, a, NULL) != 0) {
        return;
    }
    word = gl_schema_word(gl_rule_words,
                          gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "trigger_rule"), a));
    s->rule = word >= 0 && word != GL_RULE_QUORUM ? (uint8_t)word : GL_RULE_ALL_SUCCESS;
    word = gl_schema_word(policies,
                          gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "failure_policy"), a));
    s->on_failure = word >= 0 ? (uint8_t)word : GL_ON_FAILURE_FAIL;
    take_span(&j, "timeout_ms", &s->timeout_ms);
    take_span(&j, "beacon_timeout_ms", &s->heartbeat_ms);
    take_u32(&j, "max_attempts", 1, GL_ATTEMPTS_MAX, &s->retry.attempts);
    take_span(&j, "retry_backoff_ms", &s->retry.backoff_ms);
    take_u32(&j, "retry_backoff_pct", 100, GL_FLOW_FACTOR_PCT_MAX, &s->retry.factor_pct);
    if (s->retry.attempts > 1 || s->retry.backoff_ms > s->retry.backoff_max_ms) {
        s->retry.backoff_max_ms = SPAN_MS_MAX;
    }
}

static struct gl_step_spec make_step(struct gl_patch *p, gl_str id, const struct gl_template *t)
{
    gl_str *agents = GL_NEW(p->a, gl_str);
    struct gl_step_spec s = {
        .id = id,
        .driver = GL_S("agent"),
        .is_bound = true,
        .pool = GL_S("default"),
        .slots = 1,
        .grace_ms = GL_GRACE_MS,
        .retry = GL_FLOW_RETRY_DEFAULT,
        .agent_ids = {.items = agents, .n = 1},
        .label = t->label,
        .template_id = t->id,
        .region_id = p->region->id,
        .patch_id = p->id,
    };

    *agents = t->agent;
    take_control(t->control, p->a, &s);
    return s;
}

/* Steps. */

bool gl_patch_is_instance(struct gl_patch *p, uint32_t number)
{
    const struct gl_step_spec *s = gl_patch_step(p, number);

    return s->template_id.n > 0 && !s->is_removed && gl_str_eq(s->region_id, p->region->id);
}

static bool is_ready(const struct gl_patch *p, uint32_t number)
{
    return number < p->old_n && p->job->is_ready != NULL && p->job->is_ready(p->job->owner, number);
}

static bool has_started(const struct gl_patch *p, uint32_t number)
{
    return number < p->old_n && p->job->has_started != NULL &&
           p->job->has_started(p->job->owner, number);
}

static int64_t find_step(const struct gl_patch *p, gl_str id)
{
    return (int64_t)(uintptr_t)gl_map_find(&p->steps, id) - 1;
}

static int take_with(struct gl_patch *p, gl_jnode op, const char *at, gl_str *ret)
{
    static const char *const names[] = {"with", "input", "step_input"};
    gl_jnode n = NULL;
    gl_str text;

    for (size_t i = 0; i < GL_COUNT(names) && n == NULL; i++) {
        n = gl_json_get(&p->j, op, names[i]);
    }
    if (n == NULL || n->type == GL_JSON_NULL) {
        *ret = (gl_str){0};
        return 0;
    }
    if (!gl_json_is(n, GL_JSON_OBJECT)) {
        return gl_why(p->why, GL_R_PATCH_WITH_INVALID, "%s.with: it is %s, not an object", at,
                      gl_json_type_name(n));
    }
    text = gl_json_raw(&p->j, n);
    if (text.n > GL_PATCH_WITH_BYTES_MAX) {
        return gl_why(p->why, GL_R_PATCH_WITH_TOO_LARGE,
                      "%s.with: it has %zu bytes; at most %d are allowed", at, text.n,
                      GL_PATCH_WITH_BYTES_MAX);
    }
    *ret = gl_str_dup(p->a, text);
    return 0;
}

static int take_label(struct gl_patch *p, gl_jnode op, const char *at, gl_str *ret)
{
    gl_jnode n = gl_json_get(&p->j, op, "label");

    if (n == NULL || n->type == GL_JSON_NULL) {
        return 0;
    }
    if (!gl_json_is(n, GL_JSON_STRING)) {
        return gl_why(p->why, GL_R_PATCH_LABEL_INVALID, "%s.label: it is %s, not text", at,
                      gl_json_type_name(n));
    }
    *ret = gl_str_dup(p->a, gl_json_str(&p->j, n, p->a));
    if (ret->n > GL_NAME_BYTES_MAX) {
        return gl_why(p->why, GL_R_PATCH_LABEL_TOO_LONG, "%s.label: it has more than %d bytes", at,
                      GL_NAME_BYTES_MAX);
    }
    return 0;
}

int gl_patch_add_step(struct gl_patch *p, gl_jnode op, const char *at)
{
    gl_str id, template_id, with = {0};
    const struct gl_template *t;
    struct gl_step_spec s;
    int64_t agent;
    int rc = take_id(p, op, "id", at, &id);

    rc = rc == 0 ? take_id(p, op, "template", at, &template_id) : rc;
    rc = rc == 0 ? take_with(p, op, at, &with) : rc;
    if (rc != 0) {
        return rc;
    }
    if (find_step(p, id) >= 0) {
        return gl_why(p->why, GL_R_PATCH_STEP_EXISTS, "%s.id: a step `%.*s` exists or existed", at,
                      GL_STR_ARG(id));
    }
    t = find_template(p, template_id);
    if (t == NULL) {
        return gl_why(p->why, GL_R_PATCH_NO_TEMPLATE,
                      "%s.template: the region `%.*s` has no template `%.*s`", at,
                      GL_STR_ARG(p->region->id), GL_STR_ARG(template_id));
    }
    agent = gl_flow_find_agent(p->f, t->agent);
    if (agent < 0) {
        return gl_why(p->why, GL_R_PATCH_NO_AGENT, "%s.template: there is no agent `%.*s`", at,
                      GL_STR_ARG(t->agent));
    }
    s = make_step(p, id, t);
    s.agent = (uint32_t)agent;
    rc = take_label(p, op, at, &s.label);
    if (rc != 0) {
        return rc;
    }
    GL_ASSERT(p->f->steps.n < p->room);
    p->with[p->f->steps.n - p->old_n] = with;
    *gl_patch_step(p, (uint32_t)p->f->steps.n) = s;
    p->f->steps.n++;
    gl_map_add(&p->steps, id, (void *)(uintptr_t)p->f->steps.n);
    return 0;
}

int gl_patch_remove_step(struct gl_patch *p, gl_jnode op, const char *at)
{
    gl_str id;
    int64_t number;
    int rc = take_id(p, op, "id", at, &id);

    if (rc != 0) {
        return rc;
    }
    number = find_step(p, id);
    if (number < 0 || !gl_patch_is_instance(p, (uint32_t)number)) {
        return gl_why(p->why, GL_R_PATCH_STEP_NOT_ADDED,
                      "%s.id: no patch added a step `%.*s` to the region `%.*s`", at,
                      GL_STR_ARG(id), GL_STR_ARG(p->region->id));
    }
    if (has_started(p, (uint32_t)number)) {
        return gl_why(p->why, GL_R_PATCH_STEP_STARTED, "%s.id: the step `%.*s` has started", at,
                      GL_STR_ARG(id));
    }
    gl_patch_step(p, (uint32_t)number)->is_removed = true;
    p->removed_n++;
    return 0;
}

/* Edges. */

static int take_end(struct gl_patch *p, gl_jnode op, const char *name, const char *at,
                    uint32_t *ret)
{
    gl_str id;
    int64_t number;
    int rc = take_id(p, op, name, at, &id);

    if (rc != 0) {
        return rc;
    }
    number = find_step(p, id);
    if (number < 0 || gl_patch_step(p, (uint32_t)number)->is_removed) {
        return gl_why(p->why, GL_R_PATCH_NO_STEP, "%s.%s: there is no step `%.*s`", at, name,
                      GL_STR_ARG(id));
    }
    if (number != p->controller && number != p->exit &&
        !gl_patch_is_instance(p, (uint32_t)number)) {
        return gl_why(p->why, GL_R_PATCH_STEP_OUTSIDE,
                      "%s.%s: the step `%.*s` is not in the region `%.*s`", at, name,
                      GL_STR_ARG(id), GL_STR_ARG(p->region->id));
    }
    *ret = (uint32_t)number;
    return 0;
}

/* A step that has started, or may start at any moment, is not changed: nothing can be added before
 * it, and a parent that has ended has already updated its children. The controller is running: it
 * ends after this. */
static int check_started(struct gl_patch *p, uint32_t from, uint32_t to, const char *at)
{
    uint32_t bad = to == p->controller || has_started(p, to)       ? to
                   : from != p->controller && has_started(p, from) ? from
                                                                   : UINT32_MAX;

    if (bad == UINT32_MAX && is_ready(p, to)) {
        return gl_why(p->why, GL_R_PATCH_STEP_READY, "%s: the step `%.*s` is ready to start", at,
                      GL_STR_ARG(gl_patch_step(p, to)->id));
    }
    if (bad == UINT32_MAX) {
        return 0;
    }
    return gl_why(p->why, GL_R_PATCH_TARGET_STARTED, "%s: the step `%.*s` has started", at,
                  GL_STR_ARG(gl_patch_step(p, bad)->id));
}

/* Its needs, as arrays of this flow with room for all operations. */
static struct gl_step_spec *own(struct gl_patch *p, uint32_t number)
{
    struct gl_step_spec *s = gl_patch_step(p, number);
    size_t room = (size_t)s->needs_n + p->operations_n;
    uint32_t *needs;
    gl_str *ids;
    struct gl_step_edge *edges;

    if (p->is_owned[number]) {
        return s;
    }
    p->is_owned[number] = true;
    needs = GL_NEW_ARRAY(p->a, uint32_t, room);
    ids = GL_NEW_ARRAY(p->a, gl_str, room);
    edges = GL_NEW_ARRAY(p->a, struct gl_step_edge, room);
    for (uint32_t i = 0; i < s->needs_n; i++) {
        needs[i] = s->needs[i];
        ids[i] = s->needs_ids.items[i];
        edges[i] = s->edges.n > 0 ? ((struct gl_step_edge *)s->edges.items)[i]
                                  : (struct gl_step_edge){.accepts = GL_ACCEPT_DONE};
    }
    s->needs = needs;
    s->needs_ids = (struct gl_strs){.items = ids, .n = s->needs_n};
    s->edges = (struct gl_items){.items = edges, .n = s->needs_n};
    return s;
}

static int take_accepts(struct gl_patch *p, gl_jnode op, const char *at, uint32_t *ret)
{
    static const char *const words[] = {"done", "completed", "partial", "skipped", "failed", NULL};
    static const uint32_t bits[] = {GL_ACCEPT_DONE, GL_ACCEPT_DONE, GL_ACCEPT_PARTIAL,
                                    GL_ACCEPT_SKIPPED, GL_ACCEPT_FAILED};
    gl_jnode list = gl_json_get(&p->j, op, "accepts");

    *ret = list == NULL || list->type == GL_JSON_NULL ? GL_ACCEPT_DONE : 0;
    if (*ret != 0) {
        return 0;
    }
    if (!gl_json_is(list, GL_JSON_ARRAY) || list->count == 0) {
        return gl_why(p->why, GL_R_PATCH_ACCEPTS_INVALID,
                      "%s.accepts: expected a list like [\"done\"]", at);
    }
    for (gl_jnode n = gl_json_first(&p->j, list); n != NULL; n = gl_json_after(&p->j, list, n)) {
        int word = gl_schema_word(words, gl_json_str(&p->j, n, p->a));

        if (word < 0) {
            return gl_why(p->why, GL_R_PATCH_ACCEPTS_UNKNOWN,
                          "%s.accepts: a step ends as done, partial, skipped or failed", at);
        }
        *ret |= bits[word];
    }
    return 0;
}

static int check_new_edge(struct gl_patch *p, gl_str id, uint32_t from, uint32_t to, const char *at)
{
    const struct gl_step_spec *s = gl_patch_step(p, to);

    if (gl_map_find(&p->edges, id) != NULL) {
        return gl_why(p->why, GL_R_PATCH_EDGE_EXISTS, "%s.id: an edge `%.*s` already exists", at,
                      GL_STR_ARG(id));
    }
    if (from == to) {
        return gl_why(p->why, GL_R_PATCH_EDGE_SELF, "%s: an edge cannot lead from a step to itself",
                      at);
    }
    for (uint32_t i = 0; i < s->needs_n; i++) {
        if (s->needs[i] == from) {
            return gl_why(p->why, GL_R_PATCH_EDGE_TWICE,
                          "%s: there already is an edge from `%.*s` to `%.*s`", at,
                          GL_STR_ARG(gl_patch_step(p, from)->id), GL_STR_ARG(s->id));
        }
    }
    if (s->needs_n >= GL_NEEDS_MAX) {
        return gl_why(p->why, GL_R_PATCH_EDGES_TOO_MANY,
                      "%s: at most %d edges can lead to one step", at, GL_NEEDS_MAX);
    }
    return check_started(p, from, to, at);
}

int gl_patch_add_edge(struct gl_patch *p, gl_jnode op, const char *at)
{
    gl_str id;
    uint32_t from = 0, to = 0, accepts = 0;
    struct gl_step_spec *s;
    int rc = take_id(p, op, "id", at, &id);

    rc = rc == 0 ? take_end(p, op, "from", at, &from) : rc;
    rc = rc == 0 ? take_end(p, op, "to", at, &to) : rc;
    rc = rc == 0 ? take_accepts(p, op, at, &accepts) : rc;
    rc = rc == 0 ? check_new_edge(p, id, from, to, at) : rc;
    if (rc != 0) {
        return rc;
    }
    s = own(p, to);
    s->needs[s->needs_n] = from;
    ((gl_str *)(uintptr_t)s->needs_ids.items)[s->needs_n] = gl_patch_step(p, from)->id;
    ((struct gl_step_edge *)s->edges.items)[s->needs_n] =
        (struct gl_step_edge){.id = id, .accepts = accepts};
    s->needs_n++;
    s->needs_ids.n = s->needs_n;
    s->edges.n = s->needs_n;
    gl_map_add(&p->edges, id, (void *)(uintptr_t)(to + 1));
    return 0;
}

/* Includes edges of removed steps, which must be removed. */
static bool is_of_region(struct gl_patch *p, uint32_t number)
{
    const struct gl_step_spec *s = gl_patch_step(p, number);

    return number == p->controller || number == p->exit ||
           (s->template_id.n > 0 && gl_str_eq(s->region_id, p->region->id));
}

/* Whether an edge may change: the manifest declares it mutable, or a patch added it. */
static bool is_mutable(struct gl_patch *p, gl_str id, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < p->region->mutable_edges.n; i++) {
        if (gl_str_eq(p->region->mutable_edges.items[i], id)) {
            return true;
        }
    }
    return gl_patch_step(p, to)->template_id.n > 0 || gl_patch_step(p, from)->template_id.n > 0 ||
           (from == p->controller && to == p->exit);
}

static void drop_edge(struct gl_patch *p, uint32_t to, uint32_t place)
{
    struct gl_step_spec *s = own(p, to);
    struct gl_step_edge *edges = s->edges.items;
    gl_str *ids = (gl_str *)(uintptr_t)s->needs_ids.items;
    uint32_t after = s->needs_n - place - 1;

    memmove(s->needs + place, s->needs + place + 1, after * sizeof *s->needs);
    memmove(ids + place, ids + place + 1, after * sizeof *ids);
    memmove(edges + place, edges + place + 1, after * sizeof *edges);
    s->needs_n--;
    s->needs_ids.n = s->needs_n;
    s->edges.n = s->needs_n;
}

int gl_patch_remove_edge(struct gl_patch *p, gl_jnode op, const char *at)
{
    gl_str id;
    uint32_t to, from, place = 0;
    const struct gl_step_edge *edges;
    void *found;
    int rc = take_id(p, op, "id", at, &id);

    if (rc != 0) {
        return rc;
    }
    found = gl_map_find(&p->edges, id);
    if (found == NULL) {
        return gl_why(p->why, GL_R_PATCH_NO_EDGE, "%s.id: there is no edge `%.*s`", at,
                      GL_STR_ARG(id));
    }
    to = (uint32_t)((uintptr_t)found - 1);
    edges = gl_patch_step(p, to)->edges.items;
    while (!gl_str_eq(edges[place].id, id)) {
        place++;
    }
    from = gl_patch_step(p, to)->needs[place];
    if (!is_of_region(p, from) || !is_of_region(p, to) || !is_mutable(p, id, from, to)) {
        return gl_why(p->why, GL_R_PATCH_EDGE_OUTSIDE,
                      "%s.id: the edge `%.*s` is not one that the region `%.*s` may change", at,
                      GL_STR_ARG(clip(id)), GL_STR_ARG(p->region->id));
    }
    rc = check_started(p, from, to, at);
    if (rc == 0) {
        (void)gl_map_remove(&p->edges, id); /* it exists */
        drop_edge(p, to, place);
    }
    return rc;
}
