/* load.c - the life of a job's memory.
 *
 *                 LOADED, usable
 *   LOADING ───────────────────────► HOT ──► (dropped: ended, given away, or evicted)
 *      ▲  └─► (dropped: not usable,   │
 *      │       or another node's)     │ a transaction failed
 *      │                              ▼
 *      └────────────────────────── FAILED, until no transaction is in flight
 *
 * Successors of a failed transaction are guarded on the revision it would have written, so they
 * fail as well; only when all of them have been answered does a read show the truth. */
#include "core/recovery/load.h"

#include "base/check.h"
#include "core/agents/agents.h"
#include "core/cluster/inbox.h"
#include "core/cluster/membership.h"
#include "core/cluster/node_pools.h"
#include "core/cluster/offers.h"
#include "core/cluster/outbox.h"
#include "core/cluster/session.h"
#include "core/flow/items.h"
#include "core/flow/ledger.h"
#include "core/flow/txn.h"
#include "core/recovery/attempts.h"
#include "core/recovery/parked.h"
#include "core/recovery/restore.h"
#include "core/recovery/safety.h"
#include "core/recovery/sweep.h"
#include "core/retention/retention.h"
#include "core/scheduling/quotas.h"
#include "core/scheduling/slots.h"

enum { RETRY_MS = 200, RETRY_MS_MAX = 5000, TRIM_TRIES = 8 };

/* ---- asking for a job ---- */

static void emit_load(struct gl_core *c, struct gl_job *j)
{
    struct gl_effect *e = gl_effect_add(c->out, GL_FX_LOAD, 0);

    GL_ASSERT(j->memory == GL_MEM_LOADING);
    GL_ASSERT(j->inflight_n == 0);
    e->context = gl_str_dup(c->out->arena, c->context);
    e->job = gl_str_dup(c->out->arena, j->id);
}

struct gl_job *gl_load_job(struct gl_core *c, gl_str id)
{
    struct gl_job *j = gl_job_find(c, id);

    GL_ASSERT(id.n == GL_ULID_BYTES);
    if (j == NULL) {
        j = gl_job_new(c, id);
        emit_load(c, j);
    } else if (j->memory == GL_MEM_HOT) {
        gl_list_remove(&j->lru);
        gl_list_push(&c->lru, &j->lru);
    }
    GL_ASSERT(gl_str_eq(j->id, id));
    return j;
}

void gl_load_again(struct gl_core *c, struct gl_job *j)
{
    GL_ASSERT(j->memory != GL_MEM_HOT);
    if (j->memory == GL_MEM_LOADING) {
        emit_load(c, j);
    }
}

/* A person's resume or cancel lifts the quarantine. */
static bool release_quarantine(struct gl_core *c, const struct gl_event *ev)
{
    gl_str *id;

    if (ev->type != GL_EV_COMMAND ||
        (ev->command.verb != GL_CMD_RESUME && ev->command.verb != GL_CMD_CANCEL)) {
        return false;
    }
    GL_ASSERT(gl_core_is_quarantined(c, ev->job));
    id = gl_map_remove(&c->quarantined, ev->job);
    gl_core_set(c, id, (gl_str){0});
    gl_pool_free(&c->mem, id, sizeof(*id));
    return true;
}

/* May the memory of this job be outdated? If the job is not ours, another node may have taken it
 * over and died since, and no event would report that; so no request is answered from such a
 * memory. The same holds for a job that is being returned to the store: it has left the queues
 * already. */
static bool may_be_outdated(const struct gl_core *c, const struct gl_job *j)
{
    return c->shared && c->just_loaded != j && j->memory == GL_MEM_HOT && !gl_job_is_mine(c, j) &&
           (j->inflight_n == 0 || j->owner.n == 0) && gl_list_empty(&j->touched);
}

bool gl_load_ready(struct gl_core *c, const struct gl_event *ev, struct gl_job **ret)
{
    struct gl_job *j;

    GL_ASSERT(ev->type < GL_EV_COUNT);
    if (ev->job.n != GL_ULID_BYTES) {
        gl_txn_refuse(c, gl_parked_request(ev), GL_R_NO_SUCH_JOB, "there is no job '%.*s'",
                      GL_STR_ARG(ev->job));
        return false;
    }
    if (gl_core_is_quarantined(c, ev->job) && !release_quarantine(c, ev)) {
        gl_txn_refuse(c, gl_parked_request(ev), GL_R_JOB_QUARANTINED,
                      "job %.*s is in quarantine: this node crashed repeatedly while handling it; "
                      "resume or cancel it",
                      GL_STR_ARG(ev->job));
        return false;
    }
    j = gl_load_job(c, ev->job);
    if (may_be_outdated(c, j)) {
        GL_MARK(c->trace, "load.read_again");
        gl_load_forget(c, j);
    }
    if (j->memory != GL_MEM_HOT) {
        gl_parked_add(c, j, ev);
        return false;
    }
    GL_ASSERT(gl_list_empty(&j->parked)); /* earlier events have been handled */
    *ret = j;
    return true;
}

/* ---- after a transaction ---- */

static void end_adoption(struct gl_core *c, struct gl_job *j)
{
    if (j->is_adopted) {
        j->is_adopted = false;
        GL_ASSERT(c->adopting_n > 0);
        c->adopting_n--;
    }
}

static void drop(struct gl_core *c, struct gl_job *j)
{
    GL_ASSERT(j->inflight_n == 0);
    end_adoption(c, j);
    gl_slots_reclaim(c, j); /* after gl_job_clear() no step claims its slots: all are returned */
    gl_job_drop(c, j);
}

void gl_load_distrust(struct gl_core *c, struct gl_job *j)
{
    GL_ASSERT(j->memory == GL_MEM_HOT);
    GL_MARK(c->trace, "load.distrusted");
    gl_txn_touch(c, j);
    j->is_suspect = true;
}

void gl_load_on_changed(struct gl_core *c)
{
    struct gl_job *j;
    struct gl_spec *s;

    GL_MARK(c->trace, "load.store_changed");
    for (size_t i = 0; (j = gl_map_next(&c->jobs, &i)) != NULL;) {
        if (j->memory == GL_MEM_HOT && j->is_created) {
            gl_load_distrust(c, j);
        }
    }
    for (size_t i = 0; (s = gl_map_next(&c->specs, &i)) != NULL;) {
        s->is_stored = false;
    }
    GL_ASSERT(c->jobs_hot <= gl_map_count(&c->jobs));
}

void gl_load_outbid(struct gl_core *c, struct gl_job *j, uint64_t token)
{
    GL_ASSERT(token >= j->token);
    j->outbid = c->shared && token > j->outbid ? token : j->outbid;
    gl_load_distrust(c, j);
}

void gl_load_forget(struct gl_core *c, struct gl_job *j)
{
    GL_ASSERT(j->memory == GL_MEM_HOT);
    j->is_suspect = false;
    gl_job_clear(c, j);
    if (j->inflight_n > 0) {
        j->memory = GL_MEM_FAILED;
    } else {
        emit_load(c, j);
    }
    GL_ASSERT(j->memory != GL_MEM_HOT);
    GL_ASSERT(!j->is_suspect);
}

static void after_all_failed(struct gl_core *c, struct gl_job *j, bool unavailable)
{
    GL_ASSERT(j->memory == GL_MEM_FAILED);
    GL_ASSERT(j->inflight_n == 0);
    j->memory = GL_MEM_LOADING;
    if (!j->is_created) {
        drop(c, j);
    } else if (unavailable) {
        gl_sweep_set_load_due(c, j, c->now + RETRY_MS);
    } else {
        emit_load(c, j);
    }
}

void gl_load_on_done(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_job *j = gl_job_find(c, ev->job);

    GL_ASSERT(ev->type == GL_EV_DONE);
    GL_ASSERT(c->inflight_n > 0);
    GL_ASSERT(j != NULL); /* a job with transactions in flight stays in memory */
    GL_ASSERT(j->inflight_n > 0);
    j->inflight_n--;
    c->inflight_n--;
    GL_TRACE(c->trace, TX, .job = j->id, .number = (int64_t)ev->done.op,
             .what = ev->done.code == 0 ? "committed" : gl_err_word((int)ev->done.code));
    if (ev->done.guard.n > 0) {
        gl_quotas_on_refused(c, ev->done.guard);
    }
    if (ev->done.code == 0) {
        j->is_created = true;
        if (j->memory == GL_MEM_HOT) {
            j->token_in_flight = false; /* the oldest transaction in flight carries it */
            j->spec->is_stored = true;
            if (j->inflight_n == 0 && (gl_job_status_is_terminal(j->r.status) || j->is_damaged ||
                                       (j->owner.n == 0 && gl_list_empty(&j->touched)))) {
                gl_retention_on_ended(c, gl_job_status_is_terminal(j->r.status));
                drop(c, j); /* it has ended, has been returned, or is damaged */
            }
            return;
        }
    } else if (j->memory == GL_MEM_HOT) {
        GL_MARK(c->trace, "load.commit_failed");
        if (c->shared && !j->is_created && ev->done.code == GL_E_CONFLICT &&
            ev->done.number == GL_TXN_FLOW_GUARD) {
            j->spec->is_stored = false; /* the next job of this flow writes it again */
        }
        gl_job_clear(c, j);
        j->memory = GL_MEM_FAILED;
    }
    if (j->memory == GL_MEM_FAILED && j->inflight_n == 0) {
        after_all_failed(c, j, ev->done.code == GL_E_UNAVAILABLE);
    }
}

/* ---- after loading ---- */

static void refuse_unavailable(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    GL_ASSERT(j->memory == GL_MEM_LOADING);
    (void)j;
    if (ev->type == GL_EV_LISTED) {
        gl_attempts_list_soon(c);
    }
    gl_txn_refuse(c, gl_parked_request(ev), GL_R_STORE_UNAVAILABLE,
                  "the store is unavailable: try again later");
}

/* The executor's attempt that the event is about is not wanted. */
static void discard(struct gl_core *c, const struct gl_job *j, const struct gl_event *ev)
{
    const struct gl_event_info *info = gl_attempts_info(ev);
    uint64_t seen = info != NULL ? info->token : ev->type == GL_EV_ENDED ? ev->ended.token : 0;

    gl_attempts_discard(c, ev, seen > j->token ? seen : j->token);
}

/* Another node owns the job: a client's command is forwarded to it. A command from the inbox is
 * left there for it, and an attempt that our executor still has is one of an earlier life of this
 * node. */
static void forward_to_owner(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    GL_ASSERT(j->memory == GL_MEM_LOADING);
    if (!c->shared) {
        gl_txn_refuse(c, gl_parked_request(ev), GL_R_JOB_ELSEWHERE,
                      "job %.*s is owned by another node", GL_STR_ARG(j->id));
    } else if (ev->type == GL_EV_COMMAND && gl_inbox_has(ev->command.request)) {
        gl_inbox_abandon(c, ev->command.request);
    } else if (ev->type == GL_EV_COMMAND && ev->command.request != 0) {
        gl_outbox_send(c, j, ev);
    } else {
        discard(c, j, ev);
    }
}

/* The job is of another scope, and was last owned by an earlier life of this node, or by nobody.
 * Our executor is the only one that knows about its attempts, so their results are kept until a
 * node takes over the job. Attempts that still run have no node that speaks for them: the keeper
 * ends them after its grace period, which the next owner waits for. */
static void leave_results(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    GL_ASSERT(j->memory == GL_MEM_LOADING);
    if (ev->type == GL_EV_COMMAND) {
        forward_to_owner(c, j, ev);
    }
}

static void refuse_damaged(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    GL_ASSERT(j->memory == GL_MEM_LOADING);
    gl_txn_refuse(c, gl_parked_request(ev), GL_R_JOB_DAMAGED,
                  "the record of job %.*s, or of its flow, is damaged: " GL_JOB_DAMAGED_ADVICE,
                  GL_STR_ARG(j->id));
}

/* There is no such job, so the executor's attempts of it are not wanted. */
static void refuse_absent(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    GL_ASSERT(j->memory == GL_MEM_LOADING);
    gl_txn_refuse(c, gl_parked_request(ev), GL_R_NO_SUCH_JOB, "there is no job '%.*s'",
                  GL_STR_ARG(j->id));
    /* The job's last token is no longer known. The job will never exist again, so a token above all
     * others can harm no later owner. */
    gl_attempts_discard(c, ev, INT64_MAX);
}

/* An agent between two attempts keeps its slots. But if its job is paused (in a backup, or because
 * a record was damaged), or if its pool is too small now, its lease ends. */
static void revive_lease(struct gl_core *c, struct gl_step *st)
{
    struct gl_job *j = st->job;

    GL_ASSERT(st->r.keeps_slots);
    GL_ASSERT(j->memory == GL_MEM_HOT);
    if (j->r.status != GL_JOB_RUNNING || j->r.verdict != GL_VERDICT_NONE ||
        !gl_slots_possible(c, gl_step_spec_of(st), NULL)) {
        gl_agent_unit_release(c, st);
        return;
    }
    GL_MARK(c->trace, "load.lease_goes_on");
    if (!GL_PLANT(61)) { /* planted: after a restart the slots count as free */
        gl_slots_adopt(c, st);
    }
    if (!gl_job_is_mine(c, j)) {
        gl_txn_changed(c, j); /* a node that holds slots for a job must own it: take it over */
    }
}

/* A running step takes its slots, and the executor is asked about its attempt. */
static void revive_attempt(struct gl_core *c, struct gl_step *st)
{
    gl_ms heartbeat_ms = gl_step_spec_of(st)->heartbeat_ms;

    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    if (gl_step_is_unit(st) || !gl_safety_is_foreign(c, st)) {
        gl_slots_adopt(c, st);
    }
    if (st->r.is_elsewhere) { /* its record says what has become of it */
        gl_offers_add(c, st);
        return;
    }
    if (gl_safety_is_foreign(c, st)) {
        return; /* decide_orphaned() decides about it, and ends an agent's lease */
    }
    if (c->shared && !gl_job_is_mine(c, st->job) && st->r.orphan_grace_ms != c->orphan_grace_ms) {
        st->r.orphan_grace_ms = c->orphan_grace_ms; /* asking the keeper makes ours apply */
        gl_txn_dirty(c, st);
    }
    st->heartbeat_at =
        heartbeat_ms > 0 && st->r.stopping == GL_STOP_NONE ? c->now + heartbeat_ms : 0;
    gl_attempts_adopt(c, st);
}

/* Rebuild what a step has in memory only: queues, timers, lists. */
static void revive_step(struct gl_core *c, struct gl_step *st)
{
    struct gl_job *j = st->job;

    GL_ASSERT(j->memory == GL_MEM_HOT);
    if (gl_step_is_bound(st)) {
        gl_agent_step_on_load(c, st);
        return;
    }
    if (st->r.keeps_slots) {
        revive_lease(c, st);
    }
    switch ((enum gl_step_status)st->r.status) {
    case GL_STEP_RUNNING:
        revive_attempt(c, st);
        break;
    case GL_STEP_READY:
        if (gl_step_is_unit(st) && gl_agents_refetch(c, st)) {
            break;
        }
        gl_list_push(&j->ready, &st->work);
        break;
    case GL_STEP_QUEUED:
        if (j->r.status != GL_JOB_RUNNING || j->r.verdict != GL_VERDICT_NONE) {
            break;
        }
        if (gl_slots_possible(c, gl_step_spec_of(st), NULL) || gl_slots_may_queue_away(c, st)) {
            gl_slots_queue(c, st);
        } else if (c->shared) {
            gl_node_pools_lack(c, st);
        }
        break;
    case GL_STEP_COMPLETED:
    case GL_STEP_PARTIAL:
    case GL_STEP_SKIPPED:
    case GL_STEP_FAILED:
        if (st->r.spread < gl_step_spec_of(st)->children_n) {
            gl_list_push(&j->spread, &st->work);
        }
        break;
    case GL_STEP_RETRY_WAIT:
        if (!gl_job_is_mine(c, j)) {
            gl_safety_restart_wait(c, st);
        }
        break;
    case GL_STEP_BLOCKED:
        st->is_listed = gl_step_asks_a_person(&st->r);
        if (GL_PLANT(15) && st->r.blocked_on == GL_BLOCK_TIMER) {
            st->r.due_at = c->now; /* planted: the end of the sleep is forgotten */
        }
        break;
    case GL_STEP_WAITING:
        if (!gl_step_is_unit(st)) {
            gl_items_on_load(st);
        }
        break;
    case GL_STEP_PENDING:
    case GL_STEP_STATUS_COUNT:
        break;
    }
    gl_step_set_due(c, st);
}

/* Decide about the attempts of a dead node. Each decision may end other steps, too, so the walk
 * starts over after each. */
static void decide_orphaned(struct gl_core *c, struct gl_job *j)
{
    struct gl_link *l = c->shared && gl_job_running(j) > 0 ? j->live.next : &j->live;

    GL_ASSERT(j->memory == GL_MEM_HOT);
    while (l != &j->live) {
        struct gl_step *st = GL_CONTAINER(l, struct gl_step, live);

        l = l->next;
        if (st->r.status == GL_STEP_RUNNING && !gl_step_is_bound(st) &&
            gl_safety_is_foreign(c, st)) {
            gl_safety_node_died(c, st);
            l = j->live.next;
        }
    }
    if (j->r.is_strayed) {
        GL_MARK(c->trace, "load.strayed");
        j->r.is_strayed = false;
        gl_txn_changed(c, j);
    }
}

static void mark_hot(struct gl_core *c, struct gl_job *j)
{
    GL_ASSERT(j->memory == GL_MEM_LOADING);
    GL_ASSERT(j->inflight_n == 0);
    GL_ASSERT(c->jobs_loading > 0);
    GL_ASSERT(gl_list_empty(&j->lru));
    j->memory = GL_MEM_HOT;
    j->hot_at = c->now;
    j->is_created = true;
    j->load_tries = 0;
    c->jobs_loading--;
    c->jobs_hot++;
    gl_list_push(&c->lru, &j->lru);
    end_adoption(c, j);
    gl_txn_touch(c, j);
}

static void become_hot(struct gl_core *c, struct gl_job *j)
{
    GL_ASSERT(j->memory == GL_MEM_LOADING);
    mark_hot(c, j);
    if (gl_job_running(j) > 0 && !gl_job_is_mine(c, j)) {
        gl_txn_changed(c, j); /* the executor may see the new token only after its commit */
    }
    if (c->shared && j->r.pools.n == 0) { /* by an earlier release, or on a private store */
        gl_core_set(c, &j->r.pools, gl_node_pools_needs(c->out->arena, j->spec->flow));
    }
    if (j->spec->flow->bundle != NULL) {
        gl_mailbox_on_load(c, j);
    }
    for (struct gl_link *l = j->live.next; l != &j->live; l = l->next) {
        revive_step(c, GL_CONTAINER(l, struct gl_step, live));
    }
    decide_orphaned(c, j);
    if (j->outbid > 0 && gl_job_is_mine(c, j)) {
        gl_txn_changed(c, j);
    } else {
        j->outbid = 0;
    }
    gl_slots_reclaim(c, j);
    if (j->r.wake <= c->now && j->r.wake > GL_WAKE_READY && gl_sweep_wake_of(j) != j->r.wake) {
        gl_txn_changed(c, j); /* its entry in the index is outdated */
    }
    GL_ASSERT(GL_IMPLIES(j->outbid > 0, gl_job_is_mine(c, j)));
}

static void replay_parked(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    (void)j;
    gl_core_dispatch(c, ev);
}

static void drop_unusable(struct gl_core *c, struct gl_job *j,
                          void (*each)(struct gl_core *c, struct gl_job *j,
                                       const struct gl_event *ev))
{
    GL_ASSERT(j->memory == GL_MEM_LOADING);
    GL_MARK(c->trace, "load.not_usable");
    gl_parked_take_all(c, j, each);
    drop(c, j);
}

static void load_failed(struct gl_core *c, struct gl_job *j, int64_t code)
{
    uint32_t tries = j->load_tries < 5 ? j->load_tries++ : 5;
    gl_ms wait = (gl_ms)RETRY_MS << tries;

    GL_ASSERT(tries <= 5);
    GL_ASSERT(code != 0);
    GL_ASSERT(j->memory == GL_MEM_LOADING);
    if (code == GL_E_UNAVAILABLE) {
        gl_parked_take_all(c, j, refuse_unavailable);
        gl_sweep_set_load_due(c, j, c->now + (wait < RETRY_MS_MAX ? wait : RETRY_MS_MAX));
        return;
    }
    drop_unusable(c, j, code == GL_E_NOT_FOUND ? refuse_absent : refuse_damaged);
}

/* ---- when a record of it cannot be used ---- */

/* Of a damaged job only commands are replayed; the executor will resend its reports. */
static void replay_command(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    (void)j;
    if (ev->type == GL_EV_COMMAND) {
        gl_core_dispatch(c, ev);
    }
}

/* The job has ended, whatever else of it cannot be read: none of its attempts is wanted. */
static void discard_ended(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    GL_ASSERT(j->memory == GL_MEM_LOADING);
    refuse_damaged(c, j, ev);
    discard(c, j, ev);
}

/* Was it another node's job? That node discards its attempts as soon as it learns that the job has
 * a new owner. So its executor cannot be asked about them later, not even if the same node becomes
 * the owner again. */
static bool is_another_nodes(const struct gl_core *c, const struct gl_event_record *job)
{
    gl_str rest;

    return c->shared && job->owner.n > 0 && !gl_str_eq(gl_str_cut(job->owner, '#', &rest), c->node);
}

/* Pause a job of which a record cannot be used. Its other records stay as they are, and its
 * attempts keep running. */
static void pause_damaged(struct gl_core *c, struct gl_job *j, const struct gl_event *ev,
                          const struct gl_event_record *bad)
{
    const struct gl_event_record *job = ev->loaded.records.items;
    bool is_readable, has_ended;

    GL_ASSERT(j->memory == GL_MEM_LOADING);
    gl_job_clear(c, j);
    is_readable = gl_restore_head(c, j, ev) == 0;
    has_ended = is_readable && gl_job_status_is_terminal(j->r.status);
    if (!is_readable || has_ended) {
        gl_job_clear(c, j);
        j->token = job->token;
        drop_unusable(c, j, has_ended ? discard_ended : refuse_damaged);
        return;
    }
    GL_MARK(c->trace, "load.held_damaged");
    mark_hot(c, j);
    j->is_damaged = true;
    j->r.is_strayed |=
        is_another_nodes(c, job) && !GL_PLANT(55); /* planted: that node can be asked */
    if (j->r.verdict == GL_VERDICT_NONE && j->r.hold != GL_HOLD_PERSON) {
        /* gl_job_is_paused_for_damage() recognises both sentences, which are stored. */
        gl_core_set(c, &j->r.reason,
                    bad == NULL ? GL_S("a record of it is missing or does not match the others")
                                : gl_str_fmt(c->out->arena, "the record %.*s/%.*s is damaged",
                                             GL_STR_ARG(bad->kind), GL_STR_ARG(bad->id)));
    }
    if (j->r.status == GL_JOB_RUNNING || j->r.status == GL_JOB_PAUSING) {
        j->r.hold = GL_HOLD_REVIEW;
        gl_ledger_move_job(c, j, GL_JOB_PAUSED);
        gl_txn_log(c, j, NULL, "job_paused", j->r.reason,
                   GL_S("\"recovery_requires_review\":true"));
    }
    gl_parked_take_all(c, j, replay_command);
    gl_list_remove(&j->lru); /* evicted at the end of this step, or after its commit */
    gl_list_push(c->lru.next, &j->lru);
}

/* Does the job have running attempts, according to its record? If that cannot be read: yes. */
static bool has_running_attempts(struct gl_core *c, const struct gl_event_record *job)
{
    struct gl_json j;
    int64_t wake = GL_WAKE_RUNNING; /* 0: a field that is 0 is left out of the record */

    if (gl_json_parse(&j, job->value, GL_RECORD_BYTES_MAX, c->out->arena, NULL) == 0) {
        (void)gl_json_i64(&j, gl_json_get(&j, gl_json_root(&j), "wake"), &wake);
    }
    return wake == GL_WAKE_RUNNING;
}

/* Is its owner dead, and has the owner's node not come back with a new session? */
static bool is_left_behind(struct gl_core *c, const struct gl_event_record *job)
{
    return job->owner_dead &&
           !gl_membership_owned_elsewhere(c, job->owner, has_running_attempts(c, job));
}

/* Of a job that we may not take and that no living node owns: has it ended, so that its attempts
 * are not wanted? */
static bool has_ended(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    const struct gl_event_record *rec = ev->loaded.records.items;
    bool ended;

    GL_ASSERT(j->memory == GL_MEM_LOADING);
    gl_job_clear(c, j);
    ended = is_left_behind(c, rec) && gl_restore_head(c, j, ev) == 0 &&
            gl_job_status_is_terminal(j->r.status);
    gl_job_clear(c, j);
    return ended;
}

static bool may_be_ours(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_record *rec = ev->loaded.records.items;

    GL_ASSERT(ev->loaded.records.n > 0);
    if (gl_str_eq(rec->owner, c->session)) {
        return true;
    }
    return (is_left_behind(c, rec) || rec->owner.n == 0) &&
           gl_session_in_scope(c, ev->loaded.stack, ev->loaded.env_scope);
}

void gl_load_on_loaded(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_job *j = gl_job_find(c, ev->job);
    const struct gl_event_record *rec = ev->loaded.records.items, *bad;

    GL_ASSERT(ev->type == GL_EV_LOADED);
    if (j == NULL || j->memory != GL_MEM_LOADING) {
        return;
    }
    if (ev->loaded.code != 0) {
        load_failed(c, j, ev->loaded.code);
        return;
    }
    GL_ASSERT(ev->loaded.records.n > 0);
    if (rec->owner_dead) {
        gl_membership_note_dead(c, rec->owner);
    }
    if (!may_be_ours(c, ev)) {
        bool is_left = !is_another_nodes(c, rec) && !has_ended(c, j, ev);

        GL_MARK(c->trace, "load.owned_elsewhere");
        j->token = rec->token;
        gl_core_set(c, &j->r.stack, ev->loaded.stack);
        gl_core_set(c, &j->r.env_scope, ev->loaded.env_scope);
        gl_parked_take_all(c, j, is_left ? leave_results : forward_to_owner);
        drop(c, j);
        return;
    }
    if (gl_restore_job(c, j, ev, &bad) != 0) {
        pause_damaged(c, j, ev, bad);
        return;
    }
    become_hot(c, j);
    c->just_loaded = j;
    gl_parked_take_all(c, j, replay_parked);
    c->just_loaded = NULL;
    if (gl_job_status_is_terminal(j->r.status) && j->inflight_n == 0) {
        /* Nothing is left to do: evicted at the end of this step. */
        gl_list_remove(&j->lru);
        gl_list_push(c->lru.next, &j->lru);
    }
}

/* ---- making room ---- */

static bool may_leave(const struct gl_core *c, const struct gl_job *j)
{
    GL_ASSERT(j->memory == GL_MEM_HOT);
    if (j->is_damaged) {
        return j->inflight_n == 0 && !j->changed;
    }
    /* A ready step waits for facts that are being read. */
    if (j->r.status == GL_JOB_RUNNING && gl_job_count(j, GL_STEP_READY) > 0) {
        return false;
    }
    return j->due > c->now && j->inflight_n == 0 && gl_job_running(j) == 0 &&
           gl_list_empty(&j->holds) && gl_list_empty(&j->busy) && gl_list_empty(&j->parked) &&
           !j->changed && j->asked_n == 0;
}

void gl_load_trim(struct gl_core *c)
{
    for (int i = 0; i < TRIM_TRIES; i++) {
        struct gl_link *l = gl_list_first(&c->lru);
        struct gl_job *j = l != NULL ? GL_CONTAINER(l, struct gl_job, lru) : NULL;

        if (j == NULL || (c->jobs_hot <= c->hot_max && !gl_job_status_is_terminal(j->r.status) &&
                          !j->is_damaged)) {
            break;
        }
        if (!may_leave(c, j)) {
            gl_list_remove(l);
            gl_list_push(&c->lru, l);
            continue;
        }
        if (j->r.wake > GL_WAKE_READY && j->r.wake < c->cold_due) {
            c->cold_due = j->r.wake;
        }
        gl_job_drop(c, j);
    }
    gl_sweep_continue(c);
    GL_ASSERT(c->jobs_hot <= gl_map_count(&c->jobs));
}
