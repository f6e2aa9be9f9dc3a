/* trim_rest.c - small records that nobody needs any more and nobody else removes:
 *
 *   rate     a day after the time it speaks of, nothing waits for it
 *   answer   to a command that came through an inbox, whose asker has died
 *   inbox    an entry of the index without its record, or one whose job is gone
 *
 * Looked through every six hours, and not at all in the first ones of a node's life. */
#include "node/trim_state.h"

#include "base/id.h"

enum {
    RATE_MS = 24 * 60 * 60 * 1000,
    ANSWER_MS = 10 * 60 * 1000, /* longer than anybody waits for one */
};

static void add_delete(struct gl_trim *t, const char *kind, gl_str id)
{
    t->flows.writes[t->flows.going_n++] = (struct gl_write){
        .type = GL_WRITE_DELETE, .kind = gl_str_of(kind), .id = gl_str_dup(&t->arena, id)};
}

static void commit(struct gl_trim *t, size_t guards_n, gl_store_done *done)
{
    t->flows.guards[guards_n++] =
        (struct gl_guard){.type = GL_GUARD_ALIVE, .owner = t->node->session};
    t->flows.tx = (struct gl_tx){.guards = t->flows.guards,
                                 .guards_n = guards_n,
                                 .writes = t->flows.writes,
                                 .writes_n = t->flows.going_n};
    gl_trim_commit(t, &t->flows.tx, done);
}

static void list(struct gl_trim *t, const char *kind, gl_str after, gl_store_done *done)
{
    struct gl_store *s = t->node->ports.store;

    t->flows.listing =
        (struct gl_listing){.kind = gl_str_of(kind), .after = after, .limit = GL_TRIM_PAGE / 2};
    s->ops->list(s, gl_trim_call(t, done), t->node->config.context, &t->flows.listing);
}

/* Behind the last of a page; "" : it was the last page. */
static void note_after(struct gl_trim *t, const struct gl_store_req *req)
{
    t->flows.listing.after = req->records_n == t->flows.listing.limit
                                 ? gl_str_dup(&t->flows.arena, req->records[req->records_n - 1].id)
                                 : (gl_str){0};
}

/* ---- the inbox of our scope ---- */

static void look_at_inbox(struct gl_trim *t);

static void on_inbox_removed(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    if (t->range.after_id.n > 0) {
        look_at_inbox(t);
    } else {
        gl_trim_rest_over(t);
    }
}

static void on_inbox_read(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    t->flows.going_n = 0;
    for (size_t i = 0; i + 2 <= req->records_n; i += 2) {
        if (req->records[i].rev != 0 && req->records[i + 1].rev != 0) {
            continue;
        }
        add_delete(t, "inbox", t->flows.keys[i + 1].id);
        t->flows.writes[t->flows.going_n++] = (struct gl_write){.type = GL_WRITE_UNINDEX,
                                                                .kind = t->range.index,
                                                                .id = t->flows.keys[i + 1].id,
                                                                .score = t->flows.scores[i / 2]};
    }
    commit(t, 0, on_inbox_removed);
}

static void on_inbox(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;
    struct gl_store *s = t->node->ports.store;
    size_t n = 0;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    for (size_t i = 0; i < req->entries_n; i++) {
        gl_str id = gl_str_dup(&t->arena, req->entries[i].id), rest;
        gl_str job = gl_str_cut(id, '/', &rest);

        t->flows.scores[n / 2] = req->entries[i].score;
        t->flows.keys[n++] = (struct gl_key){.kind = GL_S("job"), .id = job};
        t->flows.keys[n++] = (struct gl_key){.kind = GL_S("inbox"), .id = id};
    }
    if (req->entries_n == t->range.limit) { /* those that stay must not hide the ones after them */
        t->range.after_score = req->entries[req->entries_n - 1].score;
        t->range.after_id = gl_str_dup(&t->flows.arena, req->entries[req->entries_n - 1].id);
    } else {
        t->range.after_id = (gl_str){0};
    }
    if (n == 0) {
        gl_trim_rest_over(t);
    } else {
        s->ops->get(s, gl_trim_call(t, on_inbox_read), t->node->config.context, t->flows.keys, n);
    }
}

static void look_at_inbox(struct gl_trim *t)
{
    struct gl_store *s = t->node->ports.store;

    gl_arena_reset(&t->arena);
    s->ops->range(s, gl_trim_call(t, on_inbox), t->node->config.context, &t->range);
}

static void begin_inbox(struct gl_trim *t)
{
    const struct gl_node_config *config = &t->node->config;

    t->range = (struct gl_range){
        .index = gl_job_index(&t->flows.arena, "inbox", config->stack, config->env_scope),
        .score_min = 0,
        .score_max = t->node->now - ANSWER_MS,
        .limit = GL_TRIM_PAGE / 2};
    look_at_inbox(t);
}

/* ---- answers ---- */

static void on_answers(struct gl_store_req *req);

static void on_answers_removed(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    if (t->flows.listing.after.n > 0) {
        list(t, "answer", t->flows.listing.after, on_answers);
    } else {
        begin_inbox(t);
    }
}

static void on_answers(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    gl_arena_reset(&t->arena);
    t->flows.going_n = 0;
    for (size_t i = 0; i < req->records_n; i++) {
        gl_str id = req->records[i].id;

        if (!gl_id_valid(id) || gl_id_time(id) < t->node->now - ANSWER_MS) {
            add_delete(t, "answer", id);
        }
    }
    note_after(t, req);
    commit(t, 0, on_answers_removed);
}

/* ---- rates ---- */

static void on_rates(struct gl_store_req *req);

static void on_rates_removed(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;
    bool is_refused; /* one of them is in use again: another time */

    if (!gl_trim_landed(t, req, &is_refused)) {
        return;
    }
    if (t->flows.listing.after.n > 0) {
        list(t, "rate", t->flows.listing.after, on_rates);
    } else if (gl_trim_is_shared(t)) {
        list(t, "answer", (gl_str){0}, on_answers);
    } else {
        gl_trim_rest_over(t);
    }
}

static bool is_over(struct gl_trim *t, const struct gl_record *r)
{
    struct gl_json j;
    int64_t next_at;

    return gl_json_parse(&j, r->value, GL_RECORD_BYTES_MAX, &t->arena, NULL) == 0 &&
           gl_json_i64(&j, gl_json_get(&j, gl_json_root(&j), "next_at"), &next_at) &&
           next_at < t->node->now - RATE_MS;
}

static void on_rates(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    gl_arena_reset(&t->arena);
    t->flows.going_n = 0;
    for (size_t i = 0; i < req->records_n; i++) {
        const struct gl_record *r = &req->records[i];

        if (is_over(t, r)) {
            t->flows.guards[t->flows.going_n] =
                (struct gl_guard){.type = GL_GUARD_AT,
                                  .kind = GL_S("rate"),
                                  .id = gl_str_dup(&t->arena, r->id),
                                  .rev = r->rev};
            add_delete(t, "rate", r->id);
        }
    }
    if (t->flows.going_n > 0) {
        GL_MARK(t->node->config.trace, "trim.rates");
    }
    note_after(t, req);
    commit(t, t->flows.going_n, on_rates_removed);
}

void gl_trim_rest_begin(struct gl_trim *t)
{
    gl_trim_flows_end(t); /* its memory is ours now */
    list(t, "rate", (gl_str){0}, on_rates);
}
