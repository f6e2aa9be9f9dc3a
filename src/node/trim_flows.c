/* trim_flows.c - flows that no job names any more go, and then the blobs that no flow names.
 *
 * All jobs are read for the flows they name (of damaged ones: trim_damaged.c). A job that comes
 * meanwhile is told by gl_trim_on_submit(), and one whose submission was under way at the beginning
 * is waited for: then every flow that is neither found nor told is named by nobody. It is removed
 * from the core's memory and from the store in one breath; a submission that comes later finds it
 * in neither, and writes it again, behind the removal.
 *
 * A blob is put, or asked for, shortly before its flow is submitted: younger ones stay, whoever
 * names them.
 *
 * That relies on being the only node of the store that takes jobs, which the lock on the data
 * folder ensures; a node that has lost it does not get past the guard. On a shared store what is
 * found here is only condemned (trim_condemn.c). */
#include "node/trim_state.h"

#include "base/sha256.h"

enum {
    WAIT_MS = 100,
    BLOB_AGE_MS = 60 * 60 * 1000,
    FLOWS_READ = 4, /* flows may be large */
    HEX = GL_SHA256_HEX - 1,
};

void gl_trim_flows_end(struct gl_trim *t)
{
    gl_map_done(&t->flows.used);
    gl_map_done(&t->flows.named);
    gl_map_done(&t->flows.blobs);
    gl_map_done(&t->flows.known);
    gl_arena_done(&t->flows.arena);
    memset(&t->flows, 0, sizeof(t->flows));
    gl_map_init(&t->flows.used);
    gl_map_init(&t->flows.named);
    gl_map_init(&t->flows.blobs);
    gl_map_init(&t->flows.known);
}

/* A set of texts: each is its own value. */
static void note(struct gl_trim *t, struct gl_map *set, gl_str text)
{
    if (text.n > 0 && gl_map_find(set, text) == NULL) {
        gl_str *copy = GL_NEW(&t->flows.arena, gl_str);

        *copy = gl_str_dup(&t->flows.arena, text);
        gl_map_add(set, *copy, copy);
    }
}

void gl_trim_flows_use(struct gl_trim *t, gl_str hash)
{
    note(t, &t->flows.used, hash);
}

void gl_trim_on_submit(struct gl_trim *t, gl_str flow, gl_str retry_of)
{
    if (t->flows.is_under_way) {
        note(t, &t->flows.named, flow);
    }
    gl_trim_jobs_pin(t, retry_of);
}

/* ---- blobs ---- */

static void on_blobs(struct gl_tidy_req *req)
{
    struct gl_trim *t = req->owner;

    if (gl_trim_tidied(t, req)) {
        t->tally.blobs_n += req->removed_n;
        t->tally.bytes += req->bytes;
        t->young_bytes = req->young;
        gl_trim_flows_over(t);
    }
}

static void remove_blobs(struct gl_trim *t)
{
    size_t n = gl_map_count(&t->flows.blobs), at = 0;
    gl_str *keep = GL_NEW_ARRAY(&t->flows.arena, gl_str, n + 1);
    const gl_str *hash;

    if (t->tidy == NULL) {
        gl_trim_flows_over(t);
        return;
    }
    for (size_t i = 0; (hash = gl_map_next(&t->flows.blobs, &i)) != NULL;) {
        keep[at++] = *hash;
    }
    t->tidy->remove_blobs(t->tidy, gl_trim_tidy(t, on_blobs), t->node->config.context, keep, n,
                          BLOB_AGE_MS);
}

/* Whatever in a flow looks like the hash of a blob is taken for one, so that no part of the format
 * can be forgotten here. */
void gl_trim_flows_note_blobs(struct gl_trim *t, gl_str text)
{
    size_t run = 0;

    for (size_t i = 0; i <= text.n; i++) {
        char c = i < text.n ? text.p[i] : '"';

        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')) {
            run++;
            continue;
        }
        if (run == HEX) {
            note(t, &t->flows.blobs, (gl_str){.p = text.p + i - HEX, .n = HEX});
        }
        run = 0;
    }
}

static void on_kept(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    for (size_t i = 0; i < req->records_n; i++) {
        gl_trim_flows_note_blobs(t, req->records[i].value);
        note(t, &t->flows.known, req->records[i].id);
    }
    gl_trim_flows_read_kept(t);
}

void gl_trim_flows_read_kept(struct gl_trim *t)
{
    struct gl_store *s = t->node->ports.store;
    size_t n = 0;

    while (n < FLOWS_READ && t->flows.kept_at < t->flows.kept_n) {
        t->flows.keys[n++] =
            (struct gl_key){.kind = GL_S("flow"), .id = t->flows.kept[t->flows.kept_at++]};
    }
    if (n == 0 && gl_trim_is_shared(t)) {
        gl_trim_blobs_begin(t);
    } else if (n == 0) {
        remove_blobs(t);
    } else {
        s->ops->get(s, gl_trim_call(t, on_kept), t->node->config.context, t->flows.keys, n);
    }
}

/* ---- flows ---- */

static void list_flows(struct gl_trim *t, gl_str after);

void gl_trim_flows_keep(struct gl_trim *t, gl_str hash)
{
    if (t->flows.kept_n == t->flows.kept_cap) {
        size_t cap = t->flows.kept_cap * 2 + 64;
        gl_str *more = GL_NEW_ARRAY(&t->flows.arena, gl_str, cap);

        if (t->flows.kept_n > 0) {
            memcpy(more, t->flows.kept, t->flows.kept_n * sizeof(*more));
        }
        t->flows.kept = more;
        t->flows.kept_cap = cap;
    }
    t->flows.kept[t->flows.kept_n++] = gl_str_dup(&t->flows.arena, hash);
}

void gl_trim_flows_doom(struct gl_trim *t, gl_str hash)
{
    if (t->flows.doomed_n == t->flows.doomed_cap) {
        size_t cap = t->flows.doomed_cap * 2 + 64;
        struct gl_trim_doomed *more = GL_NEW_ARRAY(&t->flows.arena, struct gl_trim_doomed, cap);

        if (t->flows.doomed_n > 0) {
            memcpy(more, t->flows.doomed, t->flows.doomed_n * sizeof(*more));
        }
        t->flows.doomed = more;
        t->flows.doomed_cap = cap;
    }
    t->flows.doomed[t->flows.doomed_n++] =
        (struct gl_trim_doomed){.hash = gl_str_dup(&t->flows.arena, hash)};
}

static void on_flows_removed(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;

    if (gl_trim_answered(t, req)) {
        t->tally.flows_n += t->flows.going_n;
        if (t->flows.listing.after.n > 0) {
            list_flows(t, t->flows.listing.after);
        } else {
            gl_trim_flows_read_kept(t);
        }
    }
}

/* Is it in the core's memory, even after we have asked to forget it? */
static bool is_in_use(struct gl_trim *t, gl_str hash)
{
    struct gl_event ev = {
        .type = GL_EV_FORGET, .context = t->node->config.context, .forget = {.flow_hash = hash}};

    if (gl_core_knows_flow(t->node->core, hash)) {
        gl_node_feed(t->node, &ev);
    }
    return gl_core_knows_flow(t->node->core, hash);
}

bool gl_trim_flows_is_named(struct gl_trim *t, gl_str hash)
{
    bool is_reserved = gl_trim_damaged_reserves(t, hash);

    return gl_map_find(&t->flows.used, hash) != NULL ||
           gl_map_find(&t->flows.named, hash) != NULL || is_in_use(t, hash) || is_reserved;
}

static void on_flows(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;
    size_t n = 0;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    for (size_t i = 0; i < req->records_n; i++) {
        gl_str hash = req->records[i].id;

        if (gl_trim_flows_is_named(t, hash)) {
            gl_trim_flows_keep(t, hash);
        } else if (gl_trim_is_shared(t)) {
            gl_trim_flows_doom(t, hash);
        } else {
            t->flows.writes[n++] = (struct gl_write){.type = GL_WRITE_DELETE,
                                                     .kind = GL_S("flow"),
                                                     .id = gl_str_dup(&t->flows.arena, hash)};
        }
    }
    t->flows.listing.after = req->records_n == GL_TRIM_PAGE
                                 ? gl_str_dup(&t->flows.arena, req->records[GL_TRIM_PAGE - 1].id)
                                 : (gl_str){0};
    if (t->flows.listing.after.n == 0) {
        gl_trim_damaged_list(t, false);
    }
    if (gl_trim_is_shared(t)) {
        if (t->flows.listing.after.n > 0) {
            list_flows(t, t->flows.listing.after);
        } else {
            gl_trim_condemn_begin(t);
        }
        return;
    }
    t->flows.going_n = n;
    if (n > 0) {
        GL_MARK(t->node->config.trace, "trim.flows");
    }
    t->flows.guard = (struct gl_guard){.type = GL_GUARD_ALIVE, .owner = t->node->session};
    t->flows.tx = (struct gl_tx){
        .guards = &t->flows.guard, .guards_n = 1, .writes = t->flows.writes, .writes_n = n};
    /* Also if there are none: it is the same way on. */
    gl_trim_commit(t, &t->flows.tx, on_flows_removed);
}

static void list_flows(struct gl_trim *t, gl_str after)
{
    struct gl_store *s = t->node->ports.store;

    t->flows.listing = (struct gl_listing){
        .kind = GL_S("flow"), .after = after, .limit = GL_TRIM_PAGE, .ids_only = true};
    s->ops->list(s, gl_trim_call(t, on_flows), t->node->config.context, &t->flows.listing);
}

/* ---- the jobs, for the flows they name ---- */

static void list_jobs(struct gl_trim *t, gl_str after);

static void on_jobs(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    gl_arena_reset(&t->arena);
    for (size_t i = 0; i < req->records_n; i++) {
        struct gl_job_record r;

        if (req->records[i].damaged || !gl_trim_read_job(t, req->records[i].value, &r)) {
            gl_trim_damaged_note(t, &req->records[i]);
        } else {
            gl_trim_flows_use(t, r.flow);
        }
    }
    if (req->records_n == GL_TRIM_PAGE) {
        list_jobs(t, gl_str_dup(&t->arena, req->records[GL_TRIM_PAGE - 1].id));
    } else {
        gl_trim_damaged_settle(t);
    }
}

static void list_jobs(struct gl_trim *t, gl_str after)
{
    struct gl_store *s = t->node->ports.store;

    t->flows.listing =
        (struct gl_listing){.kind = GL_S("job"), .after = after, .limit = GL_TRIM_PAGE};
    s->ops->list(s, gl_trim_call(t, on_jobs), t->node->config.context, &t->flows.listing);
}

static void on_first_look(struct gl_trim *t)
{
    gl_trim_damaged_list(t, true);
    list_flows(t, (gl_str){0});
}

void gl_trim_flows_look(struct gl_trim *t, void (*looked)(struct gl_trim *t))
{
    t->flows.looked = looked;
    gl_trim_damaged_begin(t);
    list_jobs(t, (gl_str){0});
}

void gl_trim_flows_on_time(struct gl_trim *t)
{
    if (gl_requests_have_submit(t->node, t->flows.submits_until)) {
        GL_MARK(t->node->config.trace, "trim.waits_for_submissions");
        t->due = t->node->now + WAIT_MS;
    } else {
        gl_trim_flows_look(t, on_first_look);
    }
}

void gl_trim_flows_begin(struct gl_trim *t)
{
    gl_trim_flows_end(t);
    t->flows.is_under_way = true;
    t->flows.submits_until = gl_requests_last(t->node);
    gl_trim_flows_on_time(t);
    gl_node_rearm(t->node);
}
