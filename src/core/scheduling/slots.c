/* slots.c - the queues of the pools, and the slots that attempts hold.
 *
 * A pool's `in_use` is the slots of its granted waits and of its holds. Slots pass from the wait to
 * the hold when the attempt starts, so they are never counted twice and never uncounted between. */
#include "core/scheduling/slots_parts.h"

#include "base/check.h"
#include "core/agents/agents.h"
#include "core/cluster/other_nodes.h"
#include "core/cluster/taken.h"
#include "core/flow/ledger.h"
#include "core/recovery/load.h"
#include "core/scheduling/quotas.h"
#include "model/labels.h"

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
        for (size_t k = 0; k < GL_WHERE_COUNT; k++) {
            gl_heap_init(&c->pools[i].queues[k], gl_slots_before);
        }
    }
    gl_quotas_init(c);
    GL_ASSERT(gl_map_count(&c->waits) == 0);
}

struct gl_heap *gl_slots_queue_of(struct gl_core *c, const struct gl_wait *w)
{
    GL_ASSERT(w->pool < c->pools_n);
    GL_ASSERT(w->where < GL_WHERE_COUNT);
    return &c->pools[w->pool].queues[w->where];
}

size_t gl_slots_waiting(const struct gl_core_pool_state *p)
{
    size_t n = 0;

    for (size_t k = 0; k < GL_WHERE_COUNT; k++) {
        n += p->queues[k].n;
    }
    return n;
}

gl_str gl_slots_key_of(const struct gl_wait *w)
{
    return (gl_str){.p = w->key, .n = GL_WAIT_KEY_BYTES};
}

/* A step is known by job and number, whether its job is in memory or not. */
void gl_slots_make_key(char key[static GL_WAIT_KEY_BYTES], gl_str job, uint32_t number)
{
    GL_ASSERT(job.n == GL_ULID_BYTES);
    memcpy(key, job.p, GL_ULID_BYTES);
    memcpy(key + GL_ULID_BYTES, &number, sizeof(number));
}

struct gl_wait *gl_slots_find(const struct gl_core *c, gl_str job, uint32_t number)
{
    char key[GL_WAIT_KEY_BYTES];

    gl_slots_make_key(key, job, number);
    return gl_map_find(&c->waits, (gl_str){.p = key, .n = sizeof(key)});
}

struct gl_offered_wait *gl_slots_offered_new(struct gl_core *c)
{
    struct gl_offered_wait *o = gl_pool_alloc(&c->mem, sizeof(*o));

    o->wait.offered = true;
    GL_ASSERT(!o->wait.limited);
    GL_ASSERT(o->wait.state == GL_WAIT_QUEUED);
    GL_ASSERT(o->taken == NULL);
    return o;
}

static void grant_free(struct gl_core *c, struct gl_slot_grant *g)
{
    GL_ASSERT(!gl_list_empty(&g->link));
    gl_list_remove(&g->link);
    gl_pool_free(&c->mem, g, sizeof(*g));
}

/* An entry in no queue and no map yet. */
struct gl_wait *gl_slots_wait_new(struct gl_core *c, struct gl_quota_group *group)
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
void gl_slots_wait_free(struct gl_core *c, struct gl_wait *w)
{
    GL_ASSERT(GL_IMPLIES(w->offered, !w->limited));
    GL_ASSERT(GL_IMPLIES(w->offered, w->step == NULL));
    GL_ASSERT(GL_IMPLIES(w->step != NULL, w->step->wait == w));
    GL_ASSERT(w->pool < c->pools_n);
    if (w->state == GL_WAIT_QUEUED || w->state == GL_WAIT_CALLED) {
        gl_heap_remove(gl_slots_queue_of(c, w), &w->place);
    }
    if (w->step != NULL) {
        w->step->wait = NULL;
    }
    (void)gl_map_remove(&c->waits, gl_slots_key_of(w)); /* every entry is in the map */
    if (w->limited) {
        gl_quotas_leave(c, w);
        gl_pool_free(&c->mem, GL_CONTAINER(w, struct gl_limited, wait), sizeof(struct gl_limited));
    } else if (w->offered) {
        gl_pool_free(&c->mem, GL_CONTAINER(w, struct gl_offered_wait, wait),
                     sizeof(struct gl_offered_wait));
    } else {
        gl_pool_free(&c->mem, w, sizeof(*w));
    }
}

/* Is it the entry of an agent that waits for an immediate retry and keeps its lease? */
bool gl_slots_has_already(const struct gl_wait *w)
{
    return w->slots == 0;
}

/* Takes a grant back: the step no longer wants its slots. */
static void wait_ungrant(struct gl_core *c, struct gl_wait *w)
{
    GL_ASSERT(!w->offered);
    GL_ASSERT(c->pools[w->pool].in_use >= w->slots);
    GL_ASSERT(w->state == GL_WAIT_GRANTED);
    c->pools[w->pool].in_use -= w->slots;
    if (w->limited) {
        gl_quotas_unreserve(c, w);
    }
    gl_slots_wait_free(c, w);
}

/* Frees an entry that is left over, in whatever state it is. */
static void wait_discard(struct gl_core *c, struct gl_wait *w)
{
    GL_ASSERT(!w->offered);
    GL_ASSERT(w->pool < c->pools_n);
    if (w->state != GL_WAIT_GRANTED) {
        gl_slots_wait_free(c, w);
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
        gl_slots_wait_free(c, w);
    }
    GL_ASSERT(gl_map_count(&c->waits) == 0);
    GL_ASSERT(gl_list_empty(&c->granted));
    gl_map_done(&c->waits);
    gl_quotas_done(c);
    for (size_t i = 0; i < c->pools_n; i++) {
        for (size_t k = 0; k < GL_WHERE_COUNT; k++) {
            gl_heap_done(&c->pools[i].queues[k]);
        }
    }
}

int gl_slots_find_pool(const struct gl_core *c, gl_str name)
{
    GL_ASSERT(c->pools_n <= GL_POOLS_MAX);
    for (size_t i = 0; i < c->pools_n; i++) {
        if (gl_str_eq(c->pools[i].name, name)) {
            return (int)i;
        }
    }
    return -1;
}

int gl_slots_add_pool(struct gl_core *c, gl_str name)
{
    int found = gl_slots_find_pool(c, name);
    struct gl_core_pool_state *p;

    if (found >= 0 || !c->shared || c->pools_n == GL_POOLS_MAX) {
        return found;
    }
    p = &c->pools[c->pools_n];
    gl_core_set(c, &p->name, name);
    for (size_t k = 0; k < GL_WHERE_COUNT; k++) {
        gl_heap_init(&p->queues[k], gl_slots_before);
    }
    GL_ASSERT(p->slots == 0);
    GL_ASSERT(p->in_use == 0);
    GL_ASSERT(c->pools_n < GL_POOLS_MAX);
    return (int)c->pools_n++;
}

bool gl_slots_possible(const struct gl_core *c, const struct gl_step_spec *spec, struct gl_why *why)
{
    gl_str prefix = GL_S("executor."), name = spec->pool, of = spec->id;
    const char *what = "step", *setting = "GLIA_POOLS";
    int pool = gl_slots_find_pool(c, spec->pool);
    gl_str rule;

    GL_ASSERT(spec->id.n > 0);
    if (gl_str_starts(name, prefix)) { /* a bundle's pool: use the manifest's words */
        what = "agent";
        of = (gl_str){.p = of.p + 1, .n = of.n - 1};
        name = (gl_str){.p = name.p + prefix.n, .n = name.n - prefix.n};
        setting = "MN_EXECUTOR_POOL_CAPACITIES";
    }
    if (pool < 0 || c->pools[pool].slots == 0) {
        (void)gl_why(
            why, GL_R_POOL_NOT_OFFERED,
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
    if (!gl_labels_meet_all(c->labels, &spec->node_labels, &rule)) {
        (void)gl_why(why, GL_R_LABELS_DIFFER,
                     "%s '%.*s' needs a node with the label %.*s, which this node does not have: "
                     "add it to GLIA_LABELS of a node, and restart it",
                     what, GL_STR_ARG(of), GL_STR_ARG(rule));
        return false;
    }
    return true;
}

size_t gl_slots_queue_length(const struct gl_core *c, const struct gl_step *st)
{
    int pool = gl_slots_find_pool(c, gl_step_spec_of(st)->pool);

    return pool >= 0 ? gl_slots_waiting(&c->pools[pool]) : 0;
}

bool gl_slots_has_pool(const struct gl_core *c, const struct gl_step_spec *spec)
{
    int pool = gl_slots_find_pool(c, spec->pool);

    return pool >= 0 && c->pools[pool].slots >= spec->slots;
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

/* Where may the step run? A step that keeps its slots runs where they are. */
static uint8_t where_of(const struct gl_core *c, const struct gl_step *st)
{
    if (st->hold != NULL || !gl_other_nodes_may_run(c, st)) {
        return GL_WHERE_HERE;
    }
    return gl_slots_possible(c, gl_step_spec_of(st), NULL) ? GL_WHERE_ANY : GL_WHERE_AWAY;
}

void gl_slots_queue(struct gl_core *c, struct gl_step *st)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    int pool = gl_slots_add_pool(c, spec->pool);
    char key[GL_WAIT_KEY_BYTES];
    struct gl_wait *w;

    GL_ASSERT(st->r.status == GL_STEP_QUEUED);
    GL_ASSERT(st->job->memory == GL_MEM_HOT);
    GL_ASSERT(pool >= 0);
    GL_ASSERT(st->wait == NULL);
    gl_slots_make_key(key, st->job->id, gl_step_place(st));
    w = gl_map_find(&c->waits, (gl_str){.p = key, .n = sizeof(key)});
    /* The entry may be there already, if the job left memory while the step waited. */
    if (w != NULL && gl_slots_has_already(w) != (st->hold != NULL)) {
        GL_MARK(c->trace, "slots.entry_of_another_lease");
        wait_discard(c, w);
        w = NULL;
    }
    if (w == NULL) {
        w = gl_slots_wait_new(c, gl_quotas_join(c, st, (uint8_t)pool));
        memcpy(w->key, key, sizeof(key));
        w->pool = (uint8_t)pool;
        w->slots = st->hold != NULL ? 0 : spec->slots;
        w->rank = st->hold != NULL ? RANK_FIRST : rank_of(c, st);
        w->seq = ++c->wait_seq;
        w->where = where_of(c, st) & 0x3u;
        gl_map_add(&c->waits, gl_slots_key_of(w), w);
        gl_heap_push(gl_slots_queue_of(c, w), &w->place);
    }
    w->step = st;
    w->is_loading = false;
    st->wait = w;
    st->r.blocked_on = w->state == GL_WAIT_HELD ? GL_BLOCK_LIMIT : GL_BLOCK_NONE;
    GL_ASSERT(w->pool < c->pools_n);
    GL_ASSERT(w->where < GL_WHERE_COUNT);
    GL_ASSERT(!w->offered);
    GL_ASSERT(gl_slots_has_already(w) == (st->hold != NULL));
    GL_ASSERT(GL_IMPLIES(w->state == GL_WAIT_QUEUED, gl_heap_has(&w->place)));
}

void gl_slots_unqueue(struct gl_core *c, struct gl_step *st)
{
    struct gl_wait *w = st->wait;

    if (w == NULL) {
        return;
    }
    /* A granted entry starts its step as soon as it has one. */
    GL_ASSERT(w->state != GL_WAIT_GRANTED);
    GL_ASSERT(w->step == st);
    GL_ASSERT(!w->offered);
    gl_slots_wait_free(c, w);
}

void gl_slots_detach(struct gl_step *st)
{
    GL_ASSERT(st->wait->step == st);
    st->wait->step = NULL;
    st->wait = NULL;
}

/* Connects a hold with the step; does not count its slots as in use. */
struct gl_slot_hold *gl_slots_hold_new(struct gl_core *c, struct gl_step *st, int pool)
{
    struct gl_slot_hold *h = gl_pool_alloc(&c->mem, sizeof(*h));

    GL_ASSERT(pool < GL_POOLS_MAX);
    GL_ASSERT(pool >= -1);
    GL_ASSERT(pool < (int)c->pools_n);
    h->step_number = gl_step_place(st);
    h->slots = gl_step_spec_of(st)->slots;
    h->pool = pool;
    gl_list_push(&st->job->holds, &h->link);
    st->hold = h;
    GL_ASSERT(!gl_list_empty(&h->link));
    return h;
}

static void hold_free(struct gl_core *c, struct gl_slot_hold *h)
{
    GL_ASSERT(h->pool >= -1);
    GL_ASSERT(!gl_list_empty(&h->link));
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
    GL_ASSERT(st->wait->state == GL_WAIT_GRANTED);
    GL_ASSERT(st->wait->slots == 0);
    GL_ASSERT(st->hold != NULL);
    gl_slots_wait_free(c, st->wait);
    if (!gl_slots_are_exceeded(c, st)) {
        GL_MARK(c->trace, "slots.lease_goes_on");
        gl_ledger_start(c, st, NULL);
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
    GL_ASSERT(w->step == st);
    GL_ASSERT(!w->offered);
    if (gl_slots_has_already(w)) {
        continue_lease(c, st);
        return;
    }
    h = gl_slots_hold_new(c, st, w->pool);
    if (w->limited) {
        gl_quotas_on_start(c, w, h);
    }
    gl_slots_wait_free(c, w);
    gl_ledger_start(c, st, NULL);
}

/* The job is not in memory: loads it, and keeps the slots until then. If it is in memory after all,
 * the entry is left over from a decision that never committed. */
static void grant_unloaded(struct gl_core *c, struct gl_wait *w)
{
    struct gl_slot_grant *g;

    GL_ASSERT(w->state == GL_WAIT_GRANTED);
    GL_ASSERT(!w->offered);
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

/* The attempt of another node's job has its slots: its entry goes, the slots stay in use. */
static void grant_offered(struct gl_core *c, struct gl_wait *w)
{
    struct gl_taken *t = GL_CONTAINER(w, struct gl_offered_wait, wait)->taken;

    GL_ASSERT(w->state == GL_WAIT_GRANTED);
    GL_ASSERT(w->offered);
    GL_ASSERT(w->slots > 0);
    gl_slots_wait_free(c, w);
    gl_taken_on_granted(c, t);
}

/* Takes the head of a queue and gives it its slots. They count as in use from here on, so that two
 * grants in one step of the core cannot use the same slot. */
static void grant_wait(struct gl_core *c, struct gl_wait *w)
{
    struct gl_core_pool_state *p = &c->pools[w->pool];

    GL_ASSERT(w->state == GL_WAIT_QUEUED || w->state == GL_WAIT_CALLED);
    GL_ASSERT(p->slots >= w->slots);
    GL_ASSERT(GL_IMPLIES(!gl_slots_has_already(w), p->in_use + w->slots <= p->slots));
    GL_ASSERT(w->where != GL_WHERE_AWAY);
    gl_heap_remove(gl_slots_queue_of(c, w), &w->place);
    p->in_use += w->slots;
    if (w->limited) {
        gl_quotas_reserve(c, w);
    }
    w->state = GL_WAIT_GRANTED;
    if (w->offered) {
        grant_offered(c, w);
    } else if (w->step != NULL) {
        start_granted(c, w->step);
    } else {
        grant_unloaded(c, w);
    }
}

/* The head of a queue. Heads that a limit holds back are moved out of the way first. */
struct gl_wait *gl_slots_head_of(struct gl_core *c, struct gl_heap *queue)
{
    for (struct gl_heap_item *top; (top = gl_heap_top(queue)) != NULL;) {
        struct gl_wait *w = GL_CONTAINER(top, struct gl_wait, place);

        GL_ASSERT(w->state == GL_WAIT_QUEUED || w->state == GL_WAIT_CALLED);
        if (gl_slots_has_already(w) || !w->limited || gl_quotas_allow(c, w)) {
            return w;
        }
    }
    return NULL;
}

/* The first of the steps that may run here, if there are slots for it. */
static struct gl_wait *next_in_pool(struct gl_core *c, struct gl_core_pool_state *p)
{
    struct gl_wait *here, *any;

    if (p->slots == 0) {
        return NULL;
    }
    here = gl_slots_head_of(c, &p->queues[GL_WHERE_HERE]);
    any = gl_slots_head_of(c, &p->queues[GL_WHERE_ANY]);
    if (here == NULL || (any != NULL && gl_slots_before(&any->place, &here->place))) {
        here = any;
    }
    if (here == NULL || gl_slots_has_already(here)) {
        return here;
    }
    GL_ASSERT(here->where != GL_WHERE_AWAY);
    return p->in_use <= p->slots && here->slots <= p->slots - p->in_use ? here : NULL;
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
    if (c->stopping || c->passive || !c->adoption_over) {
        return;
    }
    do { /* holding a step back in one pool may call a step in another */
        calls = c->quotas->calls_n;
        while (c->exec_up && (w = next_wait(c)) != NULL) {
            grant_wait(c, w);
        }
        gl_slots_place_elsewhere(c);
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
    h = gl_slots_hold_new(
        c, st, st->r.is_elsewhere ? -1 : gl_slots_find_pool(c, gl_step_spec_of(st)->pool));
    if (h->pool >= 0) {
        c->pools[h->pool].in_use += h->slots;
    }
    GL_ASSERT(st->hold == h);
    GL_ASSERT(GL_IMPLIES(st->r.is_elsewhere, h->pool == -1));
    gl_quotas_adopt(c, st, h);
}

bool gl_slots_are_exceeded(const struct gl_core *c, const struct gl_step *st)
{
    int pool = st->hold != NULL ? st->hold->pool : -1;

    GL_ASSERT(pool < (int)c->pools_n);
    GL_ASSERT(st->r.status == GL_STEP_RUNNING || st->r.keeps_slots);
    return (pool >= 0 && c->pools[pool].in_use > c->pools[pool].slots) ||
           gl_quotas_are_exceeded(st);
}

void gl_slots_return(struct gl_core *c, struct gl_step *st)
{
    if (st->hold != NULL) {
        GL_ASSERT(st->hold->step_number == gl_step_place(st));
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
        GL_ASSERT(w->state == GL_WAIT_GRANTED);
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
