/* redis_read.c - reads: one script each, on the reader link. A read that was lost with its
 * connection is simply sent again. */
#include "base/check.h"
#include "store/redis/redis_parts.h"

enum { LIMIT_MAX = 1 << 20 }; /* of one page */

static size_t limit_of(size_t limit)
{
    return limit < LIMIT_MAX ? limit : LIMIT_MAX;
}

/* ---- get ---- */

static void encode_get(const struct gl_redis_op *op, struct gl_buf *out)
{
    GL_ASSERT(op->call.type == GL_CALL_GET);
    gl_redis_eval_open(op, GL_REDIS_SCRIPT_GET, op->call.get.n, out);
    for (size_t i = 0; i < op->call.get.n; i++) {
        gl_redis_key_arg(out, op->call.get.keys[i].kind, op->call.get.keys[i].id);
    }
}

static void decode_get(struct gl_redis_op *op, const struct gl_redis_reply *reply)
{
    struct gl_record *all = gl_answer_records(&op->call, op->arena);

    GL_ASSERT(op->call.type == GL_CALL_GET);
    for (size_t i = 0; i < op->call.get.n; i++) {
        gl_redis_record_decode(&all[i], gl_redis_item(reply, i), true);
    }
}

const struct gl_redis_verb gl_redis_verb_get = {.encode = encode_get, .decode = decode_get};

/* ---- pages ---- */

struct reply_page {
    struct gl_answer answer;
    const struct gl_redis_reply *reply;
    size_t at;
};

static void read_session(struct gl_session_info *ret, const struct gl_redis_reply *r)
{
    ret->id = gl_redis_text(gl_redis_item(r, 0));
    ret->node = gl_redis_text(gl_redis_item(r, 1));
    (void)gl_redis_u64(gl_redis_item(r, 2), &ret->incarnation);
    (void)gl_redis_i64(gl_redis_item(r, 3), &ret->left_ms);
    ret->dead = gl_str_is(gl_redis_text(gl_redis_item(r, 4)), "1");
    ret->about = gl_redis_text(gl_redis_item(r, 5));
}

static bool read_item(struct reply_page *p, const struct gl_redis_reply *r, void *item)
{
    const struct gl_call *call = p->answer.call;
    struct gl_record *record = item;
    struct gl_index_entry *entry = item;

    GL_ASSERT(call->type != GL_CALL_GET);
    switch (call->type) {
    case GL_CALL_LIST:
        *record = (struct gl_record){.kind = call->listing->kind, .id = gl_redis_text(r)};
        gl_redis_record_decode(record, gl_redis_item(p->reply, p->at++), !call->listing->ids_only);
        return true;
    case GL_CALL_RANGE:
        return gl_redis_score_decode(gl_redis_text(r), &entry->score, &entry->id);
    case GL_CALL_LOG_READ:
        return gl_redis_log_entry_decode(item, r);
    case GL_CALL_SESSION_LIST:
        read_session(item, r);
        return true;
    default:
        GL_UNREACHABLE();
    }
}

/* Items that cannot be decoded were not written by us and are skipped. */
static bool next(struct gl_answer *a, void *item)
{
    struct reply_page *p = GL_CONTAINER(a, struct reply_page, answer);
    while (p->at < p->reply->items_n) {
        if (read_item(p, gl_redis_item(p->reply, p->at++), item)) {
            return true;
        }
    }
    return false;
}

void gl_redis_decode_page(struct gl_redis_op *op, const struct gl_redis_reply *reply)
{
    struct reply_page p = {.answer = {.call = &op->call, .arena = op->arena, .next = next},
                           .reply = reply};
    gl_answer_fill(&p.answer);
}

/* ---- list ---- */

/* The exclusive upper bound of all ids that start with `prefix`. */
static void bound_above(struct gl_buf *out, gl_str prefix)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena scratch = {0};
    gl_str above;
    if (gl_answer_upper_bound(prefix, &scratch, &above)) {
        gl_redis_joined(out, gl_arg_c("("), gl_arg_text(above));
    } else {
        gl_redis_arg_char(out, '+');
    }
}

static void encode_list(const struct gl_redis_op *op, struct gl_buf *out)
{
    const struct gl_listing *l = op->call.listing;
    /* `after` may lie outside the range of the prefix, on either side. */
    bool after_in = gl_str_starts(l->after, l->prefix);
    bool after_before = gl_str_cmp(l->after, l->prefix) < 0;

    GL_ASSERT(l->kind.n > 0);
    gl_redis_eval_open(op, GL_REDIS_SCRIPT_LIST, 8, out);
    gl_redis_arg_c(out, l->live_only ? "live" : "ids");
    gl_redis_name_arg(out, l->kind);
    if (l->descending) {
        gl_redis_arg_c(out, "ZREVRANGEBYLEX");
        if (l->after.n > 0 && (after_in || after_before)) {
            gl_redis_joined(out, gl_arg_c("("), gl_arg_text(l->after));
        } else {
            bound_above(out, l->prefix);
        }
        gl_redis_joined(out, gl_arg_c("["), gl_arg_text(l->prefix));
    } else {
        gl_redis_arg_c(out, "ZRANGEBYLEX");
        if (l->after.n > 0 && !after_before) {
            gl_redis_joined(out, gl_arg_c("("), gl_arg_text(l->after));
        } else {
            gl_redis_joined(out, gl_arg_c("["), gl_arg_text(l->prefix));
        }
        bound_above(out, l->prefix);
    }
    gl_redis_arg_u64(out, limit_of(l->limit));
    gl_redis_arg_char(out, l->ids_only ? '0' : '1');
    gl_redis_arg_u64(out, l->bytes_max);
}

const struct gl_redis_verb gl_redis_verb_list = {.encode = encode_list,
                                                 .decode = gl_redis_decode_page};

/* ---- range ---- */

static void encode_range(const struct gl_redis_op *op, struct gl_buf *out)
{
    const struct gl_range *r = op->call.range;

    GL_ASSERT(r->index.n > 0);
    gl_redis_eval_open(op, GL_REDIS_SCRIPT_RANGE, 4, out);
    gl_redis_name_arg(out, r->index);
    if (r->after_id.n > 0 && r->after_score >= r->score_min) {
        gl_redis_score_arg(out, "(", r->after_score, ":", r->after_id);
    } else {
        gl_redis_score_arg(out, "[", r->score_min, ":", (gl_str){0});
    }
    gl_redis_score_arg(out, "(", r->score_max, ";",
                       (gl_str){0}); /* ';' is the character after ':' */
    gl_redis_arg_u64(out, limit_of(r->limit));
}

const struct gl_redis_verb gl_redis_verb_range = {.encode = encode_range,
                                                  .decode = gl_redis_decode_page};

/* ---- logs ---- */

static void encode_log(const struct gl_redis_op *op, struct gl_buf *out)
{
    GL_ASSERT(op->call.log.kind.n > 0);
    gl_redis_eval_open(op, GL_REDIS_SCRIPT_LOG, 3, out);
    gl_redis_key_arg(out, op->call.log.kind, op->call.log.id);
    gl_redis_arg_i64(out, op->call.log.from > 0 ? op->call.log.from : 0);
    gl_redis_arg_u64(out, limit_of(op->call.log.limit));
}

const struct gl_redis_verb gl_redis_verb_log_read = {.encode = encode_log,
                                                     .decode = gl_redis_decode_page};

/* ---- measure ---- */

static void encode_measure(const struct gl_redis_op *op, struct gl_buf *out)
{
    gl_redis_eval_open(op, GL_REDIS_SCRIPT_MEASURE, 0, out);
}

static void decode_measure(struct gl_redis_op *op, const struct gl_redis_reply *reply)
{
    (void)gl_redis_u64(reply, &op->call.req->bytes);
}

const struct gl_redis_verb gl_redis_verb_measure = {.encode = encode_measure,
                                                    .decode = decode_measure};
