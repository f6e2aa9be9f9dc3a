/* check_bodies.c - a large body exists, complete and as it was sent, in every committed state in
 * which a letter or a dead letter names it. In a job that has never had a dead letter, it is
 * removed with the last message that names it. */
#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"
#include "model/bundle/agent.h"
#include "sim/sim_checks.h"
#include "sim/sim_messages.h"

enum { KEY_BYTES = 64 };

struct body { /* "<job>/<number>" */
    struct gl_link touched;
    gl_str job; /* owned by the fact */
    struct gl_body_ref ref;
    char sha256[72];
    int named_n; /* by how many letters and dead letters it is named */
    uint64_t pieces_n, bytes;
    bool is_read; /* its content matches its name */
    char key[KEY_BYTES];
};

struct had_dead {
    char job[GL_ULID_BYTES + 1];
};

struct bodies_state {
    struct gl_map bodies, had_dead;
    struct gl_link touched;
    bool is_made;
};

static void make(struct bodies_state *s)
{
    if (!s->is_made) {
        gl_map_init(&s->bodies);
        gl_map_init(&s->had_dead);
        gl_list_init(&s->touched);
        s->is_made = true;
    }
}

static struct body *touch(struct bodies_state *s, const struct sim_fact_job *j, uint64_t number)
{
    char key[KEY_BYTES];
    (void)snprintf(key, sizeof(key), "%.*s/%012llu", GL_STR_ARG(j->id), (unsigned long long)number);
    struct body *b = gl_map_find(&s->bodies, gl_str_of(key));
    if (b == NULL) {
        b = gl_mem_alloc(sizeof(*b));
        memcpy(b->key, key, sizeof(key));
        b->job = j->id;
        gl_list_init(&b->touched);
        gl_map_add(&s->bodies, gl_str_of(b->key), b);
    }
    gl_list_remove(&b->touched);
    gl_list_push(&s->touched, &b->touched);
    return b;
}

/* A queued message is added (by 1) or removed (by -1), or stays unchanged. */
static void name(struct sim_checks *c, struct bodies_state *s, const struct sim_change *ch,
                 const struct gl_record *r, int by)
{
    struct gl_message m = {0};
    struct gl_body_ref ref = {0};
    struct gl_json json;
    uint64_t number = 0;
    bool has_ref = false;
    if (r->rev == 0 ||
        !sim_messages_read(c->disk, r->id, r->value, &c->arena, &m, &has_ref, &ref)) {
        return;
    }
    if (gl_str_is(r->kind, "letter") && gl_json_parse(&json, gl_str_dup(&c->arena, r->value),
                                                      GL_RECORD_BYTES_MAX, &c->arena, NULL) == 0) {
        gl_jnode n = gl_json_get(&json, gl_json_root(&json), "body");
        if ((n != NULL && !gl_json_u64(&json, n, &number)) ||
            number != (has_ref ? ref.message_number : 0)) {
            sim_world_fail(c->world, "bodies: message %.*s has body %llu, and its text names %llu",
                           GL_STR_ARG(r->id), (unsigned long long)number,
                           (unsigned long long)(has_ref ? ref.message_number : 0));
        }
    }
    if (has_ref) {
        struct body *b = touch(s, ch->job, ref.message_number);
        b->named_n += by;
        b->ref = ref;
        (void)snprintf(b->sha256, sizeof(b->sha256), "%.*s", GL_STR_ARG(ref.sha256));
        b->ref.sha256 = gl_str_of(b->sha256);
    }
}

static void on_piece(struct bodies_state *s, const struct sim_change *ch,
                     const struct gl_record *before, const struct gl_record *after)
{
    gl_str rest, piece;
    uint64_t number = 0;
    (void)gl_str_cut(before->id, '/', &rest);
    if (!gl_str_u64(gl_str_cut(rest, '/', &piece), &number)) {
        return;
    }
    struct body *b = touch(s, ch->job, number);
    b->pieces_n += (after->rev != 0) - (uint64_t)(before->rev != 0);
    b->bytes += after->value.n - before->value.n;
    b->is_read = false;
}

static void on_record(struct sim_checks *c, void *me, const struct sim_change *ch,
                      const struct gl_record *before, const struct gl_record *after)
{
    struct bodies_state *s = me;
    if (ch->job->flow->bundle == NULL) {
        return;
    }
    make(s);
    bool is_dead = gl_str_is(before->kind, "deadletter");
    if (is_dead && gl_map_find(&s->had_dead, ch->job->id) == NULL) {
        struct had_dead *d = gl_mem_alloc(sizeof(*d));
        (void)snprintf(d->job, sizeof(d->job), "%.*s", GL_STR_ARG(ch->job->id));
        gl_map_add(&s->had_dead, gl_str_of(d->job), d);
    }
    if (gl_str_is(before->kind, "body")) {
        on_piece(s, ch, before, after);
    } else if (is_dead || gl_str_is(before->kind, "letter")) {
        name(c, s, ch, before, -1);
        name(c, s, ch, after, 1);
    }
}

static void judge(struct sim_checks *c, struct bodies_state *s, struct body *b)
{
    gl_str text;
    if (b->named_n > 0 &&
        (b->pieces_n != gl_message_pieces(b->ref.bytes) || b->bytes != b->ref.bytes)) {
        sim_world_fail(c->world, "bodies: %s, which %d messages name, has %llu of %llu bytes",
                       b->key, b->named_n, (unsigned long long)b->bytes,
                       (unsigned long long)b->ref.bytes);
    } else if (b->named_n > 0 && !b->is_read &&
               !sim_messages_body(c->disk, b->job, &b->ref, &c->arena, &text)) {
        sim_world_fail(c->world, "bodies: %s differs from what its messages name", b->key);
    } else if (b->named_n == 0 && b->pieces_n > 0 && gl_map_find(&s->had_dead, b->job) == NULL) {
        sim_world_fail(c->world, "bodies: %s is left, and no message names it", b->key);
    }
    b->is_read = true;
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    struct bodies_state *s = me;
    if (ch->job->flow->bundle == NULL || ch->step != NULL) {
        return;
    }
    make(s);
    for (struct gl_link *l; (l = gl_list_first(&s->touched)) != NULL;) {
        struct body *b = GL_CONTAINER(l, struct body, touched);
        gl_list_remove(l);
        judge(c, s, b);
    }
}

/* Its removal has begun, and will continue. */
static bool is_going(struct sim_checks *c, gl_str job)
{
    struct gl_range begun = {.index = GL_S("ended"),
                             .score_min = GL_ENDED_BEGUN,
                             .score_max = GL_ENDED_BEGUN,
                             .limit = SIZE_MAX};
    size_t n = 0;
    const struct gl_index_entry *e = sim_disk_range(c->disk, SIM_CONTEXT, &begun, &c->arena, &n);
    for (size_t i = 0; i < n; i++) {
        if (gl_str_eq(e[i].id, job)) {
            return true;
        }
    }
    return false;
}

/* The rest of a removed job follows it. */
static void at_end(struct sim_checks *c, void *me)
{
    const struct sim_sorted *all = sim_disk_kind(c->disk, SIM_CONTEXT, GL_S("body"));
    (void)me;
    for (size_t i = 0; all != NULL && i < all->n; i++) {
        gl_str rest, id = gl_str_cut(all->rows[i]->id, '/', &rest);
        const struct sim_fact_job *j = sim_facts_job(&c->facts, id);
        if ((j == NULL || j->removed) && !is_going(c, id)) {
            sim_world_fail(c->world, "bodies: %.*s is left of a removed job",
                           GL_STR_ARG(all->rows[i]->id));
        }
    }
}

static void done(void *me)
{
    struct bodies_state *s = me;
    void *x;
    for (size_t i = 0; s->is_made && (x = gl_map_next(&s->bodies, &i)) != NULL;) {
        gl_mem_free(x);
    }
    for (size_t i = 0; s->is_made && (x = gl_map_next(&s->had_dead, &i)) != NULL;) {
        gl_mem_free(x);
    }
    if (s->is_made) {
        gl_map_done(&s->bodies);
        gl_map_done(&s->had_dead);
    }
}

const struct sim_check sim_check_bodies = {.name = "bodies",
                                           .state_bytes = sizeof(struct bodies_state),
                                           .on_change = on_change,
                                           .on_record = on_record,
                                           .at_end = at_end,
                                           .done = done};
