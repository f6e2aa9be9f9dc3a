/* check_patches.c - a flow that changes while its job runs: each change was requested by the worker
 * of a controller, raises the revision by one, and is applied once, across crashes. What has
 * started keeps its dependencies, steps keep their names and numbers, and nothing outside of the
 * region changes. A refused change has no effect. */
#include <stdio.h>

#include "model/bundle/agent.h"
#include "sim/sim_checks.h"

struct patches_state {
    uint64_t has_graph; /* this transaction writes a graph */
};

static bool same_needs(const struct gl_step_spec *a, const struct gl_step_spec *b)
{
    bool same = a->needs_n == b->needs_n;
    for (uint32_t i = 0; same && i < a->needs_n; i++) {
        same = a->needs[i] == b->needs[i];
    }
    return same;
}

/* NULL: the step is unchanged, or its change is allowed. */
static const char *judge_old(const struct gl_region *region, const struct sim_fact_step *st,
                             const struct gl_step_spec *was, const struct gl_step_spec *now)
{
    bool is_instance = was->template_id.n > 0;
    if (!gl_str_eq(was->id, now->id) || was->is_bound != now->is_bound ||
        was->agent_ids.n != now->agent_ids.n ||
        (was->agent_ids.n > 0 && !gl_str_eq(was->agent_ids.items[0], now->agent_ids.items[0]))) {
        return "is a different one";
    }
    if (was->is_removed && !now->is_removed) {
        return "exists again";
    }
    bool is_changed = !same_needs(was, now) || was->is_removed != now->is_removed;
    if (is_changed && st->had_started) {
        return "has started and is changed";
    }
    return is_changed && !is_instance && !gl_str_eq(was->id, region->exit)
               ? "is outside of the region and is changed"
               : NULL;
}

static const char *judge_new(const struct gl_region *region, const struct gl_step_spec *now,
                             gl_str patch)
{
    return !gl_str_eq(now->region_id, region->id) || !gl_str_is(now->template_id, "more") ||
                   !gl_str_eq(now->patch_id, patch)
               ? "is new and has no template"
               : NULL;
}

static bool names_patch(gl_str text, const char *quoted)
{
    return text.n > 0 && memmem(text.p, text.n, quoted, strlen(quoted)) != NULL;
}

/* How often the worker has requested this under this name; 0: never. */
static uint32_t said_steps(const struct sim_fact_job *j, gl_str patch, const char *op)
{
    char worker[192], module[192];
    (void)snprintf(worker, sizeof(worker), "\\\"patch_id\\\":\\\"%.*s\\\"", GL_STR_ARG(patch));
    (void)snprintf(module, sizeof(module), "\"patch_id\":\"%.*s\"", GL_STR_ARG(patch));
    for (uint32_t i = 0; i < gl_flow_agents_n(j->flow); i++) {
        const struct sim_process *p = j->steps[i].last;
        gl_str said = p != NULL ? gl_buf_view(&p->said) : (gl_str){0};
        uint32_t n = 0;
        if (!names_patch(said, worker) && !names_patch(said, module)) {
            continue;
        }
        for (size_t at = 0; at + strlen(op) < said.n; at++) {
            n += memcmp(said.p + at, op, strlen(op)) == 0;
        }
        return n;
    }
    return 0;
}

static void judge_flow(struct sim_checks *c, const struct sim_change *ch, gl_str patch)
{
    const struct gl_flow *was = ch->job->flow_before, *now = ch->job->flow;
    const struct gl_region *region = was->bundle->dynamic.regions.items;
    uint32_t added = (uint32_t)(now->steps.n - was->steps.n), removed = 0;
    for (uint32_t i = 0; i < now->steps.n; i++) {
        const char *wrong = i < was->steps.n ? judge_old(region, &ch->job->steps[i],
                                                         gl_flow_step(was, i), gl_flow_step(now, i))
                                             : judge_new(region, gl_flow_step(now, i), patch);
        if (wrong != NULL) {
            sim_world_fail(c->world, "patches: step %.*s of job %.*s %s",
                           GL_STR_ARG(gl_flow_step(now, i)->id), GL_STR_ARG(ch->job->id), wrong);
        }
        removed += gl_flow_step(now, i)->is_removed &&
                   (i >= was->steps.n || !gl_flow_step(was, i)->is_removed);
    }
    if (added != said_steps(ch->job, patch, "add_step") ||
        removed != said_steps(ch->job, patch, "remove_step")) {
        sim_world_fail(c->world,
                       "patches: %.*s adds %u steps to job %.*s and removes %u, and %u and %u were "
                       "requested",
                       GL_STR_ARG(patch), added, GL_STR_ARG(ch->job->id), removed,
                       said_steps(ch->job, patch, "add_step"),
                       said_steps(ch->job, patch, "remove_step"));
    }
}

static gl_jnode list_of(struct sim_checks *c, gl_str text, struct gl_json *j)
{
    return gl_json_parse(j, text, GL_RECORD_BYTES_MAX, &c->arena, NULL) == 0
               ? gl_json_get(j, gl_json_root(j), "patches")
               : NULL;
}

static void on_record(struct sim_checks *c, void *me, const struct sim_change *ch,
                      const struct gl_record *before, const struct gl_record *after)
{
    struct patches_state *s = me;
    struct gl_json old, new;
    if (!gl_str_is(before->kind, "patch") || after->rev == 0 || ch->job->flow_before == NULL) {
        return;
    }
    gl_jnode was = before->rev != 0 ? list_of(c, before->value, &old) : NULL;
    gl_jnode now = list_of(c, after->value, &new);
    uint32_t was_n = was != NULL ? was->count : 0;
    gl_str last = {0};
    s->has_graph = true;
    if (now == NULL || now->count != was_n + 1) {
        sim_world_fail(c->world, "patches: job %.*s had %u changes and has %u",
                       GL_STR_ARG(ch->job->id), was_n, now != NULL ? now->count : 0);
        return;
    }
    for (gl_jnode e = gl_json_first(&new, now); e != NULL; e = gl_json_after(&new, now, e)) {
        last = gl_json_str(&new, gl_json_get(&new, e, "id"), &c->arena);
    }
    for (gl_jnode e = was != NULL ? gl_json_first(&old, was) : NULL; e != NULL;
         e = gl_json_after(&old, was, e)) {
        if (gl_str_eq(gl_json_str(&old, gl_json_get(&old, e, "id"), &c->arena), last)) {
            sim_world_fail(c->world, "patches: %.*s of job %.*s is applied twice", GL_STR_ARG(last),
                           GL_STR_ARG(ch->job->id));
        }
    }
    judge_flow(c, ch, last);
}

/* A removed step does nothing any more. */
static void judge_step(struct sim_checks *c, const struct sim_change *ch)
{
    const struct gl_step_record *now = ch->step_now;
    if (ch->step->spec->is_removed &&
        (now->attempt_count > ch->step->r.attempt_count || now->status == GL_STEP_RUNNING ||
         now->status == GL_STEP_COMPLETED)) {
        sim_world_fail(c->world, "patches: step %.*s of job %.*s was removed and is %s",
                       GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id),
                       gl_step_status_words[now->status]);
    }
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    struct patches_state *s = me;
    if (ch->step != NULL) {
        judge_step(c, ch);
        return;
    }
    uint64_t most = ch->job->r.graph_revision + s->has_graph;
    if (ch->job_now->graph_revision != most ||
        ch->job_now->patches_n != ch->job->r.patches_n + s->has_graph) {
        sim_world_fail(c->world,
                       "patches: job %.*s is at revision %llu with %u changes, not at %llu",
                       GL_STR_ARG(ch->job->id), (unsigned long long)ch->job_now->graph_revision,
                       ch->job_now->patches_n, (unsigned long long)most);
    }
    s->has_graph = 0;
}

const struct sim_check sim_check_patches = {.name = "patches",
                                            .state_bytes = sizeof(struct patches_state),
                                            .on_record = on_record,
                                            .on_change = on_change};
