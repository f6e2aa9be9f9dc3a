/* sweep.c - timers, and scans of the index "wake".
 *
 * At most one scan is under way, and at most one page of it is being read. There are four kinds:
 *   - the first sweep, over the whole index; it resumes where it was if the store goes away
 *   - a regular scan of one part (running, ready, due), every ten seconds in turn
 *   - a scan of the due part, when the earliest known timer comes
 *   - an orphan scan of one part (`is_orphan_scan`), after a node died or returned jobs
 *
 * A scan only loads jobs; whether a loaded job is taken over is decided in load.c. */
#include "core/recovery/sweep.h"

#include "base/check.h"
#include "core/agents/agents.h"
#include "core/cluster/membership.h"
#include "core/cluster/node_pools.h"
#include "core/cluster/other_nodes.h"
#include "core/cluster/rebalance.h"
#include "core/cluster/taken.h"
#include "core/flow/gate.h"
#include "core/flow/ledger.h"
#include "core/flow/txn.h"
#include "core/recovery/attempts.h"
#include "core/recovery/load.h"
#include "core/recovery/safety.h"

enum {
    PAGE = 64,
    LOADING_MAX = 256,       /* jobs being loaded at a time by scans */
    ACTIVE_EVERY_MS = 10000, /* between two regular scans */
    LIST_EVERY_MS = 10000,   /* between two lists of the executor's attempts */
    FOREIGN_MS = 1000,       /* between two reads whose first timer is of another node's job */
    ORPHANS_MS = 100,        /* until an orphan scan that left jobs behind is repeated ... */
    ORPHANS_FULL_MS = 1000,  /* ... and if this node has no free slots at all */
    SHARED_LOADS_MAX = 32,   /* jobs being loaded at a time from a shared store */
};

/* ---- a job's place in the index ---- */

static bool has_work(const struct gl_job *j)
{
    return gl_job_count(j, GL_STEP_READY) + gl_job_count(j, GL_STEP_QUEUED) > 0 ||
           !gl_list_empty(&j->busy) || !gl_list_empty(&j->due_units) ||
           j->r.verdict != GL_VERDICT_NONE || !gl_list_empty(&j->making) ||
           j->r.roots_spread < j->spec->flow->roots_n || j->asked_n > 0;
}

int64_t gl_sweep_wake_of(const struct gl_job *j)
{
    const struct gl_heap_item *top = gl_heap_top(&j->timers);
    gl_ms due;

    GL_ASSERT(j->memory == GL_MEM_HOT);
    if (gl_job_status_is_terminal(j->r.status)) {
        return GL_WAKE_NONE;
    }
    if (gl_job_running(j) > 0) {
        return GL_WAKE_RUNNING;
    }
    if (j->r.status == GL_JOB_PAUSED) {
        return GL_WAKE_NEVER;
    }
    if (!gl_list_empty(&j->holds) && !j->is_damaged) {
        return GL_WAKE_RUNNING; /* an agent between two attempts: after a restart it gets its
                                   slots back before anything new starts */
    }
    if (has_work(j) || j->releases) { /* a job created for another node has not started */
        return GL_WAKE_READY;
    }
    if (top == NULL) {
        return GL_WAKE_NEVER;
    }
    due = GL_CONTAINER(top, struct gl_step, timer)->due;
    return due > GL_WAKE_READY ? due : GL_WAKE_READY + 1;
}

static void set_due(struct gl_core *c, struct gl_job *j, gl_ms due)
{
    if (due == j->due) {
        return;
    }
    if (gl_heap_has(&j->timer)) {
        gl_heap_remove(&c->timers, &j->timer);
    }
    j->due = due;
    if (due != INT64_MAX) {
        gl_heap_push(&c->timers, &j->timer);
    }
    GL_ASSERT(gl_heap_has(&j->timer) == (due != INT64_MAX));
}

void gl_sweep_set_due(struct gl_core *c, struct gl_job *j)
{
    const struct gl_heap_item *top = gl_heap_top(&j->timers);

    GL_ASSERT(j->memory != GL_MEM_FAILED);
    set_due(c, j, top != NULL ? GL_CONTAINER(top, struct gl_step, timer)->due : INT64_MAX);
}

void gl_sweep_set_load_due(struct gl_core *c, struct gl_job *j, gl_ms due)
{
    GL_ASSERT(j->memory == GL_MEM_LOADING);
    set_due(c, j, due);
}

/* ---- timers ---- */

static void fire(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(st->due <= c->now);
    GL_ASSERT(st->job->memory == GL_MEM_HOT);
    if (gl_step_is_bound(st)) {
        gl_agent_step_on_timer(c, st);
        return;
    }
    if (st->r.status == GL_STEP_RETRY_WAIT) {
        GL_ASSERT(st->job->r.status == GL_JOB_RUNNING || st->r.seat > 0);
        gl_safety_on_timer(c, st);
        return;
    }
    if (st->r.status == GL_STEP_RUNNING) {
        gl_attempts_on_timer(c, st);
    } else if (gl_step_is_unit(st)) {
        gl_agent_unit_on_timer(c, st);
    } else {
        gl_gate_on_timer(c, st);
    }
}

static void fire_job(struct gl_core *c, struct gl_job *j)
{
    GL_ASSERT(j->due <= c->now);
    if (j->memory != GL_MEM_HOT) {
        set_due(c, j, INT64_MAX);
        gl_load_again(c, j);
        return;
    }
    if (c->shared && j->owner.n == 0 && j->inflight_n > 0) {
        set_due(c, j, INT64_MAX); /* it is being returned, and leaves memory after the commit */
        return;
    }
    for (struct gl_heap_item *top; (top = gl_heap_top(&j->timers)) != NULL;) {
        struct gl_step *st = GL_CONTAINER(top, struct gl_step, timer);
        uint8_t was = st->r.status;

        if (st->due > c->now) {
            break;
        }
        fire(c, st);
        /* A ledger's step that timed out may be retried at once, with the same due time. */
        GL_ASSERT(gl_heap_top(&j->timers) != top || st->due > c->now || st->r.status != was);
    }
    gl_txn_touch(c, j);
}

static void fire_timers(struct gl_core *c)
{
    for (struct gl_heap_item *top; (top = gl_heap_top(&c->timers)) != NULL;) {
        struct gl_job *j = GL_CONTAINER(top, struct gl_job, timer);

        if (j->due > c->now) {
            break;
        }
        fire_job(c, j);
        GL_ASSERT(gl_heap_top(&c->timers) != top || j->due > c->now); /* else an endless loop */
    }
}

static void continue_busy(struct gl_core *c)
{
    for (struct gl_link *l; (l = gl_list_first(&c->busy)) != NULL;) {
        struct gl_job *j = GL_CONTAINER(l, struct gl_job, busy);

        gl_list_remove(&j->busy);
        gl_txn_touch(c, j);
        j->changed |= !j->is_deferred;
    }
    GL_ASSERT(gl_list_empty(&c->busy));
}

/* ---- sweeps ---- */

static void request_page(struct gl_core *c)
{
    struct gl_effect *e = gl_effect_add(c->out, GL_FX_FIND, 0);

    GL_ASSERT(c->sweep.under_way);
    GL_ASSERT(!c->sweep.asked);
    c->sweep.asked = true;
    e->context = gl_str_dup(c->out->arena, c->context);
    e->range = (struct gl_range){
        .index = gl_str_dup(c->out->arena, c->wake_index),
        .score_min = c->sweep.after_score,
        .score_max = c->sweep.max,
        .after_score = c->sweep.after_score,
        .after_id = gl_str_dup(c->out->arena, c->sweep.after_id),
        .limit = PAGE,
    };
}

static void start_scan(struct gl_core *c, int64_t from, int64_t max)
{
    GL_ASSERT(!c->sweep.asked);
    GL_ASSERT(!c->sweep.under_way);
    GL_ASSERT(max < GL_WAKE_NEVER);
    c->sweep.under_way = true;
    c->sweep.after_score = from;
    gl_core_set(c, &c->sweep.after_id, (gl_str){0});
    c->sweep.max = max;
    request_page(c);
}

void gl_sweep_begin(struct gl_core *c)
{
    GL_ASSERT(c->session.n > 0);
    if (c->passive) {
        return;
    }
    c->sweep.first = true;
    c->active_due = c->now + ACTIVE_EVERY_MS;
    c->list_due = c->now + LIST_EVERY_MS;
    start_scan(c, GL_WAKE_RUNNING, GL_WAKE_NEVER - 1);
}

void gl_sweep_continue(struct gl_core *c)
{
    GL_ASSERT(GL_IMPLIES(c->sweep.asked, c->sweep.under_way));
    if (c->sweep.under_way && !c->sweep.asked && c->jobs_loading < LOADING_MAX &&
        gl_map_count(&c->waits) < GL_WAITING_MAX) {
        request_page(c);
    }
    if (!c->adoption_over && c->session.n > 0 && c->adopting_n == 0 && gl_taken_is_known(c) &&
        (!c->sweep.first || c->sweep.after_score > GL_WAKE_RUNNING)) {
        c->adoption_over = true;
        GL_TRACE(c->trace, NODE, .what = "adopted");
        gl_ledger_reconcile_all(c); /* steps queued during the adoption may start now */
    }
}

/* If jobs were left for lack of free slots, scan again soon: no other node may have more. */
static void orphan_scan_ends(struct gl_core *c)
{
    uint8_t part = c->sweep.max == GL_WAKE_RUNNING ? GL_ORPHAN_SCAN_RUNNING
                   : c->sweep.max == GL_WAKE_READY ? GL_ORPHAN_SCAN_READY
                                                   : GL_ORPHAN_SCAN_DUE;

    GL_ASSERT(c->sweep.is_orphan_scan);
    c->sweep.is_orphan_scan = false;
    c->sweep.orphans_due = c->sweep.orphan_parts != 0 ? c->now : INT64_MAX;
    if (c->sweep.left) {
        c->sweep.orphan_parts |= part;
        c->sweep.orphans_due = c->now + (gl_rebalance_room(c) > 0 ? ORPHANS_MS : ORPHANS_FULL_MS);
    }
}

static void scan_ends(struct gl_core *c)
{
    GL_ASSERT(c->sweep.under_way);
    GL_ASSERT(!c->sweep.asked);
    c->sweep.under_way = false;
    c->sweep.first = false;
    c->sweep.page_only = false;
    if (c->sweep.is_orphan_scan) {
        orphan_scan_ends(c);
    }
    GL_ASSERT(!c->sweep.is_orphan_scan);
}

/* Jobs that wait for slots are either ours, and in our queues, or those of a node that died after
 * our first sweep. If our queues are empty they are all of the second kind, and the scan reads them
 * all; otherwise it reads one page, and continues after it the next time. */
static void scan_ready(struct gl_core *c)
{
    GL_ASSERT(!c->sweep.under_way);
    c->sweep.under_way = true;
    c->sweep.max = GL_WAKE_READY;
    c->sweep.after_score = GL_WAKE_READY;
    gl_core_set(c, &c->sweep.after_id, c->sweep.ready_id);
    c->sweep.page_only = gl_map_count(&c->waits) > 0 || (c->shared && gl_rebalance_room(c) == 0);
    request_page(c);
}

/* The end of a scan that continues after this page another time. */
static void page_ends(struct gl_core *c, bool more)
{
    gl_core_set(c, &c->sweep.ready_id, more ? c->sweep.after_id : (gl_str){0});
    scan_ends(c);
}

/* Load one job of the index. It may be loading already, because the executor listed an attempt of
 * it; the adoption waits for it in that case, too. */
static void load_entry(struct gl_core *c, const struct gl_event_entry *e)
{
    struct gl_job *j = gl_job_find(c, e->id);

    GL_ASSERT(e->id.n == GL_ULID_BYTES);
    if (gl_core_is_quarantined(c, e->id)) {
        return;
    }
    if (j == NULL) {
        j = gl_load_job(c, e->id);
    } else if (c->shared && j->memory == GL_MEM_HOT && !gl_job_is_mine(c, j) &&
               j->inflight_n == 0 && (j->r.wake != e->score || (e->rev != 0 && e->rev != j->rev))) {
        /* We loaded it when its owner was dead, and another node has taken it over since: our
         * memory is outdated. If it lacks a pool here it is in no queue, so nothing else would show
         * that. */
        GL_MARK(c->trace, "sweep.others_moved_it");
        gl_load_distrust(c, j);
    }
    if (e->score == GL_WAKE_RUNNING && !c->adoption_over && j->memory != GL_MEM_HOT &&
        !j->is_adopted) {
        j->is_adopted = true;
        c->adopting_n++;
    }
    GL_ASSERT(c->adopting_n <= gl_map_count(&c->jobs));
}

/* Is this the regular scan of the jobs that wait for slots? See scan_regularly(). */
static bool is_regular_ready_scan(const struct gl_core *c)
{
    return !c->sweep.is_orphan_scan && !c->sweep.first && c->sweep.max == GL_WAKE_READY;
}

/* May one more job be loaded? From a shared store a node takes no more than it can start at once,
 * to leave a share to others. But jobs that wait for slots may also have timers, which cannot wait
 * until some node has free slots; so the regular scan takes some anyway. */
static bool has_room(const struct gl_core *c, const struct gl_event_entry *e)
{
    if (!c->shared || (c->sweep.first && e->score == GL_WAKE_RUNNING)) {
        return true;
    }
    if (e->needs.n == 0 && gl_other_nodes_are_placing(c)) {
        return c->jobs_loading < SHARED_LOADS_MAX; /* its steps can run on any node */
    }
    if (!c->exec_up) {
        return false; /* leave it to a node that can run it */
    }
    return e->score == GL_WAKE_READY ? is_regular_ready_scan(c) || gl_rebalance_room(c) > 0
                                     : c->jobs_loading < SHARED_LOADS_MAX;
}

static bool is_off_limits(const struct gl_core *c, const struct gl_event_entry *e)
{
    return e->rev > 0 && !gl_core_owns(c, e->id) &&
           gl_membership_must_not_take(c, e->owner, e->score == GL_WAKE_RUNNING, e->is_wanted);
}

/* The pools that a node must offer to take this job; "" if none matter. They do not matter in two
 * cases: a job that is ours and was evicted, because only we can return it; and a running job of an
 * earlier life of this node, because only we can ask our executor about its attempts. */
static gl_str needs_of(const struct gl_core *c, const struct gl_event_entry *e)
{
    bool is_ours = gl_str_eq(e->owner, c->session) ||
                   (e->score == GL_WAKE_RUNNING && gl_membership_is_own(c, e->owner));

    return is_ours ? (gl_str){0} : e->needs;
}

/* The first `n` entries of a page. Several nodes may read the same page at the same time, so each
 * starts at a different entry. */
static void take_page(struct gl_core *c, const struct gl_event_entry *entries, size_t n)
{
    size_t first = c->shared && n > 0 ? gl_str_hash(c->session) % n : 0;

    GL_ASSERT(n == 0 || first < n);
    for (size_t i = 0; i < n; i++) {
        const struct gl_event_entry *e = &entries[(first + i) % n];

        if (e->id.n != GL_ULID_BYTES || is_off_limits(c, e)) {
            continue;
        }
        if (!gl_node_pools_may_take(c, needs_of(c, e))) {
            GL_MARK(c->trace, "offers.passed_over");
            c->sweep.passed_over = true;
            continue;
        }
        if (has_room(c, e)) {
            load_entry(c, e);
        } else if (gl_job_find(c, e->id) == NULL) {
            c->sweep.left = true;
        }
    }
}

static void remember_position(struct gl_core *c, const struct gl_event_entry *e)
{
    c->sweep.after_score = e->score;
    gl_core_set(c, &c->sweep.after_id, e->id);
}

void gl_sweep_on_found(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_entry *entries = ev->found.entries.items;
    size_t due_n = 0;

    GL_ASSERT(ev->type == GL_EV_FOUND);
    c->sweep.asked = false;
    if (ev->found.code != 0) {
        /* The store is away: start again a little later. */
        c->sweep.under_way = false;
        c->sweep.left = c->sweep.is_orphan_scan;
        if (c->sweep.is_orphan_scan) {
            orphan_scan_ends(c);
        }
        c->active_due = c->now + 1000;
        c->cold_due = c->now + 1000;
        return;
    }
    while (due_n < ev->found.entries.n && entries[due_n].score <= c->now) {
        due_n++;
    }
    GL_ASSERT(due_n <= ev->found.entries.n);
    take_page(c, entries, due_n);
    if (due_n > 0) {
        remember_position(c, &entries[due_n - 1]);
    }
    if (due_n < ev->found.entries.n) {
        gl_ms due = entries[due_n].score;

        if (is_off_limits(c, &entries[due_n]) && due < c->now + FOREIGN_MS) {
            due = c->now + FOREIGN_MS; /* its owner handles it; later entries can wait */
        }
        c->cold_due = due < c->cold_due ? due : c->cold_due;
        scan_ends(c);
        return;
    }
    if (c->sweep.left && c->shared && !c->sweep.first) {
        scan_ends(c); /* no free slots for more */
        return;
    }
    if (c->sweep.page_only || c->sweep.max == GL_WAKE_READY) {
        if (c->sweep.page_only || !ev->found.more) {
            page_ends(c, ev->found.more);
        }
    } else if (!ev->found.more) {
        scan_ends(c);
    }
}

/* A node has died, or has returned jobs: scan one of the requested parts. */
static void start_orphan_scan(struct gl_core *c)
{
    GL_ASSERT(c->sweep.orphan_parts != 0);
    GL_ASSERT(!c->sweep.under_way);
    c->sweep.is_orphan_scan = true;
    c->sweep.left = false;
    c->sweep.orphans_due = INT64_MAX;
    if (c->sweep.orphan_parts & GL_ORPHAN_SCAN_RUNNING) {
        c->sweep.orphan_parts &= (uint32_t)~GL_ORPHAN_SCAN_RUNNING;
        start_scan(c, GL_WAKE_RUNNING, GL_WAKE_RUNNING);
    } else if (c->sweep.orphan_parts & GL_ORPHAN_SCAN_READY) {
        c->sweep.orphan_parts &= (uint32_t)~GL_ORPHAN_SCAN_READY;
        start_scan(c, GL_WAKE_READY, GL_WAKE_READY);
    } else {
        c->sweep.orphan_parts = 0;
        start_scan(c, GL_WAKE_READY + 1, GL_WAKE_NEVER - 1);
    }
}

static void scan_regularly(struct gl_core *c)
{
    GL_ASSERT(!c->sweep.under_way);
    switch (c->sweep.turn++ % 3) {
    case 0:
        start_scan(c, GL_WAKE_RUNNING, GL_WAKE_RUNNING);
        break;
    case 1:
        scan_ready(c);
        break;
    default:
        start_scan(c, GL_WAKE_READY + 1, GL_WAKE_NEVER - 1);
        break;
    }
}

static void scan_if_due(struct gl_core *c)
{
    if (c->sweep.under_way || c->session.n == 0 || c->passive) {
        return;
    }
    if (c->sweep.first && c->shared && c->active_due > c->now) {
        return; /* the store is away; this delay was set by gl_sweep_on_found() */
    }
    if (c->sweep.first) { /* the first sweep was interrupted: resume it */
        c->active_due = c->now + ACTIVE_EVERY_MS;
        c->cold_due = INT64_MAX;
        start_scan(c, c->sweep.after_score, GL_WAKE_NEVER - 1);
    } else if (c->sweep.orphan_parts != 0 && c->sweep.orphans_due <= c->now) {
        start_orphan_scan(c);
    } else if (c->cold_due <= c->now) {
        c->cold_due = INT64_MAX;
        start_scan(c, GL_WAKE_READY + 1, GL_WAKE_NEVER - 1);
    } else if (c->active_due <= c->now) {
        c->active_due = c->now + ACTIVE_EVERY_MS;
        scan_regularly(c);
    }
}

void gl_sweep_on_tick(struct gl_core *c)
{
    fire_timers(c);
    continue_busy(c);
    scan_if_due(c);
    if (c->list_due <= c->now) {
        c->list_due = c->now + LIST_EVERY_MS;
        gl_attempts_list(c);
    }
}
