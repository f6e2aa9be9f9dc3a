/* Sessions and the clock. */
#include "base/check.h"
#include "base/limits.h"
#include "store/redis/redis_parts.h"

static int make_no_sense(struct gl_store_req *req)
{
    req->status = gl_why(&req->why, GL_E_UNAVAILABLE, "the server's answer makes no sense");
    return req->status;
}

/* ---- sessions ---- */

static void encode_open(struct gl_redis *s, const struct gl_redis_op *op, struct gl_buf *out)
{
    const struct gl_session_wish *w = op->u.wish;
    gl_redis_eval(s, op, GL_REDIS_SCRIPT_SESSION, 7, out);
    gl_redis_arg_c(out, "open");
    gl_redis_arg(out, w->node);
    gl_redis_arg(out, w->nonce);
    gl_redis_arg_i64(out, w->ttl_ms);
    gl_redis_arg(out, w->about);
    gl_redis_arg_u64(out, op->opening);
    gl_redis_arg_c(out, s->identity);
}

static enum gl_redis_next decode_open(struct gl_redis *s, struct gl_redis_op *op,
                                      const struct gl_redis_reply *reply, struct gl_arena *a)
{
    (void)s;
    (void)a;
    struct gl_store_req *req = op->req;
    gl_str id = gl_redis_text(gl_redis_item(reply, 0));
    if (id.n == 0 || !gl_redis_u64(gl_redis_item(reply, 1), &req->session.incarnation)) {
        (void)make_no_sense(req);
        return GL_REDIS_DONE;
    }
    gl_mem_free(op->kept);
    op->kept = gl_mem_alloc(id.n + 1);
    memcpy(op->kept, id.p, id.n);
    req->session.id = (gl_str){op->kept, id.n};
    return GL_REDIS_DONE;
}

static void encode_verb(struct gl_redis *s, const struct gl_redis_op *op,
                        enum gl_redis_script script, const char *verb, struct gl_buf *out)
{
    gl_redis_eval(s, op, script, 2, out);
    gl_redis_arg_c(out, verb);
    gl_redis_arg(out, op->u.session.id);
}

static void encode_renew(struct gl_redis *s, const struct gl_redis_op *op, struct gl_buf *out)
{
    gl_redis_eval(s, op, GL_REDIS_SCRIPT_SESSION, 5, out);
    gl_redis_arg_c(out, "renew");
    gl_redis_arg(out, op->u.session.id);
    gl_redis_arg_i64(out, op->u.session.ttl_ms);
    gl_redis_arg(out, op->u.session.about);
    gl_redis_arg_c(out, s->identity);
}

static void encode_end(struct gl_redis *s, const struct gl_redis_op *op, struct gl_buf *out)
{
    encode_verb(s, op, GL_REDIS_SCRIPT_SESSION, "end", out);
}

static void encode_dead(struct gl_redis *s, const struct gl_redis_op *op, struct gl_buf *out)
{
    if (op->u.session.declare) {
        encode_verb(s, op, GL_REDIS_SCRIPT_SESSION, "declare", out);
    } else {
        encode_verb(s, op, GL_REDIS_SCRIPT_LIVES, "dead", out);
    }
}

static enum gl_redis_next decode_renew(struct gl_redis *s, struct gl_redis_op *op,
                                       const struct gl_redis_reply *reply, struct gl_arena *a)
{
    (void)s;
    (void)a;
    int64_t answer = -1;
    (void)gl_redis_i64(reply, &answer);
    if (answer != 0) {
        op->req->status =
            gl_why(&op->req->why, GL_E_GONE, "the session '%.*s' %s", GL_STR_ARG(op->u.session.id),
                   answer > 0 ? "was declared dead" : "is not known");
    }
    return GL_REDIS_DONE;
}

/* Leaving is fine also when one is dead already. */
static enum gl_redis_next decode_end(struct gl_redis *s, struct gl_redis_op *op,
                                     const struct gl_redis_reply *reply, struct gl_arena *a)
{
    int64_t answer = -1;
    if (gl_redis_i64(reply, &answer) && answer > 0) {
        return GL_REDIS_DONE;
    }
    return decode_renew(s, op, reply, a);
}

static enum gl_redis_next decode_dead(struct gl_redis *s, struct gl_redis_op *op,
                                      const struct gl_redis_reply *reply, struct gl_arena *a)
{
    (void)s;
    (void)a;
    int64_t answer = 0;
    (void)gl_redis_i64(reply, &answer);
    op->req->session_dead = answer != 0; /* below 0: it is not known */
    return GL_REDIS_DONE;
}

static void encode_list(struct gl_redis *s, const struct gl_redis_op *op, struct gl_buf *out)
{
    gl_redis_eval(s, op, GL_REDIS_SCRIPT_LIVES, 2, out);
    gl_redis_arg_c(out, "list");
    gl_redis_arg_u64(out, GL_SESSIONS_LISTED);
}

static enum gl_redis_next decode_list(struct gl_redis *s, struct gl_redis_op *op,
                                      const struct gl_redis_reply *reply, struct gl_arena *a)
{
    (void)s;
    struct gl_session_info *all = GL_NEW_ARRAY(a, struct gl_session_info, reply->items_n + 1);
    for (size_t i = 0; i < reply->items_n; i++) {
        const struct gl_redis_reply *r = gl_redis_item(reply, i);
        all[i].id = gl_redis_text(gl_redis_item(r, 0));
        all[i].node = gl_redis_text(gl_redis_item(r, 1));
        (void)gl_redis_u64(gl_redis_item(r, 2), &all[i].incarnation);
        (void)gl_redis_i64(gl_redis_item(r, 3), &all[i].left_ms);
        all[i].dead = gl_str_is(gl_redis_text(gl_redis_item(r, 4)), "1");
        all[i].about = gl_redis_text(gl_redis_item(r, 5));
    }
    op->req->sessions = all;
    op->req->sessions_n = reply->items_n;
    return GL_REDIS_DONE;
}

/* All of them by the link that writes, also the questions: they come behind what was called before.
 */
const struct gl_redis_verb gl_redis_verb_session_open = {
    .writes = true, .encode = encode_open, .decode = decode_open};
const struct gl_redis_verb gl_redis_verb_session_renew = {
    .writes = true, .encode = encode_renew, .decode = decode_renew};
const struct gl_redis_verb gl_redis_verb_session_end = {
    .writes = true, .encode = encode_end, .decode = decode_end};
const struct gl_redis_verb gl_redis_verb_session_dead = {
    .writes = true, .encode = encode_dead, .decode = decode_dead};
const struct gl_redis_verb gl_redis_verb_session_list = {
    .writes = true, .encode = encode_list, .decode = decode_list};

/* ---- the clock ---- */

static void encode_time(struct gl_redis *s, const struct gl_redis_op *op, struct gl_buf *out)
{
    (void)s;
    (void)op;
    gl_redis_command(out, 1);
    gl_redis_arg_c(out, "TIME");
}

static enum gl_redis_next decode_time(struct gl_redis *s, struct gl_redis_op *op,
                                      const struct gl_redis_reply *reply, struct gl_arena *a)
{
    (void)s;
    (void)a;
    int64_t sec = 0, usec = 0;
    if (gl_redis_i64(gl_redis_item(reply, 0), &sec) &&
        gl_redis_i64(gl_redis_item(reply, 1), &usec)) {
        op->req->time = sec * 1000 + usec / 1000;
    } else {
        (void)make_no_sense(op->req);
    }
    return GL_REDIS_DONE;
}

const struct gl_redis_verb gl_redis_verb_time = {.encode = encode_time, .decode = decode_time};
