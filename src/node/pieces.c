/* pieces.c - a large body is read piece by piece. What a worker is given goes into a file of our
 * folder on the way, so that no more than a piece of it is ever in memory. */
#include "node/pieces.h"

#include "base/limits.h"
#include "base/sha256.h"
#include "node/node_state.h"

struct gl_body_move {
    struct gl_link link; /* in node->bodies */
    struct gl_node *node;
    struct gl_arena arena;
    gl_str context, job;
    const struct gl_body_ref *ref;
    bool to_blob;
    bool waits; /* another is writing the same */
    struct gl_store_req req;
    struct gl_blob_req blob_req;
    struct gl_key key;
    uint64_t piece;
    struct gl_buf text; /* all of it so far; to a blob: the last piece */
    gl_pieces_done *done;
    void *owner;
};

static void move_free(struct gl_body_move *m)
{
    gl_list_remove(&m->link);
    gl_buf_done(&m->text);
    gl_arena_done(&m->arena);
    gl_mem_free(m);
}

void gl_pieces_free_all(struct gl_node *n)
{
    for (struct gl_link *l; (l = gl_list_first(&n->bodies)) != NULL;) {
        move_free(GL_CONTAINER(l, struct gl_body_move, link));
    }
}

static void begin(struct gl_body_move *m);

/* Another that writes the same file, or, with `waits`, that waits for us to have written it. */
static struct gl_body_move *find_same(struct gl_node *n, const struct gl_body_ref *ref, bool waits)
{
    for (struct gl_link *l = n->bodies.next; l != &n->bodies; l = l->next) {
        struct gl_body_move *m = GL_CONTAINER(l, struct gl_body_move, link);

        if (m->to_blob && m->waits == waits && gl_str_eq(m->ref->sha256, ref->sha256)) {
            return m;
        }
    }
    return NULL;
}

static void finish(struct gl_body_move *m, int code, const char *why)
{
    struct gl_node *n = m->node;
    struct gl_body_move *next;

    m->waits = false;
    next = m->to_blob ? find_same(n, m->ref, true) : NULL;
    gl_list_remove(&m->link); /* `ref` may go with whoever is told */
    m->done(m->owner, code, why, m->to_blob || code != 0 ? (gl_str){0} : gl_buf_view(&m->text));
    move_free(m);
    if (next != NULL) {
        next->waits = false;
        begin(next);
    }
    gl_node_rearm(n);
}

static void damaged(struct gl_body_move *m, const char *what)
{
    finish(m, GL_E_DAMAGED,
           gl_str_fmt(&m->arena,
                      "the message's body (sha256 %.*s, %llu bytes) is damaged in the store: %s",
                      GL_STR_ARG(m->ref->sha256), (unsigned long long)m->ref->bytes, what)
               .p);
}

static bool blob_answered(struct gl_body_move *m)
{
    m->node->outstanding--;
    if (m->blob_req.status != 0 && m->blob_req.status != GL_E_DAMAGED) { /* this disk, this time */
        finish(m, GL_E_UNAVAILABLE, m->blob_req.why.text);
        return false;
    }
    return true;
}

static struct gl_blob_req *call_blob(struct gl_body_move *m, gl_blob_done *done)
{
    m->blob_req = (struct gl_blob_req){.done = done, .owner = m};
    m->node->outstanding++;
    return &m->blob_req;
}

/* ---- piece by piece ---- */

static void next_piece(struct gl_body_move *m);

static void on_sealed(struct gl_blob_req *req)
{
    struct gl_body_move *m = req->owner;

    if (!blob_answered(m)) {
        return;
    }
    if (req->status == GL_E_DAMAGED) {
        damaged(m, "it has another hash");
    } else {
        finish(m, 0, "");
    }
}

static void on_written(struct gl_blob_req *req)
{
    struct gl_body_move *m = req->owner;

    if (blob_answered(m)) {
        m->piece++;
        gl_buf_reset(&m->text);
        next_piece(m);
    }
}

static void on_piece(struct gl_store_req *req)
{
    struct gl_body_move *m = req->owner;
    struct gl_blob *b = m->node->ports.blob;
    uint64_t at = m->piece * GL_BODY_PIECE_BYTES, left = m->ref->bytes - at;
    const struct gl_record *r = req->records;

    m->node->outstanding--;
    if (req->status != 0 && req->status != GL_E_DAMAGED) {
        finish(m, GL_E_UNAVAILABLE, req->why.text);
    } else if (req->status == 0 && r->rev == 0) {
        damaged(m, "a piece is missing");
    } else if (req->status != 0 || r->damaged ||
               r->value.n != (left < GL_BODY_PIECE_BYTES ? left : GL_BODY_PIECE_BYTES)) {
        damaged(m, "a piece is not as it was written");
    } else {
        gl_buf_str(&m->text, r->value);
        if (m->to_blob) {
            b->write(b, call_blob(m, on_written), m->context, m->ref->sha256, at,
                     gl_buf_view(&m->text));
        } else {
            m->piece++;
            next_piece(m);
        }
    }
}

static void end(struct gl_body_move *m)
{
    struct gl_blob *b = m->node->ports.blob;
    char hex[GL_SHA256_HEX];

    if (m->to_blob) {
        b->seal(b, call_blob(m, on_sealed), m->context, m->ref->sha256);
    } else if (gl_str_eq(gl_sha256_hex(gl_buf_view(&m->text), hex), m->ref->sha256)) {
        finish(m, 0, "");
    } else {
        damaged(m, "it has another hash");
    }
}

static void next_piece(struct gl_body_move *m)
{
    struct gl_store *s = m->node->ports.store;

    if (m->piece == gl_message_pieces(m->ref->bytes)) {
        end(m);
        return;
    }
    m->key = (struct gl_key){.kind = GL_S("body"),
                             .id = gl_str_fmt(&m->arena, "%.*s/%012llu/%04llu", GL_STR_ARG(m->job),
                                              (unsigned long long)m->ref->letter,
                                              (unsigned long long)m->piece)};
    m->req = (struct gl_store_req){.done = on_piece, .owner = m};
    m->node->outstanding++;
    s->ops->get(s, &m->req, m->context, &m->key, 1);
}

static void on_looked(struct gl_blob_req *req)
{
    struct gl_body_move *m = req->owner;

    m->node->outstanding--;
    if (req->status == 0) { /* an earlier attempt, or another agent, has brought it */
        finish(m, 0, "");
    } else {
        next_piece(m);
    }
}

static void begin(struct gl_body_move *m)
{
    struct gl_blob *b = m->node->ports.blob;

    if (m->to_blob) {
        b->look(b, call_blob(m, on_looked), m->context, m->ref->sha256, true);
    } else {
        next_piece(m);
    }
}

/* ---- the ways in ---- */

static void move(struct gl_node *n, gl_str context, gl_str job, const struct gl_body_ref *ref,
                 bool to_blob, gl_pieces_done *done, void *owner)
{
    struct gl_body_move *m = gl_mem_alloc(sizeof(*m));

    m->node = n;
    m->context = gl_str_dup(&m->arena, context);
    m->job = gl_str_dup(&m->arena, job);
    m->ref = ref;
    m->to_blob = to_blob;
    m->waits = to_blob && find_same(n, ref, false) != NULL;
    m->done = done;
    m->owner = owner;
    gl_list_push(&n->bodies, &m->link);
    if (!m->waits) {
        begin(m);
    }
}

void gl_pieces_to_blob(struct gl_node *n, gl_str context, gl_str job, const struct gl_body_ref *ref,
                       gl_pieces_done *done, void *owner)
{
    move(n, context, job, ref, true, done, owner);
}

void gl_pieces_read(struct gl_node *n, gl_str context, gl_str job, const struct gl_body_ref *ref,
                    gl_pieces_done *done, void *owner)
{
    move(n, context, job, ref, false, done, owner);
}
