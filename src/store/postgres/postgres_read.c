/* Reads: one statement each. The answer stays with the request until its caller has seen it, and
 * the results point into it. */
#include <limits.h>

#include "base/check.h"
#include "port/sum.h"
#include "store/postgres/postgres_parts.h"

static int32_t limit_of(size_t limit)
{
    return limit > INT_MAX ? INT_MAX : (int32_t)limit;
}

/* ---- questions ---- */

static bool send_get(struct gl_postgres_conn *c, struct gl_postgres_op *op)
{
    struct gl_postgres_args *a = &c->store->args;
    int kinds = gl_postgres_args_array(a, GL_POSTGRES_TEXT);
    int ids = gl_postgres_args_array(a, GL_POSTGRES_BYTES);
    for (size_t i = 0; i < op->u.get.n; i++) {
        gl_postgres_args_add_text(a, kinds, op->u.get.keys[i].kind);
        gl_postgres_args_add_text(a, ids, op->u.get.keys[i].id);
    }
    return gl_postgres_conn_send(c, GL_POSTGRES_GET, op->context);
}

static bool send_range(struct gl_postgres_conn *c, struct gl_postgres_op *op)
{
    struct gl_postgres_args *a = &c->store->args;
    const struct gl_range *r = op->u.range;
    bool after = r->after_id.n > 0 && r->after_score >= r->score_min;
    gl_postgres_args_text(a, r->index);
    gl_postgres_args_i64(a, after ? r->after_score : r->score_min);
    gl_postgres_args_i64(a, r->score_max);
    gl_postgres_args_i32(a, limit_of(r->limit));
    if (after) {
        gl_postgres_args_text(a, r->after_id);
    }
    return gl_postgres_conn_send(c, after ? GL_POSTGRES_RANGE_AFTER : GL_POSTGRES_RANGE,
                                 op->context);
}

/* The smallest text above all that start with `prefix`; false: there is none. */
static bool bump(struct gl_buf *out, gl_str prefix)
{
    while (prefix.n > 0 && (unsigned char)prefix.p[prefix.n - 1] == 0xff) {
        prefix.n--;
    }
    if (prefix.n == 0) {
        return false;
    }
    gl_buf_str(out, prefix);
    out->p[out->n - 1]++;
    return true;
}

/* Ids from `from` on, and below `below` if that is a bound at all. */
static bool bounds(const struct gl_listing *l, struct gl_buf *from, struct gl_buf *below)
{
    bool bounded = bump(below, l->prefix);
    gl_buf_str(from, l->prefix);
    if (l->after.n > 0 && l->descending) {
        if (!bounded || gl_str_cmp(l->after, gl_buf_view(below)) < 0) {
            gl_buf_reset(below);
            gl_buf_str(below, l->after);
            bounded = true;
        }
    } else if (l->after.n > 0 && gl_str_cmp(l->after, l->prefix) >= 0) {
        gl_buf_reset(from); /* the next text in bytewise order is this one with a NUL byte */
        gl_buf_str(from, l->after);
        gl_buf_char(from, '\0');
    }
    return bounded;
}

static bool send_list(struct gl_postgres_conn *c, struct gl_postgres_op *op)
{
    struct gl_postgres_args *a = &c->store->args;
    const struct gl_listing *l = op->u.listing;
    struct gl_buf from = {0}, below = {0};
    bool bounded = bounds(l, &from, &below);
    int flags = (l->live_only ? GL_POSTGRES_LIST_LIVE : 0) |
                (l->descending ? GL_POSTGRES_LIST_DOWN : 0) |
                (l->ids_only ? GL_POSTGRES_LIST_IDS : 0) | (bounded ? GL_POSTGRES_LIST_BELOW : 0) |
                (l->bytes_max > 0 ? GL_POSTGRES_LIST_BYTES : 0);
    GL_ASSERT(!l->ids_only || l->bytes_max == 0); /* there are no values to add up */
    gl_postgres_args_text(a, l->kind);
    gl_postgres_args_text(a, gl_buf_view(&from));
    gl_postgres_args_i32(a, limit_of(l->limit));
    if (bounded) {
        gl_postgres_args_text(a, gl_buf_view(&below));
    }
    if (l->bytes_max > 0) {
        gl_postgres_args_i64(a, (int64_t)l->bytes_max);
    }
    gl_buf_done(&from);
    gl_buf_done(&below);
    return gl_postgres_conn_send(c, GL_POSTGRES_LIST + flags, op->context);
}

static bool send_log(struct gl_postgres_conn *c, struct gl_postgres_op *op)
{
    struct gl_postgres_args *a = &c->store->args;
    gl_postgres_args_text(a, op->u.log.kind);
    gl_postgres_args_text(a, op->u.log.id);
    gl_postgres_args_i64(a, op->u.log.from);
    gl_postgres_args_i32(a, limit_of(op->u.log.limit));
    return gl_postgres_conn_send(c, GL_POSTGRES_LOG_READ, op->context);
}

bool gl_postgres_read_send(struct gl_postgres_conn *c, struct gl_postgres_op *op)
{
    switch (op->type) {
    case GL_POSTGRES_OP_GET:
        return send_get(c, op);
    case GL_POSTGRES_OP_RANGE:
        return send_range(c, op);
    case GL_POSTGRES_OP_LIST:
        return send_list(c, op);
    case GL_POSTGRES_OP_LOG_READ:
        return send_log(c, op);
    case GL_POSTGRES_OP_MEASURE:
        return gl_postgres_conn_send(c, GL_POSTGRES_MEASURE, op->context);
    default:
        GL_UNREACHABLE();
    }
}

/* ---- answers ---- */

static int64_t number(struct gl_postgres *s, const PGresult *r, int row, int column)
{
    return gl_postgres_args_get_int(&s->lib, r, row, column);
}

static gl_str text(struct gl_postgres *s, const PGresult *r, int row, int column)
{
    return gl_postgres_args_get_text(&s->lib, r, row, column);
}

/* From the columns rev, owner, token, live, sum, value; kind and id are there already. */
void gl_postgres_read_record(struct gl_postgres *s, const PGresult *r, int row, int column,
                             bool has_value, struct gl_record *ret)
{
    ret->rev = (uint64_t)number(s, r, row, column);
    ret->owner = text(s, r, row, column + 1);
    ret->token = (uint64_t)number(s, r, row, column + 2);
    ret->live = number(s, r, row, column + 3) != 0;
    if (has_value) {
        int64_t sum = number(s, r, row, column + 4);

        ret->value = text(s, r, row, column + 5);
        ret->damaged = sum != 0 && sum != (int64_t)gl_sum_record(ret); /* 0: written by hand */
    }
}

static void fill_get(struct gl_postgres_op *op, int rows)
{
    struct gl_postgres *s = op->store;
    size_t n = op->u.get.n;
    struct gl_record *records = GL_NEW_ARRAY(&s->results, struct gl_record, n + 1);
    for (size_t i = 0; i < n; i++) {
        records[i].kind = op->u.get.keys[i].kind;
        records[i].id = op->u.get.keys[i].id;
    }
    for (int row = 0; row < rows; row++) {
        size_t place = (size_t)number(s, op->result, row, 0);
        if (place >= 1 && place <= n) {
            gl_postgres_read_record(s, op->result, row, 1, true, &records[place - 1]);
        }
    }
    op->req->records = records;
    op->req->records_n = n;
}

static void fill_list(struct gl_postgres_op *op, int rows)
{
    struct gl_postgres *s = op->store;
    struct gl_record *records = GL_NEW_ARRAY(&s->results, struct gl_record, rows + 1);
    for (int row = 0; row < rows; row++) {
        records[row].kind = op->u.listing->kind;
        records[row].id = text(s, op->result, row, 0);
        gl_postgres_read_record(s, op->result, row, 1, !op->u.listing->ids_only, &records[row]);
    }
    op->req->records = records;
    op->req->records_n = (size_t)rows;
}

static void fill_range(struct gl_postgres_op *op, int rows)
{
    struct gl_postgres *s = op->store;
    struct gl_index_entry *entries = GL_NEW_ARRAY(&s->results, struct gl_index_entry, rows + 1);
    for (int row = 0; row < rows; row++) {
        entries[row].score = number(s, op->result, row, 0);
        entries[row].id = text(s, op->result, row, 1);
    }
    op->req->entries = entries;
    op->req->entries_n = (size_t)rows;
}

static void fill_log(struct gl_postgres_op *op, int rows)
{
    struct gl_postgres *s = op->store;
    struct gl_log_entry *log = GL_NEW_ARRAY(&s->results, struct gl_log_entry, rows + 1);
    for (int row = 0; row < rows; row++) {
        log[row].seq = number(s, op->result, row, 0);
        log[row].value = text(s, op->result, row, 1);
    }
    op->req->log = log;
    op->req->log_n = (size_t)rows;
}

/* Without an answer: the context is not there, and so nothing is. */
void gl_postgres_read_fill(struct gl_postgres_op *op)
{
    struct gl_postgres *s = op->store;
    int rows = op->result != NULL ? s->lib.PQntuples(op->result) : 0;
    switch (op->type) {
    case GL_POSTGRES_OP_GET:
        fill_get(op, rows);
        return;
    case GL_POSTGRES_OP_RANGE:
        fill_range(op, rows);
        return;
    case GL_POSTGRES_OP_LIST:
        fill_list(op, rows);
        return;
    case GL_POSTGRES_OP_LOG_READ:
        fill_log(op, rows);
        return;
    case GL_POSTGRES_OP_MEASURE:
        op->req->bytes = rows > 0 ? (uint64_t)number(s, op->result, 0, 0) : 0;
        return;
    default:
        GL_UNREACHABLE();
    }
}
