/* bodies.c - large bodies of messages, kept apart from the messages.
 *
 * A large body is stored in pieces: records "body" under the number of the message that brought it,
 * written in the same transaction. The message names it as an artifact. Messages that pass the same
 * body on share the records, and the transaction that drops the last of them deletes the records.
 *
 * Dead letters are not in memory, so their references cannot be counted. The body of a dead letter
 * therefore stays until its job is removed. So does every body that is there when a job with dead
 * messages is loaded, because any of them may belong to one. */
#include "base/check.h"
#include "core/agents/agents.h"

#include "base/sha256.h"
#include "core/flow/txn.h"

static gl_str key_of(struct gl_core *c, const struct gl_job *j, uint64_t number)
{
    return gl_str_fmt(c->out->arena, "%.*s/%012llu", GL_STR_ARG(j->id), (unsigned long long)number);
}

/* ---- references ---- */

struct gl_body *gl_body_acquire(struct gl_core *c, struct gl_job *j, uint64_t number,
                                uint64_t bytes)
{
    gl_str key = key_of(c, j, number);
    struct gl_body *b = gl_map_find(&j->bodies, key);

    if (b == NULL) {
        b = gl_pool_alloc(&c->mem, sizeof(*b));
        *b = (struct gl_body){.job = j, .number = number, .bytes = bytes};
        gl_core_set(c, &b->key, key);
        gl_map_add(&j->bodies, b->key, b);
    }
    b->refs++;
    GL_ASSERT(b->refs > 0);
    GL_ASSERT(b->job == j);
    return b;
}

void gl_body_release(struct gl_core *c, struct gl_body *b)
{
    GL_ASSERT(b == NULL || b->refs > 0);
    if (b == NULL || --b->refs > 0) {
        return;
    }
    if (c->lately.body == b) {
        c->lately.body = NULL;
    }
    (void)gl_map_remove(&b->job->bodies,
                        b->key); /* known to be there: gl_body_acquire() added it */
    gl_core_set(c, &b->key, (gl_str){0});
    gl_pool_free(&c->mem, b, sizeof(*b));
}

static gl_str piece_id(struct gl_core *c, const struct gl_body *b, uint64_t piece)
{
    GL_ASSERT(piece < gl_message_pieces(b->bytes));
    return gl_str_fmt(c->out->arena, "%.*s/%04llu", GL_STR_ARG(b->key), (unsigned long long)piece);
}

void gl_body_delete(struct gl_core *c, struct gl_body *b)
{
    bool is_last =
        b != NULL && (b->refs == 1 || GL_PLANT(51)); /* planted: other references are ignored */

    GL_ASSERT(b == NULL || b->refs > 0);
    if (is_last && !b->is_kept && !GL_PLANT(52)) { /* planted: the pieces stay */
        for (uint64_t i = 0; i < gl_message_pieces(b->bytes); i++) {
            (void)gl_txn_write(c, b->job, GL_WRITE_DELETE, GL_S("body"), piece_id(c, b, i));
        }
    }
    gl_body_release(c, b);
}

/* ---- a new message ---- */

void gl_body_remember(struct gl_core *c, gl_str text, gl_str sha256, struct gl_body *b)
{
    c->lately.text = text;
    c->lately.sha256 = sha256;
    c->lately.body = b;
}

/* Is `text` the body that was read or written last in this step of the core? Compared by address.
 */
static bool is_recent(const struct gl_core *c, const struct gl_job *j, gl_str text)
{
    return c->lately.body != NULL && c->lately.body->job == j && c->lately.text.p == text.p &&
           c->lately.text.n == text.n;
}

static struct gl_body *write_pieces(struct gl_core *c, struct gl_job *j, gl_str text,
                                    uint64_t number)
{
    struct gl_body *b = gl_body_acquire(c, j, number, text.n);
    gl_str copy = gl_str_dup(c->out->arena, text); /* lives until the transaction has committed */
    char hex[GL_SHA256_HEX];

    GL_ASSERT(text.n > c->body_bytes);
    GL_MARK(c->trace, "bodies.in_pieces");
    for (uint64_t i = 0; i < gl_message_pieces(text.n); i++) {
        size_t at = (size_t)i * GL_BODY_PIECE_BYTES, left = text.n - at;
        struct gl_write *w = gl_txn_write(c, j, GL_WRITE_PUT, GL_S("body"), piece_id(c, b, i));

        w->value = (gl_str){.p = copy.p + at,
                            .n = left < GL_BODY_PIECE_BYTES ? left : GL_BODY_PIECE_BYTES};
    }
    gl_body_remember(c, text, gl_str_dup(c->out->arena, gl_sha256_hex(text, hex)), b);
    return b;
}

/* A dead letter that is sent again names its body; its records are still there. */
static struct gl_body *acquire_referenced(struct gl_core *c, struct gl_job *j,
                                          const struct gl_message *m)
{
    struct gl_body_ref ref;
    struct gl_body *b;

    GL_ASSERT(m->body.n == 0);
    if (!gl_message_body_ref(m->artifacts, c->out->arena, &ref) ||
        ref.message_number > j->r.letters_n ||
        GL_PLANT(53)) { /* planted: named, but no reference is taken */
        return NULL;
    }
    b = gl_body_acquire(c, j, ref.message_number, ref.bytes);
    b->is_kept |= b->refs == 1 && j->r.dead_n > 0;
    return b;
}

struct gl_body *gl_body_of(struct gl_core *c, struct gl_job *j, struct gl_message *m,
                           uint64_t number)
{
    struct gl_body_ref ref;
    struct gl_body *b;

    GL_ASSERT(number > 0);
    GL_ASSERT(number <= j->r.letters_n);
    if (m->body.n == 0) {
        return acquire_referenced(c, j, m);
    }
    if (m->body.n <= c->body_bytes || m->body.n > GL_MESSAGE_BYTES_MAX) {
        m->artifacts = gl_message_artifacts(c->out->arena, m->artifacts, (gl_str){0});
        return NULL;
    }
    if (is_recent(c, j, m->body)) {
        GL_MARK(c->trace, "bodies.shared");
        b = gl_body_acquire(c, j, c->lately.body->number, c->lately.body->bytes);
    } else {
        b = write_pieces(c, j, m->body, number);
    }
    ref = (struct gl_body_ref){
        .sha256 = c->lately.sha256,
        .bytes = b->bytes,
        .message_number = b->number,
    };
    m->artifacts = gl_message_artifacts(c->out->arena, m->artifacts,
                                        gl_message_body_artifact(&ref, c->out->arena));
    m->body = (gl_str){0};
    GL_ASSERT(m->body.n == 0);
    GL_ASSERT(b->refs > 0);
    return b;
}
