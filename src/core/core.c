/* core.c - the switch, and the life of jobs and steps in memory. */
#include "core/core.h"

#include "base/check.h"
#include "core/agents/agents.h"
#include "core/agents/human_requests.h"
#include "core/claims/claims.h"
#include "core/cluster/inbox.h"
#include "core/cluster/membership.h"
#include "core/cluster/node_pools.h"
#include "core/cluster/outbox.h"
#include "core/cluster/rebalance.h"
#include "core/cluster/renewal.h"
#include "core/cluster/session.h"
#include "core/cluster/store_full.h"
#include "core/component.h"
#include "core/core_state.h"
#include "core/flow/command.h"
#include "core/flow/gate.h"
#include "core/flow/ledger.h"
#include "core/flow/signals.h"
#include "core/flow/submit.h"
#include "core/flow/txn.h"
#include "core/recovery/attempts.h"
#include "core/recovery/load.h"
#include "core/recovery/sweep.h"
#include "core/retention/retention.h"
#include "core/scheduling/quotas.h"
#include "core/scheduling/slots.h"

#include <stdio.h>

static bool job_before(const struct gl_heap_item *a, const struct gl_heap_item *b)
{
    const struct gl_job *x = GL_CONTAINER(a, struct gl_job, timer);
    const struct gl_job *y = GL_CONTAINER(b, struct gl_job, timer);

    return x->due != y->due ? x->due < y->due : gl_str_cmp(x->id, y->id) < 0;
}

static bool step_before(const struct gl_heap_item *a, const struct gl_heap_item *b)
{
    const struct gl_step *x = GL_CONTAINER(a, struct gl_step, timer);
    const struct gl_step *y = GL_CONTAINER(b, struct gl_step, timer);

    return x->due != y->due ? x->due < y->due : x->number < y->number;
}

struct gl_core *gl_core_new(const struct gl_core_config *config)
{
    struct gl_core *c = gl_mem_alloc(sizeof(*c));

    GL_ASSERT(config->pools_n > 0 && config->pools_n <= GL_POOLS_MAX);
    gl_pool_init(&c->mem);
    gl_core_set(c, &c->context, config->context);
    c->trace = config->trace;
    c->hot_max = config->hot_jobs_max > 0 ? config->hot_jobs_max : GL_HOT_JOBS_MAX;
    c->body_bytes = config->body_bytes > 0 ? config->body_bytes : GL_BODY_BYTES_MAX;
    c->passive = config->passive;
    gl_session_init(c, config);
    gl_map_init(&c->quarantined);
    for (size_t i = 0; i < config->quarantined_n; i++) {
        gl_str *id = gl_pool_alloc(&c->mem, sizeof(*id));

        *id = (gl_str){0};
        gl_core_set(c, id, config->quarantined[i]);
        if (gl_map_find(&c->quarantined, *id) == NULL) {
            gl_map_add(&c->quarantined, *id, id);
        }
    }
    gl_map_init(&c->jobs);
    gl_map_init(&c->specs);
    gl_list_init(&c->lru);
    gl_list_init(&c->touched);
    gl_list_init(&c->busy);
    gl_list_init(&c->idle);
    gl_heap_init(&c->timers, job_before);
    gl_slots_init(c, config->pools, config->pools_n);
    c->cold_due = INT64_MAX;
    c->active_due = INT64_MAX;
    c->list_due = INT64_MAX;
    c->sweep.hunt_due = INT64_MAX;
    c->lacks_due = INT64_MAX;
    gl_components_init(c, config);
    GL_ASSERT(c->hot_max > 0);
    GL_ASSERT(c->body_bytes > 0);
    GL_ASSERT(c->pools_n == config->pools_n);
    return c;
}

void gl_core_free(struct gl_core *c)
{
    struct gl_job *j;
    struct gl_spec *s;

    c->trace = NULL; /* what follows is no decision */
    for (size_t i = 0; (j = gl_map_next(&c->jobs, &i)) != NULL;) {
        gl_job_drop(c, j);
    }
    for (size_t i = 0; (s = gl_map_next(&c->specs, &i)) != NULL;) {
        gl_spec_unref(s);
    }
    GL_ASSERT(gl_map_count(&c->jobs) == 0);
    GL_ASSERT(c->jobs_hot == 0);
    GL_ASSERT(c->jobs_loading == 0);
    GL_ASSERT(c->running_n == 0);
    GL_ASSERT(c->inflight_n == 0);
    gl_map_done(&c->jobs);
    gl_map_done(&c->specs);
    gl_map_done(&c->quarantined);
    gl_heap_done(&c->timers);
    gl_slots_done(c);
    gl_components_done(c);
    gl_pool_done(&c->mem);
    gl_mem_free(c);
}

/* ---- the switch ---- */

static void on_tick(struct gl_core *c, const struct gl_event *ev)
{
    (void)ev;
    gl_components_on_time(c);
    gl_sweep_on_tick(c);
}

static void on_given(struct gl_core *c, const struct gl_event *ev)
{
    (void)ev;
    gl_membership_on_given(c);
}

static void on_submit(struct gl_core *c, const struct gl_event *ev)
{
    gl_retention_on_submit(c, ev);
    gl_submit_on_request(c, ev);
}

static void on_woken(struct gl_core *c, const struct gl_event *ev)
{
    if (gl_str_is(ev->woken.word, "inbox")) {
        gl_inbox_on_woken(c);
    } else {
        gl_outbox_on_woken(c);
    }
}

static void note_room(struct gl_core *c, bool needs_help, gl_str why)
{
    if (needs_help) {
        gl_store_full_on_refused(c, why);
    }
}

static void on_done(struct gl_core *c, const struct gl_event *ev)
{
    note_room(c, ev->done.needs_help, ev->done.why);
    gl_load_on_done(c, ev);
    gl_inbox_on_done(c, ev);
}

static void on_answer(struct gl_core *c, const struct gl_event *ev)
{
    note_room(c, ev->answer.needs_help, ev->answer.why);
    gl_components_on_answer(c, ev);
}

static void on_refused(struct gl_core *c, const struct gl_event *ev)
{
    note_room(c, ev->refused.needs_help, ev->refused.why);
}

static void on_show(struct gl_core *c, const struct gl_event *ev)
{
    (void)ev;
    gl_renewal_hurry(c);
}

static void on_changed(struct gl_core *c, const struct gl_event *ev)
{
    (void)ev;
    gl_components_on_changed(c);
    gl_load_on_changed(c);
}

static void on_exec_down(struct gl_core *c, const struct gl_event *ev)
{
    (void)ev;
    gl_attempts_on_down(c);
}

static void on_stop(struct gl_core *c, const struct gl_event *ev)
{
    GL_ASSERT(ev->type == GL_EV_STOP || ev->type == GL_EV_END);
    c->stopping = true;
    c->ending |= ev->type == GL_EV_END;
    GL_ASSERT(GL_IMPLIES(c->ending, c->stopping));
}

void gl_core_dispatch(struct gl_core *c, const struct gl_event *ev)
{
    static void (*const handlers[GL_EV_COUNT])(struct gl_core * c, const struct gl_event *ev) = {
        [GL_EV_SESSION] = gl_session_on_open,
        [GL_EV_TICK] = on_tick,
        [GL_EV_SUBMIT] = on_submit,
        [GL_EV_COMMAND] = gl_command_on_request,
        [GL_EV_CLAIM] = gl_claims_on_request,
        [GL_EV_DONE] = on_done,
        [GL_EV_LOADED] = gl_load_on_loaded,
        [GL_EV_RESOLVED] = gl_gate_on_resolved,
        [GL_EV_RATES] = gl_quotas_on_rates,
        [GL_EV_ANSWER] = on_answer,
        [GL_EV_GIVEN] = on_given,
        [GL_EV_WOKEN] = on_woken,
        [GL_EV_REFUSED] = on_refused,
        [GL_EV_SHOW] = on_show,
        [GL_EV_CHANGED] = on_changed,
        [GL_EV_FOUND] = gl_sweep_on_found,
        [GL_EV_EXEC_UP] = gl_attempts_on_up,
        [GL_EV_EXEC_DOWN] = on_exec_down,
        [GL_EV_STARTED] = gl_attempts_on_started,
        [GL_EV_ATTACHED] = gl_attempts_on_attached,
        [GL_EV_ENDED] = gl_attempts_on_ended,
        [GL_EV_BEACON] = gl_attempts_on_beacon,
        [GL_EV_SAID] = gl_attempts_on_said,
        [GL_EV_LISTED] = gl_attempts_on_listed,
        [GL_EV_ASKED] = gl_human_requests_on_asked,
        [GL_EV_CLEAN] = gl_retention_on_clean,
        [GL_EV_STOP] = on_stop,
        [GL_EV_END] = on_stop,
    };

    GL_ASSERT(ev->type < GL_EV_COUNT && handlers[ev->type] != NULL);
    handlers[ev->type](c, ev);
}

/* Flows that jobs have changed: nobody looks into the earlier ones any more. */
static void drop_left(struct gl_core *c)
{
    for (struct gl_spec *s; (s = c->left) != NULL;) {
        c->left = s->left;
        gl_spec_unref(s);
    }
}

void gl_core_step(struct gl_core *c, const struct gl_event *ev, struct gl_effects *out)
{
    GL_ASSERT(ev->now >= c->now);
    GL_ASSERT(gl_list_empty(&c->touched));
    c->now = ev->now;
    c->trace->now = ev->now;
    c->out = out;
    c->lately.body = NULL;
    gl_core_dispatch(c, ev);
    gl_node_pools_move(c);
    gl_rebalance_out(c);
    gl_ledger_settle(c);
    gl_agents_trim(c);
    gl_load_trim(c);
    drop_left(c);
    c->out = NULL;
    GL_ASSERT(gl_list_empty(&c->touched));
    GL_ASSERT(c->now == ev->now);
    GL_ASSERT(c->jobs_hot + c->jobs_loading <= gl_map_count(&c->jobs));
}

gl_ms gl_core_next_due(const struct gl_core *c)
{
    const struct gl_heap_item *top = gl_heap_top(&c->timers);
    gl_ms due = c->list_due, components_due = gl_components_due(c);

    if (!gl_list_empty(&c->busy)) {
        return c->now;
    }
    if (c->session.n == 0) {
        return INT64_MAX;
    }
    if (top != NULL && GL_CONTAINER(top, struct gl_job, timer)->due < due) {
        due = GL_CONTAINER(top, struct gl_job, timer)->due;
    }
    due = components_due < due ? components_due : due;
    due = gl_quotas_next_due(c) < due ? gl_quotas_next_due(c) : due;
    due = gl_node_pools_next_due(c) < due ? gl_node_pools_next_due(c) : due;
    if (!c->sweep.under_way && !c->passive) { /* else the next one begins when this one ends */
        due = c->cold_due < due ? c->cold_due : due;
        due = c->active_due < due ? c->active_due : due;
        if (!c->sweep.first) { /* a hunt waits until everything has been looked at once */
            due = c->sweep.hunt_due < due ? c->sweep.hunt_due : due;
        }
    }
    return due;
}

bool gl_core_idle(const struct gl_core *c)
{
    return c->inflight_n == 0 && c->jobs_loading == 0 && c->running_n == 0 && !c->sweep.under_way &&
           gl_map_count(&c->waits) == 0 && gl_list_empty(&c->busy);
}

enum gl_why_code gl_core_explain(struct gl_core *c, gl_str job, uint32_t number, struct gl_buf *out)
{
    return gl_slots_explain(c, job, number, out);
}

bool gl_core_is_quarantined(const struct gl_core *c, gl_str job)
{
    return gl_map_find(&c->quarantined, job) != NULL;
}

bool gl_core_knows_flow(const struct gl_core *c, gl_str hash)
{
    return gl_map_find(&c->specs, hash) != NULL;
}

const struct gl_flow *gl_core_hold_flow(struct gl_core *c, gl_str hash, struct gl_spec **ret)
{
    struct gl_spec *s = gl_map_find(&c->specs, hash);

    if (s == NULL) {
        return NULL;
    }
    gl_spec_ref(s);
    *ret = s;
    GL_ASSERT(s->refs > 1);
    return s->flow;
}

bool gl_core_owns(const struct gl_core *c, gl_str job)
{
    const struct gl_job *j = gl_map_find(&c->jobs, job);

    return j != NULL && j->memory == GL_MEM_HOT && gl_job_is_mine(c, j);
}

bool gl_core_heard(const struct gl_core *c, gl_str job, uint32_t number, gl_ms *ret_beacon_at,
                   gl_ms *ret_heartbeat_at)
{
    struct gl_job *j = gl_map_find(&c->jobs, job);
    const struct gl_step *st = gl_core_owns(c, job) ? gl_step_find(j, number) : NULL;

    if (st == NULL || st->r.status != GL_STEP_RUNNING) {
        return false;
    }
    GL_ASSERT(j->memory == GL_MEM_HOT);
    *ret_beacon_at = st->r.beacon_at;
    *ret_heartbeat_at = st->r.heartbeat_at;
    if (st->heartbeat_at != 0) { /* of a flow file's step: it is moved with every sign of life */
        *ret_heartbeat_at = st->heartbeat_at;
        *ret_beacon_at = st->heartbeat_at - gl_step_spec_of(st)->heartbeat_ms;
    }
    return true;
}

bool gl_core_lives(const struct gl_core *c, gl_str session)
{
    return gl_membership_lives(c, session);
}

bool gl_core_is_dead(const struct gl_core *c, gl_str session)
{
    return gl_membership_is_dead(c, session);
}

bool gl_core_leads(const struct gl_core *c)
{
    return c->leader.leads;
}

bool gl_core_is_cleaning(const struct gl_core *c, uint64_t *ret_removed)
{
    return gl_retention_progress(c, ret_removed);
}

bool gl_core_is_shut(const struct gl_core *c, gl_ms *ret_since, gl_str *ret_why)
{
    *ret_since = c->room.since;
    *ret_why = c->room.why;
    return c->room.is_shut;
}

const struct gl_core_counts *gl_core_counts(const struct gl_core *c)
{
    return &c->counts;
}

const struct gl_claim_counts *gl_core_claim_counts(const struct gl_core *c)
{
    return &c->claims.counts;
}

void gl_core_figures(const struct gl_core *c, struct gl_core_figures *ret)
{
    GL_ASSERT(c->pools_n > 0);
    memset(ret, 0, sizeof(*ret));
    ret->quarantined = gl_map_count(&c->quarantined);
    ret->jobs_hot = c->jobs_hot;
    ret->jobs_loading = c->jobs_loading;
    ret->ops_in_flight = c->inflight_n;
    ret->attempts_running = c->running_n;
    ret->steps_waiting = gl_map_count(&c->waits);
    ret->pools_n = c->pools_n;
    for (size_t i = 0; i < c->pools_n; i++) {
        ret->pools[i].name = c->pools[i].name;
        ret->pools[i].slots = c->pools[i].slots;
        ret->pools[i].in_use = c->pools[i].in_use;
        ret->pools[i].waiting = (uint32_t)c->pools[i].queue.n;
    }
}

/* ---- jobs ---- */

struct gl_job *gl_job_find(struct gl_core *c, gl_str id)
{
    return gl_map_find(&c->jobs, id);
}

struct gl_job *gl_job_new(struct gl_core *c, gl_str id)
{
    struct gl_job *j = gl_pool_alloc(&c->mem, sizeof(*j));

    GL_ASSERT(id.n == GL_ULID_BYTES);
    memcpy(j->id_text, id.p, GL_ULID_BYTES);
    j->id = (gl_str){.p = j->id_text, .n = GL_ULID_BYTES};
    j->memory = GL_MEM_LOADING;
    c->jobs_loading++;
    j->due = INT64_MAX;
    j->r.wake = GL_WAKE_NONE;
    gl_list_init(&j->live);
    gl_list_init(&j->dirty);
    gl_list_init(&j->spread);
    gl_list_init(&j->ready);
    gl_list_init(&j->making);
    gl_list_init(&j->signals);
    gl_list_init(&j->mailed);
    gl_map_init(&j->bodies);
    gl_map_init(&j->seen);
    gl_list_init(&j->holds);
    gl_list_init(&j->lru);
    gl_list_init(&j->touched);
    gl_list_init(&j->busy);
    gl_list_init(&j->parked);
    gl_heap_init(&j->timers, step_before);
    gl_map_add(&c->jobs, j->id, j);
    GL_ASSERT(c->jobs_loading <= gl_map_count(&c->jobs));
    GL_ASSERT(j->rev == 0);
    GL_ASSERT(!gl_heap_has(&j->timer));
    return j;
}

static void free_pages(struct gl_core *c, struct gl_job *j)
{
    if (j->pages == NULL) {
        return;
    }
    for (size_t i = 0; i < j->pages_n; i++) {
        gl_pool_free(&c->mem, j->pages[i], GL_STEP_PAGE * sizeof(struct gl_step *));
    }
    gl_pool_free(&c->mem, j->pages, j->pages_n * sizeof(*j->pages));
    j->pages = NULL;
    j->pages_n = 0;
    GL_ASSERT(j->pages_n == 0);
}

static void free_record(struct gl_core *c, struct gl_job_record *r)
{
    gl_core_disown(c, &gl_job_schema, r);
    *r = (struct gl_job_record){.wake = GL_WAKE_NONE};
}

void gl_job_clear(struct gl_core *c, struct gl_job *j)
{
    for (struct gl_link *l; (l = gl_list_first(&j->live)) != NULL;) {
        struct gl_step *st = GL_CONTAINER(l, struct gl_step, live);

        st->hold = NULL; /* stays in j->holds: what really runs is known after loading */
        gl_step_free(c, st);
    }
    GL_ASSERT(gl_list_empty(&j->dirty));
    GL_ASSERT(j->timers.n == 0);
    GL_ASSERT(j->items_live == 0 && j->reviews_n == 0);
    gl_signals_clear(c, j);
    gl_builtin_agent_forget(c, j);
    gl_patch_apply_forget(c, j);
    if (j->known != NULL) {
        gl_pool_free(&c->mem, j->known, gl_flow_agents_n(j->spec->flow) / 8 + 1);
        j->known = NULL;
    }
    free_pages(c, j);
    free_record(c, &j->r);
    if (j->spec != NULL) {
        GL_ASSERT(j->spec->jobs > 0);
        j->spec->jobs--;
        if (j->spec->shared != NULL) {
            j->spec->shared->jobs--;
        }
        gl_spec_unref(j->spec);
        j->spec = NULL;
    }
    gl_core_set(c, &j->owner, (gl_str){0});
    j->rev = j->token = 0;
    j->changed = j->token_in_flight = j->is_damaged = j->is_deferred = j->lacks = false;
    gl_buf_done(&j->log);
    gl_heap_done(&j->timers);
    gl_heap_init(&j->timers, step_before);
    gl_list_remove(&j->touched);
    gl_list_remove(&j->busy);
    if (gl_heap_has(&j->timer)) {
        gl_heap_remove(&c->timers, &j->timer);
    }
    j->due = INT64_MAX;
    if (j->memory == GL_MEM_HOT) {
        GL_ASSERT(c->jobs_hot > 0);
        c->jobs_hot--;
        gl_list_remove(&j->lru);
        c->jobs_loading++;
    }
    j->memory = GL_MEM_LOADING;
    GL_ASSERT(gl_list_empty(&j->live));
    GL_ASSERT(j->signals_n == 0);
    GL_ASSERT(!gl_heap_has(&j->timer));
}

void gl_job_drop(struct gl_core *c, struct gl_job *j)
{
    gl_job_clear(c, j);
    gl_slots_release_all(c, j);
    gl_load_unpark(c, j, NULL);
    GL_ASSERT(gl_list_empty(&j->holds));
    GL_ASSERT(gl_list_empty(&j->parked));
    GL_ASSERT(c->inflight_n >= j->inflight_n);
    GL_ASSERT(c->jobs_loading > 0);
    c->inflight_n -= j->inflight_n;
    c->jobs_loading--;
    (void)gl_map_remove(&c->jobs, j->id); /* it is there: gl_job_new() put it in */
    gl_map_done(&j->bodies);
    gl_map_done(&j->seen);
    gl_pool_free(&c->mem, j, sizeof(*j));
}

/* ---- steps ---- */

const struct gl_step_spec *gl_step_spec_of(const struct gl_step *st)
{
    GL_ASSERT(st->of < st->job->spec->flow->steps.n);
    return gl_flow_step(st->job->spec->flow, st->of);
}

struct gl_step *gl_step_find(struct gl_job *j, uint32_t number)
{
    size_t at = number / GL_STEP_PAGE;
    struct gl_step **page = at < j->pages_n ? j->pages[at] : NULL;

    return page != NULL ? page[number % GL_STEP_PAGE] : NULL;
}

/* The flow's steps have their places from the start; those of instances come as they are made. */
static struct gl_step **page_of(struct gl_core *c, struct gl_job *j, uint32_t number)
{
    size_t at = number / GL_STEP_PAGE;
    size_t wanted = (j->spec->flow->steps.n + GL_STEP_PAGE - 1) / GL_STEP_PAGE;
    struct gl_step ***pages;

    if (at >= j->pages_n) {
        wanted = at < wanted ? wanted : at + at / 2 + 1;
        pages = gl_pool_alloc(&c->mem, wanted * sizeof(*pages));
        if (j->pages != NULL) {
            memcpy(pages, j->pages, j->pages_n * sizeof(*pages));
            gl_pool_free(&c->mem, j->pages, j->pages_n * sizeof(*pages));
        }
        j->pages = pages;
        j->pages_n = wanted;
    }
    if (j->pages[at] == NULL) {
        j->pages[at] = gl_pool_alloc(&c->mem, GL_STEP_PAGE * sizeof(struct gl_step *));
    }
    GL_ASSERT(at < j->pages_n);
    return j->pages[at];
}

static struct gl_step *step_new(struct gl_core *c, struct gl_job *j, uint32_t number)
{
    struct gl_step *st = gl_pool_alloc(&c->mem, sizeof(*st));

    st->job = j;
    st->number = st->of = number;
    st->item = -1;
    st->due = INT64_MAX;
    gl_list_init(&st->dirty);
    gl_list_init(&st->work);
    gl_list_push(&j->live, &st->live);
    page_of(c, j, number)[number % GL_STEP_PAGE] = st;
    GL_ASSERT(gl_list_empty(&st->work));
    GL_ASSERT(!gl_heap_has(&st->timer));
    return st;
}

/* It is pending, as far as anybody knows. */
static void count(struct gl_step *st)
{
    GL_ASSERT(st->r.status == GL_STEP_PENDING);
    st->job->count[GL_STEP_PENDING]++;
    st->job->bound[GL_STEP_PENDING] += gl_step_is_bound(st);
    st->job->units[GL_STEP_PENDING] += gl_step_is_unit(st);
}

struct gl_step *gl_step_get(struct gl_core *c, struct gl_job *j, uint32_t number)
{
    struct gl_step *st = gl_step_find(j, number);

    GL_ASSERT(number < j->spec->flow->steps.n);
    if (st == NULL) {
        st = step_new(c, j, number);
        st->r.step_id = gl_step_spec_of(st)->id;
        count(st);
    }
    GL_ASSERT(st->number == number);
    return st;
}

struct gl_step *gl_step_item(struct gl_core *c, struct gl_job *j, uint32_t of, uint32_t item,
                             uint32_t instance)
{
    struct gl_step *st = step_new(c, j, gl_flow_items_base(j->spec->flow) + instance);
    char id[GL_STEP_ID_BYTES_MAX + 1];

    GL_ASSERT(of < j->spec->flow->steps.n);
    GL_ASSERT(item < GL_ITEMS_MAX);
    st->of = of;
    st->item = (int32_t)item;
    st->r.items_at = instance;
    (void)snprintf(id, sizeof(id), "%.*s[%u]", GL_STR_ARG(gl_step_spec_of(st)->id), item);
    gl_core_set(c, &st->r.step_id, gl_str_of(id));
    j->items_live++;
    count(st);
    return st;
}

bool gl_step_split_id(const struct gl_flow *flow, gl_str id, uint32_t *ret_of, int32_t *ret_item)
{
    gl_str name;
    int64_t item, of = gl_str_split_step(id, &name, &item) ? gl_flow_find(flow, name) : -1;

    if (of < 0) {
        return false;
    }
    *ret_of = (uint32_t)of;
    *ret_item = (int32_t)item;
    GL_ASSERT(of < (int64_t)flow->steps.n);
    GL_ASSERT(item >= -1);
    return true;
}

static struct gl_step *find(struct gl_job *j, uint32_t of, int32_t item)
{
    struct gl_step *group = gl_step_find(j, of), *st;

    if (item < 0) {
        return group;
    }
    if (group != NULL && (uint32_t)item < group->r.items_n) {
        return gl_step_find(j,
                            gl_flow_items_base(j->spec->flow) + group->r.items_at + (uint32_t)item);
    }
    /* Its step has ended before it, because the job is ending: there are few. */
    for (struct gl_link *l = j->live.next; l != &j->live; l = l->next) {
        st = GL_CONTAINER(l, struct gl_step, live);
        if (st->of == of && st->item == item) {
            return st;
        }
    }
    return NULL;
}

struct gl_step *gl_step_by_id(struct gl_job *j, gl_str id)
{
    uint32_t of;
    int32_t item;

    return gl_step_split_id(j->spec->flow, id, &of, &item) ? find(j, of, item) : NULL;
}

uint32_t gl_step_place(const struct gl_step *st)
{
    return gl_flow_place(st->job->spec->flow, st->of, st->item);
}

struct gl_step *gl_step_at(struct gl_job *j, uint32_t place)
{
    uint32_t base = gl_flow_items_base(j->spec->flow);

    if (place < base) {
        return gl_step_find(j, place);
    }
    return find(j, (place - base) / GL_ITEMS_MAX, (int32_t)((place - base) % GL_ITEMS_MAX));
}

void gl_step_rename(struct gl_job *j, const struct gl_flow *flow)
{
    GL_ASSERT(flow->steps.n >= j->spec->flow->steps.n);
    for (struct gl_link *l = j->live.next; l != &j->live; l = l->next) {
        struct gl_step *st = GL_CONTAINER(l, struct gl_step, live);

        if (st->item < 0) {
            st->r.step_id = gl_flow_step(flow, st->of)->id;
        }
    }
}

void gl_step_free(struct gl_core *c, struct gl_step *st)
{
    struct gl_job *j = st->job;

    GL_ASSERT(j->count[st->r.status] > 0);
    GL_ASSERT(st->hold == NULL);
    gl_core_disown(c, &gl_step_schema, &st->r);
    if (st->item >= 0) {
        gl_core_set(c, &st->r.step_id, (gl_str){0});
        j->items_live -= !gl_step_status_is_terminal(st->r.status);
    }
    j->reviews_n -= st->r.status == GL_STEP_BLOCKED && st->r.blocked_on == GL_BLOCK_REVIEW;
    if (st->wait != NULL) {
        gl_slots_detach(st); /* its place in the queue stays */
    }
    if (gl_heap_has(&st->timer)) {
        gl_heap_remove(&j->timers, &st->timer);
    }
    if (st->r.status == GL_STEP_RUNNING && !gl_step_is_bound(st)) {
        GL_ASSERT(c->running_n > 0);
        c->running_n--;
    }
    j->count[st->r.status]--;
    j->bound[st->r.status] -= gl_step_is_bound(st);
    j->units[st->r.status] -= gl_step_is_unit(st);
    gl_mailbox_free_step(c, st);
    gl_list_remove(&st->live);
    gl_list_remove(&st->dirty);
    gl_list_remove(&st->work);
    GL_ASSERT(j->reviews_n <= j->count[GL_STEP_BLOCKED]);
    GL_ASSERT(st->number / GL_STEP_PAGE < j->pages_n);
    j->pages[st->number / GL_STEP_PAGE][st->number % GL_STEP_PAGE] = NULL;
    gl_pool_free(&c->mem, st, sizeof(*st));
}

static gl_ms sooner(gl_ms due, gl_ms at)
{
    return at != 0 && at < due ? at : due;
}

/* A job's timers rest while it is held: its steps start nothing until it is resumed. */
void gl_step_set_due(struct gl_core *c, struct gl_step *st)
{
    struct gl_job *j = st->job;
    gl_ms due = INT64_MAX;

    if (st->r.status == GL_STEP_RETRY_WAIT && (j->r.status == GL_JOB_RUNNING || st->r.seat > 0) &&
        !GL_PLANT(4)) {
        due = sooner(due, st->r.retry_at); /* a seat must not wait for its job to go on */
    } else if (st->r.status == GL_STEP_BLOCKED && j->r.status == GL_JOB_RUNNING) {
        due = sooner(due, st->r.due_at);
    } else if (st->r.status == GL_STEP_READY && j->r.status == GL_JOB_RUNNING) {
        due = sooner(due, st->probe_at);
    } else if (st->r.status == GL_STEP_RUNNING && gl_step_is_bound(st)) {
        due = j->r.status != GL_JOB_RUNNING
                  ? due
                  : sooner(sooner(due, st->r.deadline_at), st->r.heartbeat_at);
    } else if (st->r.status == GL_STEP_RUNNING) {
        due = sooner(sooner(due, st->heartbeat_at), st->probe_at);
    } else if (st->r.status == GL_STEP_QUEUED && gl_step_is_unit(st) && !st->r.keeps_slots &&
               st->r.queued_at != 0 && j->r.status == GL_JOB_RUNNING) {
        const struct gl_agent_spec *a = gl_flow_agent(j->spec->flow, st->of);
        gl_ms wait = a->kind == GL_AGENT_EXECUTOR ? a->lease_timeout_ms : 0;

        due = wait > 0 ? sooner(due, st->r.queued_at + wait) : due;
    }
    if (due != st->due || gl_heap_has(&st->timer) != (due != INT64_MAX)) {
        if (gl_heap_has(&st->timer)) {
            gl_heap_remove(&j->timers, &st->timer);
        }
        st->due = due;
        if (due != INT64_MAX) {
            gl_heap_push(&j->timers, &st->timer);
        }
    }
    gl_sweep_set_due(c, j);
    GL_ASSERT(gl_heap_has(&st->timer) == (st->due != INT64_MAX));
}

/* ---- specs ---- */

int gl_spec_new(gl_str hash, gl_str text, struct gl_spec **ret, struct gl_why *reterr_why)
{
    struct gl_spec *s = gl_mem_alloc(sizeof(*s));
    int rc;

    gl_arena_init(&s->arena);
    s->refs = 1;
    s->hash = gl_str_dup(&s->arena, hash);
    s->text = gl_str_dup(&s->arena, text);
    rc = gl_flow_decode(s->text, &s->arena, &s->flow, reterr_why);
    if (rc != 0) {
        gl_spec_unref(s);
        return rc;
    }
    *ret = s;
    return 0;
}

void gl_spec_ref(struct gl_spec *s)
{
    GL_ASSERT(s->refs > 0);
    s->refs++;
}

void gl_spec_unref(struct gl_spec *s)
{
    GL_ASSERT(s->refs > 0);
    if (--s->refs == 0) {
        if (s->shared != NULL) {
            gl_spec_unref(s->shared);
        }
        gl_arena_done(&s->arena);
        gl_mem_free(s);
    }
}
