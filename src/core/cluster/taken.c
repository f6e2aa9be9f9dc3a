/* taken.c - the attempts in memory, and the transactions that take them and that write their
 * results.
 *
 * At most one transaction of each kind is in flight; what comes meanwhile shares the next one. If a
 * shared transaction is refused, each of its attempts is tried alone. A transaction whose outcome
 * is unknown is not repeated blindly: what it was to take is read again, and what it was to write
 * is guarded by the revision it replaces. */
#include "base/check.h"
#include "core/cluster/offers.h"
#include "core/cluster/taken_parts.h"
#include "core/component.h"
#include "core/flow/submit.h"
#include "core/flow/txn.h"
#include "core/recovery/attempts.h"
#include "core/recovery/sweep.h"
#include "core/scheduling/slots.h"

enum {
    TAKE_MAX = 64,           /* attempts taken by one transaction */
    WRITE_MAX = 64,          /* results written by one transaction ... */
    WRITE_BYTES = 256 << 10, /* ... which ends with the one that brings their outputs to this */
    RETRY_MS = 500,
    QUEUED_MS = 3000, /* an offer is read again after it has waited this long */
    JOBS_IDLE_MAX = 64,
};

static bool due_before(const struct gl_heap_item *a, const struct gl_heap_item *b)
{
    const struct gl_taken *x = GL_CONTAINER(a, struct gl_taken, timer);
    const struct gl_taken *y = GL_CONTAINER(b, struct gl_taken, timer);

    return x->due != y->due ? x->due < y->due : gl_str_cmp(x->id, y->id) < 0;
}

static bool checked_before(const struct gl_heap_item *a, const struct gl_heap_item *b)
{
    const struct gl_taken *x = GL_CONTAINER(a, struct gl_taken, check);
    const struct gl_taken *y = GL_CONTAINER(b, struct gl_taken, check);

    return x->check_at != y->check_at ? x->check_at < y->check_at : gl_str_cmp(x->id, y->id) < 0;
}

void gl_taken_init(struct gl_core *c)
{
    struct gl_taken_attempts *s = &c->taken;

    gl_map_init(&s->all);
    gl_map_init(&s->jobs);
    gl_heap_init(&s->timers, due_before);
    gl_heap_init(&s->checks, checked_before);
    gl_list_init(&s->idle);
    gl_list_init(&s->to_take);
    gl_list_init(&s->to_write);
    gl_list_init(&s->found);
    gl_list_init(&s->stale);
    GL_ASSERT(!s->is_adopted);
    GL_ASSERT(s->due == 0); /* the first scan begins with the session */
    GL_ASSERT(s->idle_n == 0);
    GL_ASSERT(s->queued_n == 0);
    GL_ASSERT(s->take_call == 0);
    GL_ASSERT(s->scan_call == 0);
}

bool gl_taken_is_known(const struct gl_core *c)
{
    return !c->shared || c->passive || c->taken.is_adopted;
}

/* ---- jobs ---- */

struct gl_taken_job *gl_taken_job_new(struct gl_core *c, gl_str id)
{
    struct gl_taken_job *j = gl_pool_alloc(&c->mem, sizeof(*j));

    GL_ASSERT(id.n == GL_ULID_BYTES);
    GL_ASSERT(gl_map_find(&c->taken.jobs, id) == NULL);
    gl_list_init(&j->idle);
    gl_core_set(c, &j->id, id);
    gl_map_add(&c->taken.jobs, j->id, j);
    gl_list_push(&c->taken.idle, &j->idle);
    c->taken.idle_n++;
    GL_ASSERT(c->taken.idle_n <= gl_map_count(&c->taken.jobs));
    return j;
}

void gl_taken_job_drop(struct gl_core *c, struct gl_taken_job *j)
{
    GL_ASSERT(!gl_list_empty(&j->idle));
    GL_ASSERT(c->taken.idle_n <= gl_map_count(&c->taken.jobs));
    GL_ASSERT(j->attempts_n == 0);
    GL_ASSERT(c->taken.idle_n > 0);
    (void)gl_map_remove(&c->taken.jobs, j->id); /* it is there: gl_taken_job_new() put it in */
    gl_list_remove(&j->idle);
    c->taken.idle_n--;
    if (j->spec != NULL) {
        GL_ASSERT(j->spec->jobs > 0);
        j->spec->jobs--;
        gl_spec_unref(j->spec);
    }
    gl_core_set(c, &j->id, (gl_str){0});
    gl_core_set(c, &j->run_id, (gl_str){0});
    gl_core_set(c, &j->flow, (gl_str){0});
    gl_pool_free(&c->mem, j, sizeof(*j));
}

void gl_taken_job_trim(struct gl_core *c)
{
    if (!gl_list_empty(&c->taken.found)) {
        return; /* the scan under way needs them */
    }
    while (c->taken.idle_n > JOBS_IDLE_MAX) {
        gl_taken_job_drop(c,
                          GL_CONTAINER(gl_list_first(&c->taken.idle), struct gl_taken_job, idle));
    }
    GL_ASSERT(c->taken.idle_n <= JOBS_IDLE_MAX);
}

/* ---- attempts ---- */

struct gl_taken *gl_taken_find(struct gl_core *c, gl_str job, gl_str attempt)
{
    char id[GL_ULID_BYTES + 1 + GL_ATTEMPT_ID_BYTES_MAX];

    if (gl_map_count(&c->taken.all) == 0 || job.n != GL_ULID_BYTES ||
        attempt.n > GL_ATTEMPT_ID_BYTES_MAX) {
        return NULL;
    }
    GL_ASSERT(job.n + 1 + attempt.n <= sizeof(id));
    memcpy(id, job.p, job.n);
    id[job.n] = '/';
    memcpy(id + job.n + 1, attempt.p, attempt.n);
    return gl_map_find(&c->taken.all, (gl_str){.p = id, .n = job.n + 1 + attempt.n});
}

struct gl_taken *gl_taken_new(struct gl_core *c, gl_str id, struct gl_taken_job *job)
{
    struct gl_taken *t = gl_pool_alloc(&c->mem, sizeof(*t));

    GL_ASSERT(job->spec != NULL);
    GL_ASSERT(id.n > GL_ULID_BYTES + 1);
    GL_ASSERT(id.n <= GL_ULID_BYTES + 1 + GL_ATTEMPT_ID_BYTES_MAX);
    GL_ASSERT((job->attempts_n == 0) == !gl_list_empty(&job->idle));
    gl_list_init(&t->link);
    t->due = t->check_at = INT64_MAX;
    gl_core_set(c, &t->id, id);
    t->attempt = (gl_str){.p = t->id.p + GL_ULID_BYTES + 1, .n = t->id.n - GL_ULID_BYTES - 1};
    t->job = job;
    if (job->attempts_n++ == 0) {
        gl_list_remove(&job->idle);
        GL_ASSERT(c->taken.idle_n > 0);
        c->taken.idle_n--;
    }
    gl_map_add(&c->taken.all, t->id, t);
    GL_ASSERT(job->attempts_n > 0);
    GL_ASSERT(gl_list_empty(&job->idle));
    GL_ASSERT(t->phase == GL_TAKEN_QUEUED);
    return t;
}

void gl_taken_drop(struct gl_core *c, struct gl_taken *t)
{
    struct gl_taken_job *j = t->job;

    GL_ASSERT(j->attempts_n > 0);
    GL_ASSERT(gl_list_empty(&j->idle));
    GL_ASSERT(GL_IMPLIES(t->wait != NULL, t->phase == GL_TAKEN_QUEUED));
    GL_ASSERT(
        GL_IMPLIES(t->has_slots, t->phase == GL_TAKEN_TAKING || t->phase == GL_TAKEN_RUNNING_HERE));
    if (t->wait != NULL) {
        gl_slots_unqueue_offered(c, t->wait);
        GL_ASSERT(c->taken.queued_n > 0);
        c->taken.queued_n--;
    }
    if (t->has_slots) {
        gl_slots_give_back(c, (int)t->pool, t->slots);
    }
    if (gl_heap_has(&t->timer)) {
        gl_heap_remove(&c->taken.timers, &t->timer);
    }
    if (gl_heap_has(&t->check)) {
        gl_heap_remove(&c->taken.checks, &t->check);
    }
    gl_list_remove(&t->link);
    (void)gl_map_remove(&c->taken.all, t->id); /* it is there: gl_taken_new() put it in */
    gl_core_disown(c, &gl_taken_schema, &t->end);
    gl_core_set(c, &t->owner, (gl_str){0});
    gl_core_set(c, &t->epoch, (gl_str){0});
    gl_core_set(c, &t->step_id, (gl_str){0});
    gl_core_set(c, &t->id, (gl_str){0});
    gl_pool_free(&c->mem, t, sizeof(*t));
    if (--j->attempts_n == 0) {
        gl_list_push(&c->taken.idle, &j->idle);
        c->taken.idle_n++;
        gl_taken_job_trim(c);
    }
}

void gl_taken_done(struct gl_core *c)
{
    struct gl_taken *t;

    for (size_t i = 0; (t = gl_map_next(&c->taken.all, &i)) != NULL;) {
        t->wait = NULL; /* the queues have gone already */
        t->has_slots = false;
        gl_taken_drop(c, t);
    }
    for (struct gl_link *l; (l = gl_list_first(&c->taken.idle)) != NULL;) {
        gl_taken_job_drop(c, GL_CONTAINER(l, struct gl_taken_job, idle));
    }
    GL_ASSERT(gl_map_count(&c->taken.all) == 0);
    GL_ASSERT(gl_map_count(&c->taken.jobs) == 0);
    GL_ASSERT(c->taken.idle_n == 0);
    GL_ASSERT(c->taken.timers.n == 0);
    GL_ASSERT(c->taken.checks.n == 0);
    gl_taken_entries_drop(c, &c->taken.found);
    gl_taken_entries_drop(c, &c->taken.stale);
    gl_core_set(c, &c->taken.after_id, (gl_str){0});
    gl_map_done(&c->taken.all);
    gl_map_done(&c->taken.jobs);
    gl_heap_done(&c->taken.timers);
    gl_heap_done(&c->taken.checks);
}

static void move(struct gl_heap *h, struct gl_heap_item *it, gl_ms *at, gl_ms to)
{
    GL_ASSERT(it->place <= h->n);
    if (gl_heap_has(it)) {
        gl_heap_remove(h, it);
    }
    *at = to;
    if (to != INT64_MAX) {
        gl_heap_push(h, it);
    }
    GL_ASSERT(gl_heap_has(it) == (to != INT64_MAX));
}

void gl_taken_set_due(struct gl_core *c, struct gl_taken *t)
{
    gl_ms due = INT64_MAX;

    GL_ASSERT(t->phase <= GL_TAKEN_OVER);
    if (t->phase == GL_TAKEN_QUEUED) {
        due = t->taken_at + QUEUED_MS;
    } else if (t->phase == GL_TAKEN_RUNNING_HERE) {
        due = t->heartbeat_at != 0 ? t->heartbeat_at : due;
        due = t->probe_at != 0 && t->probe_at < due ? t->probe_at : due;
    }
    move(&c->taken.timers, &t->timer, &t->due, due);
    GL_ASSERT(gl_heap_has(&t->timer) == (t->due != INT64_MAX));
    GL_ASSERT(GL_IMPLIES(t->phase == GL_TAKEN_OVER, t->due == INT64_MAX));
}

void gl_taken_set_check(struct gl_core *c, struct gl_taken *t, gl_ms at)
{
    move(&c->taken.checks, &t->check, &t->check_at, at);
    GL_ASSERT(t->check_at == at);
}

/* ---- taking ---- */

void gl_taken_on_granted(struct gl_core *c, struct gl_taken *t)
{
    GL_ASSERT((size_t)t->pool < c->pools_n);
    GL_ASSERT(!t->has_slots);
    GL_ASSERT(t->call == 0);
    GL_ASSERT(gl_list_empty(&t->link));
    GL_ASSERT(c->pools[t->pool].in_use >= t->slots);
    GL_ASSERT(t->phase == GL_TAKEN_QUEUED);
    GL_ASSERT(c->taken.queued_n > 0);
    c->taken.queued_n--;
    t->wait = NULL;
    t->has_slots = true;
    if (GL_PLANT(115)) { /* planted: what runs for others needs no slots */
        t->has_slots = false;
        gl_slots_give_back(c, (int)t->pool, t->slots);
    }
    t->phase = GL_TAKEN_TAKING;
    gl_taken_set_due(c, t);
    GL_ASSERT(t->due == INT64_MAX);
    gl_list_push(&c->taken.to_take, &t->link);
}

/* The next attempts of the list that share a transaction. */
static size_t gather(struct gl_link *list, struct gl_taken **ret, size_t max, size_t bytes_max)
{
    size_t n = 0, bytes = 0;

    GL_ASSERT(max > 0);
    GL_ASSERT(bytes_max > 0);
    for (struct gl_link *l = list->next; l != list && n < max && bytes < bytes_max; l = l->next) {
        struct gl_taken *t = GL_CONTAINER(l, struct gl_taken, link);

        if (t->is_alone && n > 0) {
            break;
        }
        ret[n++] = t;
        bytes += t->end.output.n;
        if (t->is_alone) {
            break;
        }
    }
    GL_ASSERT(n <= max);
    GL_ASSERT(GL_IMPLIES(n > 1, !ret[n - 1]->is_alone));
    GL_ASSERT((n > 0) == !gl_list_empty(list));
    return n;
}

static gl_str step_key(const struct gl_taken *t, struct gl_arena *a)
{
    GL_ASSERT(t->job->id.n == GL_ULID_BYTES);
    GL_ASSERT(t->step_id.n > 0);
    return gl_str_fmt(a, "%.*s/%.*s", GL_STR_ARG(t->job->id), GL_STR_ARG(t->step_id));
}

static gl_str record_of(struct gl_core *c, const struct gl_taken *t)
{
    struct gl_taken_record r = t->end;

    GL_ASSERT(t->phase >= GL_TAKEN_TAKING);
    GL_ASSERT(c->session.n > 0);
    r.state = t->phase == GL_TAKEN_OVER ? t->end.state : GL_TAKEN_RUNNING;
    r.session = c->session;
    r.node = c->node;
    r.owner = t->owner;
    r.token = t->token;
    r.epoch = t->epoch;
    r.at = t->at;
    GL_ASSERT((r.state == GL_TAKEN_RUNNING) == (t->phase != GL_TAKEN_OVER));
    return gl_txn_encode(c->out->arena, &gl_taken_schema, &r);
}

static bool is_idempotent(const struct gl_taken *t)
{
    GL_ASSERT(t->of < t->job->spec->flow->steps.n);
    return gl_flow_step(t->job->spec->flow, t->of)->safety == GL_SAFETY_IDEMPOTENT;
}

static void send_takes(struct gl_core *c)
{
    struct gl_taken *all[TAKE_MAX];
    struct gl_arena *a = c->out->arena;
    size_t n = gather(&c->taken.to_take, all, TAKE_MAX, SIZE_MAX);
    struct gl_guard *guards = GL_NEW_ARRAY(a, struct gl_guard, 1 + 2 * n);
    struct gl_write *writes = GL_NEW_ARRAY(a, struct gl_write, 3 * n);
    size_t guards_n = 0, writes_n = 0;
    bool confirm = false;
    struct gl_tx *tx;

    GL_ASSERT(n > 0);
    GL_ASSERT(n <= TAKE_MAX);
    GL_ASSERT(c->taken.take_call == 0);
    guards[guards_n++] = (struct gl_guard){.type = GL_GUARD_ALIVE, .owner = c->session};
    for (size_t i = 0; i < n; i++) {
        struct gl_taken *t = all[i];

        GL_ASSERT(t->phase == GL_TAKEN_TAKING);
        GL_ASSERT(t->call == 0);
        GL_ASSERT(t->rev == 0);
        gl_core_set(c, &t->epoch, c->epoch);
        if (!GL_PLANT(113)) { /* planted: what has been read may be outdated */
            guards[guards_n++] = (struct gl_guard){.type = GL_GUARD_AT,
                                                   .kind = GL_S("step"),
                                                   .id = step_key(t, a),
                                                   .rev = t->step_rev};
        }
        guards[guards_n++] =
            (struct gl_guard){.type = GL_GUARD_ABSENT, .kind = GL_S("taken"), .id = t->id};
        writes[writes_n++] = (struct gl_write){.type = GL_WRITE_PUT,
                                               .kind = GL_S("taken"),
                                               .id = t->id,
                                               .rev = 1,
                                               .value = record_of(c, t)};
        writes[writes_n++] = (struct gl_write){.type = GL_WRITE_INDEX,
                                               .kind = gl_offer_index(a, "taken", c->node),
                                               .id = t->id,
                                               .score = t->at};
        writes[writes_n++] = (struct gl_write){.type = GL_WRITE_UNINDEX,
                                               .kind = gl_offer_index(a, "offers", c->node),
                                               .id = t->id,
                                               .score = t->at};
        confirm |= !is_idempotent(t);
        gl_list_remove(&t->link);
        t->call = c->last_call + 1;
    }
    GL_ASSERT(guards_n <= 1 + 2 * n);
    GL_ASSERT(writes_n == 3 * n);
    tx = gl_component_tx(c, guards, guards_n, writes, writes_n);
    tx->confirm = confirm;
    c->taken.take_call = gl_component_commit(c, GL_COMPONENT_TAKEN, tx);
    GL_ASSERT(c->taken.take_call == c->last_call);
}

/* The attempts whose transaction has been answered, in the order in which they were found. */
static size_t answered(struct gl_core *c, uint64_t call, struct gl_taken **ret, size_t max)
{
    struct gl_taken *t;
    size_t n = 0;

    GL_ASSERT(call > 0);
    GL_ASSERT(max > 0);
    for (size_t i = 0; (t = gl_map_next(&c->taken.all, &i)) != NULL && n < max;) {
        if (t->call == call) {
            GL_ASSERT(t->phase >= GL_TAKEN_TAKING);
            t->call = 0;
            ret[n++] = t;
        }
    }
    return n;
}

static void on_taken(struct gl_core *c, struct gl_taken *t)
{
    GL_ASSERT(t->phase == GL_TAKEN_TAKING);
    GL_ASSERT(t->call == 0);
    GL_ASSERT(t->rev == 0);
    GL_ASSERT(gl_list_empty(&t->link));
    GL_MARK(c->trace, "taken.taken");
    c->counts.offers_taken++;
    t->phase = GL_TAKEN_RUNNING_HERE;
    t->rev = 1;
    t->is_alone = false;
    t->taken_at = c->now;
    gl_taken_set_check(c, t, c->now + GL_TAKEN_CHECK_MS);
    GL_ASSERT(gl_heap_has(&t->check));
    if (c->stopping) {
        gl_taken_end(c, t, GL_TAKEN_NEVER);
        return;
    }
    gl_taken_start(c, t);
}

/* What was taken is not known any more: it is read from the beginning. A scan under way may have
 * passed it already. */
void gl_taken_read_again(struct gl_core *c)
{
    c->taken.is_adopted = false;
    c->taken.is_void = c->taken.scan_call != 0;
    c->taken.due = c->now;
    GL_ASSERT(!gl_taken_is_known(c) || c->passive);
}

static void on_takes(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_taken *all[TAKE_MAX];
    size_t n = answered(c, c->taken.take_call, all, TAKE_MAX);
    int64_t code = ev->answer.code;

    GL_ASSERT(ev->answer.number == c->taken.take_call);
    GL_ASSERT(n <= TAKE_MAX);
    c->taken.take_call = 0;
    for (size_t i = 0; i < n; i++) {
        struct gl_taken *t = all[i];

        GL_ASSERT(t->phase == GL_TAKEN_TAKING);
        if (code == 0) {
            on_taken(c, t);
        } else if (code == GL_E_CONFLICT && n > 1) {
            GL_MARK(c->trace, "taken.refused_together");
            t->is_alone = true;
            gl_list_push(&c->taken.to_take, &t->link);
        } else {
            GL_MARK(c->trace, "taken.refused");
            c->counts.offers_refused += code == GL_E_CONFLICT;
            gl_taken_drop(c, t);
            gl_taken_read_again(c); /* it may have been an earlier one of ours that took it */
        }
    }
    if (code != 0 && code != GL_E_CONFLICT) {
        c->taken.retry_at = c->now + RETRY_MS;
        c->taken.due = c->taken.retry_at;
        if (code != GL_E_UNAVAILABLE && code != GL_E_LIMIT) {
            gl_taken_read_again(c); /* unknown: read what has been taken */
        }
    }
}

/* ---- writing ---- */

void gl_taken_write(struct gl_core *c, struct gl_taken *t)
{
    GL_ASSERT(t->phase >= GL_TAKEN_RUNNING_HERE);
    GL_ASSERT(!t->is_unwanted);
    GL_ASSERT(t->rev > 0);
    t->is_written = false;
    if (t->call == 0 && gl_list_empty(&t->link)) {
        gl_list_push(&c->taken.to_write, &t->link);
    }
    GL_ASSERT(t->call != 0 || !gl_list_empty(&t->link));
}

static void send_writes(struct gl_core *c)
{
    struct gl_taken *all[WRITE_MAX];
    struct gl_arena *a = c->out->arena;
    size_t n = gather(&c->taken.to_write, all, WRITE_MAX, WRITE_BYTES);
    struct gl_guard *guards = GL_NEW_ARRAY(a, struct gl_guard, n + 1);
    struct gl_write *writes = GL_NEW_ARRAY(a, struct gl_write, 2 * n);
    size_t writes_n = 0;
    bool confirm = false;
    gl_str word = {0};
    struct gl_tx *tx;

    GL_ASSERT(n > 0);
    GL_ASSERT(n <= WRITE_MAX);
    GL_ASSERT(c->taken.write_call == 0);
    guards[0] = (struct gl_guard){.type = GL_GUARD_ALIVE, .owner = c->session};
    for (size_t i = 0; i < n; i++) {
        struct gl_taken *t = all[i];
        gl_str owner = gl_offer_node_of(t->owner);

        GL_ASSERT(t->phase >= GL_TAKEN_RUNNING_HERE);
        GL_ASSERT(t->call == 0);
        GL_ASSERT(t->rev > 0);
        guards[i + 1] = (struct gl_guard){
            .type = GL_GUARD_AT, .kind = GL_S("taken"), .id = t->id, .rev = t->rev};
        writes[writes_n++] = (struct gl_write){.type = GL_WRITE_PUT,
                                               .kind = GL_S("taken"),
                                               .id = t->id,
                                               .rev = t->rev + 1,
                                               .value = record_of(c, t)};
        if (t->phase == GL_TAKEN_OVER && owner.n > 0) {
            writes[writes_n++] = (struct gl_write){.type = GL_WRITE_INDEX,
                                                   .kind = gl_offer_index(a, "results", owner),
                                                   .id = t->id,
                                                   .score = t->at};
            word = gl_offers_wake(c, word, owner);
        }
        t->is_written = t->phase == GL_TAKEN_OVER;
        confirm |=
            t->is_written && gl_flow_step(t->job->spec->flow, t->of)->safety == GL_SAFETY_UNSAFE;
        gl_list_remove(&t->link);
        t->call = c->last_call + 1;
    }
    GL_ASSERT(writes_n >= n);
    GL_ASSERT(writes_n <= 2 * n);
    tx = gl_component_tx(c, guards, n + 1, writes, writes_n);
    tx->confirm = confirm;
    tx->wake = word;
    c->taken.write_call = gl_component_commit(c, GL_COMPONENT_TAKEN, tx);
    GL_ASSERT(c->taken.write_call == c->last_call);
}

static void on_written(struct gl_core *c, struct gl_taken *t)
{
    GL_ASSERT(t->phase >= GL_TAKEN_RUNNING_HERE);
    GL_ASSERT(t->call == 0);
    GL_ASSERT(t->rev > 0);
    t->rev++;
    t->is_alone = false;
    if (t->phase == GL_TAKEN_OVER && !t->is_written) {
        gl_taken_write(c, t); /* it ended while this was being written */
    }
    gl_taken_set_check(
        c, t, c->now + (t->phase == GL_TAKEN_OVER ? GL_TAKEN_CONSUMED_MS : GL_TAKEN_CHECK_MS));
    GL_ASSERT(t->check_at > c->now);
    GL_ASSERT(GL_IMPLIES(t->phase == GL_TAKEN_OVER && !t->is_written, !gl_list_empty(&t->link)));
}

static void on_writes(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_taken *all[WRITE_MAX];
    size_t n = answered(c, c->taken.write_call, all, WRITE_MAX);
    int64_t code = ev->answer.code;

    GL_ASSERT(ev->answer.number == c->taken.write_call);
    GL_ASSERT(n <= WRITE_MAX);
    c->taken.write_call = 0;
    for (size_t i = 0; i < n; i++) {
        struct gl_taken *t = all[i];

        GL_ASSERT(gl_list_empty(&t->link));
        if (code == 0) {
            on_written(c, t);
            continue;
        }
        t->is_alone |= code == GL_E_CONFLICT && n > 1;
        t->is_written = false;
        if (code == GL_E_CONFLICT && n == 1) {
            gl_taken_set_check(c, t, c->now); /* it is gone, or written already */
        } else {
            gl_taken_write(c, t);
        }
    }
    if (code != 0 && code != GL_E_CONFLICT) {
        c->taken.retry_at = c->now + RETRY_MS;
    }
}

/* ---- the component ---- */

void gl_core_taken(const struct gl_core *c,
                   void (*each)(void *arg, gl_str pool, gl_str owner, uint32_t slots), void *arg)
{
    const struct gl_taken *t;

    for (size_t i = 0; (t = gl_map_next(&c->taken.all, &i)) != NULL;) {
        if (t->has_slots && t->pool >= 0) {
            GL_ASSERT((size_t)t->pool < c->pools_n);
            GL_ASSERT(c->pools[t->pool].in_use >= t->slots);
            each(arg, c->pools[t->pool].name, gl_offer_node_of(t->owner), t->slots);
        }
    }
}

void gl_taken_on_woken(struct gl_core *c)
{
    c->taken.is_again = true;
    if (c->taken.scan_call == 0 && c->taken.due > c->now) {
        c->taken.due = c->now;
    }
    GL_ASSERT(GL_IMPLIES(c->taken.scan_call == 0, c->taken.due <= c->now));
}

/* A node that stops takes nothing more: the owners find other nodes. */
static void drop_untaken(struct gl_core *c)
{
    for (struct gl_link *l; (l = gl_list_first(&c->taken.to_take)) != NULL;) {
        gl_taken_drop(c, GL_CONTAINER(l, struct gl_taken, link));
    }
    GL_ASSERT(gl_list_empty(&c->taken.to_take));
}

static gl_ms sooner(gl_ms a, gl_ms b)
{
    return a < b ? a : b;
}

static gl_ms due(const struct gl_core *c)
{
    const struct gl_taken_attempts *s = &c->taken;
    const struct gl_heap_item *timer = gl_heap_top(&s->timers), *check = gl_heap_top(&s->checks);
    gl_ms due = INT64_MAX;

    if (!c->shared || c->passive) {
        return INT64_MAX;
    }
    if (s->scan_call == 0) {
        due = sooner(due, s->due);
    }
    if (timer != NULL) {
        due = sooner(due, GL_CONTAINER(timer, const struct gl_taken, timer)->due);
    }
    if (check != NULL && s->check_call == 0) {
        due = sooner(due, GL_CONTAINER(check, const struct gl_taken, check)->check_at);
    }
    if ((s->take_call == 0 && !gl_list_empty(&s->to_take)) ||
        (s->write_call == 0 && !gl_list_empty(&s->to_write)) ||
        (s->clean_call == 0 && !gl_list_empty(&s->stale))) {
        due = sooner(due, s->retry_at > c->now ? s->retry_at : c->now);
    }
    GL_ASSERT(GL_IMPLIES(s->scan_call == 0, due <= s->due));
    return due;
}

static void on_time(struct gl_core *c)
{
    struct gl_taken_attempts *s = &c->taken;
    struct gl_heap_item *top;

    GL_ASSERT(c->shared);
    GL_ASSERT(!c->passive);
    GL_ASSERT(gl_components_are_on(c));
    while ((top = gl_heap_top(&s->timers)) != NULL &&
           GL_CONTAINER(top, struct gl_taken, timer)->due <= c->now) {
        gl_taken_on_timer(c, GL_CONTAINER(top, struct gl_taken, timer));
        GL_ASSERT(gl_heap_top(&s->timers) != top ||
                  GL_CONTAINER(top, struct gl_taken, timer)->due > c->now);
    }
    if (s->check_call == 0) {
        gl_taken_send_checks(c);
    }
    if (s->retry_at <= c->now) {
        if (c->stopping) {
            drop_untaken(c);
        } else if (s->take_call == 0 && !gl_list_empty(&s->to_take)) {
            send_takes(c);
        }
        if (s->write_call == 0 && !gl_list_empty(&s->to_write)) {
            send_writes(c);
        }
        if (s->clean_call == 0 && !gl_list_empty(&s->stale)) {
            gl_taken_send_clean(c);
        }
    }
    if (s->scan_call == 0 && s->due <= c->now) {
        gl_taken_scan(c);
    }
    GL_ASSERT(GL_IMPLIES(s->scan_call == 0, s->due > c->now));
}

static void on_answer(struct gl_core *c, const struct gl_event *ev)
{
    uint64_t number = ev->answer.number;

    GL_ASSERT(ev->type == GL_EV_ANSWER);
    GL_ASSERT(ev->answer.by == GL_COMPONENT_TAKEN);
    if (number == c->taken.take_call) {
        on_takes(c, ev);
    } else if (number == c->taken.write_call) {
        on_writes(c, ev);
    } else if (number == c->taken.check_call) {
        gl_taken_on_checks(c, ev);
    } else if (number == c->taken.token_call) {
        gl_taken_on_token(c, ev);
    } else if (number == c->taken.clean_call) {
        c->taken.clean_call = 0; /* a failed one is found again */
    } else if (number == c->taken.scan_call) {
        gl_taken_on_scanned(c, ev);
    }
}

/* ---- in a snapshot of the core ---- */

static const char *const stage_words[] = {"list", "records", "offers", "steps",
                                          "jobs", "flows",   NULL};

#define F(member, type) GL_FIELD(gl_taken_attempts, member, type, 0, "")

static const struct gl_field state_fields[] = {
    F(take_call, U64),
    F(write_call, U64),
    F(check_call, U64),
    F(clean_call, U64),
    F(token_call, U64),
    F(scan_call, U64),
    GL_FIELD_ENUM(gl_taken_attempts, stage, stage_words, GL_FF_ALWAYS, ""),
    F(is_adopted, BOOL),
    F(is_again, BOOL),
    F(has_more, BOOL),
    F(is_void, BOOL),
    F(due, I64),
    F(retry_at, I64),
    F(after_score, I64),
    F(after_id, STR),
};
#undef F

static const struct gl_schema state_schema = {.name = "taken",
                                              .bytes = sizeof(struct gl_taken_attempts),
                                              .fields = state_fields,
                                              .fields_n = GL_COUNT(state_fields)};

static void save(const struct gl_core *c, struct gl_buf *out)
{
    gl_snapshot_put(out, "taken", &state_schema, &c->taken);
}

static int restore(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct gl_taken_attempts read;
    int rc = gl_snapshot_get(l, &state_schema, &read);

    if (rc == 0) {
        gl_core_adopt(c, &state_schema, &c->taken, &read);
    }
    return rc;
}

const struct gl_component gl_taken = {.name = "taken",
                                      .due = due,
                                      .on_time = on_time,
                                      .on_answer = on_answer,
                                      .save = save,
                                      .restore = restore};
