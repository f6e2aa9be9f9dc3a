/* redis_session.c - sessions and the clock. Session deadlines are compared with the server's clock
 * only, inside the scripts. */
#include "base/check.h"
#include "base/limits.h"
#include "store/redis/redis_parts.h"

static int unexpected_reply(struct gl_store_req *req)
{
    req->status = gl_why(&req->why, GL_E_UNAVAILABLE, "unexpected reply from the Redis server");
    return req->status;
}

/* ---- sessions ---- */

static void encode_open(const struct gl_redis_op *op, struct gl_buf *out)
{
    const struct gl_session_options *w = op->call.options;
    gl_redis_eval(op, GL_REDIS_SCRIPT_SESSION, out, gl_arg_c("open"), gl_arg_text(w->node),
                  gl_arg_text(w->nonce), gl_arg_i64(w->ttl_ms), gl_arg_text(w->about),
                  gl_arg_u64(op->opening), gl_arg_c(op->store->identity));
}

static void decode_open(struct gl_redis_op *op, const struct gl_redis_reply *reply)
{
    struct gl_store_req *req = op->call.req;
    gl_str id = gl_redis_text(gl_redis_item(reply, 0));
    if (id.n == 0 || !gl_redis_u64(gl_redis_item(reply, 1), &req->session.incarnation)) {
        (void)unexpected_reply(req);
        return;
    }
    /* The id must outlive the reply: a WAIT may follow. */
    gl_mem_free(op->kept);
    op->kept = gl_mem_alloc(id.n + 1);
    memcpy(op->kept, id.p, id.n);
    req->session.id = (gl_str){op->kept, id.n};
}

static void encode_renew(const struct gl_redis_op *op, struct gl_buf *out)
{
    gl_redis_eval(op, GL_REDIS_SCRIPT_SESSION, out, gl_arg_c("renew"),
                  gl_arg_text(op->call.session.id), gl_arg_i64(op->call.session.ttl_ms),
                  gl_arg_text(op->call.session.about), gl_arg_c(op->store->identity));
}

static void encode_end(const struct gl_redis_op *op, struct gl_buf *out)
{
    gl_redis_eval(op, GL_REDIS_SCRIPT_SESSION, out, gl_arg_c("end"),
                  gl_arg_text(op->call.session.id));
}

static void encode_dead(const struct gl_redis_op *op, struct gl_buf *out)
{
    bool declare = op->call.session.declare;
    gl_redis_eval(op, declare ? GL_REDIS_SCRIPT_SESSION : GL_REDIS_SCRIPT_SESSION_READ, out,
                  gl_arg_c(declare ? "declare" : "dead"), gl_arg_text(op->call.session.id));
}

static void decode_renew(struct gl_redis_op *op, const struct gl_redis_reply *reply)
{
    int64_t answer = -1;
    (void)gl_redis_i64(reply, &answer);
    if (answer != 0) {
        op->call.req->status = gl_why(&op->call.req->why, GL_E_GONE, "session '%.*s' %s",
                                      GL_STR_ARG(op->call.session.id),
                                      answer > 0 ? "was declared dead" : "is unknown");
    }
}

/* Ending a session that is already dead succeeds. */
static void decode_end(struct gl_redis_op *op, const struct gl_redis_reply *reply)
{
    int64_t answer = -1;
    if (gl_redis_i64(reply, &answer) && answer > 0) {
        return;
    }
    decode_renew(op, reply);
}

static void decode_dead(struct gl_redis_op *op, const struct gl_redis_reply *reply)
{
    int64_t answer = 0;
    (void)gl_redis_i64(reply, &answer);
    op->call.req->session_dead = answer != 0; /* below 0: unknown, which counts as dead */
}

static void encode_list(const struct gl_redis_op *op, struct gl_buf *out)
{
    gl_redis_eval(op, GL_REDIS_SCRIPT_SESSION_READ, out, gl_arg_c("list"),
                  gl_arg_i64(GL_SESSIONS_LISTED));
}

/* All on the writer link, even the questions, so that they are answered after everything called
 * before. */
const struct gl_redis_verb gl_redis_verb_session_open = {
    .writes = true, .encode = encode_open, .decode = decode_open};
const struct gl_redis_verb gl_redis_verb_session_renew = {
    .writes = true, .encode = encode_renew, .decode = decode_renew};
const struct gl_redis_verb gl_redis_verb_session_end = {
    .writes = true, .encode = encode_end, .decode = decode_end};
const struct gl_redis_verb gl_redis_verb_session_dead = {
    .writes = true, .encode = encode_dead, .decode = decode_dead};
const struct gl_redis_verb gl_redis_verb_session_list = {
    .writes = true, .encode = encode_list, .decode = gl_redis_decode_page};

/* ---- the clock ---- */

static void encode_time(const struct gl_redis_op *op, struct gl_buf *out)
{
    (void)op;
    (void)op;
    gl_redis_command(out, gl_arg_c("TIME"));
}

static void decode_time(struct gl_redis_op *op, const struct gl_redis_reply *reply)
{
    int64_t sec = 0, usec = 0;
    if (gl_redis_i64(gl_redis_item(reply, 0), &sec) &&
        gl_redis_i64(gl_redis_item(reply, 1), &usec)) {
        op->call.req->time = sec * 1000 + usec / 1000;
    } else {
        (void)unexpected_reply(op->call.req);
    }
}

const struct gl_redis_verb gl_redis_verb_time = {.encode = encode_time, .decode = decode_time};
