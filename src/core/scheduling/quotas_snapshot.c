/* quotas_snapshot.c - saves limits, and the groups that wait for them, in a snapshot of the core
 * and restores them. Limits come first, then groups, then the groups that lack keys (kind
 * "shorted"), in the order in which those are served. */
#include "base/check.h"
#include "base/json.h"
#include "core/scheduling/quotas_parts.h"
#include "core/scheduling/seats.h"
#include "core/snapshot.h"

struct saved_limit {
    gl_str key;
    bool is_rate, is_timed; /* is_timed: in quotas->timers */
    uint32_t max;
    gl_ms every_ms, next_at;
    uint64_t rev;
    gl_str seats;
};

#define F(member, type) GL_FIELD(saved_limit, member, type, 0, "")

static const struct gl_field limit_fields[] = {
    F(key, STR),      F(is_rate, BOOL), F(is_timed, BOOL), F(max, U32),
    F(every_ms, I64), F(next_at, I64),  F(rev, U64),       F(seats, STR),
};
#undef F

GL_SNAPSHOT_SCHEMA(limit);

struct saved_group {
    gl_str key, concurrency, rate;
    uint32_t pool;
};

#define F(member, type) GL_FIELD(saved_group, member, type, 0, "")

static const struct gl_field group_fields[] = {
    F(key, STR),
    F(concurrency, STR),
    F(rate, STR),
    F(pool, U32),
};
#undef F

GL_SNAPSHOT_SCHEMA(group);

static gl_str key_of(const struct gl_quota_side *side)
{
    GL_ASSERT(GL_IMPLIES(side->limit != NULL, side->limit->key.n > 0));
    return side->limit != NULL ? side->limit->key : (gl_str){0};
}

static void save_group(const struct gl_quota_group *g, const char *kind, struct gl_buf *out)
{
    struct saved_group s = {.key = g->key,
                            .concurrency = key_of(&g->concurrency),
                            .rate = key_of(&g->rate),
                            .pool = g->pool};

    GL_ASSERT(g->key.n > 0);
    gl_snapshot_put(out, kind, &group_schema, &s);
}

void gl_quotas_save(const struct gl_core *c, struct gl_buf *out)
{
    const struct gl_quotas *all = c->quotas;
    const struct gl_quota_group *g;
    const struct gl_quota *l;

    for (size_t i = 0; (l = gl_map_next(&all->keys, &i)) != NULL;) {
        GL_ASSERT(l->others_n <= l->seats_n);
        struct saved_limit s = {.key = l->key,
                                .is_rate = l->is_rate,
                                .is_timed = gl_heap_has(&l->timer),
                                .max = l->max,
                                .every_ms = l->every_ms,
                                .next_at = l->next_at,
                                .rev = l->rev,
                                .seats = {.p = l->seats, .n = l->seats_n}};

        gl_snapshot_put(out, "limit", &limit_schema, &s);
    }
    for (size_t i = 0; (g = gl_map_next(&all->groups, &i)) != NULL;) {
        save_group(g, "group", out);
    }
    for (const struct gl_link *k = all->lacking_keys.next; k != &all->lacking_keys; k = k->next) {
        save_group(GL_CONTAINER(k, struct gl_quota_group, lacking_keys), "shorted", out);
    }
}

int gl_quotas_restore_limit(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct saved_limit s;
    struct gl_quota *limit;
    int rc = gl_snapshot_get(l, &limit_schema, &s);

    if (rc != 0) {
        return rc;
    }
    if (s.key.n < 2 || gl_map_find(&c->quotas->keys, s.key) != NULL) {
        return gl_snapshot_bad(l, "a limit has no key, or a duplicate one");
    }
    limit = gl_quotas_limit_new(c, s.key, s.is_rate);
    limit->max = s.max;
    limit->every_ms = s.every_ms;
    limit->next_at = s.next_at;
    limit->rev = s.rev;
    gl_seats_restore(c, limit, s.seats);
    if (s.is_timed) {
        gl_heap_push(&c->quotas->timers, &limit->timer);
        c->quotas->active_n++;
    }
    GL_ASSERT(c->quotas->active_n <= gl_map_count(&c->quotas->keys));
    GL_ASSERT(gl_heap_has(&limit->timer) == s.is_timed);
    GL_ASSERT(limit->others_n <= limit->seats_n);
    return 0;
}

int gl_quotas_restore_group(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct saved_group s;
    struct gl_quota *a, *b;
    int rc = gl_snapshot_get(l, &group_schema, &s);

    if (rc != 0) {
        return rc;
    }
    a = gl_map_find(&c->quotas->keys, s.concurrency);
    b = gl_map_find(&c->quotas->keys, s.rate);
    if (s.key.n == 0 || gl_quotas_find(c, s.key) != NULL || s.pool >= c->pools_n ||
        (a == NULL) != (s.concurrency.n == 0) || (b == NULL) != (s.rate.n == 0) ||
        (a == NULL && b == NULL)) {
        return gl_snapshot_bad(l, "a group of waits has no limit, or an unknown one");
    }
    (void)gl_quotas_group_new(c, s.key, a, b, (uint8_t)s.pool);
    return 0;
}

int gl_quotas_restore_lacking_keys(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct saved_group s;
    struct gl_quota_group *g;
    int rc = gl_snapshot_get(l, &group_schema, &s);

    if (rc != 0) {
        return rc;
    }
    g = gl_quotas_find(c, s.key);
    if (g == NULL || !gl_list_empty(&g->lacking_keys)) {
        return gl_snapshot_bad(l, "an unknown group lacks keys");
    }
    gl_list_push(&c->quotas->lacking_keys, &g->lacking_keys);
    GL_ASSERT(!gl_list_empty(&g->lacking_keys));
    GL_ASSERT(!gl_list_empty(&c->quotas->lacking_keys));
    return 0;
}
