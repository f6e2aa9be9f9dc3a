#include "core/place/slots.h"

#include "core/flow/ledger.h"
#include "core/heal/load.h"

static bool wait_before(const struct gl_heap_item *a, const struct gl_heap_item *b)
{
    const struct gl_wait *x = GL_CONTAINER(a, struct gl_wait, place);
    const struct gl_wait *y = GL_CONTAINER(b, struct gl_wait, place);

    return x->priority != y->priority ? x->priority > y->priority : x->seq < y->seq;
}

void gl_slots_init(struct gl_core *c, const struct gl_core_pool *pools, size_t pools_n)
{
    gl_map_init(&c->waits);
    gl_list_init(&c->granted);
    c->pools_n = pools_n;
    for (size_t i = 0; i < pools_n; i++) {
        GL_ASSERT(pools[i].slots > 0 && pools[i].slots <= GL_SLOTS_MAX);
        gl_core_set(c, &c->pools[i].name, pools[i].name);
        c->pools[i].slots = pools[i].slots;
        gl_heap_init(&c->pools[i].queue, wait_before);
    }
}

static gl_str wait_key(const struct gl_wait *w)
{
    return (gl_str){.p = w->key, .n = GL_WAIT_KEY_BYTES};
}

static void make_key(char key[static GL_WAIT_KEY_BYTES], gl_str job, uint32_t number)
{
    memcpy(key, job.p, GL_ULID_BYTES);
    memcpy(key + GL_ULID_BYTES, &number, sizeof(number));
}

static void grant_free(struct gl_core *c, struct gl_slot_grant *g)
{
    gl_list_remove(&g->link);
    gl_pool_free(&c->mem, g, sizeof(*g));
}

static void wait_free(struct gl_core *c, struct gl_wait *w)
{
    if (gl_heap_has(&w->place)) {
        gl_heap_remove(&c->pools[w->pool].queue, &w->place);
    }
    if (w->step != NULL) {
        w->step->wait = NULL;
    }
    (void)gl_map_remove(&c->waits, wait_key(w)); /* every entry is in the map */
    gl_pool_free(&c->mem, w, sizeof(*w));
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
    gl_map_done(&c->waits);
    for (size_t i = 0; i < c->pools_n; i++) {
        gl_heap_done(&c->pools[i].queue);
    }
}

static int find_pool(const struct gl_core *c, gl_str name)
{
    for (size_t i = 0; i < c->pools_n; i++) {
        if (gl_str_eq(c->pools[i].name, name)) {
            return (int)i;
        }
    }
    return -1;
}

bool gl_slots_possible(const struct gl_core *c, const struct gl_step_spec *spec, struct gl_why *why)
{
    int pool = find_pool(c, spec->pool);

    if (pool < 0) {
        (void)gl_why(why, GL_E_LIMIT,
                     "step '%.*s' wants pool '%.*s', which this node does not have: add it to "
                     "GLIA_POOLS",
                     GL_STR_ARG(spec->id), GL_STR_ARG(spec->pool));
        return false;
    }
    if (spec->slots > c->pools[pool].slots) {
        (void)gl_why(why, GL_E_LIMIT, "step '%.*s' wants %u slots of pool '%.*s', which has %u",
                     GL_STR_ARG(spec->id), spec->slots, GL_STR_ARG(spec->pool),
                     c->pools[pool].slots);
        return false;
    }
    return true;
}

void gl_slots_queue(struct gl_core *c, struct gl_step *st)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    int pool = find_pool(c, spec->pool);
    char key[GL_WAIT_KEY_BYTES];
    struct gl_wait *w;

    GL_ASSERT(pool >= 0);
    GL_ASSERT(st->wait == NULL);
    make_key(key, st->job->id, st->number);
    w = gl_map_find(&c->waits, (gl_str){.p = key, .n = sizeof(key)});
    if (w == NULL) {
        w = gl_pool_alloc(&c->mem, sizeof(*w));
        memcpy(w->key, key, sizeof(key));
        w->pool = (uint16_t)pool;
        w->slots = spec->slots;
        w->priority = (int32_t)spec->priority;
        w->seq = ++c->wait_seq;
        gl_map_add(&c->waits, wait_key(w), w);
        gl_heap_push(&c->pools[pool].queue, &w->place);
    }
    w->step = st;
    st->wait = w;
}

void gl_slots_unqueue(struct gl_core *c, struct gl_step *st)
{
    struct gl_wait *w = st->wait;

    if (w == NULL) {
        return;
    }
    GL_ASSERT(!w->granted); /* a granted entry gets its step and starts it in one go */
    wait_free(c, w);
}

void gl_slots_detach(struct gl_step *st)
{
    GL_ASSERT(st->wait->step == st);
    st->wait->step = NULL;
    st->wait = NULL;
}

static struct gl_slot_hold *hold_new(struct gl_core *c, struct gl_step *st, uint16_t pool)
{
    struct gl_slot_hold *h = gl_pool_alloc(&c->mem, sizeof(*h));

    h->step_number = st->number;
    h->slots = gl_step_spec_of(st)->slots;
    h->pool = pool;
    gl_list_push(&st->job->holds, &h->link);
    st->hold = h;
    return h;
}

static void hold_free(struct gl_core *c, struct gl_slot_hold *h)
{
    GL_ASSERT(c->pools[h->pool].in_use >= h->slots);
    c->pools[h->pool].in_use -= h->slots;
    if (GL_PLANT(5) && c->pools[h->pool].in_use >= h->slots) {
        c->pools[h->pool].in_use -= h->slots; /* planted: given back twice */
    }
    gl_list_remove(&h->link);
    gl_pool_free(&c->mem, h, sizeof(*h));
}

/* The step has its slots: they pass from the queue's entry to the attempt. */
static void grant(struct gl_core *c, struct gl_step *st)
{
    struct gl_wait *w = st->wait;
    uint16_t pool = w->pool;

    GL_ASSERT(w->granted);
    wait_free(c, w);
    (void)hold_new(c, st, pool); /* kept in st->hold */
    gl_ledger_start(c, st);
}

/* Its job is not in memory: the slots wait for it. If it is in memory after all, the entry is left
 * over from a decision that was never committed. */
static void grant_cold(struct gl_core *c, struct gl_wait *w)
{
    struct gl_slot_grant *g;

    if (gl_load_job(c, (gl_str){.p = w->key, .n = GL_ULID_BYTES})->memory == GL_MEM_HOT) {
        GL_MARK(c->trace, "slots.entry_left_over");
        c->pools[w->pool].in_use -= w->slots;
        wait_free(c, w);
        return;
    }
    GL_MARK(c->trace, "slots.granted_to_cold_job");
    g = gl_pool_alloc(&c->mem, sizeof(*g));
    g->wait = w;
    gl_list_push(&c->granted, &g->link);
}

static void pump_pool(struct gl_core *c, struct gl_core_pool_state *p)
{
    for (struct gl_heap_item *top; (top = gl_heap_top(&p->queue)) != NULL;) {
        struct gl_wait *w = GL_CONTAINER(top, struct gl_wait, place);

        if (p->in_use > p->slots || w->slots > p->slots - p->in_use) {
            return;
        }
        gl_heap_remove(&p->queue, &w->place);
        p->in_use += w->slots;
        w->granted = true;
        if (w->step != NULL) {
            grant(c, w->step);
        } else {
            grant_cold(c, w);
        }
    }
}

void gl_slots_pump(struct gl_core *c)
{
    if (!c->exec_up || c->stopping || !c->adoption_over) {
        return;
    }
    for (size_t i = 0; i < c->pools_n; i++) {
        pump_pool(c, &c->pools[i]);
    }
}

void gl_slots_take(struct gl_core *c, struct gl_step *st)
{
    int pool = find_pool(c, gl_step_spec_of(st)->pool);

    GL_ASSERT(st->hold == NULL);
    for (struct gl_link *l = st->job->holds.next; l != &st->job->holds; l = l->next) {
        struct gl_slot_hold *h = GL_CONTAINER(l, struct gl_slot_hold, link);

        if (h->step_number == st->number) {
            st->hold = h;
            return;
        }
    }
    if (pool >= 0) { /* a pool that has been configured away counts nothing */
        struct gl_slot_hold *h = hold_new(c, st, (uint16_t)pool);

        c->pools[pool].in_use += h->slots;
    }
}

bool gl_slots_are_over(const struct gl_core *c, const struct gl_step *st)
{
    const struct gl_core_pool_state *p = st->hold != NULL ? &c->pools[st->hold->pool] : NULL;

    return p != NULL && p->in_use > p->slots;
}

void gl_slots_return(struct gl_core *c, struct gl_step *st)
{
    if (st->hold != NULL) {
        hold_free(c, st->hold);
        st->hold = NULL;
    }
}

static bool is_claimed(struct gl_job *j, const struct gl_slot_hold *h)
{
    const struct gl_step *st = j->spec != NULL ? gl_step_find(j, h->step_number) : NULL;

    return st != NULL && st->hold == h;
}

void gl_slots_settle(struct gl_core *c, struct gl_job *j)
{
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
            grant(c, w->step);
        } else {
            c->pools[w->pool].in_use -= w->slots;
            wait_free(c, w);
        }
    }
}

void gl_slots_release_all(struct gl_core *c, struct gl_job *j)
{
    for (struct gl_link *l; (l = gl_list_first(&j->holds)) != NULL;) {
        hold_free(c, GL_CONTAINER(l, struct gl_slot_hold, link));
    }
}
