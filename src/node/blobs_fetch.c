/* blobs_fetch.c - copies files from the store into our folder before a step that needs them starts.
 *
 * A step (struct want) waits for its files one after the other; steps that want the same file share
 * one fetch. Content is verified against its hash before it becomes visible under its name. */
#include "base/check.h"
#include "node/blobs_state.h"

struct fetch {
    struct gl_chain chain;
    struct gl_blobs *blobs;
    gl_str hash;
    struct gl_link wants; /* struct want, by `peers` */
    struct gl_blobs_turn turn;
    struct gl_gc_blob head;
    uint32_t piece;
    char *buffer;
    size_t buffer_n;
    struct gl_guard guard;
    struct gl_write write;
    struct gl_why why;
};

struct want {
    struct gl_link link;  /* in blobs->wants */
    struct gl_link peers; /* in fetch->wants */
    struct gl_blobs *blobs;
    const struct gl_flow_file *files;
    size_t files_n, at;
    gl_blobs_done *done;
    void *owner;
};

static void want_free(struct want *w)
{
    gl_list_remove(&w->link);
    gl_list_remove(&w->peers);
    gl_mem_free(w);
}

static bool want_next(struct want *w);

static void finish(struct fetch *f, int code, const char *text)
{
    struct gl_blobs *b = f->blobs;
    struct gl_link wants;
    struct gl_why why = {0};

    GL_ASSERT(f->hash.n > 0);
    if (code == 0) {
        gl_blobs_remember(b, &b->local, f->hash);
    } else {
        (void)gl_why(&why, code, "%s", text);
    }
    gl_list_take_all(&wants, &f->wants);
    gl_blobs_end_turn(b, &f->turn);
    (void)gl_map_remove(&b->fetches, f->hash); /* later wants start a new fetch */
    for (struct gl_link *l; (l = gl_list_first(&wants)) != NULL;) {
        struct want *w = GL_CONTAINER(l, struct want, peers);

        gl_list_remove(l);
        if (code == 0) {
            w->at++;
            if (want_next(w)) {
                w->done(w->owner, 0, "");
                want_free(w);
            }
        } else {
            struct gl_why own = why;

            (void)gl_why_prefix(&own, "the file '%.*s'", GL_STR_ARG(w->files[w->at].name));
            w->done(w->owner, code, own.text);
            want_free(w);
        }
    }
    gl_chain_end(&f->chain);
    GL_ASSERT(gl_list_empty(&wants));
}

static void on_stopping(void *chain, int code, const char *why)
{
    finish(chain, code, why);
}

static void on_end(void *chain)
{
    struct fetch *f = chain;

    gl_mem_free(f->buffer);
}

static const struct gl_chain_kind fetches = {
    .bytes = sizeof(struct fetch), .failed = on_stopping, .ends_at_stop = true, .done = on_end};

/* ---- damaged blobs ---- */

static void on_marked(struct gl_store_req *req)
{
    struct fetch *f = req->owner;

    GL_ASSERT(f->why.code == GL_E_DAMAGED);
    (void)req; /* even if this failed: the next fetch finds the same damage */
    finish(f, GL_E_DAMAGED, f->why.text);
}

/* Marks the blob as incomplete, so that the next submission of its flow from a node that has the
 * file writes it again. */
static void damaged(struct fetch *f, const char *what)
{
    struct gl_node *n = f->blobs->node;

    GL_ASSERT(f->blobs->node->session.n > 0);
    GL_MARK(n->config.trace, "blobs.damaged");
    (void)gl_why(&f->why, GL_E_DAMAGED,
                 "is damaged in the store (sha256 %.*s: %s); submit its flow again from a "
                 "machine that has the file",
                 GL_STR_ARG(f->hash), what);
    gl_blobs_drop(&f->blobs->stored, f->hash);
    f->head.at = n->now;
    f->guard = (struct gl_guard){
        .type = GL_GUARD_AT, .kind = GL_S("blob"), .id = f->hash, .rev = GL_GC_WHOLE};
    f->write = (struct gl_write){.type = GL_WRITE_PUT,
                                 .kind = GL_S("blob"),
                                 .id = f->hash,
                                 .rev = GL_GC_PARTIAL,
                                 .owner = n->session,
                                 .token = ++f->blobs->claims_n,
                                 .value = gl_gc_blob_write(&f->head, &f->chain.arena)};
    gl_chain_commit(&f->chain, &f->guard, &f->write, on_marked);
}

/* ---- piece by piece ---- */

static void next_piece(struct fetch *f);

static void on_sealed(struct gl_blob_req *req)
{
    struct fetch *f = req->owner;

    GL_ASSERT(f->piece == f->head.pieces || f->head.size == 0);
    if (req->status == GL_E_DAMAGED) {
        damaged(f, "its content does not match its hash");
    } else if (req->status != 0) {
        finish(f, GL_E_UNAVAILABLE, req->why.text);
    } else {
        GL_MARK(f->blobs->node->config.trace, "blobs.fetched");
        finish(f, 0, "");
    }
}

static void on_written(struct gl_blob_req *req)
{
    struct fetch *f = req->owner;

    GL_ASSERT(f->piece == 0 || f->piece < f->head.pieces);
    if (req->status != 0) { /* a local disk error: may succeed later */
        finish(f, GL_E_UNAVAILABLE, req->why.text);
        return;
    }
    f->piece++;
    next_piece(f);
}

static void write_piece(struct fetch *f)
{
    GL_ASSERT(f->turn.is_on);
    GL_ASSERT(f->buffer_n <= GL_GC_PIECE_BYTES);
    gl_chain_write(&f->chain, f->hash, (uint64_t)f->piece * GL_GC_PIECE_BYTES,
                   (gl_str){.p = f->buffer, .n = f->buffer_n}, on_written);
}

static void on_piece(struct gl_store_req *req)
{
    struct fetch *f = req->owner;
    uint64_t left = f->head.size - (uint64_t)f->piece * GL_GC_PIECE_BYTES;
    size_t wanted = left < GL_GC_PIECE_BYTES ? (size_t)left : GL_GC_PIECE_BYTES;
    const struct gl_record *r = req->records;

    GL_ASSERT(f->piece < f->head.pieces);
    if (req->status != 0 && req->status != GL_E_DAMAGED) {
        finish(f, GL_E_UNAVAILABLE, req->why.text);
    } else if (req->status != 0 || r->damaged || r->rev == 0 || r->value.n != wanted) {
        damaged(f, req->status == 0 && r->rev == 0 ? "a chunk is missing" : "a chunk is damaged");
    } else {
        memcpy(f->buffer, r->value.p, wanted); /* the store frees its copy when we return */
        f->buffer_n = wanted;
        write_piece(f);
    }
}

static void next_piece(struct fetch *f)
{
    struct gl_key key;

    GL_ASSERT(f->turn.is_on);
    GL_ASSERT(f->piece <= f->head.pieces || f->head.size == 0); /* an empty one is written once */
    if (f->piece < f->head.pieces) {
        key = gl_blobs_piece(&f->chain.arena, f->hash, f->piece);
        gl_chain_get(&f->chain, key.kind, key.id, on_piece);
    } else if (f->head.size == 0 && f->piece == 0) {
        f->buffer_n = 0; /* an empty file must be written as well */
        write_piece(f);
    } else {
        gl_chain_seal(&f->chain, f->hash, on_sealed);
    }
}

/* A condemned blob is still there: before it is removed, retention looks for flows that need it. */
static void on_head(struct gl_store_req *req)
{
    struct fetch *f = req->owner;
    const struct gl_record *r = req->records;
    struct gl_why why;

    if (req->status != 0 && req->status != GL_E_DAMAGED) {
        finish(f, GL_E_UNAVAILABLE, req->why.text);
    } else if (req->status == 0 && r->rev == 0) {
        (void)gl_why(&why, GL_E_NOT_FOUND, "is not in the store (sha256 %.*s)",
                     GL_STR_ARG(f->hash));
        finish(f, GL_E_NOT_FOUND, why.text);
    } else if (req->status != 0 || r->damaged ||
               !gl_gc_blob_read(r->value, &f->chain.arena, &f->head)) {
        f->head = (struct gl_gc_blob){0};
        damaged(f, "its record is unreadable");
    } else if (r->rev == GL_GC_PARTIAL) {
        (void)gl_why(
            &why, GL_E_DAMAGED,
            "is incomplete in the store (sha256 %.*s); submit its flow again from a machine "
            "that has the file",
            GL_STR_ARG(f->hash));
        finish(f, GL_E_DAMAGED, why.text);
    } else {
        f->buffer = gl_mem_alloc(GL_GC_PIECE_BYTES);
        next_piece(f);
    }
}

static void on_looked(struct gl_blob_req *req)
{
    struct fetch *f = req->owner;

    GL_ASSERT(f->turn.is_on);
    GL_ASSERT(f->piece == 0);
    if (req->status == 0) {
        finish(f, 0, "");
    } else if (req->status == GL_E_NOT_FOUND || req->status == GL_E_DAMAGED) {
        gl_chain_get(&f->chain, GL_S("blob"), f->hash, on_head);
    } else {
        finish(f, GL_E_UNAVAILABLE, req->why.text);
    }
}

static void on_turn(struct gl_blobs_turn *t)
{
    struct fetch *f = GL_CONTAINER(t, struct fetch, turn);

    GL_ASSERT(t->is_on);
    GL_ASSERT(f->piece == 0);
    GL_ASSERT(f->buffer == NULL);
    gl_chain_look(&f->chain, f->hash, f->blobs->node->now < f->blobs->verify_until, on_looked);
}

/* ---- entry ---- */

static struct fetch *fetch_new(struct gl_blobs *b, gl_str hash)
{
    struct fetch *f = gl_chain_new(b->node, &fetches, b->node->config.context);

    GL_ASSERT(hash.n > 0);
    f->blobs = b;
    f->hash = gl_str_dup(&f->chain.arena, hash);
    gl_list_init(&f->wants);
    gl_list_init(&f->turn.link);
    f->turn.begin = on_turn;
    gl_map_add(&b->fetches, f->hash, f);
    return f;
}

/* True: all files are here. */
static bool want_next(struct want *w)
{
    struct gl_blobs *b = w->blobs;
    struct fetch *f;
    bool is_new;

    GL_ASSERT(gl_list_empty(&w->peers));
    GL_ASSERT(w->at <= w->files_n);
    while (w->at < w->files_n && gl_blobs_knows(b, &b->local, w->files[w->at].blob)) {
        w->at++;
    }
    if (w->at == w->files_n) {
        return true;
    }
    f = gl_map_find(&b->fetches, w->files[w->at].blob);
    is_new = f == NULL;
    if (is_new) {
        f = fetch_new(b, w->files[w->at].blob);
    }
    gl_list_push(&f->wants, &w->peers);
    if (is_new) {
        gl_blobs_wait_turn(b, &f->turn);
    }
    return false;
}

bool gl_blobs_fetch(struct gl_blobs *b, const struct gl_flow_file *files, size_t files_n,
                    gl_blobs_done *done, void *owner)
{
    struct want *w;

    if (b == NULL || files_n == 0) {
        return true;
    }
    w = gl_mem_alloc(sizeof(*w));
    w->blobs = b;
    w->files = files;
    w->files_n = files_n;
    w->done = done;
    w->owner = owner;
    gl_list_init(&w->peers);
    gl_list_push(&b->wants, &w->link);
    if (want_next(w)) {
        want_free(w);
        return true;
    }
    return false;
}

void gl_blobs_fetch_free_all(struct gl_blobs *b)
{
    for (struct gl_link *l; (l = gl_list_first(&b->wants)) != NULL;) {
        struct want *w = GL_CONTAINER(l, struct want, link);

        gl_list_init(&w->peers); /* its fetch was freed with the other chains */
        want_free(w);
    }
    GL_ASSERT(gl_list_empty(&b->wants));
}
