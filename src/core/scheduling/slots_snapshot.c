/* slots_snapshot.c - the waits and holds of a core as lines of its snapshot. */
#include "base/check.h"
#include "core/scheduling/quotas.h"
#include "core/scheduling/slots_parts.h"
#include "core/snapshot.h"

static const char *const state_words[] = {"queued", "held", "called", "granted", NULL};
static const char *const where_words[] = {"any", "here", "away", NULL};

struct saved_wait {
    gl_str job, group; /* group "": no limit */
    uint32_t number, slots, pool;
    int64_t rank;
    uint64_t seq;
    uint8_t state, where;
    bool has_step, offered, is_loading;
};

#define F(member, type) GL_FIELD(saved_wait, member, type, 0, "")

static const struct gl_field wait_fields[] = {
    F(job, STR),       F(group, STR),
    F(number, U32),    F(slots, U32),
    F(pool, U32),      F(rank, I64),
    F(seq, U64),       GL_FIELD_ENUM(saved_wait, state, state_words, 0, ""),
    F(has_step, BOOL), GL_FIELD_ENUM(saved_wait, where, where_words, 0, ""),
    F(offered, BOOL),  F(is_loading, BOOL),
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
                           .where = w->where,
                           .offered = w->offered,
                           .is_loading = w->is_loading,
                           .has_step = w->step != NULL};

    GL_ASSERT(w->state <= GL_WAIT_GRANTED);
    GL_ASSERT(w->where < GL_WHERE_COUNT);
    GL_ASSERT(GL_IMPLIES(w->offered, w->step == NULL));
    GL_ASSERT(GL_IMPLIES(w->step != NULL, w->step->wait == w));
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

        GL_ASSERT(s.state == GL_WAIT_GRANTED);
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
        gl_heap_push(gl_slots_queue_of(c, w), &w->place);
    } else if (w->state == GL_WAIT_GRANTED) {
        c->pools[w->pool].in_use += w->slots;
    }
    if (st != NULL && st->wait == NULL && gl_slots_has_already(w) == (st->hold != NULL)) {
        w->step = st;
        st->wait = w;
    }
    GL_ASSERT(GL_IMPLIES(w->step != NULL, w->step->wait == w));
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
        gl_slots_find(c, s.job, s.number) != NULL || (s.state == GL_WAIT_HELD && s.group.n == 0) ||
        (s.offered && (s.group.n > 0 || s.has_step || s.state != GL_WAIT_QUEUED))) {
        return gl_snapshot_bad(l, "a wait is for no step or no pool");
    }
    if (s.group.n > 0) {
        group = gl_quotas_find(c, s.group);
        if (group == NULL || group->pool != s.pool) {
            return gl_snapshot_bad(l, "a wait is for an unknown limit");
        }
    }
    w = s.offered ? &gl_slots_offered_new(c)->wait : gl_slots_wait_new(c, group);
    GL_ASSERT(w->limited == (group != NULL && !s.offered));
    gl_slots_make_key(w->key, s.job, s.number);
    w->slots = s.slots;
    w->pool = (uint8_t)s.pool;
    w->rank = s.rank;
    w->seq = s.seq;
    w->state = s.state & 0x7u;
    w->where = s.where & 0x3u;
    w->is_loading = s.is_loading;
    gl_map_add(&c->waits, gl_slots_key_of(w), w);
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

        GL_ASSERT(h->pool >= -1);
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
