/* reclaim.c - marks a page of claims whose leases are over, each in a transaction of its own.
 *
 * The index "claims" has an entry for each claim that is held, at the end of its lease. An entry
 * may be stale, so the records are read, and each decides for itself (gl_claim_decide). A claim
 * that is renewed or acquired in the meantime fails its guard, and is simply not marked. */
#include "core/claims/claims_parts.h"
#include "core/component.h"

#define F(member, type) GL_FIELD(gl_claim_change, member, type, 0, "")

static const struct gl_field change_fields[] = {
    F(key, STR), F(score, I64), F(call, U64), F(shown, STR), F(is_done, BOOL),
};
#undef F

const struct gl_schema gl_claim_change_schema = {.name = "change",
                                                 .bytes = sizeof(struct gl_claim_change),
                                                 .fields = change_fields,
                                                 .fields_n = GL_COUNT(change_fields)};

static struct gl_claim_change *change_of(struct gl_link *l)
{
    return GL_CONTAINER(l, struct gl_claim_change, link);
}

void gl_reclaim_free_changes(struct gl_core *c, struct gl_claim_op *r)
{
    for (struct gl_link *l; (l = gl_list_first(&r->changes)) != NULL;) {
        struct gl_claim_change *x = change_of(l);

        gl_list_remove(l);
        gl_core_disown(c, &gl_claim_change_schema, x);
        gl_pool_free(&c->mem, x, sizeof(*x));
    }
    GL_ASSERT(gl_list_empty(&r->changes));
}

void gl_reclaim_begin(struct gl_core *c, struct gl_claim_op *r)
{
    struct gl_range range = {.index = GL_S("claims"), .score_max = r->now, .limit = r->limit};

    GL_ASSERT(r->act == GL_CLAIM_RECLAIM);
    GL_ASSERT(r->phase == GL_CLAIM_READING);
    GL_ASSERT(r->time_call == 0 && r->record_call == 0);
    GL_ASSERT(gl_list_empty(&r->changes));
    r->phase = GL_CLAIM_LISTING;
    r->record_call = gl_component_range(c, GL_COMPONENT_CLAIMS, &range);
}

static void write_changes(struct gl_claim_op *r, struct gl_jw *w, size_t *ret_n)
{
    *ret_n = 0;
    for (struct gl_link *l = r->changes.next; l != &r->changes; l = l->next) {
        GL_ASSERT(GL_IMPLIES(change_of(l)->is_done, change_of(l)->shown.n > 0));
        if (change_of(l)->is_done) {
            gl_jw_raw(w, change_of(l)->shown);
        }
        (*ret_n)++;
    }
}

static bool is_marking(const struct gl_claim_op *r)
{
    for (const struct gl_link *l = r->changes.next; l != &r->changes; l = l->next) {
        if (GL_CONTAINER(l, struct gl_claim_change, link)->call != 0) {
            return true;
        }
    }
    return false;
}

static void end(struct gl_core *c, struct gl_claim_op *r)
{
    struct gl_buf body = {0};
    struct gl_jw w;
    gl_str text;
    size_t n;

    GL_ASSERT(r->act == GL_CLAIM_RECLAIM);
    GL_ASSERT(r->error == 0);
    GL_ASSERT(!is_marking(r));
    gl_jw_init(&w, &body);
    gl_jw_object(&w);
    gl_jw_key(&w, "expired");
    gl_jw_array(&w);
    write_changes(r, &w, &n);
    gl_jw_end(&w);
    gl_jw_key(&w, "more");
    gl_jw_bool(&w, n == r->limit);
    gl_jw_end(&w);
    text = gl_str_dup(c->out->arena, gl_buf_view(&body));
    gl_buf_done(&body);
    gl_claims_finish(c, r, 0, (gl_str){0}, text);
}

static void on_listed(struct gl_core *c, struct gl_claim_op *r, const struct gl_event *ev)
{
    const struct gl_event_entry *all = ev->answer.entries.items;
    size_t n = ev->answer.entries.n;
    struct gl_key *keys = GL_NEW_ARRAY(c->out->arena, struct gl_key, n + 1);

    GL_ASSERT(r->phase == GL_CLAIM_LISTING);
    GL_ASSERT(gl_list_empty(&r->changes));
    for (size_t i = 0; i < n; i++) {
        struct gl_claim_change *x = gl_pool_alloc(&c->mem, sizeof(*x));

        gl_list_init(&x->link);
        gl_list_push(&r->changes, &x->link);
        gl_core_set(c, &x->key, all[i].id);
        x->score = all[i].score;
        keys[i] = (struct gl_key){.kind = GL_S("claim"), .id = x->key};
    }
    if (n == 0) {
        end(c, r);
        return;
    }
    r->phase = GL_CLAIM_FETCHING;
    r->record_call = gl_component_get(c, GL_COMPONENT_CLAIMS, keys, n);
}

/* Remove a stale entry of the index: it would come first in every page. */
static void remove_place(struct gl_core *c, struct gl_claim_change *x)
{
    struct gl_write write = {
        .type = GL_WRITE_UNINDEX, .kind = GL_S("claims"), .id = x->key, .score = x->score};

    GL_ASSERT(x->call == 0);
    GL_ASSERT(x->shown.n == 0); /* or the answer would list it as marked */
    x->call = gl_component_commit(c, GL_COMPONENT_CLAIMS, gl_component_tx(c, NULL, 0, &write, 1));
}

static void mark(struct gl_core *c, const struct gl_claim_op *r, struct gl_claim_change *x,
                 const struct gl_event_record *record)
{
    struct gl_claim_args args = {.act = GL_CLAIM_RECLAIM, .key = x->key};
    struct gl_claim found = {0}, made = {0};
    struct gl_why why;
    bool is_found = false;
    int rc = gl_claims_read(c, x->key, record->rev, record->damaged ? (gl_str){0} : record->value,
                            &is_found, &found, &why);

    GL_ASSERT(x->call == 0);
    GL_ASSERT(!x->is_done);
    if (rc != 0 || !is_found || found.state != GL_CLAIM_CLAIMED || found.lease_until != x->score) {
        remove_place(c, x);
    } else if (gl_claim_decide(&found, &args, r->now, &made, &why) == 0) {
        GL_ASSERT(made.state == GL_CLAIM_EXPIRED);
        GL_ASSERT(made.fence == found.fence);
        gl_core_set(c, &x->shown, gl_claims_format(c, x->key, &made, r->now));
        x->call = gl_claims_commit(c, x->key, record->rev, &found, &made);
    }
}

static void on_fetched(struct gl_core *c, struct gl_claim_op *r, const struct gl_event *ev)
{
    const struct gl_event_record *all = ev->answer.records.items;
    struct gl_link *l = r->changes.next;

    GL_ASSERT(r->phase == GL_CLAIM_FETCHING);
    GL_ASSERT(!gl_list_empty(&r->changes));
    r->phase = GL_CLAIM_MARKING; /* all commits at once; each is answered on its own */
    for (size_t i = 0; i < ev->answer.records.n && l != &r->changes; i++, l = l->next) {
        mark(c, r, change_of(l), &all[i]);
    }
    if (!is_marking(r)) {
        end(c, r);
    }
}

static void on_marked(struct gl_core *c, struct gl_claim_op *r, const struct gl_event *ev)
{
    int64_t code = ev->answer.code;

    GL_ASSERT(r->phase == GL_CLAIM_MARKING);
    GL_ASSERT(is_marking(r));
    for (struct gl_link *l = r->changes.next; l != &r->changes; l = l->next) {
        struct gl_claim_change *x = change_of(l);

        if (x->call == ev->answer.number) {
            GL_ASSERT(!x->is_done);
            x->call = 0;
            x->is_done = code == 0 && x->shown.n > 0;
            break;
        }
    }
    if (code != 0 && code != GL_E_CONFLICT &&
        r->error == 0) { /* a conflict: the claim was renewed or acquired */
        r->error = code;
        gl_core_set(c, &r->why, ev->answer.why);
    }
    if (is_marking(r)) {
        return;
    }
    if (r->error != 0) { /* what was not marked is found by the next request */
        gl_claims_fail(c, r, (int)r->error, gl_str_dup(c->out->arena, r->why));
    } else {
        end(c, r);
    }
}

void gl_reclaim_on_answer(struct gl_core *c, struct gl_claim_op *r, const struct gl_event *ev)
{
    bool is_bad = ev->answer.code != 0;

    GL_ASSERT(r->act == GL_CLAIM_RECLAIM);
    GL_ASSERT(r->phase >= GL_CLAIM_LISTING);
    if (r->phase == GL_CLAIM_MARKING) {
        on_marked(c, r, ev);
        return;
    }
    r->record_call = 0;
    if (is_bad) {
        gl_claims_fail(c, r, (int)ev->answer.code, ev->answer.why);
    } else if (r->phase == GL_CLAIM_LISTING) {
        on_listed(c, r, ev);
    } else {
        on_fetched(c, r, ev);
    }
}
