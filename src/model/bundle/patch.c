#include "model/bundle/patch.h"

#include <stdio.h>

#include "base/check.h"
#include "base/limits.h"
#include "model/bundle/patch_parts.h"

enum { PATCH_BYTES_MAX = 16 << 20, PLACE_BYTES = 40 };

/* The patch itself. */

static int check_shape(struct gl_patch *p, gl_str text)
{
    gl_jnode root, operations;
    int rc = gl_json_parse(&p->j, text, PATCH_BYTES_MAX, p->a, p->why);

    if (rc != 0) {
        return rc;
    }
    root = gl_json_root(&p->j);
    operations = gl_json_get(&p->j, root, "operations");
    p->id = gl_str_dup(p->a, gl_json_str(&p->j, gl_json_get(&p->j, root, "patch_id"), p->a));
    if (!gl_str_is_step_id(p->id) || strchr("@_:", p->id.p[0]) != NULL) {
        return gl_why(p->why, GL_R_PATCH_ID_INVALID,
                      "patch_id: an id has 1 to 128 ASCII letters, digits, _ . : and -, and begins "
                      "with a letter or a digit");
    }
    if (!gl_json_is(operations, GL_JSON_ARRAY) || operations->count == 0) {
        return gl_why(p->why, GL_R_PATCH_EMPTY, "operations: expected a list with at least one");
    }
    p->operations_n = operations->count;
    return 0;
}

/* The caller detects a repeated patch; this is a different one with the same id. */
static int check_fresh(struct gl_patch *p, const struct gl_flow *f)
{
    for (uint32_t i = gl_flow_agents_n(f); i < f->steps.n; i++) {
        if (gl_str_eq(gl_flow_step(f, i)->patch_id, p->id)) {
            return gl_why(p->why, GL_R_PATCH_ID_TAKEN,
                          "patch_id: patch `%.*s` was already used with different content",
                          GL_STR_ARG(p->id));
        }
    }
    return 0;
}

static int find_region(struct gl_patch *p, const struct gl_flow *f)
{
    gl_jnode n = gl_json_get(&p->j, gl_json_root(&p->j), "region_id");
    gl_str id = gl_json_str(&p->j, n, p->a);
    const struct gl_region *regions = f->bundle->dynamic.regions.items;
    int64_t controller, exit;

    for (size_t i = 0; i < f->bundle->dynamic.regions.n && p->region == NULL; i++) {
        p->region = gl_str_eq(regions[i].id, id) ? &regions[i] : NULL;
    }
    if (p->region == NULL) {
        return gl_why(p->why, GL_R_PATCH_NO_REGION, "region_id: there is no region `%.*s`",
                      (int)(id.n < 128 ? id.n : 128), id.p != NULL ? id.p : "");
    }
    controller = gl_flow_find(f, p->region->controller);
    exit = p->region->is_fanout ? UINT32_MAX : gl_flow_find(f, p->region->exit);
    if (controller < 0 || exit < 0) {
        return gl_why(p->why, GL_R_PATCH_REGION_BROKEN,
                      "the region `%.*s` names a step that does not exist",
                      GL_STR_ARG(p->region->id));
    }
    p->controller = (uint32_t)controller;
    p->exit = (uint32_t)exit;
    return 0;
}

static int check_sender(struct gl_patch *p, const struct gl_flow *f)
{
    if (p->job->controller == p->controller) {
        return 0;
    }
    return gl_why(
        p->why, GL_R_PATCH_NOT_CONTROLLER, "only `%.*s` may change the region `%.*s`%s%.*s",
        GL_STR_ARG(p->region->controller), GL_STR_ARG(p->region->id),
        p->job->controller < f->steps.n ? ", not " : "",
        GL_STR_ARG(p->job->controller < f->steps.n ? gl_flow_step(f, p->job->controller)->id
                                                   : (gl_str){0}));
}

static int check_revision(struct gl_patch *p)
{
    gl_jnode n = gl_json_get(&p->j, gl_json_root(&p->j), "base_revision");
    uint64_t revision;

    if (!gl_json_u64(&p->j, n, &revision)) {
        return gl_why(p->why, GL_R_PATCH_REVISION_INVALID,
                      "base_revision: it is %s, not a revision number",
                      n != NULL ? gl_json_type_name(n) : "missing");
    }
    if (revision != p->job->revision) {
        return gl_why(p->why, GL_R_PATCH_REVISION_OLD,
                      "base_revision: it is %llu, but the graph is at revision %llu",
                      (unsigned long long)revision, (unsigned long long)p->job->revision);
    }
    return 0;
}

/* Limits. */

static bool is_op(struct gl_patch *p, gl_jnode op, const char *word)
{
    static const char *const names[] = {"op", "type", "operation", "action"};

    for (size_t i = 0; i < GL_COUNT(names); i++) {
        gl_jnode n = gl_json_get(&p->j, op, names[i]);

        if (gl_json_is(n, GL_JSON_STRING)) {
            return gl_str_is(gl_json_str(&p->j, n, p->a), word);
        }
    }
    return false;
}

static uint32_t count_ops(struct gl_patch *p, const char *word)
{
    gl_jnode list = gl_json_get(&p->j, gl_json_root(&p->j), "operations");
    uint32_t count = 0;

    for (gl_jnode n = gl_json_first(&p->j, list); n != NULL; n = gl_json_after(&p->j, list, n)) {
        count += is_op(p, n, word) ? 1 : 0;
    }
    return count;
}

static uint32_t limit_of(uint32_t declared, uint32_t usual)
{
    return declared > 0 ? declared : usual;
}

static int check_limits(struct gl_patch *p, const struct gl_flow *f)
{
    const struct gl_dynamic *d = &f->bundle->dynamic;
    uint32_t patches =
        limit_of(d->patches_max, p->region->is_fanout ? GL_PATCH_PATCHES_FANOUT : GL_PATCH_PATCHES);
    uint32_t active = limit_of(d->active_max, GL_PATCH_ACTIVE);
    uint32_t operations = limit_of(d->operations_max, GL_PATCH_OPERATIONS);
    uint64_t added;

    if (p->job->patches_n >= patches) {
        return gl_why(p->why, GL_R_PATCH_TOO_MANY, "the job has had %u patches; the limit is %u",
                      p->job->patches_n, patches);
    }
    if (p->operations_n > operations) {
        return gl_why(p->why, GL_R_PATCH_TOO_LARGE, "operations: there are %u; the limit is %u",
                      p->operations_n, operations);
    }
    added = count_ops(p, "add_step");
    if (p->job->active_n + added > (uint64_t)active + count_ops(p, "remove_step")) {
        return gl_why(p->why, GL_R_PATCH_STEPS_ADDED,
                      "%llu more would be too many added steps: there are %u, and the limit is %u",
                      (unsigned long long)added, p->job->active_n, active);
    }
    if (f->steps.n + added > GL_STEPS_MAX) {
        return gl_why(p->why, GL_R_PATCH_FLOW_TOO_LARGE, "the flow would have more than %d steps",
                      GL_STEPS_MAX);
    }
    p->room = (uint32_t)(f->steps.n + added);
    return 0;
}

/* Applying it, to a copy. */

static void copy_flow(struct gl_patch *p, const struct gl_flow *f)
{
    struct gl_step_spec *steps = GL_NEW_ARRAY(p->a, struct gl_step_spec, p->room);

    memcpy(steps, f->steps.items, f->steps.n * sizeof *steps);
    p->f = GL_NEW(p->a, struct gl_flow);
    *p->f = *f;
    p->f->steps.items = steps;
    p->old_n = (uint32_t)f->steps.n;
    p->is_owned = GL_NEW_ARRAY(p->a, bool, p->room);
    p->with = GL_NEW_ARRAY(p->a, gl_str, p->room - p->old_n + 1);
    for (uint32_t i = gl_flow_agents_n(f); i < p->old_n; i++) {
        const struct gl_step_edge *edges = steps[i].edges.items;

        gl_map_add(&p->steps, steps[i].id, (void *)(uintptr_t)(i + 1));
        for (size_t k = 0; k < steps[i].edges.n; k++) {
            if (edges[k].id.n > 0 && gl_map_find(&p->edges, edges[k].id) == NULL) {
                gl_map_add(&p->edges, edges[k].id, (void *)(uintptr_t)(i + 1));
            }
        }
    }
}

static int apply_one(struct gl_patch *p, gl_jnode op, const char *at)
{
    if (is_op(p, op, "add_step")) {
        return gl_patch_add_step(p, op, at);
    }
    if (is_op(p, op, "remove_step")) {
        return gl_patch_remove_step(p, op, at);
    }
    if (is_op(p, op, "add_edge")) {
        return gl_patch_add_edge(p, op, at);
    }
    if (is_op(p, op, "remove_edge")) {
        return gl_patch_remove_edge(p, op, at);
    }
    return gl_why(p->why, GL_R_PATCH_OP_INVALID,
                  "%s.op: expected add_step, remove_step, add_edge or remove_edge", at);
}

static int apply_all(struct gl_patch *p)
{
    gl_jnode list = gl_json_get(&p->j, gl_json_root(&p->j), "operations");
    uint32_t number = 0;
    int rc = 0;

    for (gl_jnode n = gl_json_first(&p->j, list); n != NULL && rc == 0;
         n = gl_json_after(&p->j, list, n)) {
        char at[PLACE_BYTES];

        (void)snprintf(at, sizeof at, "operations[%u]", number++); /* it fits */
        rc = apply_one(p, n, at);
    }
    return rc;
}

/* The public part of the patch: everything except `with`. */

static void put_op(struct gl_patch *p, gl_jnode op, const char *const *names, struct gl_jw *w)
{
    gl_jw_object(w);
    for (size_t i = 0; names[i] != NULL; i++) {
        gl_jnode n = gl_json_get(&p->j, op, names[i]);

        if (n != NULL) {
            gl_jw_name(w, names[i]);
            gl_jw_raw(w, gl_json_raw(&p->j, n));
        }
    }
    gl_jw_end(w);
}

static void put_ops(struct gl_patch *p, const char *word, const char *name,
                    const char *const *names, struct gl_jw *w)
{
    gl_jnode list = gl_json_get(&p->j, gl_json_root(&p->j), "operations");

    gl_jw_name(w, name);
    gl_jw_array(w);
    for (gl_jnode n = gl_json_first(&p->j, list); n != NULL; n = gl_json_after(&p->j, list, n)) {
        if (!is_op(p, n, word)) {
            continue;
        }
        if (names[1] == NULL) {
            gl_jw_raw(w, gl_json_raw(&p->j, gl_json_get(&p->j, n, names[0])));
        } else {
            put_op(p, n, names, w);
        }
    }
    gl_jw_end(w);
}

static gl_str delta_of(struct gl_patch *p)
{
    static const char *const step[] = {"id", "template", "label", NULL};
    static const char *const edge[] = {"id", "from", "to", "accepts", NULL};
    static const char *const id[] = {"id", NULL};
    struct gl_buf out = {0};
    struct gl_jw w;
    gl_str text;

    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    put_ops(p, "add_step", "added_steps", step, &w);
    put_ops(p, "remove_step", "removed_steps", id, &w);
    put_ops(p, "add_edge", "added_edges", edge, &w);
    put_ops(p, "remove_edge", "removed_edges", id, &w);
    gl_jw_end(&w);
    text = gl_str_dup(p->a, gl_buf_view(&out));
    gl_buf_done(&out);
    return text;
}

int gl_patch_apply(const struct gl_flow *f, const struct gl_patch_job *job, gl_str patch,
                   struct gl_arena *a, struct gl_flow **ret, struct gl_patch_report *ret_report,
                   struct gl_why *reterr_why)
{
    struct gl_patch p = {.job = job, .a = a, .why = reterr_why};
    int rc;

    if (f->bundle == NULL || !f->bundle->dynamic.enabled) {
        return gl_why(reterr_why, GL_R_PATCH_NOT_DYNAMIC,
                      "this flow cannot be changed: its mode is not dynamic_dag");
    }
    rc = check_shape(&p, patch);
    rc = rc == 0 ? check_fresh(&p, f) : rc;
    rc = rc == 0 ? find_region(&p, f) : rc;
    rc = rc == 0 ? check_sender(&p, f) : rc;
    rc = rc == 0 ? check_revision(&p) : rc;
    rc = rc == 0 ? check_limits(&p, f) : rc;
    if (rc != 0) {
        return rc;
    }
    copy_flow(&p, f);
    rc = apply_all(&p);
    rc = rc == 0 ? gl_patch_finish(&p) : rc;
    gl_map_done(&p.steps);
    gl_map_done(&p.edges);
    if (rc != 0) {
        return rc;
    }
    *ret = p.f;
    *ret_report = (struct gl_patch_report){
        .patch_id = p.id,
        .region_id = p.region->id,
        .is_fanout = p.region->is_fanout,
        .added_n = (uint32_t)p.f->steps.n - p.old_n,
        .delta = delta_of(&p),
        .with = {.items = p.with, .n = p.f->steps.n - p.old_n},
    };
    return 0;
}
