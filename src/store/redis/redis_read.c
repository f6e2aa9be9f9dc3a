/* Reading. */
#include "base/check.h"
#include "store/redis/redis_parts.h"

enum { LIMIT_MAX = 1 << 20 }; /* of one page */

static size_t limit_of(size_t limit)
{
    return limit < LIMIT_MAX ? limit : LIMIT_MAX;
}

/* ---- get ---- */

static void encode_get(struct gl_redis *s, const struct gl_redis_op *op, struct gl_buf *out)
{
    gl_redis_eval(s, op, GL_REDIS_SCRIPT_GET, op->u.get.n, out);
    for (size_t i = 0; i < op->u.get.n; i++) {
        gl_redis_key_arg(out, op->u.get.keys[i].kind, op->u.get.keys[i].id);
    }
}

static enum gl_redis_next decode_get(struct gl_redis *s, struct gl_redis_op *op,
                                     const struct gl_redis_reply *reply, struct gl_arena *a)
{
    (void)s;
    size_t n = op->u.get.n;
    struct gl_record *all = GL_NEW_ARRAY(a, struct gl_record, n + 1);
    for (size_t i = 0; i < n; i++) {
        all[i].kind = op->u.get.keys[i].kind;
        all[i].id = op->u.get.keys[i].id;
        gl_redis_record(&all[i], gl_redis_item(reply, i), true);
    }
    op->req->records = all;
    op->req->records_n = n;
    return GL_REDIS_DONE;
}

const struct gl_redis_verb gl_redis_verb_get = {.encode = encode_get, .decode = decode_get};

/* ---- list ---- */

static void bound(struct gl_buf *out, char mark, gl_str text)
{
    gl_redis_arg_open(out, text.n + 1);
    gl_buf_char(out, mark);
    gl_buf_str(out, text);
    gl_redis_arg_close(out);
}

/* Above all that start with `prefix`: the prefix with its last byte one higher. */
static void bound_above(struct gl_buf *out, gl_str prefix)
{
    while (prefix.n > 0 && (unsigned char)prefix.p[prefix.n - 1] == 0xff) {
        prefix.n--;
    }
    if (prefix.n == 0) {
        gl_redis_arg_char(out, '+');
        return;
    }
    gl_redis_arg_open(out, prefix.n + 1);
    gl_buf_char(out, '(');
    gl_buf_add(out, prefix.p, prefix.n - 1);
    gl_buf_char(out, (char)(prefix.p[prefix.n - 1] + 1));
    gl_redis_arg_close(out);
}

static void encode_list(struct gl_redis *s, const struct gl_redis_op *op, struct gl_buf *out)
{
    const struct gl_listing *l = op->u.listing;
    bool after_in = gl_str_starts(l->after, l->prefix);
    bool after_before = gl_str_cmp(l->after, l->prefix) < 0;
    gl_redis_eval(s, op, GL_REDIS_SCRIPT_LIST, 8, out);
    gl_redis_arg_c(out, l->live_only ? "live" : "ids");
    gl_redis_name_arg(out, l->kind);
    if (l->descending) {
        gl_redis_arg_c(out, "ZREVRANGEBYLEX");
        if (l->after.n > 0 && (after_in || after_before)) {
            bound(out, '(', l->after);
        } else {
            bound_above(out, l->prefix);
        }
        bound(out, '[', l->prefix);
    } else {
        gl_redis_arg_c(out, "ZRANGEBYLEX");
        if (l->after.n > 0 && !after_before) {
            bound(out, '(', l->after);
        } else {
            bound(out, '[', l->prefix);
        }
        bound_above(out, l->prefix);
    }
    gl_redis_arg_u64(out, limit_of(l->limit));
    gl_redis_arg_char(out, l->ids_only ? '0' : '1');
    gl_redis_arg_u64(out, l->bytes_max);
}

static enum gl_redis_next decode_list(struct gl_redis *s, struct gl_redis_op *op,
                                      const struct gl_redis_reply *reply, struct gl_arena *a)
{
    (void)s;
    const struct gl_listing *l = op->u.listing;
    size_t n = reply->items_n / 2;
    struct gl_record *all = GL_NEW_ARRAY(a, struct gl_record, n + 1);
    for (size_t i = 0; i < n; i++) {
        all[i].kind = l->kind;
        all[i].id = gl_redis_text(gl_redis_item(reply, 2 * i));
        gl_redis_record(&all[i], gl_redis_item(reply, 2 * i + 1), !l->ids_only);
    }
    op->req->records = all;
    op->req->records_n = n;
    return GL_REDIS_DONE;
}

const struct gl_redis_verb gl_redis_verb_list = {.encode = encode_list, .decode = decode_list};

/* ---- range ---- */

static void bound_score(struct gl_buf *out, char mark, int64_t score, char end, gl_str id)
{
    char digits[GL_REDIS_SCORE_BYTES];
    gl_redis_score(score, digits);
    gl_redis_arg_open(out, sizeof(digits) + 2 + id.n);
    gl_buf_char(out, mark);
    gl_buf_add(out, digits, sizeof(digits));
    gl_buf_char(out, end);
    gl_buf_str(out, id);
    gl_redis_arg_close(out);
}

static void encode_range(struct gl_redis *s, const struct gl_redis_op *op, struct gl_buf *out)
{
    const struct gl_range *r = op->u.range;
    gl_redis_eval(s, op, GL_REDIS_SCRIPT_RANGE, 4, out);
    gl_redis_name_arg(out, r->index);
    if (r->after_id.n > 0 && r->after_score >= r->score_min) {
        bound_score(out, '(', r->after_score, ':', r->after_id);
    } else {
        bound_score(out, '[', r->score_min, ':', (gl_str){0});
    }
    bound_score(out, '(', r->score_max, ':' + 1, (gl_str){0}); /* behind all with that score */
    gl_redis_arg_u64(out, limit_of(r->limit));
}

static enum gl_redis_next decode_range(struct gl_redis *s, struct gl_redis_op *op,
                                       const struct gl_redis_reply *reply, struct gl_arena *a)
{
    (void)s;
    struct gl_index_entry *all = GL_NEW_ARRAY(a, struct gl_index_entry, reply->items_n + 1);
    size_t n = 0;
    for (size_t i = 0; i < reply->items_n; i++) {
        gl_str member = gl_redis_text(gl_redis_item(reply, i));
        n += gl_redis_unscore(member, &all[n].score, &all[n].id); /* else a stranger's */
    }
    op->req->entries = all;
    op->req->entries_n = n;
    return GL_REDIS_DONE;
}

const struct gl_redis_verb gl_redis_verb_range = {.encode = encode_range, .decode = decode_range};

/* ---- logs ---- */

static void encode_log(struct gl_redis *s, const struct gl_redis_op *op, struct gl_buf *out)
{
    gl_redis_eval(s, op, GL_REDIS_SCRIPT_LOG, 3, out);
    gl_redis_key_arg(out, op->u.log.kind, op->u.log.id);
    gl_redis_arg_i64(out, op->u.log.from > 0 ? op->u.log.from : 0);
    gl_redis_arg_u64(out, limit_of(op->u.log.limit));
}

static enum gl_redis_next decode_log(struct gl_redis *s, struct gl_redis_op *op,
                                     const struct gl_redis_reply *reply, struct gl_arena *a)
{
    (void)s;
    struct gl_log_entry *all = GL_NEW_ARRAY(a, struct gl_log_entry, reply->items_n + 1);
    size_t n = 0;
    for (size_t i = 0; i < reply->items_n; i++) {
        const struct gl_redis_reply *entry = gl_redis_item(reply, i);
        gl_str rest, seq = gl_str_cut(gl_redis_text(gl_redis_item(entry, 0)), '-', &rest);
        if (gl_str_i64(seq, &all[n].seq)) { /* else a stranger's */
            all[n].value = gl_redis_text(gl_redis_item(gl_redis_item(entry, 1), 1));
            n++;
        }
    }
    op->req->log = all;
    op->req->log_n = n;
    return GL_REDIS_DONE;
}

const struct gl_redis_verb gl_redis_verb_log = {.encode = encode_log, .decode = decode_log};

/* ---- how much ---- */

static void encode_measure(struct gl_redis *s, const struct gl_redis_op *op, struct gl_buf *out)
{
    gl_redis_eval(s, op, GL_REDIS_SCRIPT_MEASURE, 0, out);
}

static enum gl_redis_next decode_measure(struct gl_redis *s, struct gl_redis_op *op,
                                         const struct gl_redis_reply *reply, struct gl_arena *a)
{
    (void)s;
    (void)a;
    (void)gl_redis_u64(reply, &op->req->bytes);
    return GL_REDIS_DONE;
}

const struct gl_redis_verb gl_redis_verb_measure = {.encode = encode_measure,
                                                    .decode = decode_measure};
