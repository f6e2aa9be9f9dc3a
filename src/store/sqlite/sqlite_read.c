/* sqlite_read.c - binds and steps the statement of a read, and lets store/common/sql.c convert the
 * rows. Texts are copied to the arena, because SQLite's memory is only valid until the next
 * step. */
#include "store/sqlite/sqlite_parts.h"

#include "base/check.h"

enum { PAGE_BYTES = 4 << 20 }; /* values in one page of an export */

struct sqlite_rows {
    struct gl_sql_rows sql;
    struct gl_sqlite_db *db;
    enum gl_sqlite_statement st;
    size_t key; /* GET: number of keys looked up so far */
    int rc;
};

/* An error ends the rows like the last row does; gl_sqlite_read() returns it. */
static bool step(struct gl_sql_rows *sql)
{
    struct sqlite_rows *r = GL_CONTAINER(sql, struct sqlite_rows, sql);
    r->rc = gl_sqlite_db_step(r->db, r->st);
    return r->rc == SQLITE_ROW;
}

/* GET runs one point lookup per key; advance to the next key that has a record. */
static bool step_get(struct gl_sql_rows *sql)
{
    struct sqlite_rows *r = GL_CONTAINER(sql, struct sqlite_rows, sql);
    const struct gl_call *call = sql->answer.call;

    GL_ASSERT(r->key <= call->get.n);
    for (r->rc = SQLITE_DONE; r->rc == SQLITE_DONE && r->key < call->get.n;) {
        const struct gl_key *key = &call->get.keys[r->key++];
        gl_sqlite_db_reset(r->db, r->st);
        gl_sqlite_db_bind(r->db, r->st, gl_arg_text(key->kind), gl_arg_text(key->id),
                          gl_arg_u64(r->key));
        (void)step(sql);
    }
    return r->rc == SQLITE_ROW;
}

/* The rows of a context that does not exist. */
static bool step_nowhere(struct gl_sql_rows *sql)
{
    (void)sql;
    return false;
}

static int64_t number(const struct gl_sql_rows *sql, int column)
{
    const struct sqlite_rows *r = GL_CONTAINER(sql, struct sqlite_rows, sql);

    GL_ASSERT(column >= 0);
    return gl_sqlite_db_int(r->db, r->st, column);
}

static gl_str text(const struct gl_sql_rows *sql, int column)
{
    const struct sqlite_rows *r = GL_CONTAINER(sql, struct sqlite_rows, sql);

    GL_ASSERT(column >= 0);
    return gl_str_dup(sql->answer.arena, gl_sqlite_db_str(r->db, r->st, column));
}

static enum gl_sqlite_statement list_statement(const struct gl_listing *l)
{
    GL_ASSERT(l->limit > 0);
    GL_ASSERT(!l->ids_only ||
              (!l->live_only &&
               !l->descending)); /* these combinations have no statement, as nothing uses them */
    if (l->ids_only) {
        return GL_SQLITE_LIST_IDS;
    }
    if (l->live_only) {
        return l->descending ? GL_SQLITE_LIST_LIVE_DESC : GL_SQLITE_LIST_LIVE;
    }
    return l->descending ? GL_SQLITE_LIST_DESC : GL_SQLITE_LIST;
}

static enum gl_sqlite_statement statement_of(const struct gl_call *call)
{
    GL_ASSERT(call->type < GL_CALLS_N);
    switch (call->type) {
    case GL_CALL_GET:
        return GL_SQLITE_GET;
    case GL_CALL_RANGE:
        return gl_sql_is_after(call->range) ? GL_SQLITE_RANGE_AFTER : GL_SQLITE_RANGE;
    case GL_CALL_LIST:
        return list_statement(call->listing);
    case GL_CALL_LOG_READ:
        return GL_SQLITE_LOG_READ;
    case GL_CALL_SESSION_LIST:
        return GL_SQLITE_SESSION_LIST;
    case GL_CALL_EXPORT:
        return (enum gl_sqlite_statement)(GL_SQLITE_EXPORT_RECORDS + (int)call->export.table);
    case GL_CALL_MEASURE:
        return GL_SQLITE_MEASURE;
    default:
        GL_UNREACHABLE();
    }
}

int gl_sqlite_read(struct gl_sqlite_db *db, struct gl_call *call, struct gl_arena *arena)
{
    struct gl_sql_args args;
    call->req->status = gl_sql_parameters(call, arena, &args, &call->req->why);
    if (call->req->status < 0) {
        return SQLITE_OK;
    }
    struct sqlite_rows r = {
        .sql = {.answer = {.call = call, .arena = arena, .page_bytes = PAGE_BYTES},
                .step = db == NULL                  ? step_nowhere
                        : call->type == GL_CALL_GET ? step_get
                                                    : step,
                .number = number,
                .text = text},
        .db = db,
        .st = statement_of(call),
        .rc = SQLITE_DONE};
    if (db == NULL) {
        gl_sql_read_rows(&r.sql);
        return SQLITE_OK;
    }
    GL_ASSERT(args.n <= GL_SQL_ARGS_MAX);
    gl_sqlite_db_bind_n(db, r.st, args.at, args.n);
    gl_sql_read_rows(&r.sql);
    gl_sqlite_db_reset(db, r.st);
    return r.rc == SQLITE_DONE || r.rc == SQLITE_ROW ? SQLITE_OK : r.rc;
}
