/* taken_checks.c - compares taken attempts with their records, and removes entries of the indexes
 * that have no meaning any more. */
#include "base/check.h"
#include "core/cluster/taken_parts.h"
#include "core/component.h"
#include "core/recovery/attempts.h"

enum {
    CHECK_MAX = 256, /* records checked at a time */
    CLEAN_MAX = 64,  /* entries removed at a time */
    RETRY_MS = 500,
};

/* ---- checking ---- */

void gl_taken_send_checks(struct gl_core *c)
{
    struct gl_key keys[CHECK_MAX];
    static const struct gl_core_view stamps = {.type = GL_VIEW_STAMPS};
    size_t n = 0;

    GL_ASSERT(c->taken.check_call == 0);
    for (struct gl_heap_item *top;
         n < CHECK_MAX && (top = gl_heap_top(&c->taken.checks)) != NULL;) {
        struct gl_taken *t = GL_CONTAINER(top, struct gl_taken, check);

        if (t->check_at > c->now) {
            break;
        }
        if (t->call != 0) { /* a commit will show more */
            gl_taken_set_check(c, t, c->now + RETRY_MS);
            continue;
        }
        keys[n++] = (struct gl_key){.kind = GL_S("taken"), .id = t->id};
        gl_taken_set_check(c, t, c->now + GL_TAKEN_CONSUMED_LATER_MS);
    }
    GL_ASSERT(n <= CHECK_MAX);
    if (n > 0) {
        c->taken.check_call = gl_component_view(c, GL_COMPONENT_TAKEN, keys, n, &stamps);
        GL_ASSERT(c->taken.check_call == c->last_call);
    }
}

static void on_check(struct gl_core *c, const struct gl_event_record *r)
{
    gl_str attempt, job = gl_str_cut(r->id, '/', &attempt);
    struct gl_taken *t = gl_taken_find(c, job, attempt);

    if (t == NULL || t->call != 0 || t->phase < GL_TAKEN_RUNNING_HERE || t->is_unwanted) {
        return;
    }
    GL_ASSERT(t->rev > 0);
    if (r->rev == 0) {
        gl_taken_on_gone(c, t);
        return;
    }
    /* Its revision is ours alone to raise: if it is another one, an outcome was not what it seemed,
     * or the store has lost a write. */
    if ((r->rev != t->rev || r->damaged) && t->is_inherited) {
        gl_taken_read_again(c);
        gl_taken_drop(c, t);
        return;
    }
    if (r->rev != t->rev || r->damaged || (t->phase == GL_TAKEN_OVER && !t->is_written)) {
        GL_MARK(c->trace, "taken.written_again");
        t->rev = r->rev;
        gl_taken_write(c, t);
    }
    gl_taken_set_check(
        c, t,
        c->now + (t->phase == GL_TAKEN_OVER ? GL_TAKEN_CONSUMED_LATER_MS : GL_TAKEN_CHECK_MS));
    GL_ASSERT(t->check_at > c->now);
    GL_ASSERT(gl_heap_has(&t->check));
}

void gl_taken_on_checks(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_record *records = ev->answer.records.items;

    GL_ASSERT(ev->answer.number == c->taken.check_call);
    c->taken.check_call = 0;
    for (size_t i = 0; ev->answer.code == 0 && i < ev->answer.records.n; i++) {
        on_check(c, &records[i]);
    }
}

void gl_taken_on_changed(struct gl_core *c)
{
    struct gl_taken *t;

    gl_taken_read_again(c); /* records may have come back, ... */
    for (size_t i = 0; (t = gl_map_next(&c->taken.all, &i)) != NULL;) {
        if (t->phase >= GL_TAKEN_RUNNING_HERE && !t->is_unwanted) { /* ... or be gone, or older */
            gl_taken_set_check(c, t, c->now);
        }
    }
}

/* ---- entries without a meaning ---- */

/* The key of the step that an entry of the offers is about. */
static gl_str step_of(const struct gl_taken_entry *e, struct gl_arena *a)
{
    gl_str attempt, job = gl_str_cut(e->id, '/', &attempt);

    return gl_str_fmt(a, "%.*s/%.*s", GL_STR_ARG(job), GL_STR_ARG(gl_attempts_step_of(attempt)));
}

void gl_taken_send_clean(struct gl_core *c)
{
    struct gl_arena *a = c->out->arena;
    struct gl_guard guards[CLEAN_MAX];
    struct gl_write writes[CLEAN_MAX];
    size_t n = 0, guards_n = 0;

    GL_ASSERT(c->taken.clean_call == 0);
    for (struct gl_link *l; n < CLEAN_MAX && (l = gl_list_first(&c->taken.stale)) != NULL;) {
        struct gl_taken_entry *e = GL_CONTAINER(l, struct gl_taken_entry, link);

        if (!e->is_taken && e->rev > 0) { /* a new request to stop it must not be removed */
            guards[guards_n++] = (struct gl_guard){
                .type = GL_GUARD_AT, .kind = GL_S("step"), .id = step_of(e, a), .rev = e->rev};
        }
        writes[n++] =
            (struct gl_write){.type = GL_WRITE_UNINDEX,
                              .kind = gl_offer_index(a, e->is_taken ? "taken" : "offers", c->node),
                              .id = gl_str_dup(a, e->id),
                              .score = e->score};
        gl_list_remove(&e->link);
        gl_core_disown(c, &gl_taken_entry_schema, e);
        gl_pool_free(&c->mem, e, sizeof(*e));
    }
    GL_ASSERT(n > 0);
    GL_ASSERT(n <= CLEAN_MAX);
    c->taken.clean_call =
        gl_component_commit(c, GL_COMPONENT_TAKEN, gl_component_tx(c, guards, guards_n, writes, n));
    GL_ASSERT(c->taken.clean_call == c->last_call);
}

/* ---- the owner's token ---- */

void gl_taken_ask_token(struct gl_core *c, const struct gl_taken_job *j)
{
    static const struct gl_core_view stamps = {.type = GL_VIEW_STAMPS};
    struct gl_key key = {.kind = GL_S("job"), .id = j->id};

    GL_ASSERT(j->attempts_n > 0);
    if (c->taken.token_call == 0 && gl_components_are_on(c)) { /* else the timer asks again */
        c->taken.token_call = gl_component_view(c, GL_COMPONENT_TAKEN, &key, 1, &stamps);
    }
}

void gl_taken_on_token(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_record *r = ev->answer.records.items;
    struct gl_taken_job *j;
    struct gl_taken *t;

    GL_ASSERT(ev->answer.number == c->taken.token_call);
    c->taken.token_call = 0;
    j = ev->answer.code == 0 && ev->answer.records.n > 0 ? gl_map_find(&c->taken.jobs, r->id)
                                                         : NULL;
    if (j == NULL || r->token <= j->token || r->token > INT64_MAX) {
        return;
    }
    GL_MARK(c->trace, "taken.token_raised");
    j->token = r->token;
    for (size_t i = 0; (t = gl_map_next(&c->taken.all, &i)) != NULL;) {
        if (t->job == j && t->phase == GL_TAKEN_RUNNING_HERE && t->starting == 0) {
            gl_taken_attach(c, t);
        }
    }
}
