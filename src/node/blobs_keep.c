/* blobs_keep.c - copies the files of a flow from our folder into the store before a job that names
 * the flow is submitted.
 *
 * First it reads which of the files are in the store already. The others are written one after the
 * other: the record as PARTIAL, the pieces, the record as WHOLE. Another node may be writing the
 * same blob: then we continue under the token of the first writer, and it does not matter which of
 * us finishes. Or retention may be removing it: then a guard refuses, the record is read again, and
 * its state decides what to do. These transactions carry no id, because each is safe to repeat.
 *
 * If the process dies here, the record stays PARTIAL, and the next writer continues. */
#include "base/check.h"
#include "node/blobs_state.h"

#include "model/bundle/agent.h"

enum { HEADS_READ = 64 }; /* records in one read */

struct waiter {
    struct gl_link link;
    gl_blobs_done *done;
    void *owner;
};

struct keep {
    struct gl_chain chain;
    struct gl_blobs *blobs;
    gl_str hash;                /* hash of the flow */
    struct gl_link waiters;     /* struct waiter */
    struct gl_flow_file *files; /* those not known to be in the store, each once */
    size_t files_n, at;
    size_t missing_n; /* how many, from the first, are not in the store */
    struct gl_key keys[HEADS_READ];
    size_t keys_n;

    /* The blob being written. */
    struct gl_blobs_turn turn;
    uint64_t rev; /* of its record, as far as we know; 0: no record */
    gl_str owner; /* with `token`: who marked it PARTIAL, we or another node */
    uint64_t token;
    struct gl_gc_blob head;
    uint32_t piece;
    char *buffer;
    unsigned attempts;
    struct gl_guard guard;
    struct gl_write write;
};

static void on_end(void *chain)
{
    struct keep *k = chain;

    for (struct gl_link *l; (l = gl_list_first(&k->waiters)) != NULL;) {
        gl_list_remove(l);
        gl_mem_free(GL_CONTAINER(l, struct waiter, link));
    }
    gl_mem_free(k->buffer);
    GL_ASSERT(gl_list_empty(&k->waiters));
}

static void finish(struct keep *k, int code, const char *why)
{
    struct gl_blobs *b = k->blobs;
    struct gl_link waiters;

    GL_ASSERT(k->hash.n > 0);
    if (code == 0) {
        gl_blobs_remember(b, &b->stored, k->hash);
    }
    gl_list_take_all(&waiters, &k->waiters);
    (void)gl_map_remove(&b->keeps, k->hash); /* later callers start a new copy */
    gl_blobs_end_turn(b, &k->turn);
    for (struct gl_link *l; (l = gl_list_first(&waiters)) != NULL;) {
        struct waiter *w = GL_CONTAINER(l, struct waiter, link);

        gl_list_remove(l);
        w->done(w->owner, code, why);
        gl_mem_free(w);
    }
    gl_chain_end(&k->chain); /* `why` may live in its arena */
}

static void on_stopping(void *chain, int code, const char *why)
{
    finish(chain, code, why);
}

static const struct gl_chain_kind keeps = {
    .bytes = sizeof(struct keep), .failed = on_stopping, .ends_at_stop = true, .done = on_end};

static const struct gl_flow_file *file(const struct keep *k)
{
    GL_ASSERT(k->at < k->files_n);
    return &k->files[k->at];
}

static void next_file(struct keep *k);
static void claim(struct keep *k);
static void revive(struct keep *k);
static void next_piece(struct keep *k);

static void on_file_stored(struct keep *k)
{
    struct gl_blobs *b = k->blobs;

    GL_ASSERT(k->at < k->missing_n);
    gl_blobs_remember(b, &b->stored, file(k)->blob);
    k->at++;
    next_file(k);
}

/* ---- a transaction was refused: read the record again ---- */

static bool was_complete(struct keep *k, const struct gl_record *r)
{
    struct gl_gc_blob head;

    return r->rev == GL_GC_CONDEMNED && !r->damaged &&
           gl_gc_blob_read(r->value, &k->chain.arena, &head) && head.was_whole &&
           head.size == k->head.size;
}

static void on_read_again(struct gl_store_req *req)
{
    struct keep *k = req->owner;

    GL_ASSERT(k->turn.is_on);
    if (req->status != 0) {
        finish(k, GL_E_UNAVAILABLE, req->why.text);
        return;
    }
    k->rev = req->records[0].rev;
    if (k->rev == GL_GC_WHOLE && !req->records[0].damaged) {
        on_file_stored(k);
    } else if (k->rev == GL_GC_PARTIAL && !req->records[0].damaged) {
        k->owner = gl_str_dup(&k->chain.arena, req->records[0].owner);
        k->token = req->records[0].token;
        k->piece = 0;
        next_piece(k);
    } else if (was_complete(k, &req->records[0])) {
        revive(k);
    } else {
        claim(k);
    }
}

/* False: it was not; the next step is in flight, or the copy has ended. */
static bool was_committed(struct keep *k, const struct gl_store_req *req)
{
    struct gl_node *n = k->blobs->node;

    GL_ASSERT(k->attempts <= GL_BLOBS_ATTEMPTS_MAX);
    if (req->status == 0) {
        return true;
    }
    if ((req->status == GL_E_CONFLICT || req->status == GL_E_UNKNOWN) &&
        ++k->attempts <= GL_BLOBS_ATTEMPTS_MAX) {
        GL_MARK(n->config.trace, "blobs.keep_refused");
        gl_chain_get(&k->chain, GL_S("blob"), file(k)->blob, on_read_again);
    } else if (req->status == GL_E_LIMIT) {
        finish(k, GL_E_LIMIT, req->why.text);
    } else {
        gl_sessions_on_refused(n, req);
        finish(k, GL_E_UNAVAILABLE, req->why.text);
    }
    return false;
}

static struct gl_write *prepare(struct keep *k, struct gl_key key, uint64_t rev, gl_str value)
{
    GL_ASSERT(key.id.n > 0);
    GL_ASSERT(rev > 0);
    k->write = (struct gl_write){
        .type = GL_WRITE_PUT, .kind = key.kind, .id = key.id, .rev = rev, .value = value};
    return &k->write;
}

static void commit(struct keep *k, gl_store_done *done)
{
    GL_ASSERT(k->write.type == GL_WRITE_PUT);
    k->guard = (struct gl_guard){
        .type = GL_GUARD_AT, .kind = GL_S("blob"), .id = file(k)->blob, .rev = k->rev};
    if (k->rev == 0) {
        k->guard.type = GL_GUARD_ABSENT;
    } else if (k->rev == GL_GC_PARTIAL) {
        k->guard.type = GL_GUARD_OWNED;
        k->guard.owner = k->owner;
        k->guard.token = k->token;
    }
    gl_chain_commit(&k->chain, &k->guard, &k->write, done);
}

/* ---- writing one ---- */

static void on_whole(struct gl_store_req *req)
{
    struct keep *k = req->owner;

    GL_ASSERT(k->turn.is_on);
    if (was_committed(k, req)) {
        GL_MARK(k->blobs->node->config.trace, "blobs.kept");
        on_file_stored(k);
    }
}

static void on_piece(struct gl_store_req *req)
{
    struct keep *k = req->owner;

    GL_ASSERT(k->piece < k->head.pieces);
    if (was_committed(k, req)) {
        k->piece++;
        next_piece(k);
    }
}

static void on_piece_read(struct gl_blob_req *req)
{
    struct keep *k = req->owner;
    uint64_t left = k->head.size - (uint64_t)k->piece * GL_GC_PIECE_BYTES;

    GL_ASSERT(k->piece < k->head.pieces);
    GL_ASSERT(k->turn.is_on);
    if (req->status != 0) {
        finish(k, GL_E_UNAVAILABLE, req->why.text);
    } else if (req->n != (left < GL_GC_PIECE_BYTES ? left : GL_GC_PIECE_BYTES)) {
        finish(k, GL_E_UNAVAILABLE, "a file of the flow changed while it was being read");
    } else {
        (void)prepare(k, gl_blobs_piece(&k->chain.arena, file(k)->blob, k->piece), 1,
                      (gl_str){.p = k->buffer, .n = req->n});
        commit(k, on_piece);
    }
}

static void next_piece(struct keep *k)
{
    GL_ASSERT(k->piece <= k->head.pieces);
    if (k->piece == k->head.pieces) {
        (void)prepare(k, gl_blobs_key(file(k)->blob), GL_GC_WHOLE,
                      gl_gc_blob_write(&k->head, &k->chain.arena));
        commit(k, on_whole);
        return;
    }
    gl_chain_read(&k->chain, file(k)->blob, (uint64_t)k->piece * GL_GC_PIECE_BYTES, k->buffer,
                  GL_GC_PIECE_BYTES, on_piece_read);
}

static void on_claimed(struct gl_store_req *req)
{
    struct keep *k = req->owner;

    GL_ASSERT(k->token > 0);
    if (was_committed(k, req)) {
        k->rev = GL_GC_PARTIAL;
        k->piece = 0;
        next_piece(k);
    }
}

/* Others may rely on this blob already (model/gc_state.h), so it must not become PARTIAL again.
 * Whatever has happened to it since it was read, it is at least an hour old while it is condemned.
 */
static void revive(struct keep *k)
{
    struct gl_node *n = k->blobs->node;

    GL_ASSERT(k->turn.is_on);
    GL_MARK(n->config.trace, "blobs.revived");
    k->head.at = n->now;
    (void)prepare(k, gl_blobs_key(file(k)->blob), GL_GC_WHOLE,
                  gl_gc_blob_write(&k->head, &k->chain.arena));
    commit(k, on_whole);
}

static void claim(struct keep *k)
{
    struct gl_blobs *b = k->blobs;
    struct gl_write *w;

    GL_ASSERT(k->turn.is_on);
    k->head.at = b->node->now;
    k->owner = b->node->session;
    k->token = ++b->claims_n;
    w = prepare(k, gl_blobs_key(file(k)->blob), GL_GC_PARTIAL,
                gl_gc_blob_write(&k->head, &k->chain.arena));
    w->owner = k->owner;
    w->token = k->token;
    commit(k, on_claimed);
}

/* Verify our copy now; otherwise every node that fetches it finds the damage. */
static void on_looked(struct gl_blob_req *req)
{
    struct keep *k = req->owner;
    struct gl_why why;

    GL_ASSERT(k->turn.is_on);
    GL_ASSERT(k->rev == 0);
    if (req->status == 0 && req->size <= GL_BLOB_BYTES_MAX) {
        k->head = (struct gl_gc_blob){.size = req->size, .pieces = gl_gc_blob_pieces(req->size)};
        k->attempts = 0;
        claim(k);
        return;
    }
    if (req->status == GL_E_NOT_FOUND) {
        (void)gl_why(&why, GL_R_BLOB_MISSING,
                     "the file '%.*s' (sha256 %.*s) is neither in the store nor on this node; "
                     "upload it first",
                     GL_STR_ARG(file(k)->name), GL_STR_ARG(file(k)->blob));
    } else if (req->status == GL_E_DAMAGED || req->status == 0) {
        (void)gl_why(&why, GL_E_DAMAGED, "the file '%.*s' is damaged on this node: %s",
                     GL_STR_ARG(file(k)->name),
                     req->status != 0 ? req->why.text : "it exceeds the size limit for files");
    } else {
        (void)gl_why(&why, GL_E_UNAVAILABLE, "%s", req->why.text);
    }
    finish(k, gl_why_whole(&why), why.text);
}

static void next_file(struct keep *k)
{
    GL_ASSERT(k->at <= k->missing_n);
    GL_ASSERT(k->turn.is_on);
    if (k->at == k->missing_n) {
        finish(k, 0, "");
        return;
    }
    k->rev = 0; /* an assumption: if it is wrong, the guard refuses */
    gl_chain_look(&k->chain, file(k)->blob, true, on_looked);
}

static void on_turn(struct gl_blobs_turn *t)
{
    struct keep *k = GL_CONTAINER(t, struct keep, turn);

    GL_ASSERT(t->is_on);
    GL_ASSERT(k->missing_n > 0);
    GL_ASSERT(k->buffer == NULL);
    k->buffer = gl_mem_alloc(GL_GC_PIECE_BYTES);
    k->at = 0;
    next_file(k);
}

/* ---- which files are in the store? ---- */

static void read_heads(struct keep *k);

static void on_heads(struct gl_store_req *req)
{
    struct keep *k = req->owner;
    struct gl_blobs *b = k->blobs;

    GL_ASSERT(k->keys_n > 0);
    GL_ASSERT(k->at + k->keys_n <= k->files_n);
    if (req->status != 0) {
        finish(k, GL_E_UNAVAILABLE, req->why.text);
        return;
    }
    for (size_t i = 0; i < k->keys_n; i++, k->at++) {
        if (req->records[i].rev == GL_GC_WHOLE && !req->records[i].damaged) {
            gl_blobs_remember(b, &b->stored, k->files[k->at].blob);
        } else {
            k->files[k->missing_n++] = k->files[k->at];
        }
    }
    read_heads(k);
}

static void read_heads(struct keep *k)
{
    GL_ASSERT(k->at <= k->files_n);
    for (k->keys_n = 0; k->keys_n < HEADS_READ && k->at + k->keys_n < k->files_n; k->keys_n++) {
        k->keys[k->keys_n] = gl_blobs_key(k->files[k->at + k->keys_n].blob);
    }
    if (k->keys_n > 0) {
        gl_chain_get_all(&k->chain, k->keys, k->keys_n, on_heads);
    } else if (k->missing_n == 0) {
        finish(k, 0, "");
    } else {
        gl_blobs_wait_turn(k->blobs, &k->turn);
    }
}

/* ---- entry ---- */

static void add_file(struct keep *k, struct gl_map *seen, const struct gl_flow_file *f)
{
    GL_ASSERT(f->blob.n > 0);
    if (gl_map_find(seen, f->blob) != NULL) {
        return;
    }
    gl_map_add(seen, f->blob, (void *)f);
    if (!gl_blobs_knows(k->blobs, &k->blobs->stored, f->blob)) {
        k->files[k->files_n++] = *f;
    }
}

/* The files of a bundle: its payloads, and the manifest itself. */
static void add_bundle(struct keep *k, struct gl_map *seen, const struct gl_bundle_spec *b)
{
    const struct gl_payload *payloads = b->payloads.items;

    for (size_t i = 0; i <= b->payloads.n; i++) {
        struct gl_flow_file *f = GL_NEW(&k->chain.arena, struct gl_flow_file);

        if (i < b->payloads.n) {
            f->name = payloads[i].path;
            f->blob = payloads[i].blob;
        } else {
            f->name = GL_S("manifest.json");
            f->blob = b->manifest;
        }
        if (f->blob.n > 0) {
            add_file(k, seen, f);
        }
    }
}

/* Collects the files not known to be in the store. False: this is not a flow; the core will report
 * that. */
static bool find_files(struct keep *k, gl_str text)
{
    struct gl_flow *flow;
    struct gl_map seen;
    size_t n = 0;

    if (gl_flow_decode(text, &k->chain.arena, &flow, NULL) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < flow->steps.n; i++) {
        n += gl_flow_step(flow, i)->files.n;
    }
    n += flow->bundle != NULL ? flow->bundle->payloads.n + 1 : 0;
    k->files = GL_NEW_ARRAY(&k->chain.arena, struct gl_flow_file, n + 1);
    gl_map_init(&seen);
    for (uint32_t i = 0; i < flow->steps.n; i++) {
        const struct gl_items *files = &gl_flow_step(flow, i)->files;

        for (size_t f = 0; f < files->n; f++) {
            add_file(k, &seen, &((const struct gl_flow_file *)files->items)[f]);
        }
    }
    if (flow->bundle != NULL) {
        add_bundle(k, &seen, flow->bundle);
    }
    gl_map_done(&seen);
    return true;
}

static struct keep *keep_new(struct gl_blobs *b, gl_str hash)
{
    struct keep *k = gl_chain_new(b->node, &keeps, b->node->config.context);

    GL_ASSERT(hash.n > 0);
    k->blobs = b;
    k->hash = gl_str_dup(&k->chain.arena, hash);
    gl_list_init(&k->waiters);
    gl_list_init(&k->turn.link);
    k->turn.begin = on_turn;
    gl_map_add(&b->keeps, k->hash, k);
    return k;
}

bool gl_blobs_may_have_files(const struct gl_blobs *b, gl_str flow)
{
    /* Quotes inside strings are escaped, so these match only names of members. */
    static const gl_str marks[] = {GL_S("\"blob\":"), GL_S("\"manifest\":")};

    return b != NULL && flow.p != NULL &&
           (memmem(flow.p, flow.n, marks[0].p, marks[0].n) != NULL ||
            memmem(flow.p, flow.n, marks[1].p, marks[1].n) != NULL);
}

bool gl_blobs_keep(struct gl_blobs *b, gl_str hash, gl_str flow, gl_blobs_done *done, void *owner)
{
    struct waiter *w;
    struct keep *k;

    if (!gl_blobs_may_have_files(b, flow) || gl_blobs_knows(b, &b->stored, hash)) {
        return true;
    }
    k = gl_map_find(&b->keeps, hash);
    if (k == NULL) {
        k = keep_new(b, hash);
        if (!find_files(k, flow) || k->files_n == 0) {
            gl_blobs_remember(b, &b->stored, hash);
            (void)gl_map_remove(&b->keeps, k->hash); /* it is `k` */
            gl_chain_drop(&k->chain);
            return true;
        }
        read_heads(k);
    }
    w = gl_mem_alloc(sizeof(*w));
    w->done = done;
    w->owner = owner;
    gl_list_push(&k->waiters, &w->link);
    return false;
}
