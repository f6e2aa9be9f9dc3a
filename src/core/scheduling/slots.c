/* slots.c - the queues of the pools, and the slots that attempts hold.
 *
 * A pool's `in_use` is the slots of its granted waits and of its holds. Slots pass from the wait to
 * the hold when the attempt starts, so they are never counted twice and never uncounted between. */
#include "core/scheduling/slots.h"

#include "base/check.h"
#include "core/agents/agents.h"
#include "core/flow/ledger.h"
#include "core/recovery/load.h"
#include "core/scheduling/quotas.h"
#include "core/snapshot.h"

#define RANK_FIRST (INT64_MIN / 2) /* before every entry that wants slots */

bool gl_slots_before(const struct gl_heap_item *a, const struct gl_heap_item *b)
{
    const struct gl_wait *x = GL_CONTAINER(a, struct gl_wait, place);
    const struct gl_wait *y = GL_CONTAINER(b, struct gl_wait, place);

    return x->rank != y->rank ? x->rank < y->rank : x->seq < y->seq;
}

void gl_slots_init(struct gl_core *c, const struct gl_core_pool *pools, size_t pools_n)
{
    GL_ASSERT(pools_n > 0);
    GL_ASSERT(pools_n <= GL_POOLS_MAX);
    gl_map_init(&c->waits);
    gl_list_init(&c->granted);
    c->pools_n = pools_n;
    for (size_t i = 0; i < pools_n; i++) {
        GL_ASSERT(pools[i].slots > 0 && pools[i].slots <= GL_SLOTS_MAX);
        gl_core_set(c, &c->pools[i].name, pools[i].name);
        c->pools[i].slots = pools[i].slots;
        gl_heap_init(&c->pools[i].queue, gl_slots_before);
    }
    gl_quotas_init(c);
}

static gl_str wait_key(const struct gl_wait *w)
{
    return (gl_str){.p = w->key, .n = GL_WAIT_KEY_BYTES};
}

/* A step is known by job and number, whether its job is in memory or not. */
static void make_key(char key[static GL_WAIT_KEY_BYTES], gl_str job, uint32_t number)
{
    GL_ASSERT(job.n == GL_ULID_BYTES);
    memcpy(key, job.p, GL_ULID_BYTES);
    memcpy(key + GL_ULID_BYTES, &number, sizeof(number));
}

struct gl_wait *gl_slots_find(const struct gl_core *c, gl_str job, uint32_t number)
{
    char key[GL_WAIT_KEY_BYTES];

    make_key(key, job, number);
    return gl_map_find(&c->waits, (gl_str){.p = key, .n = sizeof(key)});
}

static void grant_free(struct gl_core *c, struct gl_slot_grant *g)
{
    GL_ASSERT(!gl_list_empty(&g->link));
    gl_list_remove(&g->link);
    gl_pool_free(&c->mem, g, sizeof(*g));
}

/* An entry in no queue and no map yet. */
static struct gl_wait *wait_new(struct gl_core *c, struct gl_quota_group *group)
{
    struct gl_limited *l;
    struct gl_wait *w;

    if (group == NULL) {
        w = gl_pool_alloc(&c->mem, sizeof(*w));
        return w;
    }
    l = gl_pool_alloc(&c->mem, sizeof(*l));
    l->group = group;
    l->wait.limited = true;
    return &l->wait;
}

/* Takes the entry out of its queue, its group and the map. The slots of a grant are the caller's.
 */
static void wait_free(struct gl_core *c, struct gl_wait *w)
{
    GL_ASSERT(w->pool < c->pools_n);
    if (w->state == GL_WAIT_QUEUED || w->state == GL_WAIT_CALLED) {
        gl_heap_remove(&c->pools[w->pool].queue, &w->place);
    }
    if (w->step != NULL) {
        w->step->wait = NULL;
    }
    (void)gl_map_remove(&c->waits, wait_key(w)); /* every entry is in the map */
    if (w->limited) {
        gl_quotas_leave(c, w);
        gl_pool_free(&c->mem, GL_CONTAINER(w, struct gl_limited, wait), sizeof(struct gl_limited));
    } else {
        gl_pool_free(&c->mem, w, sizeof(*w));
    }
}

/* Is it the entry of an agent that waits for an immediate retry and keeps its lease? */
static bool has_slots_already(const struct gl_wait *w)
{
    return w->slots == 0;
}

/* Takes a grant back: the step no longer wants its slots. */
static void wait_ungrant(struct gl_core *c, struct gl_wait *w)
{
    GL_ASSERT(c->pools[w->pool].in_use >= w->slots);
    GL_ASSERT(w->state == GL_WAIT_GRANTED);
    c->pools[w->pool].in_use -= w->slots;
    if (w->limited) {
        gl_quotas_unreserve(c, w);
    }
    wait_free(c, w);
}

/* Frees an entry that is left over, in whatever state it is. */
static void wait_discard(struct gl_core *c, struct gl_wait *w)
{
    GL_ASSERT(w->pool < c->pools_n);
    if (w->state != GL_WAIT_GRANTED) {
        wait_free(c, w);
        return;
    }
    for (struct gl_link *l = c->granted.next; l != &c->granted; l = l->next) {
        struct gl_slot_grant *g = GL_CONTAINER(l, struct gl_slot_grant, link);

        if (g->wait == w) {
            grant_free(c, g);
            break;
        }
    }
    wait_ungrant(c, w);
}

void gl_slots_done(struct gl_core *c)
{
    struct gl_wait *w;

    for (struct gl_link *l; (l = gl_list_first(&c->granted)) != NULL;) {
        grant_free(c, GL_CONTAINER(l, struct gl_slot_grant, link));
    }
    for (size_t i = 0; (w = gl_map_next(&c->waits, &i)) != NULL;) {
        wait_free(c, w);
    }
    GL_ASSERT(gl_map_count(&c->waits) == 0);
    GL_ASSERT(gl_list_empty(&c->granted));
    gl_map_done(&c->waits);
    gl_quotas_done(c);
    for (size_t i = 0; i < c->pools_n; i++) {
        gl_heap_done(&c->pools[i].queue);
    }
}

static int find_pool(const struct gl_core *c, gl_str name)
{
    GL_ASSERT(c->pools_n <= GL_POOLS_MAX);
    for (size_t i = 0; i < c->pools_n; i++) {
        if (gl_str_eq(c->pools[i].name, name)) {
            return (int)i;
        }
    }
    return -1;
}

bool gl_slots_possible(const struct gl_core *c, const struct gl_step_spec *spec, struct gl_why *why)
{
    gl_str prefix = GL_S("executor."), name = spec->pool, of = spec->id;
    const char *what = "step", *setting = "GLIA_POOLS";
    int pool = find_pool(c, spec->pool);

    GL_ASSERT(spec->id.n > 0);
    if (gl_str_starts(name, prefix)) { /* a bundle's pool: use the manifest's words */
        what = "agent";
        of = (gl_str){.p = of.p + 1, .n = of.n - 1};
        name = (gl_str){.p = name.p + prefix.n, .n = name.n - prefix.n};
        setting = "MN_EXECUTOR_POOL_CAPACITIES";
    }
    if (pool < 0) {
        (void)gl_why(
            why, GL_R_NO_SUCH_POOL,
            "%s '%.*s' needs pool '%.*s', which this node does not have: add it to %s of the "
            "node, and restart it",
            what, GL_STR_ARG(of), GL_STR_ARG(name), setting);
        return false;
    }
    if (spec->slots > c->pools[pool].slots) {
        (void)gl_why(
            why, GL_R_POOL_TOO_SMALL,
            "%s '%.*s' needs %u slots of pool '%.*s', which has only %u: lower the number, or "
            "raise the pool's size in %s of the node, and restart it",
            what, GL_STR_ARG(of), spec->slots, GL_STR_ARG(name), c->pools[pool].slots, setting);
        return false;
    }
    return true;
}

size_t gl_slots_queue_length(const struct gl_core *c, const struct gl_step *st)
{
    int pool = find_pool(c, gl_step_spec_of(st)->pool);

    return pool >= 0 ? c->pools[pool].queue.n : 0;
}

/* A step that waited before a restart or a pause keeps its place: queued_at is in its record. */
static gl_ms rank_of(struct gl_core *c, struct gl_step *st)
{
    if (st->r.queued_at == 0) {
        st->r.queued_at = c->now;
    }
    GL_ASSERT(st->r.queued_at != 0 || c->now == 0);
    return st->r.queued_at - gl_step_spec_of(st)->priority * GL_AGEING_MS;
}

void gl_slots_queue(struct gl_core *c, struct gl_step *st)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    int pool = find_pool(c, spec->pool);
    char key[GL_WAIT_KEY_BYTES];
    struct gl_wait *w;

    GL_ASSERT(st->r.status == GL_STEP_QUEUED);
    GL_ASSERT(st->job->memory == GL_MEM_HOT);
    GL_ASSERT(pool >= 0);
    GL_ASSERT(st->wait == NULL);
    make_key(key, st->job->id, gl_step_place(st));
    w = gl_map_find(&c->waits, (gl_str){.p = key, .n = sizeof(key)});
    /* The entry may be there already, if the job left memory while the step waited. */
    if (w != NULL && has_slots_already(w) != (st->hold != NULL)) {
        GL_MARK(c->trace, "slots.entry_of_another_lease");
        wait_discard(c, w);
        w = NULL;
    }
    if (w == NULL) {
        w = wait_new(c, gl_quotas_join(c, st, (uint8_t)pool));
        memcpy(w->key, key, sizeof(key));
        w->pool = (uint8_t)pool;
        w->slots = st->hold != NULL ? 0 : spec->slots;
        w->rank = st->hold != NULL ? RANK_FIRST : rank_of(c, st);
        w->seq = ++c->wait_seq;
        gl_map_add(&c->waits, wait_key(w), w);
        gl_heap_push(&c->pools[pool].queue, &w->place);
    }
    w->step = st;
    st->wait = w;
    st->r.blocked_on = w->state == GL_WAIT_HELD ? GL_BLOCK_LIMIT : GL_BLOCK_NONE;
    GL_ASSERT(w->pool < c->pools_n);
}

void gl_slots_unqueue(struct gl_core *c, struct gl_step *st)
{
    struct gl_wait *w = st->wait;

    if (w == NULL) {
        return;
    }
    /* A granted entry starts its step as soon as it has one. */
    GL_ASSERT(w->state != GL_WAIT_GRANTED);
    wait_free(c, w);
}

void gl_slots_detach(struct gl_step *st)
{
    GL_ASSERT(st->wait->step == st);
    st->wait->step = NULL;
    st->wait = NULL;
}

/* Connects a hold with the step; does not count its slots as in use. */
static struct gl_slot_hold *hold_new(struct gl_core *c, struct gl_step *st, int pool)
{
    struct gl_slot_hold *h = gl_pool_alloc(&c->mem, sizeof(*h));

    GL_ASSERT(pool < GL_POOLS_MAX);
    h->step_number = gl_step_place(st);
    h->slots = gl_step_spec_of(st)->slots;
    h->pool = pool;
    gl_list_push(&st->job->holds, &h->link);
    st->hold = h;
    return h;
}

static void hold_free(struct gl_core *c, struct gl_slot_hold *h)
{
    GL_ASSERT(h->pool < (int)c->pools_n);
    if (h->pool >= 0) {
        struct gl_core_pool_state *p = &c->pools[h->pool];

        GL_ASSERT(p->in_use >= h->slots);
        p->in_use -= h->slots;
        if (GL_PLANT(5) && p->in_use >= h->slots) {
            p->in_use -= h->slots; /* planted: returned twice */
        }
    }
    gl_quotas_return(c, h);
    gl_list_remove(&h->link);
    gl_pool_free(&c->mem, h, sizeof(*h));
}

/* An agent's immediate retry starts on the slots it holds. If the pool is overcommitted it gives
 * them back and queues like any other step. */
static void continue_lease(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(st->wait->slots == 0);
    GL_ASSERT(st->hold != NULL);
    wait_free(c, st->wait);
    if (!gl_slots_are_exceeded(c, st)) {
        GL_MARK(c->trace, "slots.lease_goes_on");
        gl_ledger_start(c, st);
        return;
    }
    GL_MARK(c->trace, "slots.lease_lost");
    gl_agent_unit_release(c, st);
    st->r.queued_at = c->now;
    gl_slots_queue(c, st);
    gl_step_set_due(c, st);
}

/* The step has its slots: a hold takes them over from the queue's entry, and the step starts. */
static void start_granted(struct gl_core *c, struct gl_step *st)
{
    struct gl_wait *w = st->wait;
    struct gl_slot_hold *h;

    GL_ASSERT(st->r.status == GL_STEP_QUEUED);
    GL_ASSERT(w->state == GL_WAIT_GRANTED);
    if (has_slots_already(w)) {
        continue_lease(c, st);
        return;
    }
    h = hold_new(c, st, w->pool);
    if (w->limited) {
        gl_quotas_on_start(c, w, h);
    }
    wait_free(c, w);
    gl_ledger_start(c, st);
}

/* The job is not in memory: loads it, and keeps the slots until then. If it is in memory after all,
 * the entry is left over from a decision that never committed. */
static void grant_unloaded(struct gl_core *c, struct gl_wait *w)
{
    struct gl_slot_grant *g;

    GL_ASSERT(w->state == GL_WAIT_GRANTED);
    if (gl_load_job(c, (gl_str){.p = w->key, .n = GL_ULID_BYTES})->memory == GL_MEM_HOT) {
        GL_MARK(c->trace, "slots.entry_left_over");
        wait_ungrant(c, w);
        return;
    }
    GL_MARK(c->trace, "slots.granted_to_cold_job");
    g = gl_pool_alloc(&c->mem, sizeof(*g));
    g->wait = w;
    gl_list_push(&c->granted, &g->link);
}

/* Takes the head of a queue and gives it its slots. They count as in use from here on, so that two
 * grants in one step of the core cannot use the same slot. */
static void grant_wait(struct gl_core *c, struct gl_wait *w)
{
    struct gl_core_pool_state *p = &c->pools[w->pool];

    GL_ASSERT(w->state == GL_WAIT_QUEUED || w->state == GL_WAIT_CALLED);
    GL_ASSERT(p->slots >= w->slots);
    gl_heap_remove(&p->queue, &w->place);
    p->in_use += w->slots;
    if (w->limited) {
        gl_quotas_reserve(c, w);
    }
    w->state = GL_WAIT_GRANTED;
    if (w->step != NULL) {
        start_granted(c, w->step);
    } else {
        grant_unloaded(c, w);
    }
}

/* The head of a pool's queue, if there are slots for it. Heads that a limit holds back are moved
 * out of the way first. */
static struct gl_wait *next_in_pool(struct gl_core *c, struct gl_core_pool_state *p)
{
    GL_ASSERT(p->slots > 0);
    for (struct gl_heap_item *top; (top = gl_heap_top(&p->queue)) != NULL;) {
        struct gl_wait *w = GL_CONTAINER(top, struct gl_wait, place);

        if (has_slots_already(w)) {
            return w;
        }
        if (!w->limited || gl_quotas_allow(c, w)) {
            return p->in_use <= p->slots && w->slots <= p->slots - p->in_use ? w : NULL;
        }
    }
    return NULL;
}

/* The first of all pools' heads. Granting one at a time gives a key that several pools share to the
 * step that has waited longest. */
static struct gl_wait *next_wait(struct gl_core *c)
{
    struct gl_wait *best = NULL;

    GL_ASSERT(c->exec_up);
    GL_ASSERT(!c->stopping);
    GL_ASSERT(!c->passive);
    /* Until the attempts that outlived the last node are known, their slots look free. */
    GL_ASSERT(c->adoption_over);
    for (size_t i = 0; i < c->pools_n; i++) {
        struct gl_wait *w = next_in_pool(c, &c->pools[i]);

        if (w != NULL && (best == NULL || gl_slots_before(&w->place, &best->place))) {
            best = w;
        }
    }
    return best;
}

void gl_slots_grant(struct gl_core *c)
{
    uint64_t calls;
    struct gl_wait *w;

    gl_quotas_on_timer(c); /* even if nothing may start, or they would stay due */
    if (!c->exec_up || c->stopping || c->passive || !c->adoption_over) {
        return;
    }
    do { /* holding a step back in one pool may call a step in another */
        calls = c->quotas->calls_n;
        while ((w = next_wait(c)) != NULL) {
            grant_wait(c, w);
        }
    } while (calls != c->quotas->calls_n);
}

bool gl_slots_find_hold(struct gl_step *st)
{
    GL_ASSERT(st->job->memory == GL_MEM_HOT);
    GL_ASSERT(st->hold == NULL);
    for (struct gl_link *l = st->job->holds.next; l != &st->job->holds; l = l->next) {
        struct gl_slot_hold *h = GL_CONTAINER(l, struct gl_slot_hold, link);

        if (h->step_number == gl_step_place(st)) {
            st->hold = h;
            return true;
        }
    }
    return false;
}

void gl_slots_adopt(struct gl_core *c, struct gl_step *st)
{
    struct gl_slot_hold *h;

    GL_ASSERT(st->r.status == GL_STEP_RUNNING || st->r.keeps_slots);
    if (gl_slots_find_hold(
            st)) { /* the job was in memory before, and its slots are still counted */
        return;
    }
    h = hold_new(c, st, find_pool(c, gl_step_spec_of(st)->pool));
    if (h->pool >= 0) {
        c->pools[h->pool].in_use += h->slots;
    }
    gl_quotas_adopt(c, st, h);
}

bool gl_slots_are_exceeded(const struct gl_core *c, const struct gl_step *st)
{
    int pool = st->hold != NULL ? st->hold->pool : -1;

    GL_ASSERT(st->r.status == GL_STEP_RUNNING || st->r.keeps_slots);
    return (pool >= 0 && c->pools[pool].in_use > c->pools[pool].slots) ||
           gl_quotas_are_exceeded(st);
}

void gl_slots_return(struct gl_core *c, struct gl_step *st)
{
    if (st->hold != NULL) {
        hold_free(c, st->hold);
        st->hold = NULL;
    }
}

/* Has a step taken up this hold? */
static bool is_claimed(struct gl_job *j, const struct gl_slot_hold *h)
{
    const struct gl_step *st = j->spec != NULL ? gl_step_at(j, h->step_number) : NULL;

    return st != NULL && st->hold == h;
}

void gl_slots_reclaim(struct gl_core *c, struct gl_job *j)
{
    GL_ASSERT(j->inflight_n == 0 || j->memory == GL_MEM_HOT);
    for (struct gl_link *l = j->holds.next, *next; l != &j->holds; l = next) {
        struct gl_slot_hold *h = GL_CONTAINER(l, struct gl_slot_hold, link);

        next = l->next;
        if (!is_claimed(j, h)) {
            hold_free(c, h);
        }
    }
    for (struct gl_link *l = c->granted.next, *next; l != &c->granted; l = next) {
        struct gl_slot_grant *g = GL_CONTAINER(l, struct gl_slot_grant, link);
        struct gl_wait *w = g->wait;

        next = l->next;
        if (memcmp(w->key, j->id.p, GL_ULID_BYTES) != 0) {
            continue;
        }
        grant_free(c, g);
        if (w->step != NULL) {
            start_granted(c, w->step);
        } else {
            wait_ungrant(c, w);
        }
    }
}

void gl_slots_release_all(struct gl_core *c, struct gl_job *j)
{
    for (struct gl_link *l; (l = gl_list_first(&j->holds)) != NULL;) {
        hold_free(c, GL_CONTAINER(l, struct gl_slot_hold, link));
    }
    GL_ASSERT(gl_list_empty(&j->holds));
}

/* ---- snapshots ---- */

static const char *const state_words[] = {"queued", "held", "called", "granted", NULL};

struct saved_wait {
    gl_str job, group; /* group "": no limit */
    uint32_t number, slots, pool;
    int64_t rank;
    uint64_t seq;
    uint8_t state;
    bool has_step;
};

#define F(member, type) GL_FIELD(saved_wait, member, type, 0, "")

static const struct gl_field wait_fields[] = {
    F(job, STR),       F(group, STR),
    F(number, U32),    F(slots, U32),
    F(pool, U32),      F(rank, I64),
    F(seq, U64),       GL_FIELD_ENUM(saved_wait, state, state_words, 0, ""),
    F(has_step, BOOL),
};
#undef F

GL_SNAPSHOT_SCHEMA(wait);

static struct saved_wait describe(const struct gl_wait *w)
{
    struct saved_wait s = {.job = {.p = w->key, .n = GL_ULID_BYTES},
                           .group = w->limited ? gl_quotas_name(w) : (gl_str){0},
                           .slots = w->slots,
                           .pool = w->pool,
                           .rank = w->rank,
                           .seq = w->seq,
                           .state = w->state,
                           .has_step = w->step != NULL};

    GL_ASSERT(w->state <= GL_WAIT_GRANTED);
    memcpy(&s.number, w->key + GL_ULID_BYTES, sizeof(s.number));
    return s;
}

bool gl_slots_save_waits(const struct gl_core *c, size_t bytes_max, struct gl_buf *out)
{
    const struct gl_wait *w;

    for (size_t i = 0; (w = gl_map_next(&c->waits, &i)) != NULL && out->n <= bytes_max;) {
        struct saved_wait s = describe(w);

        gl_snapshot_put(out, "wait", &wait_schema, &s);
    }
    for (const struct gl_link *l = c->granted.next; l != &c->granted; l = l->next) {
        struct saved_wait s = describe(GL_CONTAINER(l, struct gl_slot_grant, link)->wait);

        gl_snapshot_put(out, "granted", &wait_schema, &s);
    }
    return out->n <= bytes_max;
}

/* Puts a restored entry into the queue its state names, and connects it with its step. */
static bool enqueue(struct gl_core *c, struct gl_wait *w, const struct saved_wait *s)
{
    struct gl_job *j = s->has_step ? gl_job_find(c, s->job) : NULL;
    struct gl_step *st = j != NULL && j->spec != NULL ? gl_step_at(j, s->number) : NULL;

    GL_ASSERT(w->pool < c->pools_n);
    if (w->state == GL_WAIT_QUEUED || w->state == GL_WAIT_CALLED) {
        gl_heap_push(&c->pools[w->pool].queue, &w->place);
    } else if (w->state == GL_WAIT_GRANTED) {
        c->pools[w->pool].in_use += w->slots;
    }
    if (st != NULL && st->wait == NULL && has_slots_already(w) == (st->hold != NULL)) {
        w->step = st;
        st->wait = w;
    }
    return (w->step != NULL) == s->has_step;
}

int gl_slots_restore_wait(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct gl_quota_group *group = NULL;
    struct saved_wait s;
    struct gl_wait *w;
    int rc = gl_snapshot_get(l, &wait_schema, &s);

    if (rc != 0) {
        return rc;
    }
    if (s.job.n != GL_ULID_BYTES || s.pool >= c->pools_n ||
        gl_slots_find(c, s.job, s.number) != NULL || (s.state == GL_WAIT_HELD && s.group.n == 0)) {
        return gl_snapshot_bad(l, "a wait is for no step or no pool");
    }
    if (s.group.n > 0) {
        group = gl_quotas_find(c, s.group);
        if (group == NULL || group->pool != s.pool) {
            return gl_snapshot_bad(l, "a wait is for an unknown limit");
        }
    }
    w = wait_new(c, group);
    GL_ASSERT(w->limited == (group != NULL));
    make_key(w->key, s.job, s.number);
    w->slots = s.slots;
    w->pool = (uint8_t)s.pool;
    w->rank = s.rank;
    w->seq = s.seq;
    w->state = s.state & 0x7fu;
    gl_map_add(&c->waits, wait_key(w), w);
    if (w->limited) {
        gl_quotas_restore_wait(c, w);
    }
    return enqueue(c, w, &s) ? 0 : gl_snapshot_bad(l, "a wait is for an unknown step");
}

int gl_slots_restore_granted(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct gl_slot_grant *g;
    struct saved_wait s;
    struct gl_wait *w;
    int rc = gl_snapshot_get(l, &wait_schema, &s);

    if (rc != 0) {
        return rc;
    }
    w = s.job.n == GL_ULID_BYTES ? gl_slots_find(c, s.job, s.number) : NULL;
    if (w == NULL || w->state != GL_WAIT_GRANTED) {
        return gl_snapshot_bad(l, "slots are granted to a step that does not wait for them");
    }
    g = gl_pool_alloc(&c->mem, sizeof(*g));
    g->wait = w;
    gl_list_push(&c->granted, &g->link);
    return 0;
}

struct saved_hold {
    uint32_t step_number, slots;
    int64_t pool;
    gl_str limit;
    uint32_t seat;
};

#define F(member, type) GL_FIELD(saved_hold, member, type, 0, "")

static const struct gl_field hold_fields[] = {
    F(step_number, U32), F(slots, U32), F(pool, I64), F(limit, STR), F(seat, U32),
};
#undef F

GL_SNAPSHOT_SCHEMA(hold);

void gl_slots_save_holds(const struct gl_job *j, struct gl_buf *out)
{
    for (const struct gl_link *l = j->holds.next; l != &j->holds; l = l->next) {
        const struct gl_slot_hold *h = GL_CONTAINER(l, struct gl_slot_hold, link);
        struct saved_hold s = {.step_number = h->step_number,
                               .slots = h->slots,
                               .pool = h->pool,
                               .limit = h->limit != NULL ? h->limit->key : (gl_str){0},
                               .seat = h->seat};

        gl_snapshot_put(out, "hold", &hold_schema, &s);
    }
}

int gl_slots_restore_hold(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct gl_slot_hold *h;
    struct saved_hold s;
    int rc = gl_snapshot_get(l, &hold_schema, &s);

    if (rc != 0) {
        return rc;
    }
    if (l->job == NULL || s.pool < -1 || s.pool >= (int64_t)c->pools_n) {
        return gl_snapshot_bad(l, "slots are held by no job, or belong to no pool");
    }
    h = gl_pool_alloc(&c->mem, sizeof(*h));
    h->step_number = s.step_number;
    h->slots = s.slots;
    h->pool = (int)s.pool;
    h->seat = s.seat;
    GL_ASSERT(h->pool >= -1);
    GL_ASSERT(h->pool < (int)c->pools_n);
    gl_list_push(&l->job->holds, &h->link);
    if (h->pool >= 0) {
        c->pools[h->pool].in_use += h->slots;
    }
    return s.limit.n == 0 || gl_quotas_restore_hold(c, h, s.limit)
               ? 0
               : gl_snapshot_bad(l, "an attempt uses an unknown limit");
}
