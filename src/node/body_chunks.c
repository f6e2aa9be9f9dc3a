/* body_chunks.c - reads a large body piece by piece.
 *
 * A body for a worker goes straight into a file of our folder, so that never more than one piece of
 * it is in memory. */
#include "node/body_chunks.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "node/node_state.h"

struct gl_body_move {
    struct gl_chain chain;
    gl_str job;
    const struct gl_body_ref *ref;
    bool to_blob;
    bool waits;   /* another chain is writing the same blob */
    bool is_over; /* `done` has run */
    uint64_t piece;
    struct gl_buf text; /* the body so far; to a blob: the last piece only */
    gl_body_chunks_done *done;
    void *owner;
};

static void on_end(void *chain)
{
    struct gl_body_move *m = chain;

    gl_buf_done(&m->text);
}

static const struct gl_chain_kind moves = {.bytes = sizeof(struct gl_body_move), .done = on_end};

static void begin(struct gl_body_move *m);

/* Another chain that writes the same blob or, with `waits`, that waits until we have written it. */
static struct gl_body_move *find_same(struct gl_node *n, const struct gl_body_ref *ref, bool waits)
{
    struct gl_body_move *m = gl_chain_next(n, &moves, NULL);

    GL_ASSERT(ref->sha256.n > 0);
    while (m != NULL && (!m->to_blob || m->is_over || m->waits != waits ||
                         !gl_str_eq(m->ref->sha256, ref->sha256))) {
        m = gl_chain_next(n, &moves, &m->chain);
    }
    return m;
}

static void finish(struct gl_body_move *m, int code, const char *why)
{
    struct gl_body_move *next;

    GL_ASSERT(m->piece <= gl_message_pieces(m->ref->bytes));
    GL_ASSERT(!m->is_over);
    m->waits = false;
    next = m->to_blob ? find_same(m->chain.node, m->ref, true) : NULL;
    m->is_over = true;  /* `done` may free `ref` */
    if (next != NULL) { /* first, because `done` may let a stopping node stop */
        next->waits = false;
        begin(next);
    }
    m->done(m->owner, code, why, m->to_blob || code != 0 ? (gl_str){0} : gl_buf_view(&m->text));
    gl_chain_end(&m->chain);
}

static void damaged(struct gl_body_move *m, const char *what)
{
    GL_ASSERT(!m->is_over);
    finish(m, GL_E_DAMAGED,
           gl_str_fmt(&m->chain.arena,
                      "the message's body (sha256 %.*s, %llu bytes) is damaged in the store: %s",
                      GL_STR_ARG(m->ref->sha256), (unsigned long long)m->ref->bytes, what)
               .p);
}

/* ---- piece by piece ---- */

static void next_piece(struct gl_body_move *m);

static void on_sealed(struct gl_blob_req *req)
{
    struct gl_body_move *m = req->owner;

    GL_ASSERT(m->to_blob);
    if (req->status == GL_E_DAMAGED) {
        damaged(m, "its hash does not match");
    } else if (req->status != 0) {
        finish(m, GL_E_UNAVAILABLE, req->why.text); /* a local disk error: may succeed later */
    } else {
        finish(m, 0, "");
    }
}

static void on_written(struct gl_blob_req *req)
{
    struct gl_body_move *m = req->owner;

    GL_ASSERT(m->to_blob);
    if (req->status != 0 && req->status != GL_E_DAMAGED) { /* sealing finds damage */
        finish(m, GL_E_UNAVAILABLE, req->why.text);
    } else {
        m->piece++;
        gl_buf_reset(&m->text);
        next_piece(m);
    }
}

static void on_piece(struct gl_store_req *req)
{
    struct gl_body_move *m = req->owner;
    uint64_t at = m->piece * GL_BODY_PIECE_BYTES, left = m->ref->bytes - at;
    const struct gl_record *r = req->records;

    GL_ASSERT(m->piece < gl_message_pieces(m->ref->bytes));
    if (req->status != 0 && req->status != GL_E_DAMAGED) {
        finish(m, GL_E_UNAVAILABLE, req->why.text);
    } else if (req->status == 0 && r->rev == 0) {
        damaged(m, "a chunk is missing");
    } else if (req->status != 0 || r->damaged ||
               r->value.n != (left < GL_BODY_PIECE_BYTES ? left : GL_BODY_PIECE_BYTES)) {
        damaged(m, "a chunk has changed");
    } else {
        gl_buf_str(&m->text, r->value);
        if (m->to_blob) {
            gl_chain_write(&m->chain, m->ref->sha256, at, gl_buf_view(&m->text), on_written);
        } else {
            m->piece++;
            next_piece(m);
        }
    }
}

static void end(struct gl_body_move *m)
{
    char hex[GL_SHA256_HEX];

    GL_ASSERT(m->piece == gl_message_pieces(m->ref->bytes));
    if (m->to_blob) {
        gl_chain_seal(&m->chain, m->ref->sha256, on_sealed);
    } else if (gl_str_eq(gl_sha256_hex(gl_buf_view(&m->text), hex), m->ref->sha256)) {
        finish(m, 0, "");
    } else {
        damaged(m, "its hash does not match");
    }
}

static void next_piece(struct gl_body_move *m)
{
    GL_ASSERT(m->piece <= gl_message_pieces(m->ref->bytes));
    if (m->piece == gl_message_pieces(m->ref->bytes)) {
        end(m);
        return;
    }
    gl_chain_get(&m->chain, GL_S("body"),
                 gl_str_fmt(&m->chain.arena, "%.*s/%012llu/%04llu", GL_STR_ARG(m->job),
                            (unsigned long long)m->ref->message_number,
                            (unsigned long long)m->piece),
                 on_piece);
}

static void on_looked(struct gl_blob_req *req)
{
    struct gl_body_move *m = req->owner;

    GL_ASSERT(m->to_blob);
    GL_ASSERT(m->piece == 0);
    if (req->status == 0) { /* an earlier attempt or another agent has fetched it */
        finish(m, 0, "");
    } else {
        next_piece(m);
    }
}

static void begin(struct gl_body_move *m)
{
    GL_ASSERT(m->piece == 0);
    GL_ASSERT(!m->waits);
    GL_ASSERT(!m->is_over);
    if (m->to_blob) {
        gl_chain_look(&m->chain, m->ref->sha256, true, on_looked);
    } else {
        next_piece(m);
    }
}

/* ---- entry ---- */

static void move(struct gl_node *n, gl_str context, gl_str job, const struct gl_body_ref *ref,
                 bool to_blob, gl_body_chunks_done *done, void *owner)
{
    struct gl_body_move *same = find_same(n, ref, false);
    struct gl_body_move *m = gl_chain_new(n, &moves, context);

    GL_ASSERT(ref->bytes > 0);
    GL_ASSERT(job.n == GL_ULID_BYTES);
    m->job = gl_str_dup(&m->chain.arena, job);
    m->ref = ref;
    m->to_blob = to_blob;
    m->waits = to_blob && same != NULL;
    m->done = done;
    m->owner = owner;
    if (!m->waits) {
        begin(m);
    }
}

void gl_body_chunks_to_blob(struct gl_node *n, gl_str context, gl_str job,
                            const struct gl_body_ref *ref, gl_body_chunks_done *done, void *owner)
{
    move(n, context, job, ref, true, done, owner);
}

void gl_body_chunks_read(struct gl_node *n, gl_str context, gl_str job,
                         const struct gl_body_ref *ref, gl_body_chunks_done *done, void *owner)
{
    move(n, context, job, ref, false, done, owner);
}
