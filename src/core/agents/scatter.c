/* scatter.c - replaces a step by instances, one for each item.
 *
 * The step itself is skipped at once, with outcome `mapped`, but still counts the ends of its
 * parents. When its trigger rule holds, the instances are created, a bounded number at a time, and
 * each gets a message with its item. The step's children have the instances as parents in its place
 * (more_needs). With several targets the items are dealt out in turn. */
#include "base/check.h"
#include "core/agents/agents.h"

#include "core/flow/ledger.h"
#include "core/flow/rule.h"
#include "core/flow/txn.h"

enum { ITEMS_DEFAULT = 1000 };

static bool is_mapped(const struct gl_step *st)
{
    return st->r.terminal_outcome == GL_OUTCOME_MAPPED;
}

bool gl_scatter_has_more(const struct gl_step *st)
{
    return is_mapped(st) && st->r.items_made < st->r.items_n;
}

/* ---- the event ---- */

struct scatter {
    gl_jnode items;
    uint32_t items_n;
    struct gl_step **targets;
    uint32_t targets_n;
    const char *bad; /* why it is rejected; NULL: it is not */
};

static void add_target(struct gl_core *c, struct gl_job *j, struct scatter *w, gl_str id)
{
    int64_t number = gl_flow_find(j->spec->flow, id);
    struct gl_step *st;

    if (number < 0 || gl_flow_is_unit(j->spec->flow, (uint32_t)number)) {
        w->bad = "a target does not exist";
        return;
    }
    st = gl_step_get(c, j, (uint32_t)number);
    if (gl_step_status_is_terminal(st->r.status) || st->r.attempt_count > 0) {
        w->bad = "a target has already started or ended";
    }
    w->targets[w->targets_n++] = st;
}

static uint32_t count(const struct gl_json *json, gl_jnode list)
{
    uint32_t n = 0;

    for (gl_jnode e = gl_json_first(json, list); e != NULL; e = gl_json_after(json, list, e)) {
        n++;
    }
    return n;
}

static void read_targets(struct gl_core *c, struct gl_job *j, const struct gl_json *json,
                         struct scatter *w)
{
    gl_jnode list = gl_json_get(json, gl_json_root(json), "targets");
    gl_jnode one = gl_json_get(json, gl_json_root(json), "target");
    uint32_t n = list != NULL && gl_json_is(list, GL_JSON_ARRAY) ? count(json, list) : 1;

    w->targets = GL_NEW_ARRAY(c->out->arena, struct gl_step *, n);
    if (list != NULL && gl_json_is(list, GL_JSON_ARRAY)) {
        for (gl_jnode e = gl_json_first(json, list); e != NULL; e = gl_json_after(json, list, e)) {
            add_target(c, j, w, gl_json_str(json, e, c->out->arena));
        }
    } else if (one != NULL && gl_json_is(one, GL_JSON_STRING)) {
        add_target(c, j, w, gl_json_str(json, one, c->out->arena));
    }
    if (w->targets_n == 0) {
        w->bad = "it does not name a target";
    }
}

static void read_items(const struct gl_json *json, struct scatter *w)
{
    uint64_t max = ITEMS_DEFAULT;

    w->items = gl_json_get(json, gl_json_root(json), "items");
    if (w->items == NULL || !gl_json_is(w->items, GL_JSON_ARRAY)) {
        w->bad = "`items` is not a list";
        return;
    }
    (void)gl_json_u64(json, gl_json_get(json, gl_json_root(json), "max_items"), &max);
    max = max < GL_ITEMS_MAX ? max : GL_ITEMS_MAX;
    w->items_n = count(json, w->items);
    if (w->items_n > max) {
        w->bad = "it has too many items";
    }
}

/* ---- mapping a step ---- */

/* Replaces `st` by `mine` of the `items_n` instances: those with number first, first + stride, ...
 */
static void map_step(struct gl_core *c, struct gl_step *st, uint32_t items_n, uint32_t mine,
                     uint32_t first, uint32_t stride, gl_str items)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    struct gl_job *j = st->job;

    GL_ASSERT(gl_step_is_bound(st));
    GL_ASSERT(mine > 0);
    GL_ASSERT(mine <= items_n);
    GL_ASSERT(first < stride);
    for (uint32_t i = 0; i < spec->children_n; i++) {
        struct gl_step *child = gl_step_get(c, j, spec->children[i]);

        child->r.more_needs += mine - 1;
        gl_txn_dirty(c, child);
    }
    gl_ledger_end(c, st, GL_STEP_SKIPPED, GL_OUTCOME_MAPPED, (gl_str){0});
    st->r.spread = spec->children_n; /* its instances notify the children */
    gl_list_remove(&st->work);
    st->r.items_n = items_n;
    st->r.items_at = j->r.items_n;
    st->r.items_made = 0;
    st->r.map_index = first;
    st->r.items_failed = stride; /* a mapped step has no failed items: the field holds the stride */
    gl_core_set(c, &st->r.asked, items);
    j->r.items_n += items_n;
    j->r.steps_n += mine;
    gl_txn_dirty(c, st);
    gl_list_push(&j->making, &st->work);
    GL_ASSERT(j->r.items_n <= GL_JOB_ITEMS_MAX);
}

/* The fields of the event workflow_step_scattered. Lists at most NAMED_MAX instances. */
static gl_str describe(struct gl_core *c, const struct scatter *w)
{
    enum { NAMED_MAX = 1000 };
    struct gl_buf out = {0};
    gl_str text;

    GL_ASSERT(w->targets_n > 0);
    gl_buf_fmt(&out, "\"count\":%u,\"targets\":[", w->items_n);
    for (uint32_t i = 0; i < w->targets_n; i++) {
        gl_buf_fmt(&out, "%s\"%.*s\"", i > 0 ? "," : "", GL_STR_ARG(w->targets[i]->r.step_id));
    }
    gl_buf_str(&out, GL_S("],\"instance_ids\":["));
    for (uint32_t i = 0; i < w->items_n && i < NAMED_MAX; i++) {
        gl_buf_fmt(&out, "%s\"%.*s[%u]\"", i > 0 ? "," : "",
                   GL_STR_ARG(w->targets[i % w->targets_n]->r.step_id), i);
    }
    gl_buf_char(&out, ']');
    text = gl_str_dup(c->out->arena, gl_buf_view(&out));
    gl_buf_done(&out);
    return text;
}

void gl_scatter_on_event(struct gl_core *c, const struct gl_turn_end *t, gl_str payload)
{
    struct gl_job *j = t->unit->job;
    struct gl_json json;
    struct scatter w = {0};
    gl_str items;

    GL_ASSERT(gl_step_is_unit(t->unit));
    if (gl_json_parse(&json, payload, GL_RECORD_BYTES_MAX, c->out->arena, NULL) != 0) {
        return;
    }
    read_targets(c, j, &json, &w);
    if (w.bad == NULL) {
        read_items(&json, &w);
    }
    /* Instances of all steps of a job are numbered together. */
    if (w.bad == NULL &&
        (uint64_t)j->r.items_n + (uint64_t)w.items_n * w.targets_n > GL_JOB_ITEMS_MAX) {
        w.bad = "the job has too many items";
    }
    if (w.bad != NULL) {
        gl_txn_log(c, j, t->step, "workflow_step_scatter_rejected", gl_str_of(w.bad), (gl_str){0});
        return;
    }
    items = gl_json_raw(&json, w.items);
    for (uint32_t i = 0; i < w.targets_n && i < w.items_n; i++) {
        map_step(c, w.targets[i], w.items_n, (w.items_n - i + w.targets_n - 1) / w.targets_n, i,
                 w.targets_n, items);
    }
    gl_txn_log(c, j, t->step, "workflow_step_scattered", (gl_str){0}, describe(c, &w));
}

/* ---- instances ---- */

/* Creates one instance; `may_run`: whether the trigger rule holds. */
static void make_instance(struct gl_core *c, struct gl_step *st, uint32_t item, gl_str value,
                          bool may_run)
{
    struct gl_step *made = gl_step_item(c, st->job, st->of, item, st->r.items_at + item);

    GL_ASSERT(item < st->r.items_n);
    GL_ASSERT(is_mapped(st));
    made->r.map_index = item;
    made->r.up_ended = st->r.up_ended;
    made->r.more_needs = st->r.more_needs; /* or up_ended could exceed its needs */
    gl_txn_dirty(c, made);
    if (!may_run) {
        gl_ledger_skip(c, made, GL_S("trigger rule cannot be satisfied"));
        return;
    }
    gl_ledger_move(c, made, GL_STEP_READY);
    gl_agent_step_send(
        c, made, "workflow_scatter_item",
        gl_str_fmt(c->out->arena, "{\"item\":%.*s,\"map_index\":%u}", GL_STR_ARG(value), item));
}

uint32_t gl_scatter_make(struct gl_core *c, struct gl_step *st, uint32_t budget)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    struct gl_rule_parents parents = {.all = gl_step_needs(st),
                                      .ended = st->r.up_ended,
                                      .success = st->r.up_success,
                                      .failed = st->r.up_failed,
                                      .accepted = st->r.up_accepted};
    enum gl_rule_answer answer = gl_rule_evaluate((enum gl_rule)spec->rule, spec->quorum, &parents);
    struct gl_json json;
    gl_jnode list, e;
    uint32_t at = 0;

    GL_ASSERT(is_mapped(st));
    if (answer == GL_RULE_WAIT) {
        gl_list_remove(&st->work); /* the next end of a parent lists it again */
        return budget;
    }
    if (gl_json_parse(&json, st->r.asked, GL_RECORD_BYTES_MAX, c->out->arena, NULL) != 0) {
        GL_UNREACHABLE(); /* the event was parsed when it came */
    }
    list = gl_json_root(&json);
    for (e = gl_json_first(&json, list); e != NULL && budget > 0;
         e = gl_json_after(&json, list, e), at++) {
        if (at < st->r.items_made) {
            continue;
        }
        if (at % st->r.items_failed == st->r.map_index) {
            make_instance(c, st, at, gl_json_raw(&json, e), answer == GL_RULE_RUN);
            budget--;
        }
        st->r.items_made = at + 1;
    }
    gl_txn_dirty(c, st);
    if (st->r.items_made == st->r.items_n) {
        gl_list_remove(&st->work);
        gl_core_set(c, &st->r.asked, (gl_str){0});
    }
    GL_ASSERT(st->r.items_made <= st->r.items_n);
    return budget;
}
