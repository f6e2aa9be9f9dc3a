/* core.c - creates and frees a core, dispatches each event to its handler, and answers questions
 * about its state. The jobs it has in memory are in job_memory.c. */
#include "core/core.h"

#include "base/check.h"
#include "core/agents/agents.h"
#include "core/agents/human_requests.h"
#include "core/claims/claims.h"
#include "core/cluster/inbox.h"
#include "core/cluster/membership.h"
#include "core/cluster/node_pools.h"
#include "core/cluster/offers.h"
#include "core/cluster/other_nodes.h"
#include "core/cluster/outbox.h"
#include "core/cluster/rebalance.h"
#include "core/cluster/renewal.h"
#include "core/cluster/session.h"
#include "core/cluster/store_full.h"
#include "core/cluster/taken.h"
#include "core/component.h"
#include "core/core_state.h"
#include "core/flow/command.h"
#include "core/flow/gate.h"
#include "core/flow/ledger.h"
#include "core/flow/submit.h"
#include "core/flow/txn.h"
#include "core/recovery/attempts.h"
#include "core/recovery/load.h"
#include "core/recovery/sweep.h"
#include "core/retention/retention.h"
#include "core/scheduling/quotas.h"
#include "core/scheduling/slots.h"

static bool job_before(const struct gl_heap_item *a, const struct gl_heap_item *b)
{
    const struct gl_job *x = GL_CONTAINER(a, struct gl_job, timer);
    const struct gl_job *y = GL_CONTAINER(b, struct gl_job, timer);

    return x->due != y->due ? x->due < y->due : gl_str_cmp(x->id, y->id) < 0;
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
    c->sweep.orphans_due = INT64_MAX;
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

    GL_ASSERT(c->out == NULL);
    GL_ASSERT(gl_list_empty(&c->touched));
    c->trace = NULL; /* freeing memory decides nothing, so it must not be traced */
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
    } else if (gl_str_starts(ev->woken.word, GL_S(GL_OFFERS_WORD))) {
        gl_offers_on_woken(c);
        gl_taken_on_woken(c);
    } else {
        gl_outbox_on_woken(c);
    }
}

static void note_store_full(struct gl_core *c, bool needs_help, gl_str why)
{
    if (needs_help) {
        gl_store_full_on_refused(c, why);
    }
}

static void on_done(struct gl_core *c, const struct gl_event *ev)
{
    note_store_full(c, ev->done.needs_help, ev->done.why);
    gl_load_on_done(c, ev);
    gl_inbox_on_done(c, ev);
}

static void on_answer(struct gl_core *c, const struct gl_event *ev)
{
    note_store_full(c, ev->answer.needs_help, ev->answer.why);
    gl_components_on_answer(c, ev);
}

static void on_refused(struct gl_core *c, const struct gl_event *ev)
{
    note_store_full(c, ev->refused.needs_help, ev->refused.why);
}

static void on_show(struct gl_core *c, const struct gl_event *ev)
{
    (void)ev;
    gl_renewal_renew_now(c);
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

/* Flows that were replaced by patches in this step: no pointer into them is used any more. */
static void drop_replaced_flows(struct gl_core *c)
{
    for (struct gl_spec *s; (s = c->left) != NULL;) {
        GL_ASSERT(s->jobs < s->refs); /* one of the references is this list's */
        c->left = s->left;
        gl_spec_unref(s);
    }
}

void gl_core_step(struct gl_core *c, const struct gl_event *ev, struct gl_effects *out)
{
    GL_ASSERT(ev->now >= c->now);
    GL_ASSERT(c->out == NULL); /* a step is never begun within another */
    GL_ASSERT(gl_list_empty(&c->touched));
    c->now = ev->now;
    c->trace->now = ev->now;
    c->out = out;
    c->lately.body = NULL;
    gl_core_dispatch(c, ev);
    gl_node_pools_move(c);
    gl_rebalance_return_jobs(c);
    gl_ledger_reconcile_all(c);
    gl_agents_evict_idle(c);
    gl_load_trim(c);
    drop_replaced_flows(c);
    c->out = NULL;
    GL_ASSERT(gl_list_empty(&c->touched));
    GL_ASSERT(c->now == ev->now);
    GL_ASSERT(c->jobs_hot + c->jobs_loading <= gl_map_count(&c->jobs));
    GL_ASSERT(c->adopting_n <= gl_map_count(&c->jobs));
    GL_ASSERT(GL_IMPLIES(c->sweep.asked, c->sweep.under_way));
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
    if (!c->sweep.under_way && !c->passive) { /* else the next scan starts when this one ends */
        due = c->cold_due < due ? c->cold_due : due;
        due = c->active_due < due ? c->active_due : due;
        if (!c->sweep.first) { /* orphan scans wait for the first sweep to finish */
            due = c->sweep.orphans_due < due ? c->sweep.orphans_due : due;
        }
    }
    return due;
}

bool gl_core_idle(const struct gl_core *c)
{
    return c->inflight_n == 0 && c->jobs_loading == 0 && c->running_n == 0 && !c->sweep.under_way &&
           gl_map_count(&c->waits) == 0 && gl_list_empty(&c->busy) &&
           gl_map_count(&c->taken.all) == 0 && gl_taken_is_known(c);
}

enum gl_why_code gl_core_explain(struct gl_core *c, gl_str job, uint32_t number, struct gl_buf *out)
{
    return gl_slots_explain(c, job, number, out);
}

void gl_core_places(const struct gl_core *c, struct gl_arena *a, struct gl_core_places *ret)
{
    gl_slots_places(c, a, ret);
}

bool gl_core_may_run_elsewhere(const struct gl_step_spec *spec)
{
    return gl_other_nodes_may_run_spec(spec);
}

bool gl_core_longest_waiting(const struct gl_core *c, struct gl_core_waiting *ret)
{
    return gl_slots_longest_waiting(c, ret);
}

bool gl_core_is_quarantined(const struct gl_core *c, gl_str job)
{
    return gl_map_find(&c->quarantined, job) != NULL;
}

bool gl_core_knows_flow(const struct gl_core *c, gl_str hash)
{
    return gl_map_find(&c->specs, hash) != NULL;
}

const struct gl_flow *gl_core_ref_flow(struct gl_core *c, gl_str hash, struct gl_spec **ret)
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
    GL_ASSERT(gl_job_is_mine(c, j));
    *ret_beacon_at = st->r.beacon_at;
    *ret_heartbeat_at = st->r.heartbeat_at;
    if (st->heartbeat_at != 0) { /* a step of a flow file: every heartbeat moves it */
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

void gl_core_metrics(const struct gl_core *c, struct gl_core_metrics *ret)
{
    GL_ASSERT(c->pools_n > 0);
    GL_ASSERT(c->pools_n <= GL_COUNT(ret->pools));
    memset(ret, 0, sizeof(*ret));
    ret->quarantined = gl_map_count(&c->quarantined);
    ret->jobs_hot = c->jobs_hot;
    ret->jobs_loading = c->jobs_loading;
    ret->ops_in_flight = c->inflight_n;
    ret->attempts_running = c->running_n;
    ret->attempts_elsewhere = c->made.timers.n;
    ret->offers_waiting = c->taken.queued_n;
    ret->attempts_taken = gl_map_count(&c->taken.all) - c->taken.queued_n;
    GL_ASSERT(ret->offers_waiting <= gl_map_count(&c->waits));
    ret->steps_waiting = gl_map_count(&c->waits) - ret->offers_waiting;
    for (size_t i = 0; i < c->pools_n; i++) {
        if (c->pools[i].slots == 0) {
            continue; /* other nodes have it */
        }
        ret->pools[ret->pools_n].name = c->pools[i].name;
        ret->pools[ret->pools_n].slots = c->pools[i].slots;
        ret->pools[ret->pools_n].in_use = c->pools[i].in_use;
        ret->pools[ret->pools_n++].waiting = (uint32_t)gl_slots_waiting(&c->pools[i]);
    }
}
