/* redis_encode.c - names, scores and records in the form in which the server keeps them.
 * docs/store-redis.md describes the keys; people read and edit them with redis-cli, so they stay
 * readable. */
#include "base/check.h"
#include "port/checksum.h"
#include "store/redis/redis_parts.h"

void gl_redis_eval_open(const struct gl_redis_op *op, enum gl_redis_script script, size_t n,
                        struct gl_buf *out)
{
    const struct gl_redis *s = op->store;
    const struct gl_redis_link *l = &s->links[op->verb->writes ? GL_REDIS_WRITER : GL_REDIS_READER];
    /* The scripts treat "" as the default context, which needs no lookup. */
    bool is_home = gl_str_eq(op->call.context, GL_CONTEXT_DEFAULT);

    GL_ASSERT(script < GL_REDIS_SCRIPTS_N);
    gl_redis_command_open(out, n + 5);
    gl_redis_args(out, GL_ARGS(gl_arg_c("EVALSHA"), gl_arg_c(l->sha[script]), gl_arg_i64(0),
                               gl_arg_text(is_home ? (gl_str){0} : op->call.context),
                               gl_arg_i64(s->url.database)));
}

void gl_redis_eval_n(const struct gl_redis_op *op, enum gl_redis_script script, struct gl_buf *out,
                     const struct gl_arg *args, size_t n)
{
    GL_ASSERT(script < GL_REDIS_SCRIPTS_N);
    gl_redis_eval_open(op, script, n, out);
    gl_redis_args(out, args, n);
}

/* ---- names ---- */

/* In a key, ':' ends a name, '.' begins our internal keys, '@' begins the prefix of a context, and
 * '%' begins an escape. */
static bool is_plain(gl_str name)
{
    return (name.n == 0 || (name.p[0] != '.' && name.p[0] != '@')) &&
           memchr(name.p != NULL ? name.p : "", ':', name.n) == NULL &&
           memchr(name.p != NULL ? name.p : "", '%', name.n) == NULL;
}

gl_str gl_redis_name_encode(gl_str name, struct gl_buf *scratch)
{
    if (is_plain(name)) {
        return name;
    }
    gl_buf_reset(scratch);
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (c == ':' || c == '%' || (i == 0 && (c == '.' || c == '@'))) {
            gl_buf_fmt(scratch, "%%%02x", (unsigned char)c);
        } else {
            gl_buf_char(scratch, c);
        }
    }
    return gl_buf_view(scratch);
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0;
}

gl_str gl_redis_name_decode(gl_str name, struct gl_arena *a)
{
    char *p = gl_arena_alloc(a, name.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] == '%' && i + 2 < name.n) {
            p[n++] = (char)(hex(name.p[i + 1]) * 16 + hex(name.p[i + 2]));
            i += 2;
        } else {
            p[n++] = name.p[i];
        }
    }
    return (gl_str){p, n};
}

void gl_redis_name_arg(struct gl_buf *out, gl_str name)
{
    struct gl_buf scratch = {0};
    gl_redis_arg(out, gl_redis_name_encode(name, &scratch));
    gl_buf_done(&scratch);
}

void gl_redis_key_arg(struct gl_buf *out, gl_str name, gl_str id)
{
    struct gl_buf scratch = {0};
    gl_str plain = gl_redis_name_encode(name, &scratch);

    GL_ASSERT(name.n > 0);
    gl_redis_joined(out, gl_arg_text(plain), gl_arg_c(":"), gl_arg_text(id));
    gl_buf_done(&scratch);
}

/* ---- scores ---- */

/* A sorted set's own score is a double, with only 53 bits. So all members have score 0 and begin
 * with the number as 16 hex digits whose order as text is the order of the numbers: the sign bit is
 * flipped. */
void gl_redis_score_encode(int64_t score, char ret[static GL_REDIS_SCORE_BYTES])
{
    uint64_t v = (uint64_t)score ^ (UINT64_C(1) << 63);
    for (int i = GL_REDIS_SCORE_BYTES - 1; i >= 0; i--, v >>= 4) {
        ret[i] = "0123456789abcdef"[v & 15];
    }
}

void gl_redis_score_arg(struct gl_buf *out, const char *mark, int64_t score, const char *end,
                        gl_str id)
{
    char digits[GL_REDIS_SCORE_BYTES];
    gl_redis_score_encode(score, digits);
    gl_redis_joined(out, gl_arg_c(mark), gl_arg_text((gl_str){digits, sizeof(digits)}),
                    gl_arg_c(end), gl_arg_text(id));
}

bool gl_redis_score_decode(gl_str member, int64_t *ret_score, gl_str *ret_id)
{
    uint64_t v = 0;
    if (member.n <= GL_REDIS_SCORE_BYTES || member.p[GL_REDIS_SCORE_BYTES] != ':') {
        return false;
    }
    for (int i = 0; i < GL_REDIS_SCORE_BYTES; i++) {
        v = v << 4 | (unsigned)hex(member.p[i]);
    }
    *ret_score = (int64_t)(v ^ (UINT64_C(1) << 63));
    *ret_id = (gl_str){member.p + GL_REDIS_SCORE_BYTES + 1, member.n - GL_REDIS_SCORE_BYTES - 1};
    return true;
}

/* ---- records ---- */

/* Mark a record as damaged instead of failing the read: the reader decides what to do about it. */
static void damage(struct gl_record *r)
{
    r->damaged = true;
    r->rev = r->rev != 0 ? r->rev : 1; /* 0 would mean that it does not exist */
    GL_ASSERT(r->damaged);
    GL_ASSERT(r->rev != 0);
}

/* Decode a record: r o t l [c v], or nil. `whole`: with value and checksum. A key that is not a
 * hash, or lacks fields, is a damaged record. */
void gl_redis_record_decode(struct gl_record *r, const struct gl_redis_reply *reply, bool whole)
{
    uint64_t sum = 0;
    gl_str live = gl_redis_text(gl_redis_item(reply, 3));
    if (reply->type == GL_REDIS_NIL) {
        return;
    }
    bool ok = reply->type == GL_REDIS_ARRAY && gl_redis_u64(gl_redis_item(reply, 0), &r->rev) &&
              gl_redis_u64(gl_redis_item(reply, 2), &r->token) &&
              gl_redis_item(reply, 1)->type == GL_REDIS_STRING &&
              (gl_str_is(live, "0") || gl_str_is(live, "1")) && r->rev != 0;
    r->owner = gl_redis_text(gl_redis_item(reply, 1));
    r->live = gl_str_is(live, "1");
    r->value = gl_redis_text(gl_redis_item(reply, 5));
    if (ok && whole) {
        /* 0: a person edited the record on purpose and wants it accepted as it is */
        ok = gl_redis_u64(gl_redis_item(reply, 4), &sum) &&
             (sum == 0 || sum == gl_checksum_record(r)) &&
             gl_redis_item(reply, 5)->type == GL_REDIS_STRING;
    }
    if (!ok) {
        damage(r);
    }
}

/* Ids of stream entries are "<seq>-1". */
bool gl_redis_log_entry_decode(struct gl_log_entry *ret, const struct gl_redis_reply *reply)
{
    gl_str rest;
    ret->value = gl_redis_text(gl_redis_item(gl_redis_item(reply, 1), 1));
    return gl_str_i64(gl_str_cut(gl_redis_text(gl_redis_item(reply, 0)), '-', &rest), &ret->seq);
}
