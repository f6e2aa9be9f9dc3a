/* trim_blobs.c - files in a shared store that no flow names.
 *
 * As with flows (trim_condemn.c): what no flow names, and nobody has begun to write within the last
 * hour, is condemned; then all flows that have come meanwhile are looked at; then it goes, in one
 * transaction with all its pieces. */
#include "node/trim_state.h"

#include "base/limits.h"
#include "base/sha256.h"
#include "model/kept.h"
#include "node/blobs.h"

enum {
    BLOB_AGE_MS = 60 * 60 * 1000,
    PIECES_MAX = GL_BLOB_BYTES_MAX / GL_KEPT_PIECE_BYTES,
    HEX = GL_SHA256_HEX - 1,
    FLOWS_READ = 4, /* flows may be large */
};

static_assert(PIECES_MAX + 1 <= GL_TRIM_WRITES, "a blob goes in one transaction");

static void commit(struct gl_trim *t, size_t writes_n, gl_store_done *done)
{
    t->flows.guards[1] = (struct gl_guard){.type = GL_GUARD_ALIVE, .owner = t->node->session};
    t->flows.tx = (struct gl_tx){
        .guards = t->flows.guards, .guards_n = 2, .writes = t->flows.writes, .writes_n = writes_n};
    gl_trim_commit(t, &t->flows.tx, done);
}

static struct gl_trim_doomed *current(struct gl_trim *t)
{
    return &t->flows.doomed[t->flows.at];
}

static void put_head(struct gl_trim *t, enum gl_kept rev, gl_str value)
{
    bool is_owned = rev != GL_KEPT_WHOLE;

    t->flows.writes[0] = (struct gl_write){
        .type = GL_WRITE_PUT,
        .kind = GL_S("blob"),
        .id = current(t)->hash,
        .rev = rev,
        .owner = is_owned ? t->node->session : (gl_str){0},
        .token = is_owned ? t->flows.token : 0,
        .value = value,
    };
}

/* ---- they go, or stay ---- */

static void judge_next(struct gl_trim *t);

static void on_judged(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;
    bool is_refused;

    if (!gl_trim_landed(t, req, &is_refused)) {
        return;
    }
    if (is_refused) {
        GL_MARK(t->node->config.trace, "trim.blob_resurrected");
    } else if (t->flows.writes[0].type == GL_WRITE_DELETE) {
        GL_MARK(t->node->config.trace, "trim.blobs");
        t->tally.blobs_n++;
    }
    t->flows.at++;
    judge_next(t);
}

static void remove_current(struct gl_trim *t)
{
    const struct gl_trim_doomed *d = current(t);

    t->flows.writes[0] =
        (struct gl_write){.type = GL_WRITE_DELETE, .kind = GL_S("blob"), .id = d->hash};
    for (uint32_t i = 0; i < d->pieces; i++) {
        t->flows.writes[i + 1] = (struct gl_write){
            .type = GL_WRITE_DELETE,
            .kind = GL_S("blob"),
            .id = gl_str_fmt(&t->arena, "%.*s/%u", GL_STR_ARG(d->hash), i),
        };
    }
    gl_blobs_forget(t->node->blobs, d->hash);
    commit(t, d->pieces + 1, on_judged);
}

/* As it was: what nobody has finished does not become whole by being named. */
static void on_read_spared(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;
    struct gl_kept_blob head = {0};

    if (gl_trim_answered(t, req)) {
        gl_str value = gl_str_dup(&t->arena, req->records[0].value);
        bool was_whole = gl_kept_read(value, &t->arena, &head) && head.was_whole;

        GL_MARK(t->node->config.trace, "trim.blob_spared");
        put_head(t, was_whole ? GL_KEPT_WHOLE : GL_KEPT_PARTIAL, value);
        commit(t, 1, on_judged);
    }
}

static void judge_next(struct gl_trim *t)
{
    struct gl_store *s = t->node->ports.store;

    while (t->flows.at < t->flows.doomed_n && !current(t)->is_ours) {
        t->flows.at++;
    }
    if (t->flows.at == t->flows.doomed_n) {
        gl_trim_flows_over(t);
        return;
    }
    gl_arena_reset(&t->arena);
    t->flows.guards[0] = gl_trim_condemn_guard(t, GL_S("blob"), current(t)->hash);
    if (gl_map_find(&t->flows.blobs, current(t)->hash) == NULL) {
        remove_current(t);
        return;
    }
    t->flows.keys[0] = (struct gl_key){.kind = GL_S("blob"), .id = current(t)->hash};
    s->ops->get(s, gl_trim_call(t, on_read_spared), t->node->config.context, t->flows.keys, 1);
}

/* ---- flows that have come meanwhile ---- */

static void list_flows(struct gl_trim *t, gl_str after);
static void read_flows(struct gl_trim *t);

static void on_flows_read(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    for (size_t i = 0; i < req->records_n; i++) {
        gl_trim_flows_note_blobs(t, req->records[i].value);
    }
    read_flows(t);
}

static void read_flows(struct gl_trim *t)
{
    struct gl_store *s = t->node->ports.store;
    size_t n = 0;

    while (n < FLOWS_READ && t->flows.kept_at < t->flows.kept_n) {
        t->flows.keys[n++] =
            (struct gl_key){.kind = GL_S("flow"), .id = t->flows.kept[t->flows.kept_at++]};
    }
    if (n > 0) {
        s->ops->get(s, gl_trim_call(t, on_flows_read), t->node->config.context, t->flows.keys, n);
    } else {
        t->flows.at = 0;
        judge_next(t);
    }
}

static void on_flows(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    for (size_t i = 0; i < req->records_n; i++) {
        if (gl_map_find(&t->flows.known, req->records[i].id) == NULL) {
            gl_trim_flows_keep(t, req->records[i].id); /* it is read next */
        }
    }
    if (req->records_n == GL_TRIM_PAGE) {
        list_flows(t, gl_str_dup(&t->flows.arena, req->records[GL_TRIM_PAGE - 1].id));
    } else {
        read_flows(t);
    }
}

static void list_flows(struct gl_trim *t, gl_str after)
{
    struct gl_store *s = t->node->ports.store;

    t->flows.listing = (struct gl_listing){
        .kind = GL_S("flow"), .after = after, .limit = GL_TRIM_PAGE, .ids_only = true};
    s->ops->list(s, gl_trim_call(t, on_flows), t->node->config.context, &t->flows.listing);
}

/* ---- condemning ---- */

static void condemn_next(struct gl_trim *t);

static void on_condemned(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;
    bool is_refused;

    if (gl_trim_landed(t, req, &is_refused)) {
        current(t)->is_ours = !is_refused;
        t->flows.at++;
        condemn_next(t);
    }
}

static void on_head(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;
    const struct gl_record *r = req->records;
    struct gl_kept_blob head = {0};
    bool is_readable;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    gl_arena_reset(&t->arena);
    is_readable = r->rev != 0 && !r->damaged && gl_kept_read(r->value, &t->arena, &head);
    if (!is_readable) {
        head = (struct gl_kept_blob){.pieces = PIECES_MAX};
    }
    if (r->rev == 0 || head.at > t->node->now - BLOB_AGE_MS) {
        t->again = t->again || r->rev != 0;
        t->flows.at++;
        condemn_next(t);
        return;
    }
    current(t)->pieces = head.pieces;
    head.was_whole = r->rev == GL_KEPT_WHOLE || (r->rev == GL_KEPT_CONDEMNED && head.was_whole);
    t->flows.guards[0] = (struct gl_guard){.type = GL_GUARD_OWNED,
                                           .kind = GL_S("blob"),
                                           .id = current(t)->hash,
                                           .rev = r->rev,
                                           .owner = gl_str_dup(&t->arena, r->owner),
                                           .token = r->token};
    put_head(t, GL_KEPT_CONDEMNED,
             is_readable ? gl_kept_write(&head, &t->arena) : gl_str_dup(&t->arena, r->value));
    commit(t, 1, on_condemned);
}

static void condemn_next(struct gl_trim *t)
{
    struct gl_store *s = t->node->ports.store;
    bool has_any = false;

    if (t->flows.at < t->flows.doomed_n) {
        t->flows.keys[0] = (struct gl_key){.kind = GL_S("blob"), .id = current(t)->hash};
        s->ops->get(s, gl_trim_call(t, on_head), t->node->config.context, t->flows.keys, 1);
        return;
    }
    for (size_t i = 0; i < t->flows.doomed_n; i++) {
        has_any = has_any || t->flows.doomed[i].is_ours;
    }
    if (has_any) {
        list_flows(t, (gl_str){0});
    } else {
        gl_trim_flows_over(t);
    }
}

/* ---- which are there? ---- */

static void list_blobs(struct gl_trim *t, gl_str after);

static void on_blobs(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    for (size_t i = 0; i < req->records_n; i++) {
        gl_str id = req->records[i].id;

        if (id.n == HEX && gl_map_find(&t->flows.blobs, id) == NULL) { /* else a piece */
            gl_trim_flows_doom(t, id);
        }
    }
    if (req->records_n == GL_TRIM_PAGE) {
        list_blobs(t, gl_str_dup(&t->flows.arena, req->records[GL_TRIM_PAGE - 1].id));
    } else {
        t->flows.at = 0;
        condemn_next(t);
    }
}

static void list_blobs(struct gl_trim *t, gl_str after)
{
    struct gl_store *s = t->node->ports.store;

    t->flows.listing = (struct gl_listing){
        .kind = GL_S("blob"), .after = after, .limit = GL_TRIM_PAGE, .ids_only = true};
    s->ops->list(s, gl_trim_call(t, on_blobs), t->node->config.context, &t->flows.listing);
}

void gl_trim_blobs_begin(struct gl_trim *t)
{
    t->flows.doomed_n = 0;
    t->flows.token = ++t->condemned_n;
    list_blobs(t, (gl_str){0});
}
