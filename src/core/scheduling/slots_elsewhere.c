/* slots_elsewhere.c - steps of this node's jobs that start on other nodes, and attempts of other
 * nodes' jobs that start here. */
#include "base/check.h"
#include "core/cluster/other_nodes.h"
#include "core/flow/ledger.h"
#include "core/recovery/load.h"
#include "core/scheduling/placement.h"
#include "core/scheduling/quotas.h"
#include "core/scheduling/slots_parts.h"

/* ---- attempts of other nodes' jobs ---- */

/* The entry of an offered attempt and that of a step of our own have different keys: this node may
 * become the owner of the job while it still has the offer. */
#define OFFERED_PLACE 0x80000000u

struct gl_wait *gl_slots_queue_offered(struct gl_core *c, struct gl_taken *t, gl_str job,
                                       uint32_t place, int pool, uint32_t slots, int64_t rank)
{
    struct gl_offered_wait *o;

    GL_ASSERT(pool >= 0 && (size_t)pool < c->pools_n);
    GL_ASSERT(slots > 0 && slots <= c->pools[pool].slots);
    GL_ASSERT((place & OFFERED_PLACE) == 0);
    if (gl_slots_find(c, job, place | OFFERED_PLACE) != NULL) {
        return NULL; /* an offer of an earlier attempt of the step */
    }
    o = gl_slots_offered_new(c);
    o->taken = t;
    gl_slots_make_key(o->wait.key, job, place | OFFERED_PLACE);
    o->wait.pool = (uint8_t)pool;
    o->wait.where = GL_WHERE_HERE;
    o->wait.slots = slots;
    o->wait.rank = rank;
    o->wait.seq = ++c->wait_seq;
    gl_map_add(&c->waits, gl_slots_key_of(&o->wait), &o->wait);
    gl_heap_push(gl_slots_queue_of(c, &o->wait), &o->wait.place);
    GL_ASSERT(gl_heap_has(&o->wait.place));
    GL_ASSERT(o->wait.state == GL_WAIT_QUEUED);
    return &o->wait;
}

struct gl_wait *gl_slots_find_offered(const struct gl_core *c, gl_str job, uint32_t place)
{
    return gl_slots_find(c, job, place | OFFERED_PLACE);
}

void gl_slots_unqueue_offered(struct gl_core *c, struct gl_wait *w)
{
    GL_ASSERT(w->slots > 0);
    GL_ASSERT(gl_heap_has(&w->place));
    GL_ASSERT(w->offered);
    GL_ASSERT(w->state == GL_WAIT_QUEUED);
    gl_slots_wait_free(c, w);
}

void gl_slots_take_up(struct gl_core *c, int pool, uint32_t slots)
{
    GL_ASSERT(pool >= -1);
    GL_ASSERT(pool < (int)c->pools_n);
    if (pool >= 0) {
        c->pools[pool].in_use += slots;
        GL_ASSERT(c->pools[pool].in_use >= slots);
    }
}

void gl_slots_give_back(struct gl_core *c, int pool, uint32_t slots)
{
    GL_ASSERT(pool >= -1);
    GL_ASSERT(pool < (int)c->pools_n);
    if (pool >= 0) {
        GL_ASSERT(c->pools[pool].in_use >= slots);
        c->pools[pool].in_use -= slots;
    }
}

/* ---- on other nodes ---- */

bool gl_slots_may_queue_away(struct gl_core *c, const struct gl_step *st)
{
    return gl_other_nodes_may_run(c, st) && !c->others.is_old &&
           gl_slots_add_pool(c, gl_step_spec_of(st)->pool) >= 0;
}

bool gl_slots_have_room(const struct gl_core *c, const struct gl_step_spec *spec)
{
    int pool = gl_slots_find_pool(c, spec->pool);
    const struct gl_core_pool_state *p = pool >= 0 ? &c->pools[pool] : NULL;

    return p != NULL && c->exec_up && gl_slots_possible(c, spec, NULL) &&
           gl_slots_waiting(p) == 0 && p->in_use < p->slots && p->slots - p->in_use >= spec->slots;
}

/* The step runs on another node: it holds no slots here, only its limits. */
static void start_elsewhere(struct gl_core *c, struct gl_wait *w, const struct gl_place_node *node)
{
    struct gl_step *st = w->step;
    struct gl_slot_hold *h;

    GL_ASSERT(st->r.status == GL_STEP_QUEUED);
    GL_ASSERT(st->wait == w);
    GL_ASSERT(!w->offered);
    GL_ASSERT(w->where != GL_WHERE_HERE);
    GL_ASSERT(!gl_slots_has_already(w));
    GL_ASSERT(node->id.n > 0);
    GL_ASSERT(node->takes);
    GL_ASSERT(w->state == GL_WAIT_QUEUED || w->state == GL_WAIT_CALLED);
    gl_heap_remove(gl_slots_queue_of(c, w), &w->place);
    if (w->limited) {
        gl_quotas_reserve(c, w);
    }
    w->state = GL_WAIT_GRANTED;
    h = gl_slots_hold_new(c, st, -1);
    GL_ASSERT(h->pool == -1);
    if (w->limited) {
        gl_quotas_on_start(c, w, h);
    }
    gl_slots_wait_free(c, w);
    GL_MARK(c->trace, "slots.elsewhere");
    gl_ledger_start(c, st, node);
}

/* The first of the steps that may run elsewhere. */
static struct gl_wait *next_elsewhere(struct gl_core *c, struct gl_core_pool_state *p)
{
    struct gl_wait *away = GL_PLANT(114) ? NULL /* planted: only what this node could run, too */
                                         : gl_slots_head_of(c, &p->queues[GL_WHERE_AWAY]);
    struct gl_wait *any = gl_slots_head_of(c, &p->queues[GL_WHERE_ANY]);

    return away == NULL || (any != NULL && gl_slots_before(&any->place, &away->place)) ? any : away;
}

/* The entry of a step whose job is not in memory: loads the job. True: the entry is left over from
 * a decision that never committed, or the job is not ours any more. */
static bool is_left_over(struct gl_core *c, struct gl_wait *w)
{
    gl_str id = {.p = w->key, .n = GL_ULID_BYTES};
    const struct gl_job *j = gl_job_find(c, id);

    GL_ASSERT(w->step == NULL);
    GL_ASSERT(!w->offered);
    GL_ASSERT(w->where != GL_WHERE_HERE);
    if (j == NULL && !w->is_loading) {
        w->is_loading = true;
        (void)gl_load_job(c, id);
        return false;
    }
    return j == NULL || j->memory == GL_MEM_HOT;
}

enum { ASIDE_MAX = 64 }; /* steps that no node can run, per pass and pool */

/* Offers the first step of the pool. False: the rest of the queue waits behind it. One that no
 * other node can run, whatever is free there, is set aside. */
static bool place_first(struct gl_core *c, struct gl_core_pool_state *p, struct gl_wait *w,
                        struct gl_wait **aside, size_t *aside_n)
{
    enum gl_place_result result;
    struct gl_place_node *node;

    GL_ASSERT(w->where != GL_WHERE_HERE);
    if (w->step == NULL) {
        if (!gl_other_nodes_have_room(c, p->name, w->slots, NULL, (gl_str){0}) ||
            !is_left_over(c, w)) {
            return false;
        }
        gl_slots_wait_free(c, w);
        return true;
    }
    node = gl_other_nodes_choose(c, w->step, w->where == GL_WHERE_AWAY, &result);
    if (node != NULL) {
        start_elsewhere(c, w, node);
        return true;
    }
    if (result <= GL_PLACE_BUSY || *aside_n == ASIDE_MAX) {
        return false;
    }
    gl_heap_remove(gl_slots_queue_of(c, w), &w->place);
    aside[(*aside_n)++] = w;
    GL_ASSERT(*aside_n <= ASIDE_MAX);
    return true;
}

static void place_pool(struct gl_core *c, struct gl_core_pool_state *p)
{
    struct gl_wait *aside[ASIDE_MAX];
    size_t aside_n = 0;

    for (struct gl_wait *w; (w = next_elsewhere(c, p)) != NULL;) {
        if (!place_first(c, p, w, aside, &aside_n)) {
            break;
        }
    }
    for (size_t i = 0; i < aside_n; i++) {
        GL_ASSERT(!gl_heap_has(&aside[i]->place));
        gl_heap_push(gl_slots_queue_of(c, aside[i]), &aside[i]->place);
    }
}

void gl_slots_place_elsewhere(struct gl_core *c)
{
    GL_ASSERT(c->adoption_over);
    GL_ASSERT(!c->stopping);
    GL_ASSERT(!c->passive);
    if (!gl_other_nodes_are_placing(c)) {
        return;
    }
    for (size_t i = 0; i < c->pools_n; i++) {
        place_pool(c, &c->pools[i]);
    }
}
