#include "store/sqlite/sqlite_export.h"

#include "base/check.h"
#include "base/mem.h"
#include "store/sqlite/sqlite_db.h"
#include "store/sqlite/sqlite_record.h"

enum { PAGE_BYTES = 4 << 20 }; /* a page is over when its values have reached this */

/* Where a page ends: the table, and the key of its last row there. The next page begins behind it,
 * whatever has happened since. As text: "table:number:length of kind:kind id". */
struct place {
    size_t table;
    gl_str kind, id;
    int64_t number; /* score or seq */
};

struct page {
    struct gl_sqlite_db *db;
    struct gl_store_req *req;
    struct gl_arena *arena;
    size_t limit, bytes;
    struct gl_buf rows; /* of struct gl_write */
    struct place at;
};

static size_t rows_n(const struct page *p)
{
    return p->rows.n / sizeof(struct gl_write);
}

/* ---- the tables ---- */

static struct gl_write record_of(struct page *p)
{
    const enum gl_sqlite_statement st = GL_SQLITE_EXPORT_RECORDS;
    struct gl_record r = {.kind = p->at.kind, .id = p->at.id};
    gl_sqlite_record_fill(p->db, st, 2, p->arena, &r);
    if (r.damaged) {
        p->req->status =
            gl_why(&p->req->why, GL_E_DAMAGED,
                   "%.*s %.*s in %s is damaged: its checksum is wrong; restore it from "
                   "a backup, or remove it",
                   GL_STR_ARG(r.kind), GL_STR_ARG(r.id), p->db->path);
    }
    return (struct gl_write){.type = GL_WRITE_PUT,
                             .rev = r.rev,
                             .owner = r.owner,
                             .token = r.token,
                             .live = r.live,
                             .value = r.value};
}

static struct gl_write entry_of(struct page *p)
{
    p->at.number = gl_sqlite_db_int(p->db, GL_SQLITE_EXPORT_ENTRIES, 2);
    return (struct gl_write){.type = GL_WRITE_INDEX, .score = p->at.number};
}

static struct gl_write log_of(struct page *p)
{
    const enum gl_sqlite_statement st = GL_SQLITE_EXPORT_LOGS;
    p->at.number = gl_sqlite_db_int(p->db, st, 2);
    return (struct gl_write){.type = GL_WRITE_LOG,
                             .seq = p->at.number,
                             .value = gl_str_dup(p->arena, gl_sqlite_db_str(p->db, st, 3))};
}

static const struct {
    enum gl_sqlite_statement st; /* ?1 kind, ?2 id, ?4 number: behind this; ?3 so many rows */
    struct gl_write (*write_of)(struct page *p);
} tables[] = {
    {GL_SQLITE_EXPORT_RECORDS, record_of},
    {GL_SQLITE_EXPORT_ENTRIES, entry_of},
    {GL_SQLITE_EXPORT_LOGS, log_of},
};

static bool is_full(const struct page *p)
{
    return rows_n(p) >= p->limit || p->bytes >= PAGE_BYTES || p->req->status < 0;
}

/* Rows of the table p->at names, behind the row it names. */
static int read_table(struct page *p)
{
    const enum gl_sqlite_statement st = tables[p->at.table].st;
    int rc = SQLITE_DONE;
    gl_sqlite_db_bind_str(p->db, st, 1, p->at.kind);
    gl_sqlite_db_bind_str(p->db, st, 2, p->at.id);
    gl_sqlite_db_bind_int(p->db, st, 3, (int64_t)(p->limit - rows_n(p)));
    if (st != GL_SQLITE_EXPORT_RECORDS) {
        gl_sqlite_db_bind_int(p->db, st, 4, p->at.number);
    }
    while (!is_full(p) && (rc = gl_sqlite_db_step(p->db, st)) == SQLITE_ROW) {
        p->at.kind = gl_str_dup(p->arena, gl_sqlite_db_str(p->db, st, 0));
        p->at.id = gl_str_dup(p->arena, gl_sqlite_db_str(p->db, st, 1));
        struct gl_write w = tables[p->at.table].write_of(p);
        w.kind = p->at.kind;
        w.id = p->at.id;
        p->bytes += w.value.n;
        gl_buf_add(&p->rows, &w, sizeof(w));
    }
    gl_sqlite_db_reset(p->db, st);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* ---- places as text ---- */

static bool parse_place(gl_str text, struct place *ret)
{
    gl_str rest;
    uint64_t table, kind_n;
    struct place at = {0};
    if (!gl_str_u64(gl_str_cut(text, ':', &rest), &table) || table >= GL_COUNT(tables) ||
        !gl_str_i64(gl_str_cut(rest, ':', &rest), &at.number) ||
        !gl_str_u64(gl_str_cut(rest, ':', &rest), &kind_n) || kind_n > rest.n) {
        return false;
    }
    at.table = (size_t)table;
    at.kind = (gl_str){rest.p, (size_t)kind_n};
    at.id = (gl_str){rest.p + kind_n, rest.n - (size_t)kind_n};
    *ret = at;
    return true;
}

static gl_str format_place(const struct place *at, struct gl_arena *arena)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    gl_buf_fmt(&text, "%zu:%lld:%zu:", at->table, (long long)at->number, at->kind.n);
    gl_buf_str(&text, at->kind);
    gl_buf_str(&text, at->id);
    return gl_str_dup(arena, gl_buf_view(&text));
}

static void finish(struct page *p, bool more)
{
    if (p->req->status == 0) {
        p->req->writes_n = rows_n(p);
        p->req->writes = gl_arena_copy(p->arena, p->rows.p, p->rows.n);
        p->req->next = more ? format_place(&p->at, p->arena) : (gl_str){0};
    }
    gl_buf_done(&p->rows);
}

int gl_sqlite_export_page(struct gl_sqlite_db *db, struct gl_sqlite_op *op, struct gl_arena *arena)
{
    struct page p = {.db = db, .req = op->req, .arena = arena};
    gl_str after = op->u.export.after;
    p.limit = op->u.export.limit > 0 ? op->u.export.limit : 1;
    if (after.n > 0 && !parse_place(after, &p.at)) {
        op->req->status = gl_why(&op->req->why, GL_E_INVALID, "no page of an export ends there");
        return SQLITE_OK;
    }
    int rc = SQLITE_OK;
    while (rc == SQLITE_OK && !is_full(&p) && p.at.table < GL_COUNT(tables)) {
        rc = read_table(&p);
        if (rc == SQLITE_OK && !is_full(&p)) {
            p.at = (struct place){.table = p.at.table + 1};
        }
    }
    finish(&p, p.at.table < GL_COUNT(tables));
    return rc;
}
