#include "store/sqlite/sqlite_read.h"

#include <limits.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/mem.h"
#include "store/sqlite/sqlite_db.h"
#include "store/sqlite/sqlite_export.h"
#include "store/sqlite/sqlite_record.h"

/* Results of unknown number: elements of one size in a buffer that grows, copied to the arena at
 * the end. */
static void *take_rows(struct gl_arena *arena, struct gl_buf *rows, size_t row_bytes, size_t *ret_n)
{
    *ret_n = rows->n / row_bytes;
    void *p = rows->n > 0 ? gl_arena_copy(arena, rows->p, rows->n) : NULL;
    gl_buf_done(rows);
    return p;
}

static int64_t limit_of(size_t limit)
{
    return limit > INT_MAX ? INT_MAX : (int64_t)limit;
}

/* ---- records ---- */

static int get(struct gl_sqlite_db *db, struct gl_sqlite_op *op, struct gl_arena *arena)
{
    size_t n = op->u.get.n;
    struct gl_record *records = GL_NEW_ARRAY(arena, struct gl_record, n > 0 ? n : 1);
    for (size_t i = 0; i < n; i++) {
        const struct gl_key *key = &op->u.get.keys[i];
        records[i].kind = key->kind;
        records[i].id = key->id;
        if (db == NULL) {
            continue;
        }
        gl_sqlite_db_bind_str(db, GL_SQLITE_GET, 1, key->kind);
        gl_sqlite_db_bind_str(db, GL_SQLITE_GET, 2, key->id);
        int rc = gl_sqlite_db_step(db, GL_SQLITE_GET);
        if (rc == SQLITE_ROW) {
            gl_sqlite_record_fill(db, GL_SQLITE_GET, 0, arena, &records[i]);
        }
        gl_sqlite_db_reset(db, GL_SQLITE_GET);
        if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
            return rc;
        }
    }
    op->req->records = records;
    op->req->records_n = n;
    return SQLITE_OK;
}

/* The smallest text above all that start with `prefix`; false: there is none. */
static bool bump(gl_str prefix, struct gl_arena *arena, gl_str *ret)
{
    while (prefix.n > 0 && (unsigned char)prefix.p[prefix.n - 1] == 0xff) {
        prefix.n--;
    }
    if (prefix.n == 0) {
        return false;
    }
    char *p = gl_arena_copy(arena, prefix.p, prefix.n);
    p[prefix.n - 1]++;
    *ret = (gl_str){p, prefix.n};
    return true;
}

/* Ids from `from` on and below `below`. */
static void bind_bounds(struct gl_sqlite_db *db, enum gl_sqlite_statement st,
                        const struct gl_listing *l, struct gl_arena *arena)
{
    gl_str from = l->prefix, below;
    bool bounded = bump(l->prefix, arena, &below);
    if (l->after.n > 0 && l->descending) {
        if (!bounded || gl_str_cmp(l->after, below) < 0) {
            below = l->after;
            bounded = true;
        }
    } else if (l->after.n > 0 && gl_str_cmp(l->after, from) >= 0) {
        /* The next text in bytewise order is this one with a NUL byte; gl_str_dup has put it there.
         */
        from = gl_str_dup(arena, l->after);
        from.n++;
    }
    gl_sqlite_db_bind_str(db, st, 2, from);
    if (bounded) {
        gl_sqlite_db_bind_str(db, st, 3, below);
    } else {
        gl_sqlite_db_bind_top(db, st, 3);
    }
}

static enum gl_sqlite_statement list_statement(const struct gl_listing *l)
{
    if (l->ids_only) {
        return GL_SQLITE_LIST_IDS;
    }
    if (l->live_only) {
        return l->descending ? GL_SQLITE_LIST_LIVE_DESC : GL_SQLITE_LIST_LIVE;
    }
    return l->descending ? GL_SQLITE_LIST_DESC : GL_SQLITE_LIST;
}

static int list(struct gl_sqlite_db *db, struct gl_sqlite_op *op, struct gl_arena *arena)
{
    const struct gl_listing *l = op->u.listing;
    GL_ASSERT(!l->ids_only || (!l->live_only && !l->descending)); /* nobody has needed that yet */
    if (db == NULL) {
        return SQLITE_OK;
    }
    enum gl_sqlite_statement st = list_statement(l);
    gl_sqlite_db_bind_str(db, st, 1, l->kind);
    bind_bounds(db, st, l, arena);
    gl_sqlite_db_bind_int(db, st, 4, limit_of(l->limit));
    struct gl_buf rows = {0};
    size_t bytes = 0;
    int rc;
    while ((rc = gl_sqlite_db_step(db, st)) == SQLITE_ROW) {
        struct gl_record r = {.kind = l->kind};
        r.id = gl_str_dup(arena, gl_sqlite_db_str(db, st, 0));
        gl_sqlite_record_fill(db, st, 1, arena, &r);
        gl_buf_add(&rows, &r, sizeof(r));
        bytes += r.value.n;
        if (l->bytes_max > 0 && bytes >= l->bytes_max) {
            break;
        }
    }
    gl_sqlite_db_reset(db, st);
    op->req->records = take_rows(arena, &rows, sizeof(struct gl_record), &op->req->records_n);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* ---- indexes ---- */

static int range(struct gl_sqlite_db *db, struct gl_sqlite_op *op, struct gl_arena *arena)
{
    const struct gl_range *r = op->u.range;
    if (db == NULL) {
        return SQLITE_OK;
    }
    bool after = r->after_id.n > 0 && r->after_score >= r->score_min;
    enum gl_sqlite_statement st = after ? GL_SQLITE_RANGE_AFTER : GL_SQLITE_RANGE;
    gl_sqlite_db_bind_str(db, st, 1, r->index);
    gl_sqlite_db_bind_int(db, st, 2, after ? r->after_score : r->score_min);
    gl_sqlite_db_bind_int(db, st, 3, r->score_max);
    gl_sqlite_db_bind_int(db, st, 4, limit_of(r->limit));
    if (after) {
        gl_sqlite_db_bind_str(db, st, 5, r->after_id);
    }
    struct gl_buf rows = {0};
    int rc;
    while ((rc = gl_sqlite_db_step(db, st)) == SQLITE_ROW) {
        struct gl_index_entry e = {.score = gl_sqlite_db_int(db, st, 0)};
        e.id = gl_str_dup(arena, gl_sqlite_db_str(db, st, 1));
        gl_buf_add(&rows, &e, sizeof(e));
    }
    gl_sqlite_db_reset(db, st);
    op->req->entries = take_rows(arena, &rows, sizeof(struct gl_index_entry), &op->req->entries_n);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* ---- logs ---- */

static int log_read(struct gl_sqlite_db *db, struct gl_sqlite_op *op, struct gl_arena *arena)
{
    if (db == NULL) {
        return SQLITE_OK;
    }
    const enum gl_sqlite_statement st = GL_SQLITE_LOG_READ;
    gl_sqlite_db_bind_str(db, st, 1, op->u.log.kind);
    gl_sqlite_db_bind_str(db, st, 2, op->u.log.id);
    gl_sqlite_db_bind_int(db, st, 3, op->u.log.from);
    gl_sqlite_db_bind_int(db, st, 4, limit_of(op->u.log.limit));
    struct gl_buf rows = {0};
    int rc;
    while ((rc = gl_sqlite_db_step(db, st)) == SQLITE_ROW) {
        struct gl_log_entry e = {.seq = gl_sqlite_db_int(db, st, 0)};
        e.value = gl_str_dup(arena, gl_sqlite_db_str(db, st, 1));
        gl_buf_add(&rows, &e, sizeof(e));
    }
    gl_sqlite_db_reset(db, st);
    op->req->log = take_rows(arena, &rows, sizeof(struct gl_log_entry), &op->req->log_n);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* ---- sessions ---- */

static int session_list(struct gl_sqlite_db *db, struct gl_sqlite_op *op, struct gl_arena *arena)
{
    if (db == NULL) {
        return SQLITE_OK;
    }
    const enum gl_sqlite_statement st = GL_SQLITE_SESSION_LIST;
    gl_sqlite_db_bind_int(db, st, 1, GL_SESSIONS_LISTED);
    struct gl_buf rows = {0};
    int rc;
    while ((rc = gl_sqlite_db_step(db, st)) == SQLITE_ROW) {
        struct gl_session_info s = {.left_ms = INT64_MAX};
        s.id = gl_str_dup(arena, gl_sqlite_db_str(db, st, 0));
        s.node = gl_str_dup(arena, gl_sqlite_db_str(db, st, 1));
        s.incarnation = (uint64_t)gl_sqlite_db_int(db, st, 2);
        s.dead = gl_sqlite_db_int(db, st, 3) != 0;
        s.about = gl_str_dup(arena, gl_sqlite_db_str(db, st, 4));
        gl_buf_add(&rows, &s, sizeof(s));
    }
    gl_sqlite_db_reset(db, st);
    op->req->sessions =
        take_rows(arena, &rows, sizeof(struct gl_session_info), &op->req->sessions_n);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* ---- how much ---- */

static int measure(struct gl_sqlite_db *db, struct gl_sqlite_op *op)
{
    int64_t bytes = 0;
    int rc = db == NULL ? SQLITE_OK : gl_sqlite_db_number(db, GL_SQLITE_MEASURE, &bytes);
    op->req->bytes = (uint64_t)bytes;
    return rc;
}

int gl_sqlite_read_op(struct gl_sqlite_db *db, struct gl_sqlite_op *op, struct gl_arena *arena)
{
    switch (op->type) {
    case GL_SQLITE_OP_GET:
        return get(db, op, arena);
    case GL_SQLITE_OP_RANGE:
        return range(db, op, arena);
    case GL_SQLITE_OP_LIST:
        return list(db, op, arena);
    case GL_SQLITE_OP_LOG_READ:
        return log_read(db, op, arena);
    case GL_SQLITE_OP_SESSION_LIST:
        return session_list(db, op, arena);
    case GL_SQLITE_OP_EXPORT:
        return db == NULL ? SQLITE_OK : gl_sqlite_export_page(db, op, arena);
    case GL_SQLITE_OP_MEASURE:
        return measure(db, op);
    default:
        GL_UNREACHABLE();
    }
}
