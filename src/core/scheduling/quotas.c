/* quotas.c - keys, groups, and calling waits back.
 *
 * Whatever frees a unit of a key, or raises its limit, must call waits of that key back (refill,
 * refill_group): a wait that is held back has no timer of its own. */
#include "core/scheduling/quotas.h"

#include "base/check.h"
#include "base/json.h"
#include "core/flow/txn.h"
#include "core/scheduling/quotas_parts.h"
#include "core/scheduling/seats.h"

enum {
    RATE_RECORD_BYTES_MAX = 256,
    SEAT_MS = 1000, /* until a seat that another node holds is tried again */
    RATE_MS =
        250, /* until a rate that another node has used is tried again; it is read meanwhile */
};

static bool limit_before(const struct gl_heap_item *a, const struct gl_heap_item *b)
{
    const struct gl_quota *x = GL_CONTAINER(a, struct gl_quota, timer);
    const struct gl_quota *y = GL_CONTAINER(b, struct gl_quota, timer);

    return x->next_at != y->next_at ? x->next_at < y->next_at : gl_str_cmp(x->key, y->key) < 0;
}

void gl_quotas_init(struct gl_core *c)
{
    c->quotas = gl_pool_alloc(&c->mem, sizeof(*c->quotas));
    gl_map_init(&c->quotas->keys);
    gl_map_init(&c->quotas->groups);
    gl_heap_init(&c->quotas->timers, limit_before);
    gl_list_init(&c->quotas->lacking_keys);
}

/* ---- keys ---- */

static bool is_active(const struct gl_quota *l)
{
    return l->in_use > 0 || gl_heap_has(&l->timer);
}

uint32_t gl_quotas_available(const struct gl_core *c, const struct gl_quota *l)
{
    GL_ASSERT(l->others_n <= l->seats_n);
    if (l->is_rate) {
        return l->in_use == 0 && l->next_at <= c->now ? 1 : 0;
    }
    return l->max > l->in_use + l->others_n ? l->max - l->in_use - l->others_n : 0;
}

struct gl_quota *gl_quotas_limit_new(struct gl_core *c, gl_str key, bool is_rate)
{
    struct gl_quota *l = gl_pool_alloc(&c->mem, sizeof(*l));

    GL_ASSERT(key.n > 2);
    gl_core_set(c, &l->key, key);
    l->is_rate = is_rate;
    gl_list_init(&l->groups);
    gl_map_add(&c->quotas->keys, l->key, l);
    return l;
}

static struct gl_quota *limit_get(struct gl_core *c, bool is_rate, gl_str name)
{
    gl_str key = gl_str_fmt(c->out->arena, "%c:%.*s", is_rate ? 'r' : 'c', GL_STR_ARG(name));
    struct gl_quota *l = gl_map_find(&c->quotas->keys, key);

    return l != NULL ? l : gl_quotas_limit_new(c, key, is_rate);
}

gl_str gl_quotas_key(const struct gl_quota *l)
{
    GL_ASSERT(l->key.n >= 2);
    return (gl_str){.p = l->key.p + 2, .n = l->key.n - 2};
}

static void limit_free(struct gl_core *c, struct gl_quota *l)
{
    GL_ASSERT(!gl_heap_has(&l->timer));
    GL_ASSERT(gl_list_empty(&l->groups));
    (void)gl_map_remove(&c->quotas->keys, l->key); /* every key is in the map */
    if (l->seats_n > 0) {
        gl_pool_free(&c->mem, l->seats, l->seats_n);
    }
    gl_core_set(c, &l->key, (gl_str){0});
    gl_pool_free(&c->mem, l, sizeof(*l));
}

/* Frees a key that nothing uses. On a shared store an idle rate is kept as long as there is room:
 * if the revision of its record is not known, the next start is refused first. */
static void drop_if_idle(struct gl_core *c, struct gl_quota *l)
{
    GL_ASSERT(l->others_n <= l->seats_n);
    if (c->shared && l->rev != 0 && gl_map_count(&c->quotas->keys) < GL_LIMITS_MAX) {
        return;
    }
    if (!is_active(l) && gl_list_empty(&l->groups)) {
        limit_free(c, l);
    }
}

/* `active_n` counts the keys in use or with a timer. The next three functions keep it, and a
 * restore. */
static void take_unit(struct gl_core *c, struct gl_quota *l)
{
    c->quotas->active_n += !is_active(l);
    l->in_use++;
    GL_ASSERT(l->in_use > 0);
    GL_ASSERT(c->quotas->active_n <= gl_map_count(&c->quotas->keys));
}

static void release_unit(struct gl_core *c, struct gl_quota *l)
{
    GL_ASSERT(l->in_use > 0);
    l->in_use--;
    c->quotas->active_n -= !is_active(l);
    GL_ASSERT(c->quotas->active_n <= gl_map_count(&c->quotas->keys));
}

/* Sets the time before which the key admits nothing (rate), or at which seats of other nodes are
 * tried again (concurrency). */
static void set_next(struct gl_core *c, struct gl_quota *l, gl_ms next_at)
{
    bool was = is_active(l);

    if (gl_heap_has(&l->timer)) {
        gl_heap_remove(&c->quotas->timers, &l->timer);
    }
    l->next_at = next_at;
    if (next_at > c->now) {
        gl_heap_push(&c->quotas->timers, &l->timer);
    }
    c->quotas->active_n += is_active(l);
    c->quotas->active_n -= was;
    GL_ASSERT(gl_heap_has(&l->timer) == (next_at > c->now));
}

/* ---- refused starts ---- */

/* `guard` is "limit/<key>/<seat>" or "rate/<key>". A key may contain slashes; the seat may not. */
void gl_quotas_on_refused(struct gl_core *c, gl_str guard)
{
    bool is_rate = guard.n > 5 && memcmp(guard.p, "rate/", 5) == 0;
    size_t skip = is_rate ? 5 : 6, end = guard.n;
    uint64_t seat = 0;
    struct gl_quota *l;

    GL_ASSERT(guard.n > 0);
    while (!is_rate && end > skip && guard.p[end - 1] != '/') {
        end--;
    }
    if (end <= skip ||
        (!is_rate && (!gl_str_u64((gl_str){.p = guard.p + end, .n = guard.n - end}, &seat) ||
                      seat > UINT32_MAX))) {
        return;
    }
    end -= !is_rate;
    l = gl_map_find(&c->quotas->keys, gl_str_fmt(c->out->arena, "%c:%.*s", is_rate ? 'r' : 'c',
                                                 (int)(end - skip), guard.p + skip));
    if (l == NULL) {
        return;
    }
    GL_MARK(c->trace, is_rate ? "quotas.rate_used_elsewhere" : "quotas.seat_taken_elsewhere");
    if (!is_rate) {
        gl_seats_set(l, (uint32_t)seat, GL_SEAT_OTHERS);
    }
    set_next(c, l, c->now + (is_rate ? RATE_MS : SEAT_MS));
}

/* ---- groups ---- */

struct gl_quota_group *gl_quotas_group_of(const struct gl_wait *w)
{
    GL_ASSERT(w->limited);
    return GL_CONTAINER(w, struct gl_limited, wait)->group;
}

bool gl_quotas_lacks_keys(const struct gl_core *c, const struct gl_quota_group *g)
{
    const struct gl_quota *a = g->concurrency.limit, *b = g->rate.limit;
    size_t more = (size_t)(a != NULL && !is_active(a)) + (size_t)(b != NULL && !is_active(b));

    GL_ASSERT(g->concurrency.limit != NULL || g->rate.limit != NULL);
    return more > 0 && c->quotas->active_n + more > GL_LIMITS_MAX;
}

/* If the group cannot start because it lacks keys, lists it, so that a freed key calls it. */
static void note_short(struct gl_core *c, struct gl_quota_group *g)
{
    GL_ASSERT(g->called_n <= g->waits_n);
    if (gl_quotas_lacks_keys(c, g) && gl_list_empty(&g->lacking_keys)) {
        GL_MARK(c->trace, "quotas.too_many_keys");
        gl_list_push(&c->quotas->lacking_keys, &g->lacking_keys);
    }
}

/* How many of the group's steps its keys admit now. */
static uint32_t group_units(const struct gl_core *c, const struct gl_quota_group *g)
{
    const struct gl_quota *a = g->concurrency.limit, *b = g->rate.limit;
    uint32_t x = a != NULL ? gl_quotas_available(c, a) : UINT32_MAX;
    uint32_t y = b != NULL ? gl_quotas_available(c, b) : UINT32_MAX;

    GL_ASSERT(g->called_n <= g->waits_n);
    if (gl_quotas_lacks_keys(c, g)) {
        return 0;
    }
    return x < y ? x : y;
}

static void add_side(struct gl_quota_group *g, struct gl_quota_side *side, struct gl_quota *l)
{
    GL_ASSERT(GL_IMPLIES(l != NULL, l->key.n > 0));
    gl_list_init(&side->link);
    side->group = g;
    side->limit = l;
    if (l != NULL) {
        gl_list_push(&l->groups, &side->link);
    }
}

struct gl_quota_group *gl_quotas_group_new(struct gl_core *c, gl_str key,
                                           struct gl_quota *concurrency, struct gl_quota *rate,
                                           uint8_t pool)
{
    struct gl_quota_group *g = gl_pool_alloc(&c->mem, sizeof(*g));

    GL_ASSERT(pool < c->pools_n);
    GL_ASSERT(key.n > 0);
    gl_core_set(c, &g->key, key);
    g->pool = pool;
    gl_heap_init(&g->held, gl_slots_before);
    gl_list_init(&g->lacking_keys);
    add_side(g, &g->concurrency, concurrency);
    add_side(g, &g->rate, rate);
    gl_map_add(&c->quotas->groups, g->key, g);
    return g;
}

static struct gl_quota_group *group_get(struct gl_core *c, struct gl_quota *concurrency,
                                        struct gl_quota *rate, uint8_t pool)
{
    gl_str a = concurrency != NULL ? concurrency->key : (gl_str){0};
    gl_str b = rate != NULL ? rate->key : (gl_str){0};
    gl_str key =
        gl_str_fmt(c->out->arena, "%u %zu %.*s%.*s", pool, a.n, GL_STR_ARG(a), GL_STR_ARG(b));
    struct gl_quota_group *g = gl_map_find(&c->quotas->groups, key);

    GL_ASSERT(concurrency != NULL || rate != NULL);
    return g != NULL ? g : gl_quotas_group_new(c, key, concurrency, rate, pool);
}

static void group_free(struct gl_core *c, struct gl_quota_group *g)
{
    struct gl_quota *limits[] = {g->concurrency.limit, g->rate.limit};

    GL_ASSERT(g->waits_n == 0);
    GL_ASSERT(g->held.n == 0);
    GL_ASSERT(g->called_n == 0);
    (void)gl_map_remove(&c->quotas->groups, g->key); /* every group is in the map */
    gl_list_remove(&g->concurrency.link);
    gl_list_remove(&g->rate.link);
    gl_list_remove(&g->lacking_keys);
    gl_heap_done(&g->held);
    gl_core_set(c, &g->key, (gl_str){0});
    gl_pool_free(&c->mem, g, sizeof(*g));
    for (size_t i = 0; i < GL_COUNT(limits); i++) {
        if (limits[i] != NULL) {
            drop_if_idle(c, limits[i]);
        }
    }
}

void gl_quotas_done(struct gl_core *c)
{
    struct gl_quota *l;

    GL_ASSERT(gl_map_count(&c->quotas->groups) == 0);
    for (size_t i = 0; (l = gl_map_next(&c->quotas->keys, &i)) != NULL;) {
        if (gl_heap_has(&l->timer)) {
            gl_heap_remove(&c->quotas->timers, &l->timer);
        }
        limit_free(c, l);
    }
    GL_ASSERT(gl_map_count(&c->quotas->keys) == 0);
    GL_ASSERT(gl_list_empty(&c->quotas->lacking_keys));
    gl_map_done(&c->quotas->keys);
    gl_map_done(&c->quotas->groups);
    gl_heap_done(&c->quotas->timers);
    gl_pool_free(&c->mem, c->quotas, sizeof(*c->quotas));
    c->quotas = NULL;
}

/* ---- calling back ---- */

/* Moves the group's first wait back to its old place in the pool's queue. */
static void call_first(struct gl_core *c, struct gl_quota_group *g)
{
    struct gl_wait *w = GL_CONTAINER(gl_heap_top(&g->held), struct gl_wait, place);

    GL_ASSERT(g->held.n > 0);
    GL_ASSERT(w->state == GL_WAIT_HELD);
    gl_heap_remove(&g->held, &w->place);
    gl_heap_push(gl_slots_queue_of(c, w), &w->place);
    w->state = GL_WAIT_CALLED;
    g->called_n++;
    c->quotas->calls_n++;
    if (w->step != NULL) {
        w->step->r.blocked_on = GL_BLOCK_NONE;
    }
    GL_ASSERT(g->called_n <= g->waits_n);
}

/* Is the first wait of `g` before that of `than`? */
static bool goes_first(const struct gl_quota_group *g, const struct gl_quota_group *than)
{
    GL_ASSERT(g->held.n > 0);
    return than == NULL || gl_slots_before(gl_heap_top(&g->held), gl_heap_top(&than->held));
}

/* Calls one wait in each pool, the first of all groups with this key, unless as many are called
 * there as the key admits. Each pool is considered by itself: a pool without free slots must not
 * keep the key from the others. Returns whether any was called. */
static bool call_in_each_pool(struct gl_core *c, struct gl_quota *l)
{
    struct gl_quota_group *best[GL_POOLS_MAX] = {0};
    uint32_t called[GL_POOLS_MAX] = {0};
    bool any = false;

    for (struct gl_link *k = l->groups.next; k != &l->groups; k = k->next) {
        struct gl_quota_group *g = GL_CONTAINER(k, struct gl_quota_side, link)->group;

        GL_ASSERT(g->pool < c->pools_n);
        called[g->pool] += g->called_n;
        if (g->held.n == 0) {
            continue;
        }
        note_short(c, g);
        if (group_units(c, g) > g->called_n && goes_first(g, best[g->pool])) {
            best[g->pool] = g;
        }
    }
    for (size_t i = 0; i < c->pools_n; i++) {
        if (best[i] != NULL && called[i] < gl_quotas_available(c, l)) {
            call_first(c, best[i]);
            any = true;
        }
    }
    return any;
}

/* Calls as many waits as the key admits. */
static void refill(struct gl_core *c, struct gl_quota *l)
{
    while (l != NULL && gl_quotas_available(c, l) > 0 && call_in_each_pool(c, l)) {
    }
}

static void refill_group(struct gl_core *c, struct gl_quota_group *g)
{
    refill(c, g->concurrency.limit);
    refill(c, g->rate.limit);
}

/* A unit of the key is free, or its time has come: calls waits of the key, and of groups that
 * lacked keys, since one may have become inactive. */
static void on_freed(struct gl_core *c, struct gl_quota *l)
{
    struct gl_quotas *all = c->quotas;
    struct gl_link *k;

    GL_ASSERT(c->quotas->active_n <= gl_map_count(&c->quotas->keys));
    refill(c, l);
    for (size_t n = all->active_n; n < GL_LIMITS_MAX; n++) {
        struct gl_quota_group *g;

        k = gl_list_first(&all->lacking_keys);
        if (k == NULL) {
            break;
        }
        g = GL_CONTAINER(k, struct gl_quota_group, lacking_keys);
        gl_list_remove(k);
        refill_group(c, g);
    }
    drop_if_idle(c, l);
}

/* ---- waits ---- */

static gl_str concurrency_key(const struct gl_step *st)
{
    return st->r.limit_key;
}

/* The step's concurrency key, with the limit that the step's flow names. */
static struct gl_quota *concurrency_of(struct gl_core *c, const struct gl_step *st)
{
    uint32_t max = gl_step_spec_of(st)->limit_max;
    struct gl_quota *l = limit_get(c, false, concurrency_key(st));

    GL_ASSERT(st->r.limit_key.n > 0);
    l->max = max > 0 ? max : 1;
    GL_ASSERT(l->max > 0);
    return l;
}

/* The step's rate key. A next start further away than the rate allows stems from a wrong clock or a
 * slower rate, and is brought forward. */
static struct gl_quota *rate_of(struct gl_core *c, const struct gl_step *st)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    struct gl_quota *l = limit_get(c, true, spec->rate_key);

    GL_ASSERT(spec->rate_key.n > 0);
    l->every_ms = spec->rate_ms;
    if (l->next_at > c->now + l->every_ms) {
        set_next(c, l, c->now + l->every_ms);
    }
    return l;
}

struct gl_quota_group *gl_quotas_join(struct gl_core *c, const struct gl_step *st, uint8_t pool)
{
    struct gl_quota *concurrency = NULL, *rate = NULL;
    struct gl_quota_group *g;

    GL_ASSERT(pool < c->pools_n);
    if (concurrency_key(st).n > 0) {
        concurrency = concurrency_of(c, st);
    }
    if (gl_step_spec_of(st)->rate_key.n > 0) {
        rate = rate_of(c, st);
    }
    if (concurrency == NULL && rate == NULL) {
        return NULL;
    }
    g = group_get(c, concurrency, rate, pool);
    g->waits_n++;
    refill_group(c, g); /* this step may have raised the limit */
    GL_ASSERT(g->pool == pool);
    GL_ASSERT(g->waits_n > 0);
    return g;
}

void gl_quotas_leave(struct gl_core *c, struct gl_wait *w)
{
    struct gl_quota_group *g = gl_quotas_group_of(w);
    bool called = w->state == GL_WAIT_CALLED;

    if (w->state == GL_WAIT_HELD) {
        gl_heap_remove(&g->held, &w->place);
    }
    GL_ASSERT(g->called_n >= called);
    g->called_n -= called;
    GL_ASSERT(g->waits_n > 0);
    g->waits_n--;
    if (called) { /* call another one in its place */
        refill_group(c, g);
    }
    if (g->waits_n == 0) {
        group_free(c, g);
    }
}

bool gl_quotas_allow(struct gl_core *c, struct gl_wait *w)
{
    struct gl_quota_group *g = gl_quotas_group_of(w);
    bool called = w->state == GL_WAIT_CALLED;

    GL_ASSERT(w->state == GL_WAIT_QUEUED || w->state == GL_WAIT_CALLED);
    if (group_units(c, g) > 0) {
        return true;
    }
    GL_MARK(c->trace, called ? "quotas.called_in_vain" : "quotas.held_back");
    gl_heap_remove(gl_slots_queue_of(c, w), &w->place);
    gl_heap_push(&g->held, &w->place);
    w->state = GL_WAIT_HELD;
    g->called_n -= called;
    if (w->step != NULL) { /* stored whenever the step's record is written next */
        w->step->r.blocked_on = GL_BLOCK_LIMIT;
    }
    note_short(c, g);
    if (called) {
        refill_group(c, g);
    }
    return false;
}

void gl_quotas_reserve(struct gl_core *c, struct gl_wait *w)
{
    struct gl_quota_group *g = gl_quotas_group_of(w);

    GL_ASSERT(w->state != GL_WAIT_HELD);
    g->called_n -= w->state == GL_WAIT_CALLED;
    if (g->concurrency.limit != NULL) {
        take_unit(c, g->concurrency.limit);
    }
    if (g->rate.limit != NULL) {
        take_unit(c, g->rate.limit);
    }
}

void gl_quotas_unreserve(struct gl_core *c, struct gl_wait *w)
{
    struct gl_quota_group *g = gl_quotas_group_of(w);

    GL_ASSERT(w->state == GL_WAIT_GRANTED);
    if (g->concurrency.limit != NULL) {
        release_unit(c, g->concurrency.limit);
        on_freed(c, g->concurrency.limit);
    }
    if (g->rate.limit != NULL) {
        release_unit(c, g->rate.limit);
        on_freed(c, g->rate.limit);
    }
}

/* ---- attempts ---- */

/* Writes the record of a rate. Its revision is the time of the next start, so that retention, which
 * removes old ones, and other nodes can guard on it. */
static void write_rate(struct gl_core *c, struct gl_job *j, struct gl_quota *rate)
{
    gl_str name = gl_quotas_key(rate);
    struct gl_write *w;

    GL_ASSERT(rate->in_use == 0);
    GL_ASSERT(j->memory == GL_MEM_HOT);
    if (c->shared) { /* otherwise no other node can have used it */
        gl_txn_guard(c, j, rate->rev == 0 ? GL_GUARD_ABSENT : GL_GUARD_AT, GL_S("rate"), name)
            ->rev = rate->rev;
    }
    rate->rev = (uint64_t)rate->next_at;
    w = gl_txn_write(c, j, GL_WRITE_PUT, GL_S("rate"), name);
    w->rev = rate->rev;
    w->value = gl_str_fmt(c->out->arena, "{\"next_at\":%lld}", (long long)rate->next_at);
}

void gl_quotas_on_start(struct gl_core *c, const struct gl_wait *w, struct gl_slot_hold *h)
{
    struct gl_quota_group *g = gl_quotas_group_of(w);
    struct gl_quota *rate = g->rate.limit;

    GL_ASSERT(w->state == GL_WAIT_GRANTED);
    h->limit = g->concurrency.limit;
    if (h->limit != NULL && c->shared) {
        gl_seats_acquire(c, w->step, h);
    }
    if (rate != NULL) {
        release_unit(c, rate);
        set_next(c, rate, c->now + rate->every_ms);
        write_rate(c, w->step->job, rate);
    }
}

/* Takes a seat that the step's record names, without asking the store: the record is committed. */
void gl_quotas_adopt(struct gl_core *c, const struct gl_step *st, struct gl_slot_hold *h)
{
    GL_ASSERT(st->r.status == GL_STEP_RUNNING || st->r.keeps_slots);
    if (concurrency_key(st).n == 0 || GL_PLANT(12)) { /* planted: not counted after a restart */
        return;
    }
    h->limit = concurrency_of(c, st);
    h->seat = st->r.seat;
    gl_seats_grow(c, h->limit, h->seat);
    gl_seats_set(h->limit, h->seat, GL_SEAT_OURS);
    take_unit(c, h->limit);
}

/* In memory only: gl_seats_release() deletes the record of the seat. */
void gl_quotas_return(struct gl_core *c, struct gl_slot_hold *h)
{
    struct gl_quota *l = h->limit;

    GL_ASSERT(GL_IMPLIES(l != NULL, l->in_use > 0));
    h->limit = NULL;
    if (l != NULL) {
        if (h->seat > 0 && h->seat <= l->seats_n && l->seats[h->seat - 1] == GL_SEAT_OURS) {
            gl_seats_set(l, h->seat, GL_SEAT_FREE);
        }
        release_unit(c, l);
        on_freed(c, l);
    }
}

void gl_quotas_leave_seat(struct gl_core *c, struct gl_slot_hold *h)
{
    GL_ASSERT(c->shared);
    if (h->limit != NULL && h->seat > 0) {
        GL_MARK(c->trace, "quotas.seat_left");
        gl_seats_set(h->limit, h->seat, GL_SEAT_OTHERS);
        set_next(c, h->limit, c->now + SEAT_MS);
        h->seat = 0;
    }
}

bool gl_quotas_are_exceeded(const struct gl_step *st)
{
    const struct gl_quota *l = st->hold != NULL ? st->hold->limit : NULL;

    /* The time slot that the rate granted has passed: the step must wait for another one. */
    return (l != NULL && l->in_use > l->max) || gl_step_spec_of(st)->rate_key.n > 0;
}

/* ---- time ---- */

void gl_quotas_on_timer(struct gl_core *c)
{
    for (struct gl_heap_item *top; (top = gl_heap_top(&c->quotas->timers)) != NULL;) {
        struct gl_quota *l = GL_CONTAINER(top, struct gl_quota, timer);
        GL_ASSERT(gl_heap_has(&l->timer));

        if (l->next_at > c->now) {
            break;
        }
        set_next(c, l, l->next_at);
        gl_seats_forget_others(l);
        on_freed(c, l);
    }
}

gl_ms gl_quotas_next_due(const struct gl_core *c)
{
    const struct gl_heap_item *top = gl_heap_top(&c->quotas->timers);

    return top != NULL ? GL_CONTAINER(top, struct gl_quota, timer)->next_at : INT64_MAX;
}

void gl_quotas_on_rates(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_record *records = ev->rates.records.items;

    GL_ASSERT(ev->type == GL_EV_RATES);
    for (size_t i = 0; i < ev->rates.records.n; i++) {
        struct gl_json json;
        int64_t next_at;

        if (c->shared && records[i].rev == 0) { /* the record has been removed */
            struct gl_quota *gone = limit_get(c, true, records[i].id);

            gone->rev = 0;
            drop_if_idle(c, gone);
            continue;
        }
        if (records[i].id.n == 0 ||
            gl_json_parse(&json, records[i].value, RATE_RECORD_BYTES_MAX, c->out->arena, NULL) !=
                0 ||
            !gl_json_i64(&json, gl_json_get(&json, gl_json_root(&json), "next_at"), &next_at)) {
            GL_MARK(c->trace, "quotas.damaged_rate");
            continue; /* an unreadable rate must not block its steps */
        }
        if (next_at > c->now || c->shared) {
            struct gl_quota *l = limit_get(c, true, records[i].id);

            l->rev = records[i].rev;
            set_next(c, l, next_at > c->now ? next_at : c->now);
            on_freed(c, l);
        }
    }
}

/* ---- snapshots (see also quotas_snapshot.c) ---- */

gl_str gl_quotas_name(const struct gl_wait *w)
{
    return gl_quotas_group_of(w)->key;
}

struct gl_quota_group *gl_quotas_find(const struct gl_core *c, gl_str name)
{
    return gl_map_find(&c->quotas->groups, name);
}

void gl_quotas_restore_wait(struct gl_core *c, struct gl_wait *w)
{
    struct gl_quota_group *g = gl_quotas_group_of(w);

    g->waits_n++;
    if (w->state == GL_WAIT_HELD) {
        gl_heap_push(&g->held, &w->place);
    } else if (w->state == GL_WAIT_CALLED) {
        g->called_n++;
    } else if (w->state == GL_WAIT_GRANTED) {
        gl_quotas_reserve(c, w);
    }
    GL_ASSERT(g->called_n <= g->waits_n);
    GL_ASSERT(g->held.n + g->called_n <= g->waits_n);
}

bool gl_quotas_restore_hold(struct gl_core *c, struct gl_slot_hold *h, gl_str limit)
{
    struct gl_quota *l = gl_map_find(&c->quotas->keys, limit);

    if (l != NULL) {
        h->limit = l;
        take_unit(c, l);
    }
    GL_ASSERT(GL_IMPLIES(l != NULL, l->in_use > 0));
    return l != NULL;
}

bool gl_quotas_drop_empty(struct gl_core *c)
{
    struct gl_quota_group *g;
    bool none = true;

    for (size_t i = 0; (g = gl_map_next(&c->quotas->groups, &i)) != NULL;) {
        if (g->waits_n == 0) {
            none = false;
            group_free(c, g);
        }
    }
    return none;
}
