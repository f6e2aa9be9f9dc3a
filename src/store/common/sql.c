/* sql.c - reads of the SQL engines: see sql.h for the parameters and columns.
 *
 * Pages continue by key, never by offset: the position is the last row returned, so rows inserted
 * or deleted between two pages neither repeat nor hide others. */
#include "store/common/sql.h"

#include <limits.h>

#include "base/check.h"
#include "base/limits.h"
#include "port/checksum.h"

/* ---- parameters ---- */

static void add(struct gl_sql_args *a, struct gl_arg arg)
{
    GL_ASSERT(a->n < GL_SQL_ARGS_MAX);
    a->at[a->n++] = arg;
}

static struct gl_arg limit_of(size_t limit)
{
    return gl_arg_i32(limit > INT_MAX ? INT_MAX : (int32_t)limit);
}

/* A position before the range is ignored: the range starts at its own lower bound. */
bool gl_sql_is_after(const struct gl_range *r)
{
    return r->after_id.n > 0 && r->after_score >= r->score_min;
}

static void range_parameters(const struct gl_range *r, struct gl_sql_args *ret)
{
    bool after = gl_sql_is_after(r);

    GL_ASSERT(r->index.n > 0);
    add(ret, gl_arg_text(r->index));
    add(ret, gl_arg_i64(after ? r->after_score : r->score_min));
    add(ret, gl_arg_i64(r->score_max));
    add(ret, limit_of(r->limit));
    if (after) {
        add(ret, gl_arg_text(r->after_id));
    }
}

/* All listings are half-open ranges [from, below) of ids. `after` narrows the end it continues
 * from. */
static void list_parameters(const struct gl_listing *l, struct gl_arena *a, struct gl_sql_args *ret)
{
    gl_str from = l->prefix, below;
    bool is_bounded = gl_answer_upper_bound(l->prefix, a, &below);

    GL_ASSERT(l->kind.n > 0);
    if (l->after.n > 0 && l->descending) {
        if (!is_bounded || gl_str_cmp(l->after, below) < 0) {
            below = l->after;
            is_bounded = true;
        }
    } else if (l->after.n > 0 && gl_str_cmp(l->after, from) >= 0) {
        /* The next text in bytewise order is this one followed by a NUL byte, which gl_str_dup
         * adds. */
        from = gl_str_dup(a, l->after);
        from.n++;
    }
    add(ret, gl_arg_text(l->kind));
    add(ret, gl_arg_text(from));
    add(ret, limit_of(l->limit));
    add(ret, is_bounded ? gl_arg_text(below) : (struct gl_arg){.type = GL_ARG_TOP});
}

/* The position after an export page: "table:score or seq:length of kind:kind id" of its last row.
 * The next page begins after that row, whatever has happened since. */
static int export_parameters(struct gl_call *call, struct gl_sql_args *ret,
                             struct gl_why *reterr_why)
{
    gl_str rest, kind = {0}, id = {0};
    uint64_t table = GL_SQL_RECORDS, kind_n;
    int64_t number = 0;
    if (call->export.after.n > 0) {
        if (!gl_str_u64(gl_str_cut(call->export.after, ':', &rest), &table) ||
            table >= GL_SQL_TABLES || !gl_str_i64(gl_str_cut(rest, ':', &rest), &number) ||
            !gl_str_u64(gl_str_cut(rest, ':', &rest), &kind_n) || kind_n > rest.n) {
            return gl_why(reterr_why, GL_E_INVALID, "invalid position in an export");
        }
        kind = (gl_str){rest.p, (size_t)kind_n};
        id = (gl_str){rest.p + kind_n, rest.n - (size_t)kind_n};
    }
    call->export.table = (size_t)table;
    add(ret, gl_arg_text(kind));
    add(ret, gl_arg_text(id));
    add(ret, limit_of(call->export.limit));
    if (table != GL_SQL_RECORDS) {
        add(ret, gl_arg_i64(number));
    }
    GL_ASSERT(ret->n >= 3);
    GL_ASSERT(call->export.table < GL_SQL_TABLES);
    return 0;
}

int gl_sql_parameters(struct gl_call *call, struct gl_arena *a, struct gl_sql_args *ret,
                      struct gl_why *reterr_why)
{
    GL_ASSERT(call->type < GL_CALLS_N);
    ret->n = 0;
    switch (call->type) {
    case GL_CALL_RANGE:
        range_parameters(call->range, ret);
        return 0;
    case GL_CALL_LIST:
        list_parameters(call->listing, a, ret);
        return 0;
    case GL_CALL_LOG_READ:
        add(ret, gl_arg_text(call->log.kind));
        add(ret, gl_arg_text(call->log.id));
        add(ret, gl_arg_i64(call->log.from));
        add(ret, limit_of(call->log.limit));
        return 0;
    case GL_CALL_SESSION_LIST:
        add(ret, limit_of(GL_SESSIONS_LISTED));
        return 0;
    case GL_CALL_EXPORT:
        return export_parameters(call, ret, reterr_why);
    default:
        return 0;
    }
}

/* ---- rows ---- */

/* Read the columns rev, owner, token, live, sum, value; kind and id are set already. A sum of 0
 * marks a record written by hand or by an older release: it is not verified. */
static void read_record(const struct gl_sql_rows *r, int at, struct gl_record *ret)
{
    int64_t sum = r->number(r, at + 4);
    ret->rev = (uint64_t)r->number(r, at);
    ret->owner = r->text(r, at + 1);
    ret->token = (uint64_t)r->number(r, at + 2);
    ret->live = r->number(r, at + 3) != 0;
    ret->value = r->text(r, at + 5);
    ret->damaged = sum != 0 && sum != gl_checksum_record(ret);
}

static void read_session(const struct gl_sql_rows *r, struct gl_session_info *ret)
{
    ret->id = r->text(r, 0);
    ret->incarnation = (uint64_t)r->number(r, 1);
    ret->node = r->text(r, 2);
    ret->about = r->text(r, 3);
    ret->left_ms = r->number(r, 4);
    ret->dead = r->number(r, 5) != 0;
}

/* A row of an export as the write that would recreate it. */
static bool read_write(const struct gl_sql_rows *r, struct gl_write *ret)
{
    struct gl_record record = {.kind = r->text(r, 0), .id = r->text(r, 1)};

    GL_ASSERT(r->answer.call->export.table < GL_SQL_TABLES);
    if (r->answer.call->export.table == GL_SQL_RECORDS) {
        read_record(r, 2, &record);
        return gl_answer_export(r->answer.call->req, &record, ret);
    }
    *ret = (struct gl_write){.type = GL_WRITE_INDEX, .kind = record.kind, .id = record.id};
    if (r->answer.call->export.table == GL_SQL_ENTRIES) {
        ret->score = r->number(r, 2);
    } else {
        ret->type = GL_WRITE_LOG;
        ret->seq = r->number(r, 2);
        ret->value = r->text(r, 3);
    }
    return true;
}

static bool next(struct gl_answer *a, void *item)
{
    struct gl_sql_rows *r = GL_CONTAINER(a, struct gl_sql_rows, answer);
    struct gl_record *record = item;
    struct gl_index_entry *entry = item;
    struct gl_log_entry *log = item;
    if (!r->step(r)) {
        return false;
    }
    switch (a->call->type) {
    case GL_CALL_LIST:
        *record = (struct gl_record){.kind = a->call->listing->kind, .id = r->text(r, 0)};
        read_record(r, 1, record);
        return true;
    case GL_CALL_RANGE:
        *entry = (struct gl_index_entry){.score = r->number(r, 0), .id = r->text(r, 1)};
        return true;
    case GL_CALL_LOG_READ:
        *log = (struct gl_log_entry){.seq = r->number(r, 0), .value = r->text(r, 1)};
        return true;
    case GL_CALL_SESSION_LIST:
        read_session(r, item);
        return true;
    case GL_CALL_EXPORT:
        return read_write(r, item);
    default:
        GL_UNREACHABLE();
    }
}

/* Rows arrive only for keys that exist, each with its position in the request. */
static void fill_get(struct gl_sql_rows *r)
{
    struct gl_call *call = r->answer.call;
    struct gl_record *records = gl_answer_records(call, r->answer.arena);

    GL_ASSERT(call->type == GL_CALL_GET);
    while (r->step(r)) {
        size_t place = (size_t)r->number(r, 0);
        if (place >= 1 && place <= call->get.n) {
            read_record(r, 1, &records[place - 1]);
        }
    }
}

/* The position after this page. A page that is not full is the last of its table; the export
 * continues with the next table, or ends. */
static gl_str next_page(const struct gl_answer *a)
{
    const struct gl_store_req *req = a->call->req;
    size_t n = req->writes_n, bytes = 0, table = a->call->export.table;

    GL_ASSERT(table < GL_SQL_TABLES);
    for (size_t i = 0; i < n; i++) {
        bytes += req->writes[i].value.n;
    }
    if (n < a->call->export.limit && (a->page_bytes == 0 || bytes < a->page_bytes)) {
        return table + 1 < GL_SQL_TABLES ? gl_str_fmt(a->arena, "%zu:0:0:", table + 1)
                                         : (gl_str){0};
    }
    GL_ASSERT(n > 0);
    const struct gl_write *last = &req->writes[n - 1];
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    gl_buf_fmt(&text, "%zu:%lld:%zu:", table,
               (long long)(last->type == GL_WRITE_INDEX ? last->score : last->seq), last->kind.n);
    gl_buf_str(&text, last->kind);
    gl_buf_str(&text, last->id);
    return gl_str_dup(a->arena, gl_buf_view(&text));
}

void gl_sql_read_rows(struct gl_sql_rows *r)
{
    struct gl_call *call = r->answer.call;
    r->answer.next = next;
    if (call->type == GL_CALL_GET) {
        fill_get(r);
    } else if (call->type == GL_CALL_MEASURE) {
        call->req->bytes = r->step(r) ? (uint64_t)r->number(r, 0) : 0;
    } else {
        gl_answer_fill(&r->answer);
    }
    if (call->type == GL_CALL_EXPORT && call->req->status == 0) {
        call->req->next = next_page(&r->answer);
    }
}
