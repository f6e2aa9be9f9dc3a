/* patch_apply.c - applies graph patches: changes of the flow of a running job.
 *
 * A patched job has a compiled flow of its own, stored as the record "patch"/<job>/graph together
 * with the ids of the patches it has applied. Steps keep their numbers: new ones are appended,
 * removed ones stay as skipped. A patch is applied in the transaction of the turn that sends it,
 * and sending the same patch again changes nothing. */
#include "base/check.h"
#include "core/agents/agents.h"

#include "base/sha256.h"
#include "core/flow/ledger.h"
#include "core/flow/txn.h"
#include "model/bundle/patch.h"

struct gl_graph {
    struct gl_arena arena;
    struct gl_items seen; /* struct seen: the patches applied so far */
    size_t cap;
};

struct seen {
    gl_str id, hash;
};

/* ---- applied patches ---- */

static struct gl_graph *graph_of(struct gl_core *c, struct gl_job *j)
{
    if (j->graph == NULL) {
        j->graph = gl_pool_alloc(&c->mem, sizeof(*j->graph));
        gl_arena_init(&j->graph->arena);
    }
    return j->graph;
}

void gl_patch_apply_forget(struct gl_core *c, struct gl_job *j)
{
    if (j->graph != NULL) {
        gl_arena_done(&j->graph->arena);
        gl_pool_free(&c->mem, j->graph, sizeof(*j->graph));
        j->graph = NULL;
    }
}

static void record_patch(struct gl_graph *g, gl_str id, gl_str hash)
{
    struct seen *all = g->seen.items;

    if (g->seen.n == g->cap) {
        g->cap = g->cap * 2 + 8;
        all = GL_NEW_ARRAY(&g->arena, struct seen, g->cap);
        if (g->seen.n > 0) {
            memcpy(all, g->seen.items, g->seen.n * sizeof(*all));
        }
        g->seen.items = all;
    }
    all[g->seen.n++] =
        (struct seen){.id = gl_str_dup(&g->arena, id), .hash = gl_str_dup(&g->arena, hash)};
    GL_ASSERT(g->seen.n <= g->cap);
}

static const struct seen *find_patch(const struct gl_job *j, gl_str id)
{
    const struct seen *all = j->graph != NULL ? j->graph->seen.items : NULL;

    for (size_t i = 0; j->graph != NULL && i < j->graph->seen.n; i++) {
        if (gl_str_eq(all[i].id, id)) {
            return &all[i];
        }
    }
    return NULL;
}

static gl_str hash_of(struct gl_core *c, gl_str text)
{
    char hex[65];

    gl_sha256_hex(text, hex);
    GL_ASSERT(hex[64] == '\0');
    return gl_str_dup(c->out->arena, gl_str_of(hex));
}

/* ---- the job's own flow ---- */

/* Makes `own` the flow of this job alone. The flow that jobs of the same hash share is not changed.
 * The flow that the job leaves lives until the end of the core's step, because our callers may
 * still point into it. */
static void use_own_flow(struct gl_core *c, struct gl_job *j, struct gl_spec *own)
{
    GL_ASSERT(own->refs == 1);
    GL_ASSERT(own->jobs == 0);
    GL_ASSERT(own->shared == NULL);
    own->is_stored = true;
    own->jobs = 1;
    if (j->spec->shared != NULL) { /* a later patch: replaces the job's own flow */
        own->shared = j->spec->shared;
        gl_spec_ref(own->shared);
        j->spec->jobs--;
        j->spec->left = c->left;
        c->left = j->spec;
    } else {
        own->shared = j->spec; /* takes over our reference and our count in `jobs` */
    }
    j->spec = own;
    GL_ASSERT(j->spec->jobs == 1);
}

int gl_patch_apply_restore(struct gl_core *c, struct gl_job *j, const struct gl_event_record *rec)
{
    GL_ASSERT(j->memory == GL_MEM_LOADING);
    return gl_patch_apply_read(c, j, rec->value, c->out->arena);
}

int gl_patch_apply_read(struct gl_core *c, struct gl_job *j, gl_str text, struct gl_arena *a)
{
    struct gl_json json;
    gl_jnode flow, list;
    struct gl_spec *own;

    if (gl_json_parse(&json, text, GL_RECORD_BYTES_MAX, a, NULL) != 0) {
        return GL_E_DAMAGED;
    }
    flow = gl_json_get(&json, gl_json_root(&json), "flow");
    list = gl_json_get(&json, gl_json_root(&json), "patches");
    if (flow == NULL || list == NULL ||
        gl_spec_new(j->spec->hash, gl_json_raw(&json, flow), &own, NULL) != 0) {
        return GL_E_DAMAGED;
    }
    use_own_flow(c, j, own);
    for (gl_jnode e = gl_json_first(&json, list); e != NULL; e = gl_json_after(&json, list, e)) {
        record_patch(graph_of(c, j), gl_json_str(&json, gl_json_get(&json, e, "id"), a),
                     gl_json_str(&json, gl_json_get(&json, e, "hash"), a));
    }
    return 0;
}

void gl_patch_apply_write(const struct gl_job *j, struct gl_buf *out)
{
    const struct seen *all = j->graph->seen.items;
    struct gl_jw w;

    GL_ASSERT(j->graph->seen.n <= j->graph->cap);
    gl_jw_init(&w, out);
    gl_jw_object(&w);
    gl_jw_key(&w, "patches");
    gl_jw_array(&w);
    for (size_t i = 0; i < j->graph->seen.n; i++) {
        gl_jw_object(&w);
        gl_jw_key(&w, "id");
        gl_jw_str(&w, all[i].id);
        gl_jw_key(&w, "hash");
        gl_jw_str(&w, all[i].hash);
        gl_jw_end(&w);
    }
    gl_jw_end(&w);
    gl_jw_key(&w, "flow");
    gl_jw_raw(&w, j->spec->text);
    gl_jw_end(&w);
}

/* Writes the job's own flow. It is in the transaction of the turn, so a crash leaves the patch
 * applied and its steps created, or neither. */
static void save(struct gl_core *c, struct gl_job *j)
{
    struct gl_buf buf = {0};

    GL_ASSERT(j->r.patches_n > 0);
    gl_patch_apply_write(j, &buf);
    gl_txn_write(c, j, GL_WRITE_PUT, GL_S("patch"),
                 gl_str_fmt(c->out->arena, "%.*s/graph", GL_STR_ARG(j->id)))
        ->value = gl_str_dup(c->out->arena, gl_buf_view(&buf));
    gl_buf_done(&buf);
}

/* ---- applying a patch ---- */

static bool has_started(void *owner, uint32_t number)
{
    struct gl_step *st = gl_step_find(owner, number);

    GL_ASSERT(number < ((struct gl_job *)owner)->spec->flow->steps.n);
    return st != NULL && !GL_PLANT(47) && /* planted: a started step can be changed */
           (st->r.attempt_count > 0 || gl_step_status_is_terminal(st->r.status));
}

/* Has the step's trigger rule been satisfied? Then its message may be on its way already. */
static bool is_ready(void *owner, uint32_t number)
{
    struct gl_step *st = gl_step_find(owner, number);

    GL_ASSERT(number < ((struct gl_job *)owner)->spec->flow->steps.n);
    return st != NULL && st->r.status != GL_STEP_PENDING;
}

/* The steps made by patches that have not ended. */
static uint32_t active_steps(struct gl_job *j)
{
    uint32_t n = 0;

    for (uint32_t i = gl_flow_agents_n(j->spec->flow); i < j->spec->flow->steps.n; i++) {
        const struct gl_step_spec *s = gl_flow_step(j->spec->flow, i);
        struct gl_step *st = s->template_id.n > 0 && !s->is_removed ? gl_step_find(j, i) : NULL;

        n += st != NULL && !gl_step_status_is_terminal(st->r.status);
    }
    GL_ASSERT(n <= j->spec->flow->steps.n);
    return n;
}

/* Logs the rejection and fails the attempt that sent the patch. */
static void reject(struct gl_core *c, const struct gl_turn_end *t, gl_str why)
{
    GL_ASSERT(gl_step_is_unit(t->unit));
    GL_MARK(c->trace, "grow.rejected");
    if (GL_PLANT(46)) { /* planted: a rejected patch raises the revision */
        t->unit->job->r.graph_revision++;
    }
    gl_txn_log(c, t->unit->job, t->step, "workflow_graph_patch_rejected", why, (gl_str){0});
    if (t->step != NULL) {
        gl_agent_step_fail(
            c, t->step, gl_str_fmt(c->out->arena, "graph patch rejected: %.*s", GL_STR_ARG(why)));
    }
}

/* Skips the steps that the patch has removed, so that messages for them are ignored. None of them
 * has started and no edge leads to them any more. They do not count as steps of the job. */
static void skip_removed(struct gl_core *c, struct gl_job *j, gl_str patch)
{
    const struct gl_flow *f = j->spec->flow;

    GL_ASSERT(patch.n > 0);
    for (uint32_t i = gl_flow_agents_n(f); i < f->steps.n && !GL_PLANT(56); i++) {
        struct gl_step *st = gl_flow_step(f, i)->is_removed ? gl_step_get(c, j, i) : NULL;

        if (st != NULL && !gl_step_status_is_terminal(st->r.status)) {
            GL_MARK(c->trace, "grow.removed");
            gl_ledger_skip(c, st,
                           gl_str_fmt(c->out->arena, "removed by patch '%.*s'", GL_STR_ARG(patch)));
            j->r.skipped_n--;
            j->r.steps_n--;
        }
    }
}

/* Creates the patch's new steps with their inputs, and evaluates those without parents. */
static void add_steps(struct gl_core *c, struct gl_job *j, uint32_t first,
                      const struct gl_patch_report *report)
{
    GL_ASSERT(first + report->added_n <= j->spec->flow->steps.n);
    for (uint32_t i = 0; i < report->added_n; i++) {
        struct gl_step *st = gl_step_get(c, j, first + i);

        gl_core_set(c, &st->r.asked, report->with.items[i]);
        gl_txn_dirty(c, st);
    }
    j->r.roots_spread = j->spec->flow->roots_n;
    skip_removed(c, j, report->patch_id);
    for (uint32_t i = 0; i < report->added_n; i++) {
        struct gl_step *st = gl_step_get(c, j, first + i);

        if (gl_step_needs(st) == 0 && !gl_flow_step(j->spec->flow, first + i)->is_removed) {
            gl_ledger_evaluate(c, st);
        }
    }
    GL_ASSERT(j->r.roots_spread == j->spec->flow->roots_n);
}

static void update_receivers(struct gl_link *list, const struct gl_flow *flow)
{
    for (struct gl_link *k = list->next; k != list; k = k->next) {
        struct gl_queued_message *q = GL_CONTAINER(k, struct gl_queued_message, link);
        GL_ASSERT(q->unit < gl_flow_agents_n(flow));

        q->r.to = gl_flow_agent(flow, q->unit)->id;
    }
}

/* Steps and messages in memory borrow names from the job's flow: points them to the new one. */
static void update_names(struct gl_job *j, const struct gl_flow *flow)
{
    GL_ASSERT(flow->steps.n >= j->spec->flow->steps.n);
    gl_step_rename(j, flow);
    for (struct gl_link *k = j->live.next; k != &j->live; k = k->next) {
        struct gl_mailbox *m = GL_CONTAINER(k, struct gl_step, live)->mailbox;

        if (m != NULL) {
            update_receivers(&m->messages, flow);
            update_receivers(&m->counted, flow);
            if (m->now != NULL) {
                m->now->r.to = gl_flow_agent(flow, m->now->unit)->id;
            }
        }
    }
}

/* The patch is valid: replaces the job's flow. */
static void commit_patch(struct gl_core *c, const struct gl_turn_end *t, const struct gl_flow *flow,
                         const struct gl_patch_report *report, gl_str hash)
{
    struct gl_job *j = t->unit->job;
    uint32_t first = (uint32_t)j->spec->flow->steps.n;
    struct gl_buf text = {0};
    struct gl_spec *own;
    struct gl_why why;
    int rc;

    GL_ASSERT(gl_step_is_bound(t->step));
    GL_ASSERT(t->step->r.status == GL_STEP_RUNNING);
    gl_flow_encode(flow, &text);
    rc = gl_spec_new(j->spec->hash, gl_buf_view(&text), &own, &why);
    gl_buf_done(&text);
    if (rc != 0) {
        reject(c, t, gl_str_dup(c->out->arena, gl_str_of(why.text)));
        return;
    }
    GL_MARK(c->trace, "grow.applied");
    update_names(j, own->flow);
    use_own_flow(c, j, own);
    record_patch(graph_of(c, j), report->patch_id, hash);
    j->r.graph_revision++;
    j->r.patches_n++;
    j->r.steps_n += report->added_n;
    GL_ASSERT(j->r.patches_n <= j->r.graph_revision);
    save(c, j);
    gl_txn_log(c, j, t->step, "workflow_graph_patch_applied", (gl_str){0},
               gl_str_fmt(c->out->arena,
                          "\"patch_id\":\"%.*s\",\"region_id\":\"%.*s\",\"graph_revision\":%llu,"
                          "\"strategy\":\"%s\",\"topology_delta\":%.*s",
                          GL_STR_ARG(report->patch_id), GL_STR_ARG(report->region_id),
                          (unsigned long long)j->r.graph_revision,
                          report->is_fanout ? "checkpoint_fanout" : "replace_path",
                          GL_STR_ARG(report->delta)));
    add_steps(c, j, first, report);
    if (report->is_fanout) {
        GL_MARK(c->trace, "grow.fanout");
        gl_ledger_move(c, t->step, GL_STEP_WAITING);
        gl_txn_log(c, j, t->step, "workflow_controller_checkpointed", (gl_str){0}, (gl_str){0});
    }
}

/* Logs that a fanout is over when all steps of its patch have ended. */
void gl_patch_apply_on_step_ended(struct gl_core *c, struct gl_step *st)
{
    const struct gl_flow *flow = st->job->spec->flow;
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    const struct gl_region *r = flow->bundle->dynamic.regions.items;
    struct gl_buf ids = {0};
    bool is_fanout = false, all = true;

    GL_ASSERT(gl_step_is_bound(st));
    GL_ASSERT(gl_step_status_is_terminal(st->r.status));
    for (size_t i = 0; i < flow->bundle->dynamic.regions.n; i++) {
        is_fanout |= r[i].is_fanout && gl_str_eq(r[i].id, spec->region_id);
    }
    for (uint32_t i = gl_flow_agents_n(flow); i < flow->steps.n && all && is_fanout; i++) {
        struct gl_step *other;

        if (!gl_str_eq(gl_flow_step(flow, i)->patch_id, spec->patch_id) ||
            gl_flow_step(flow, i)->is_removed) {
            continue;
        }
        other = gl_step_find(st->job, i);
        all = other != NULL && gl_step_status_is_terminal(other->r.status);
        gl_buf_fmt(&ids, "%s\"%.*s\"", ids.n > 0 ? "," : "", GL_STR_ARG(gl_flow_step(flow, i)->id));
    }
    if (all && is_fanout) {
        gl_txn_log(c, st->job, NULL, "workflow_dynamic_steps_retired", (gl_str){0},
                   gl_str_fmt(c->out->arena, "\"patch_id\":\"%.*s\",\"step_ids\":[%.*s]",
                              GL_STR_ARG(spec->patch_id), (int)ids.n, ids.n > 0 ? ids.p : ""));
    }
    gl_buf_done(&ids);
}

/* Was a patch with this id applied before? The same one is ignored, another one rejected. */
static bool is_replayed(struct gl_core *c, const struct gl_turn_end *t, gl_str id, gl_str hash)
{
    const struct seen *before = find_patch(t->unit->job, id);

    GL_ASSERT(hash.n == 64);
    if (before == NULL) {
        return false;
    }
    if (gl_str_eq(before->hash, hash)) {
        GL_MARK(c->trace, "grow.replayed");
        gl_txn_log(c, t->unit->job, t->step, "workflow_graph_patch_replayed", (gl_str){0},
                   gl_str_fmt(c->out->arena, "\"patch_id\":\"%.*s\"",
                              GL_STR_ARG(gl_agents_json_safe(c, id))));
    } else {
        reject(c, t, GL_S("this patch_id was already used for a different patch"));
    }
    return true;
}

static gl_str id_of(struct gl_core *c, gl_str payload)
{
    struct gl_json json;
    gl_jnode n;

    if (gl_json_parse(&json, payload, GL_RECORD_BYTES_MAX, c->out->arena, NULL) != 0) {
        return (gl_str){0};
    }
    n = gl_json_get(&json, gl_json_root(&json), "patch_id");
    return n != NULL && gl_json_is(n, GL_JSON_STRING) ? gl_json_str(&json, n, c->out->arena)
                                                      : (gl_str){0};
}

void gl_patch_apply_on_event(struct gl_core *c, const struct gl_turn_end *t, gl_str payload)
{
    struct gl_job *j = t->unit->job;
    gl_str id = id_of(c, payload), hash = hash_of(c, payload);
    struct gl_patch_job job = {.owner = j,
                               .has_started = has_started,
                               .is_ready = is_ready,
                               .revision = j->r.graph_revision,
                               .patches_n = j->r.patches_n};
    struct gl_patch_report report;
    struct gl_flow *flow;
    struct gl_why why;

    GL_ASSERT(gl_step_is_unit(t->unit));
    if (!j->spec->flow->bundle->dynamic.enabled) {
        reject(c, t, GL_S("this workflow is not dynamic"));
        return;
    }
    if (is_replayed(c, t, id, hash)) {
        return;
    }
    if (t->step == NULL || t->step->r.status != GL_STEP_RUNNING) {
        reject(c, t, GL_S("the sender has no running attempt of a step"));
        return;
    }
    job.controller = t->step->of;
    job.active_n = active_steps(j);
    if (gl_patch_apply(j->spec->flow, &job, payload, c->out->arena, &flow, &report, &why) != 0) {
        reject(c, t, gl_str_dup(c->out->arena, gl_str_of(why.text)));
        return;
    }
    commit_patch(c, t, flow, &report, hash);
}
