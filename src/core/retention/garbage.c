/* garbage.c - mark and sweep: removes flows that no job names, then blobs that no flow names.
 *
 * All roots are read page by page for what they name; everything else of the swept kind is removed.
 * A row of the table below says what the roots are and how they name things.
 *
 * On a store of our own, a page of unnamed flows is removed in one transaction. We see every
 * submission made during the sweep (gl_retention_on_submit), and wait for those in flight when it
 * began. So a flow that is neither marked nor submitted is named by nothing. It is removed from the
 * core's memory and from the store in the same step of the core; a later submission finds it in
 * neither and writes it again, after the removal. This relies on being the only node of the store
 * that accepts jobs, which the lock on the data folder ensures; a node that has lost the lock fails
 * the guard on its session.
 *
 * On a shared store other nodes accept jobs, too, and we do not see them. So unnamed things are
 * first condemned: from then on no node can submit a job that relies on one without writing it
 * again (model/gc_state.h). Then all roots are marked once more. What is still unnamed is removed,
 * under the guard that it is still condemned by us: that fails if someone has written it since. The
 * rest is spared.
 *
 * A blob is written, or requested, shortly before its flow is submitted. So blobs younger than
 * BLOB_AGE_MS are kept, named or not. */
#include "base/limits.h"
#include "base/sha256.h"
#include "core/flow/submit.h"
#include "core/retention/parts.h"
#include "model/gc_state.h"

enum {
    WAIT_MS = 100, /* until submissions in flight are looked at again */
    BLOB_AGE_MS = 60 * 60 * 1000,
    FLOWS_BYTES = 4 << 20, /* of flows read at a time: they may be large */
    CONDEMNED_AT_ONCE = 4, /* records condemned at a time */
    REMOVED_AT_ONCE = 100,
    HEADS_READ = 50,
    PIECES_MAX = GL_BLOB_BYTES_MAX / GL_GC_PIECE_BYTES,
    HEX = GL_SHA256_HEX - 1,
};

static_assert(PIECES_MAX + 1 <= GL_TRIM_WRITES, "a blob is removed in one transaction");
static_assert((int)REMOVED_AT_ONCE < (int)GL_TRIM_WRITES, "so are these flows");

static const struct sweep {
    const char *kind, *root;
    struct gl_core_view view;               /* of the roots */
    size_t root_bytes;                      /* of a page of them */
    size_t at_once;                         /* condemned things removed in one transaction */
    const char *is_spared, *is_resurrected; /* marks */
} sweeps[] = {
    [GL_CHORE_FLOWS] = {.kind = "flow",
                        .root = "job",
                        .view = {.type = GL_VIEW_MEMBER,
                                 .schema = &gl_job_schema,
                                 .member = "flow"},
                        .at_once = REMOVED_AT_ONCE,
                        .is_spared = "trim.spared",
                        .is_resurrected = "trim.resurrected"},
    /* Whatever looks like a hash in a flow counts as a name, so that no field of the format can be
     * missed here. */
    [GL_CHORE_BLOBS] = {.kind = "blob",
                        .root = "flow",
                        .view = {.type = GL_VIEW_HASHES},
                        .root_bytes = FLOWS_BYTES,
                        .at_once = 1,
                        .is_spared = "trim.blob_spared",
                        .is_resurrected = "trim.blob_resurrected"},
};

static const struct sweep *sweep(struct gl_core *c)
{
    GL_ASSERT(gl_pass(c)->chore == GL_CHORE_FLOWS || gl_pass(c)->chore == GL_CHORE_BLOBS);
    return &sweeps[gl_pass(c)->chore];
}

static bool is_of_blobs(struct gl_core *c)
{
    return gl_pass(c)->chore == GL_CHORE_BLOBS;
}

static bool is_used(struct gl_core *c, gl_str id)
{
    return gl_map_find(&gl_pass(c)->used, id) != NULL;
}

/* The next one, from `at` on, that we have condemned and that is used, or is not; NULL: none. */
static struct gl_candidate *next_condemned(struct gl_core *c, bool is_to_be_used)
{
    struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(p->is_second_look);
    GL_ASSERT(p->at <= p->candidates_n);
    for (; p->at < p->candidates_n; p->at++) {
        if (p->candidates[p->at].is_ours && is_used(c, p->candidates[p->at].id) == is_to_be_used) {
            return &p->candidates[p->at];
        }
    }
    return NULL;
}

/* ---- sparing: used after all ---- */

/* Still condemned by this sweep: the token is a new one for each, so that what an earlier sweep of
 * ours has condemned is not taken for it. */
static struct gl_guard guard_condemned(struct gl_core *c, const struct gl_candidate *d)
{
    GL_ASSERT(d->is_ours);
    GL_ASSERT(gl_pass(c)->token > 0);
    return (struct gl_guard){.type = GL_GUARD_OWNED,
                             .kind = gl_str_of(sweep(c)->kind),
                             .id = d->id,
                             .rev = GL_GC_CONDEMNED,
                             .owner = c->session,
                             .token = gl_pass(c)->token};
}

/* Move the record to state `rev`, if it is still as `seen` says. */
static uint64_t stamp(struct gl_core *c, const struct gl_candidate *d, const struct gl_guard *seen,
                      enum gl_gc_state rev)
{
    bool is_owned = rev != GL_GC_WHOLE;
    struct gl_guard guards[2] = {*seen};
    struct gl_write write = {.type = GL_WRITE_PUT,
                             .kind = gl_str_of(sweep(c)->kind),
                             .id = d->id,
                             .rev = rev,
                             .owner = is_owned ? c->session : (gl_str){0},
                             .token = is_owned ? gl_pass(c)->token : 0};

    GL_ASSERT(c->shared);
    GL_ASSERT(gl_pass(c)->token > 0);
    GL_ASSERT(GL_IMPLIES(rev == GL_GC_PARTIAL, is_of_blobs(c)));
    if (!is_of_blobs(c) && !d->is_damaged) { /* only its stamps change: its text is not read */
        return gl_component_restamp(c, GL_COMPONENT_RETENTION,
                                    gl_retention_tx(c, guards, 1, &write, 1));
    }
    write.value = gl_str_dup(c->out->arena, d->value);
    return gl_component_commit(c, GL_COMPONENT_RETENTION, gl_retention_tx(c, guards, 1, &write, 1));
}

/* Restore the state from before it was condemned: naming a partial blob does not make it whole. A
 * damaged flow stays condemned, so the next submission that names it writes it again. */
static void spare_next(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);
    struct gl_candidate *d = next_condemned(c, true);
    struct gl_guard guard;

    while (d != NULL && d->is_damaged) {
        p->at++;
        d = next_condemned(c, true);
    }
    if (d == NULL) {
        gl_chores_next(c);
        return;
    }
    GL_ASSERT(p->at < p->candidates_n);
    GL_MARK(c->trace, sweep(c)->is_spared);
    p->at++;
    guard = guard_condemned(c, d);
    gl_retention_enter(
        c, GL_STAGE_SPARE,
        stamp(c, d, &guard, !is_of_blobs(c) || d->was_whole ? GL_GC_WHOLE : GL_GC_PARTIAL));
}

void gl_garbage_on_spared(struct gl_core *c, const struct gl_event *ev)
{
    GL_ASSERT(gl_pass(c)->stage == GL_STAGE_SPARE);
    GL_ASSERT(gl_pass(c)->is_second_look);
    (void)ev; /* refused, or removed: another node was first */
    spare_next(c);
}

/* ---- removing: still unused ---- */

static void add_removal(struct gl_core *c, const struct gl_candidate *d, struct gl_write *writes,
                        size_t *writes_n)
{
    gl_str kind = gl_str_of(sweep(c)->kind);

    GL_ASSERT(d->pieces <= PIECES_MAX);
    GL_ASSERT(GL_IMPLIES(d->pieces > 0, is_of_blobs(c)));
    GL_ASSERT(*writes_n + 1 + d->pieces <= GL_TRIM_WRITES);
    writes[(*writes_n)++] = (struct gl_write){.type = GL_WRITE_DELETE, .kind = kind, .id = d->id};
    for (uint32_t i = 0; i < d->pieces; i++) {
        writes[(*writes_n)++] = (struct gl_write){
            .type = GL_WRITE_DELETE,
            .kind = kind,
            .id = gl_str_fmt(c->out->arena, "%.*s/%u", GL_STR_ARG(d->id), i),
        };
    }
}

/* One transaction with the next unused ones. */
static void remove_next(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);
    struct gl_guard guards[GL_TRIM_WRITES];
    struct gl_write writes[GL_TRIM_WRITES];
    struct gl_candidate *going[REMOVED_AT_ONCE];
    size_t n = 0, writes_n = 0;
    uint64_t call;

    GL_ASSERT(c->shared);
    GL_ASSERT(p->batch > 0);
    if (next_condemned(c, false) == NULL) { /* all removed: now spare the used ones */
        p->at = 0;
        spare_next(c);
        return;
    }
    for (size_t i = p->at; i < p->candidates_n && n < p->batch && n < REMOVED_AT_ONCE; i++) {
        struct gl_candidate *d = &p->candidates[i];

        if (d->is_ours && !is_used(c, d->id) && writes_n + 1 + d->pieces <= GL_TRIM_WRITES) {
            guards[n] = guard_condemned(c, d);
            add_removal(c, d, writes, &writes_n);
            going[n++] = d;
        }
    }
    GL_ASSERT(n > 0 && n <= p->batch);
    GL_ASSERT(writes_n >= n);
    call = gl_component_commit(c, GL_COMPONENT_RETENTION,
                               /* planted: removed although someone has written it again */
                               gl_retention_tx(c, guards, GL_PLANT(84) ? 0 : n, writes, writes_n));
    for (size_t i = 0; i < n; i++) {
        going[i]->call = call;
    }
    gl_retention_enter(c, GL_STAGE_REMOVE, call);
}

static void count_removed(struct gl_core *c, size_t n)
{
    if (is_of_blobs(c)) {
        GL_MARK(c->trace, "trim.blobs");
        gl_pass(c)->blobs_n += n;
    } else {
        gl_pass(c)->flows_n += n;
    }
}

/* If a transaction with several is refused, they are removed one by one: the one that is refused
 * then was written again since it was condemned. */
static void on_condemned_removed(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_pass *p = gl_pass(c);
    bool is_refused = ev->answer.code != 0;
    size_t n = 0;

    GL_ASSERT(p->is_second_look);
    GL_ASSERT(p->at <= p->candidates_n);
    for (size_t i = p->at; i < p->candidates_n && n < p->batch; i++) {
        n += p->candidates[i].call == ev->answer.number;
    }
    for (size_t i = p->at, left = n; i < p->candidates_n && left > 0; i++) {
        if (p->candidates[i].call == ev->answer.number) {
            p->candidates[i].call = 0;
            p->candidates[i].is_ours = is_refused && n > 1;
            left--;
        }
    }
    if (is_refused && n > 1) {
        p->batch = 1;
    } else if (is_refused) {
        GL_MARK(c->trace, sweep(c)->is_resurrected);
    } else {
        count_removed(c, n);
    }
    remove_next(c);
}

/* ---- condemning ---- */

static void begin_marking(struct gl_core *c);

static void mark_again(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(!p->is_second_look);
    GL_ASSERT(p->at == p->candidates_n);
    GL_ASSERT(p->calls_n == 0);
    p->at = 0;
    p->is_second_look = true;
    for (size_t i = 0; i < p->candidates_n; i++) {
        if (!p->candidates[i].is_ours) {
            continue;
        }
        (GL_PLANT(80) ? gl_garbage_marked : begin_marking)(c); /* planted: no second look */
        return;
    }
    gl_chores_next(c);
}

static void condemn(struct gl_core *c, struct gl_candidate *d)
{
    struct gl_guard seen = {.type = GL_GUARD_OWNED,
                            .kind = gl_str_of(sweep(c)->kind),
                            .id = d->id,
                            .rev = d->rev,
                            .owner = d->owner,
                            .token = d->token};

    GL_ASSERT(d->rev != 0);
    GL_ASSERT(gl_pass(c)->calls_n < CONDEMNED_AT_ONCE);
    if (!is_of_blobs(c)) {
        seen.type = GL_GUARD_AT;
    }
    d->call = stamp(c, d, &seen, GL_GC_CONDEMNED);
    gl_pass(c)->calls_n++;
}

static void get_heads(struct gl_core *c);

/* Condemn the next ones, a few at a time. The records of blobs are read first, page by page. */
static void condemn_next(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);
    size_t until = is_of_blobs(c) ? p->batch : p->candidates_n;

    GL_ASSERT(!p->is_second_look);
    GL_ASSERT(p->at <= until && until <= p->candidates_n);
    gl_retention_enter(c, GL_STAGE_CONDEMN, 0);
    for (; p->at < until && p->calls_n < CONDEMNED_AT_ONCE; p->at++) {
        struct gl_candidate *d = &p->candidates[p->at];

        if (d->rev != 0 && d->call == 0) {
            condemn(c, d);
        }
    }
    GL_ASSERT(p->at == until || p->calls_n == CONDEMNED_AT_ONCE);
    if (p->calls_n == 0 && p->at < p->candidates_n) {
        get_heads(c);
    } else if (p->calls_n == 0) {
        mark_again(c);
    }
}

/* The candidate that the call was about. It was condemned lately, so it is just before `at`, unless
 * `at` was moved back for a damaged flow. NULL: none, in a recording that was forged. */
static struct gl_candidate *find_call(struct gl_core *c, uint64_t call)
{
    struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(call != 0);
    GL_ASSERT(p->at <= p->candidates_n);
    for (size_t i = p->at; i-- > 0;) {
        if (p->candidates[i].call == call) {
            return &p->candidates[i];
        }
    }
    for (size_t i = p->at; i < p->candidates_n; i++) {
        if (p->candidates[i].call == call) {
            return &p->candidates[i];
        }
    }
    return NULL;
}

/* The text of this flow is damaged, so it cannot be kept while the flow is condemned: write an
 * empty document in its place. */
static void condemn_damaged(struct gl_core *c, struct gl_candidate *d)
{
    struct gl_retention_pass *p = gl_pass(c);
    size_t at = (size_t)(d - p->candidates);

    GL_ASSERT(!is_of_blobs(c));
    GL_ASSERT(d->call == 0);
    GL_MARK(c->trace, "trim.condemns_damaged");
    d->is_damaged = true;
    d->value = GL_S("{}");
    p->at = at < p->at ? at : p->at; /* condemn_next() comes to it again */
}

/* One that could not be condemned is left to the next sweep. */
void gl_garbage_on_condemned(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_pass *p = gl_pass(c);
    struct gl_candidate *d = find_call(c, ev->answer.number);

    GL_ASSERT(p->stage == GL_STAGE_CONDEMN);
    GL_ASSERT(p->calls_n > 0);
    if (d != NULL) {
        d->call = 0;
        d->is_ours = ev->answer.code == 0;
        if (ev->answer.code == GL_E_DAMAGED && !is_of_blobs(c) && !d->is_damaged) {
            condemn_damaged(c, d);
        } else {
            d->rev = 0; /* settled */
        }
    }
    if (gl_retention_all_answered(c, ev)) {
        condemn_next(c);
    }
}

/* Read what must be known of a blob before it is condemned. False: it is kept. */
static bool read_head(struct gl_core *c, struct gl_candidate *d, const struct gl_event_record *r)
{
    struct gl_arena *a = &gl_pass(c)->arena;
    struct gl_gc_blob head = {0};
    bool is_readable =
        r->rev != 0 && !r->damaged && gl_gc_blob_read(r->value, c->out->arena, &head);

    GL_ASSERT(is_of_blobs(c));
    if (!is_readable) { /* remove every piece that it may have */
        head = (struct gl_gc_blob){.pieces = PIECES_MAX};
    }
    GL_ASSERT(head.pieces <= PIECES_MAX);
    if (r->rev == 0 || head.at > c->now - BLOB_AGE_MS) { /* removed meanwhile, or too young */
        c->retention.again = c->retention.again || r->rev != 0;
        return false;
    }
    d->rev = r->rev;
    d->owner = gl_str_dup(a, r->owner);
    d->token = r->token;
    d->pieces = head.pieces;
    /* One whose head is damaged counts as partial: a node that needs it writes it again. */
    d->was_whole =
        is_readable && (r->rev == GL_GC_WHOLE || (r->rev == GL_GC_CONDEMNED && head.was_whole));
    head.was_whole = d->was_whole;
    d->value = gl_gc_blob_write(&head, a);
    return true;
}

void gl_garbage_on_heads(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_pass *p = gl_pass(c);
    const struct gl_event_record *heads = ev->answer.records.items;

    GL_ASSERT(p->stage == GL_STAGE_HEADS);
    GL_ASSERT(!p->is_second_look);
    GL_ASSERT(p->at <= p->candidates_n);
    if (!gl_retention_check(c, ev->answer.records.n <= p->candidates_n - p->at)) {
        return;
    }
    for (size_t i = 0; i < ev->answer.records.n; i++) {
        struct gl_candidate *d = &p->candidates[p->at + i];

        d->rev = read_head(c, d, &heads[i]) ? d->rev : 0;
    }
    p->batch = p->at + ev->answer.records.n;
    GL_ASSERT(p->batch <= p->candidates_n);
    condemn_next(c);
}

static void get_heads(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);
    struct gl_key keys[HEADS_READ];
    size_t n = 0;

    GL_ASSERT(is_of_blobs(c));
    GL_ASSERT(p->at < p->candidates_n);
    for (size_t i = p->at; i < p->candidates_n && n < HEADS_READ; i++) {
        keys[n++] = (struct gl_key){.kind = gl_str_of(sweep(c)->kind), .id = p->candidates[i].id};
    }
    GL_ASSERT(n > 0 && n <= HEADS_READ);
    gl_retention_get(c, GL_STAGE_HEADS, keys, n, NULL);
}

static void begin_to_condemn(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(c->shared);
    GL_ASSERT(!p->is_second_look);
    if (p->candidates_n == 0) {
        gl_chores_next(c);
        return;
    }
    p->token = ++c->retention.condemned_n;
    p->at = p->batch = 0;
    if (is_of_blobs(c)) {
        get_heads(c);
    } else {
        GL_MARK(c->trace, "trim.condemns");
        condemn_next(c);
    }
}

/* ---- candidates: everything that is not named ---- */

static void list_candidates(struct gl_core *c)
{
    GL_ASSERT(!gl_pass(c)->is_second_look);
    gl_retention_list(c, GL_STAGE_CANDIDATES, sweep(c)->kind, 0, &gl_view_stamps);
}

/* A flow that a damaged job may name is reserved, even while another job names it, because that job
 * may be removed later. A flow that the core must keep in memory is kept. */
static bool is_candidate(struct gl_core *c, gl_str id)
{
    bool is_reserved;

    if (is_of_blobs(c)) {
        return id.n == HEX && !is_used(c, id); /* pieces of a blob have longer ids */
    }
    is_reserved = gl_reserved_has(c, id);
    if (is_used(c, id) || is_reserved) {
        return false;
    }
    gl_submit_forget(c, id);
    return !gl_core_knows_flow(c, id);
}

/* On a store of our own: remove a page of flows. */
static void remove_page(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);
    struct gl_guard guards[1];
    struct gl_write writes[GL_TRIM_PAGE];
    size_t n = 0;

    GL_ASSERT(!c->shared);
    GL_ASSERT(!is_of_blobs(c));
    GL_ASSERT(p->candidates_n > 0 && p->candidates_n <= GL_TRIM_PAGE);
    for (size_t i = 0; i < p->candidates_n; i++) {
        add_removal(c, &p->candidates[i], writes, &n);
    }
    GL_ASSERT(n == p->candidates_n); /* a flow has no pieces */
    GL_MARK(c->trace, "trim.flows");
    gl_retention_enter(
        c, GL_STAGE_REMOVE,
        gl_component_commit(c, GL_COMPONENT_RETENTION, gl_retention_tx(c, guards, 0, writes, n)));
}

static void on_page_done(struct gl_core *c)
{
    GL_ASSERT(GL_IMPLIES(!c->shared, gl_pass(c)->candidates_n == 0));
    if (gl_pass(c)->after.n > 0) {
        list_candidates(c);
    } else if (c->shared) {
        begin_to_condemn(c);
    } else {
        gl_chores_next(c);
    }
}

void gl_garbage_on_candidates(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_pass *p = gl_pass(c);
    const struct gl_event_record *all = ev->answer.records.items;

    GL_ASSERT(p->stage == GL_STAGE_CANDIDATES);
    GL_ASSERT(!p->is_second_look);
    GL_ASSERT(GL_IMPLIES(!c->shared, p->candidates_n == 0));
    if (!gl_retention_check(c, ev->answer.records.n <= GL_TRIM_PAGE)) {
        return;
    }
    for (size_t i = 0; i < ev->answer.records.n; i++) {
        if (is_candidate(c, all[i].id)) {
            gl_retention_add_candidate(p, all[i].id)->rev = all[i].rev;
        }
    }
    gl_core_set(c, &p->after, ev->answer.next);
    if (p->after.n == 0 && !is_of_blobs(c)) {
        gl_reserved_on_list(c, false);
    }
    if (!c->shared && p->candidates_n > 0) {
        remove_page(c);
    } else {
        on_page_done(c);
    }
}

void gl_garbage_on_removed(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(p->stage == GL_STAGE_REMOVE);
    GL_ASSERT(c->shared == p->is_second_look);
    if (c->shared) {
        on_condemned_removed(c, ev);
    } else if (ev->answer.code != 0) { /* the guard on our session */
        gl_retention_fail(c, ev->answer.code, ev->answer.why);
    } else {
        p->flows_n += p->candidates_n;
        p->candidates_n = 0;
        on_page_done(c);
    }
}

/* ---- marking: what the roots name ---- */

static void mark(struct gl_core *c)
{
    const struct sweep *s = sweep(c);

    gl_retention_list(c, GL_STAGE_MARK, s->root, s->root_bytes, &s->view);
}

static void begin_marking(struct gl_core *c)
{
    GL_ASSERT(gl_pass(c)->after.n == 0);
    GL_ASSERT(gl_pass(c)->at == 0);
    if (!is_of_blobs(c)) {
        gl_reserved_begin(c);
    }
    mark(c);
}

void gl_garbage_on_marks(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_pass *p = gl_pass(c);
    const struct gl_event_record *damaged = ev->answer.records.items;

    GL_ASSERT(p->stage == GL_STAGE_MARK);
    for (size_t i = 0; i < ev->answer.names.n; i++) {
        gl_retention_add_text(p, &p->used, ev->answer.names.items[i]);
    }
    for (size_t i = 0; i < ev->answer.records.n; i++) {
        gl_reserved_note(c, &damaged[i]);
    }
    gl_core_set(c, &p->after, ev->answer.next);
    if (p->after.n > 0) {
        mark(c);
    } else if (is_of_blobs(c)) {
        gl_garbage_marked(c);
    } else {
        gl_reserved_resolve(c);
    }
}

/* Blobs in files: the node removes all files but those that are used. */
static void remove_files(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);
    gl_str *keep = GL_NEW_ARRAY(c->out->arena, gl_str, gl_map_count(&p->used) + 1);
    const gl_str *hash;
    size_t n = 0;

    GL_ASSERT(is_of_blobs(c));
    GL_ASSERT(!c->shared);
    for (size_t i = 0; (hash = gl_map_next(&p->used, &i)) != NULL;) {
        keep[n++] = *hash;
    }
    GL_ASSERT(n == gl_map_count(&p->used));
    gl_retention_files(c, GL_STAGE_BLOB_FILES, GL_FILES_REMOVE_BLOBS, keep, n, BLOB_AGE_MS);
}

void gl_garbage_on_files(struct gl_core *c, const struct gl_event *ev)
{
    GL_ASSERT(gl_pass(c)->stage == GL_STAGE_BLOB_FILES);
    GL_ASSERT(!gl_pass(c)->is_second_look);
    gl_pass(c)->blobs_n += ev->answer.n;
    c->retention.young_bytes = ev->answer.young;
    gl_chores_next(c);
}

void gl_garbage_marked(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(p->after.n == 0);
    GL_ASSERT(GL_IMPLIES(p->is_second_look, c->shared));
    if (p->is_second_look) {
        p->at = 0;
        p->batch = sweep(c)->at_once;
        remove_next(c);
    } else if (is_of_blobs(c) && !c->shared) {
        remove_files(c);
    } else {
        if (!is_of_blobs(c)) {
            gl_reserved_on_list(c, true);
        }
        list_candidates(c);
    }
}

/* ---- the beginning ---- */

/* Wait for submissions that were in flight when the sweep began: the store may not list their jobs
 * yet, and gl_retention_on_submit() was called before the sweep, so their flows are not marked. */
void gl_garbage_wait_for_submissions(struct gl_core *c)
{
    const struct gl_job *j;

    GL_ASSERT(gl_pass(c)->stage == GL_STAGE_SUBMISSIONS);
    GL_ASSERT(!gl_pass(c)->is_second_look);
    for (size_t i = 0; (j = gl_map_next(&c->jobs, &i)) != NULL;) {
        if (gl_ended_is_submitted(j) && j->hot_at <= gl_pass(c)->began_at) {
            GL_MARK(c->trace, "trim.waits_for_submissions");
            c->retention.due = c->now + WAIT_MS;
            return;
        }
    }
    begin_marking(c);
}

void gl_garbage_begin(struct gl_core *c)
{
    GL_ASSERT(gl_map_count(&gl_pass(c)->used) == 0);
    GL_ASSERT(gl_pass(c)->candidates_n == 0);
    GL_ASSERT(!gl_pass(c)->is_second_look);
    if (is_of_blobs(c)) {
        begin_marking(c);
        return;
    }
    gl_pass(c)->began_at = c->now; /* blobs need not wait: young ones are kept anyway */
    gl_retention_enter(c, GL_STAGE_SUBMISSIONS, 0);
    gl_garbage_wait_for_submissions(c);
}
