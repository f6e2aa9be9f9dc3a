/* All content of a context, page by page. The cursor names the table and the last row of it:
 * "stage number kind id", kind and id in hexadecimal, so that it can be kept as text. */
#include <limits.h>

#include "base/check.h"
#include "store/postgres/postgres_parts.h"

enum stage { RECORDS, ENTRIES, LOGS, STAGES };

struct cursor {
    enum stage stage;
    int64_t number; /* score, seq, pos */
    struct gl_buf kind, id;
};

static void add_hex(struct gl_buf *out, gl_str bytes)
{
    for (size_t i = 0; i < bytes.n; i++) {
        gl_buf_fmt(out, "%02x", (unsigned)(unsigned char)bytes.p[i]);
    }
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(struct gl_buf *out, gl_str text)
{
    for (size_t i = 0; i + 1 < text.n; i += 2) {
        int high = digit_of(text.p[i]), low = digit_of(text.p[i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        gl_buf_char(out, (char)(high * 16 + low));
    }
    return text.n % 2 == 0;
}

static bool read_cursor(struct cursor *ret, gl_str text)
{
    if (text.n == 0) {
        return true;
    }
    gl_str rest = text;
    int64_t stage, number;
    if (!gl_str_i64(gl_str_cut(rest, ' ', &rest), &stage) || stage < 0 || stage >= STAGES ||
        !gl_str_i64(gl_str_cut(rest, ' ', &rest), &number)) {
        return false;
    }
    ret->stage = (enum stage)stage;
    ret->number = number;
    return read_hex(&ret->kind, gl_str_cut(rest, ' ', &rest)) && read_hex(&ret->id, rest);
}

static void cursor_done(struct cursor *c)
{
    gl_buf_done(&c->kind);
    gl_buf_done(&c->id);
}

bool gl_postgres_export_send(struct gl_postgres_conn *c, struct gl_postgres_op *op)
{
    static const int statements[] = {GL_POSTGRES_EXPORT_RECORDS, GL_POSTGRES_EXPORT_ENTRIES,
                                     GL_POSTGRES_EXPORT_LOG};
    struct gl_postgres_args *a = &c->store->args;
    struct cursor at = {0};
    /* One that cannot be read is none of ours; the first page is a safe answer. */
    if (!read_cursor(&at, op->u.export.after)) {
        cursor_done(&at);
        at = (struct cursor){0};
    }
    size_t limit = op->u.export.limit;
    op->u.export.limit = limit == 0 ? 1 : limit > INT_MAX ? INT_MAX : limit;
    op->u.export.stage = (int)at.stage;
    gl_postgres_args_text(a, gl_buf_view(&at.kind));
    gl_postgres_args_text(a, gl_buf_view(&at.id));
    gl_postgres_args_i32(a, (int32_t)op->u.export.limit);
    if (at.stage != RECORDS) {
        gl_postgres_args_i64(a, at.number);
    }
    cursor_done(&at);
    return gl_postgres_conn_send(c, statements[op->u.export.stage], op->context);
}

/* ---- answers ---- */

static int fill_record(struct gl_postgres_op *op, int row, struct gl_write *w)
{
    struct gl_record r = {.kind = w->kind, .id = w->id};
    gl_postgres_read_record(op->store, op->result, row, 2, true, &r);
    if (r.damaged) {
        return gl_why(&op->req->why, GL_E_DAMAGED,
                      "the record %.*s %.*s is damaged: its checksum is wrong", GL_STR_ARG(r.kind),
                      GL_STR_ARG(r.id));
    }
    w->type = GL_WRITE_PUT;
    w->rev = r.rev;
    w->owner = r.owner;
    w->token = r.token;
    w->live = r.live;
    w->value = r.value;
    return 0;
}

static int fill_write(struct gl_postgres_op *op, int row, struct gl_write *w, int64_t *ret_number)
{
    const struct gl_postgres_lib *lib = &op->store->lib;
    w->kind = gl_postgres_args_get_text(lib, op->result, row, 0);
    w->id = gl_postgres_args_get_text(lib, op->result, row, 1);
    if (op->u.export.stage == RECORDS) {
        return fill_record(op, row, w);
    }
    *ret_number = gl_postgres_args_get_int(lib, op->result, row, 2);
    if (op->u.export.stage == ENTRIES) {
        w->type = GL_WRITE_INDEX;
        w->score = *ret_number;
        return 0;
    }
    w->type = GL_WRITE_LOG;
    w->seq = *ret_number;
    w->value = gl_postgres_args_get_text(lib, op->result, row, 3);
    return 0;
}

static gl_str next_cursor(struct gl_postgres_op *op, const struct gl_write *last, int64_t number)
{
    struct gl_postgres *s = op->store;
    if (last == NULL) {
        return op->u.export.stage + 1 < STAGES
                   ? gl_str_fmt(&s->results, "%d 0  ", op->u.export.stage + 1)
                   : (gl_str){0};
    }
    struct gl_buf b = {0};
    gl_buf_fmt(&b, "%d %lld ", op->u.export.stage, (long long)number);
    add_hex(&b, last->kind);
    gl_buf_char(&b, ' ');
    add_hex(&b, last->id);
    gl_str text = gl_str_dup(&s->results, gl_buf_view(&b));
    gl_buf_done(&b);
    return text;
}

void gl_postgres_export_fill(struct gl_postgres_op *op)
{
    struct gl_postgres *s = op->store;
    struct gl_store_req *req = op->req;
    int rows = op->result != NULL ? s->lib.PQntuples(op->result) : 0;
    int64_t number = 0;
    struct gl_write *writes = GL_NEW_ARRAY(&s->results, struct gl_write, rows + 1);
    for (int row = 0; row < rows; row++) {
        req->status = fill_write(op, row, &writes[row], &number);
        if (req->status < 0) {
            return;
        }
    }
    req->writes = writes;
    req->writes_n = (size_t)rows;
    if (op->result != NULL) {
        bool is_full = (size_t)rows >= op->u.export.limit;
        req->next = next_cursor(op, is_full ? &writes[rows - 1] : NULL, number);
    }
}
