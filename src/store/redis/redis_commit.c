/* redis_commit.c - transactions: commit, the refusal of an oversized one, and `resolve`.
 *
 * A commit is one EVALSHA. Its arguments are a header (session, transaction id, wake-up word, store
 * identity, number of guards), then the guards, then the writes. Each guard and write begins with a
 * one-letter mark; the script in redis_scripts.c reads them in the same order. */
#include "base/check.h"
#include "store/redis/redis_parts.h"

/* ---- guards and writes: a mark, then arguments ---- */

static const struct {
    char mark;
    size_t args_n; /* including the mark */
} guards[] =
    {
        [GL_GUARD_AT] = {'=', 3},       [GL_GUARD_ABSENT] = {'-', 2}, [GL_GUARD_PRESENT] = {'+', 2},
        [GL_GUARD_NOT_LIVE] = {'n', 2}, [GL_GUARD_OWNED] = {'o', 5},  [GL_GUARD_DEAD] = {'d', 2},
        [GL_GUARD_ALIVE] = {'a', 2},
},
  writes[] = {
      [GL_WRITE_PUT] = {'p', 9},      [GL_WRITE_PUT_NEW] = {'n', 9}, [GL_WRITE_DELETE] = {'d', 3},
      [GL_WRITE_INDEX] = {'i', 3},    [GL_WRITE_UNINDEX] = {'u', 3}, [GL_WRITE_LOG] = {'l', 4},
      [GL_WRITE_LOG_TRIM] = {'t', 3},
};

static void encode_guard(const struct gl_guard *g, struct gl_buf *out)
{
    GL_ASSERT((size_t)g->type < GL_COUNT(guards));
    gl_redis_arg_char(out, guards[g->type].mark);
    if (g->type == GL_GUARD_DEAD || g->type == GL_GUARD_ALIVE) {
        gl_redis_arg(out, g->owner);
        return;
    }
    gl_redis_key_arg(out, g->kind, g->id);
    if (g->type == GL_GUARD_AT) {
        gl_redis_arg_u64(out, g->rev);
    } else if (g->type == GL_GUARD_OWNED) {
        gl_redis_arg(out, g->owner);
        gl_redis_arg_u64(out, g->token);
        gl_redis_arg_u64(out, g->rev);
    }
}

static void encode_write(const struct gl_write *w, struct gl_buf *out)
{
    GL_ASSERT((size_t)w->type < GL_COUNT(writes));
    gl_redis_arg_char(out, writes[w->type].mark);
    switch (w->type) {
    case GL_WRITE_PUT:
    case GL_WRITE_PUT_NEW:
        gl_redis_name_arg(out, w->kind);
        gl_redis_args(out, GL_ARGS(gl_arg_text(w->id), gl_arg_u64(w->rev), gl_arg_text(w->owner),
                                   gl_arg_u64(w->token), gl_arg_i64(w->live),
                                   gl_arg_i64(gl_call_checksum(w)), gl_arg_text(w->value)));
        break;
    case GL_WRITE_INDEX:
    case GL_WRITE_UNINDEX:
        gl_redis_name_arg(out, w->kind);
        gl_redis_score_arg(out, "", w->score, ":", w->id);
        break;
    case GL_WRITE_LOG:
        gl_redis_key_arg(out, w->kind, w->id);
        gl_redis_args(out, GL_ARGS(gl_arg_i64(w->seq), gl_arg_text(w->value)));
        break;
    case GL_WRITE_LOG_TRIM: /* "" : the whole log */
        gl_redis_key_arg(out, w->kind, w->id);
        gl_redis_args(
            out, GL_ARGS(w->seq == INT64_MAX ? gl_arg_c("") : gl_arg_i64(w->seq > 0 ? w->seq : 0)));
        break;
    case GL_WRITE_DELETE:
        gl_redis_name_arg(out, w->kind);
        gl_redis_arg(out, w->id);
        break;
    }
}

/* ---- the transaction ---- */

/* RESP announces the number of arguments in advance, so they are counted first. */
static void encode(const struct gl_redis_op *op, struct gl_buf *out)
{
    const struct gl_tx *tx = op->call.tx;
    size_t n = 5;

    GL_ASSERT(op->call.type == GL_CALL_COMMIT);
    for (size_t i = 0; i < tx->guards_n; i++) {
        n += guards[tx->guards[i].type].args_n;
    }
    for (size_t i = 0; i < tx->writes_n; i++) {
        n += writes[tx->writes[i].type].args_n;
    }
    gl_redis_eval_open(op, GL_REDIS_SCRIPT_COMMIT, n, out);
    gl_redis_arg(out, tx->session);
    gl_redis_arg_u64(out, tx->id);
    gl_redis_arg(out, tx->wake);
    gl_redis_arg_c(out, op->store->identity);
    gl_redis_arg_u64(out, tx->guards_n);
    for (size_t i = 0; i < tx->guards_n; i++) {
        encode_guard(&tx->guards[i], out);
    }
    for (size_t i = 0; i < tx->writes_n; i++) {
        encode_write(&tx->writes[i], out);
    }
}

static void decode(struct gl_redis_op *op, const struct gl_redis_reply *reply)
{
    struct gl_store_req *req = op->call.req;
    int64_t guard = 0;

    GL_ASSERT(op->call.type == GL_CALL_COMMIT);
    if (!gl_redis_i64(reply, &guard) || guard > (int64_t)op->call.tx->guards_n) {
        req->status = gl_why(&req->why, GL_E_UNKNOWN, "unexpected reply from the Redis server");
    } else if (guard > 0) {
        gl_call_conflict(&op->call, (size_t)guard - 1);
    } else if (guard < 0) {
        req->refused = op->call.tx->guards_n;
        req->status = gl_why(&req->why, GL_E_CONFLICT,
                             "refused: arrived too late, after a transaction with a higher id");
    }
}

const struct gl_redis_verb gl_redis_verb_commit = {
    .writes = true, .once = true, .encode = encode, .decode = decode};

/* ---- an oversized transaction ----
 * It is refused without being sent. But transactions complete in order, so it waits for its turn: a
 * PING takes its place in the queue. */

static void encode_ping(const struct gl_redis_op *op, struct gl_buf *out)
{
    (void)op;
    gl_redis_command(out, gl_arg_c("PING"));
}

static void decode_ping(struct gl_redis_op *op, const struct gl_redis_reply *reply)
{
    struct gl_store_req *req = op->call.req;

    GL_ASSERT(op->call.type == GL_CALL_COMMIT);
    (void)reply;
    req->status = gl_call_check_sizes(op->call.tx, GL_REDIS_COMMIT_BYTES_MAX, &req->why);
}

const struct gl_redis_verb gl_redis_verb_too_large = {
    .writes = true, .encode = encode_ping, .decode = decode_ping};

/* ---- the outcome of a transaction ---- */

static void encode_resolve(const struct gl_redis_op *op, struct gl_buf *out)
{
    GL_ASSERT(op->call.type == GL_CALL_RESOLVE);
    gl_redis_eval(op, GL_REDIS_SCRIPT_RESOLVE, out, gl_arg_text(op->call.resolve.session),
                  gl_arg_u64(op->call.resolve.tx_id), gl_arg_c(op->store->identity));
}

static void decode_resolve(struct gl_redis_op *op, const struct gl_redis_reply *reply)
{
    struct gl_store_req *req = op->call.req;
    int64_t answer = -1;

    GL_ASSERT(op->call.type == GL_CALL_RESOLVE);
    (void)gl_redis_i64(reply, &answer);
    if (answer == 1) {
        req->status = gl_why(&req->why, GL_E_CONFLICT,
                             "the transaction was refused, or never arrived and never will");
    } else if (answer != 0) {
        req->status = gl_why(&req->why, GL_E_UNKNOWN,
                             "the store no longer remembers the outcome of the transaction");
    }
}

const struct gl_redis_verb gl_redis_verb_resolve = {
    .writes = true, .encode = encode_resolve, .decode = decode_resolve};
