/* postgres_read.c - reads, one statement each. The result stays with the request until its caller
 * has seen it, and texts in the request point into it: nothing is copied. */
#include "base/check.h"
#include "store/postgres/postgres_parts.h"

/* ---- statements ---- */

static void add_keys(struct gl_postgres_args *a, const struct gl_call *call)
{
    int kinds = gl_postgres_args_array(a, GL_POSTGRES_TEXT);
    int ids = gl_postgres_args_array(a, GL_POSTGRES_BYTES);

    GL_ASSERT(call->type == GL_CALL_GET);
    for (size_t i = 0; i < call->get.n; i++) {
        gl_postgres_args_add(a, kinds, &(struct gl_arg){.text = call->get.keys[i].kind});
        gl_postgres_args_add(a, ids, &(struct gl_arg){.text = call->get.keys[i].id});
    }
}

/* A statement for each combination of flags: a plan per combination uses the right index. */
static int list_statement(const struct gl_listing *l, bool is_bounded)
{
    GL_ASSERT(!l->ids_only || l->bytes_max == 0); /* there are no values to sum up */
    return GL_POSTGRES_LIST + (l->live_only ? GL_POSTGRES_LIST_LIVE : 0) +
           (l->descending ? GL_POSTGRES_LIST_DOWN : 0) + (l->ids_only ? GL_POSTGRES_LIST_IDS : 0) +
           (is_bounded ? GL_POSTGRES_LIST_BELOW : 0) +
           (l->bytes_max > 0 ? GL_POSTGRES_LIST_BYTES : 0);
}

static int statement_of(const struct gl_call *call, const struct gl_sql_args *args)
{
    GL_ASSERT(call->type < GL_CALLS_N);
    switch (call->type) {
    case GL_CALL_GET:
        return GL_POSTGRES_GET;
    case GL_CALL_RANGE:
        return gl_sql_is_after(call->range) ? GL_POSTGRES_RANGE_AFTER : GL_POSTGRES_RANGE;
    case GL_CALL_LIST:
        return list_statement(call->listing, args->at[args->n - 1].type != GL_ARG_TOP);
    case GL_CALL_LOG_READ:
        return GL_POSTGRES_LOG_READ;
    case GL_CALL_EXPORT:
        return GL_POSTGRES_EXPORT_RECORDS + (int)call->export.table;
    case GL_CALL_MEASURE:
        return GL_POSTGRES_MEASURE;
    default:
        GL_UNREACHABLE();
    }
}

bool gl_postgres_read_send(struct gl_postgres_conn *c, struct gl_postgres_op *op)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena scratch = {0};
    struct gl_postgres_args *a = &c->store->args;
    struct gl_sql_args args;
    int err = gl_sql_parameters(&op->call, &scratch, &args, NULL);

    GL_ASSERT(args.n <= GL_SQL_ARGS_MAX);
    GL_ASSERT(err == 0); /* validated when the call came */
    if (op->call.type == GL_CALL_GET) {
        add_keys(a, &op->call);
    }
    gl_postgres_args_put(a, args.at, args.n);
    if (op->call.type == GL_CALL_LIST && op->call.listing->bytes_max > 0) {
        gl_postgres_args_put(a, GL_ARGS(gl_arg_u64(op->call.listing->bytes_max)));
    }
    return gl_postgres_conn_send(c, statement_of(&op->call, &args), op->context);
}

/* ---- results ---- */

struct postgres_rows {
    struct gl_sql_rows sql;
    const struct gl_postgres_lib *lib;
    const PGresult *result;
    int row, rows_n;
};

static bool step(struct gl_sql_rows *sql)
{
    struct postgres_rows *r = GL_CONTAINER(sql, struct postgres_rows, sql);

    GL_ASSERT(r->row < r->rows_n);
    return ++r->row < r->rows_n;
}

static int64_t number(const struct gl_sql_rows *sql, int column)
{
    const struct postgres_rows *r = GL_CONTAINER(sql, struct postgres_rows, sql);

    GL_ASSERT(column >= 0);
    GL_ASSERT(r->row >= 0);
    return gl_postgres_args_get_int(r->lib, r->result, r->row, column);
}

static gl_str text(const struct gl_sql_rows *sql, int column)
{
    const struct postgres_rows *r = GL_CONTAINER(sql, struct postgres_rows, sql);

    GL_ASSERT(column >= 0);
    GL_ASSERT(r->row >= 0);
    return gl_postgres_args_get_text(r->lib, r->result, r->row, column);
}

void gl_postgres_read_fill(struct gl_postgres_op *op)
{
    struct gl_postgres *s = op->store;
    struct postgres_rows r = {.sql = {.answer = {.call = &op->call, .arena = &s->results},
                                      .step = step,
                                      .number = number,
                                      .text = text},
                              .lib = &s->lib,
                              .result = op->result,
                              .row = -1,
                              .rows_n = op->result != NULL ? s->lib.PQntuples(op->result) : 0};
    gl_sql_read_rows(&r.sql);
}
