#include "store/sqlite_items.h"

#include <limits.h>
#include <time.h>

#include "base/check.h"
#include "base/mem.h"
#include "store/sqlite_db.h"

gl_ms gl_sqlite_items_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (gl_ms)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int gl_sqlite_items_write(struct gl_sqlite_db *db, const struct gl_write *w)
{
    enum gl_sqlite_statement st = w->type == GL_WRITE_PUSH  ? GL_SQLITE_PUSH
                                  : w->type == GL_WRITE_POP ? GL_SQLITE_POP
                                                            : GL_SQLITE_UNCLAIM;
    gl_sqlite_db_bind_str(db, st, 1, w->kind);
    gl_sqlite_db_bind_str(db, st, 2, w->id);
    if (st == GL_SQLITE_PUSH) {
        gl_sqlite_db_bind_str(db, st, 3, w->value);
    }
    return gl_sqlite_db_run(db, st);
}

int gl_sqlite_items_guard(struct gl_sqlite_db *db, const struct gl_guard *g, bool *ret)
{
    int64_t token = 0; /* of an item that is not there, or not claimed */
    gl_sqlite_db_bind_str(db, GL_SQLITE_CLAIMED, 1, g->kind);
    gl_sqlite_db_bind_str(db, GL_SQLITE_CLAIMED, 2, g->id);
    int rc = gl_sqlite_db_number(db, GL_SQLITE_CLAIMED, &token);
    *ret = token != 0 && (uint64_t)token == g->token;
    return rc;
}

/* ---- taking ---- */

struct found {
    int64_t n; /* its row */
    struct gl_queue_item item;
};

/* The oldest free items, into `rows`. */
static int find_free(struct gl_sqlite_db *db, const struct gl_take *take, gl_ms now,
                     struct gl_arena *arena, struct gl_buf *rows)
{
    const enum gl_sqlite_statement st = GL_SQLITE_FREE;
    gl_sqlite_db_bind_str(db, st, 1, take->queue);
    gl_sqlite_db_bind_int(db, st, 2, now);
    gl_sqlite_db_bind_int(db, st, 3, take->limit > INT_MAX ? INT_MAX : (int64_t)take->limit);
    int rc;
    while ((rc = gl_sqlite_db_step(db, st)) == SQLITE_ROW) {
        struct found f = {.n = gl_sqlite_db_int(db, st, 0)};
        f.item.id = gl_str_dup(arena, gl_sqlite_db_str(db, st, 1));
        f.item.value = gl_str_dup(arena, gl_sqlite_db_str(db, st, 2));
        gl_buf_add(rows, &f, sizeof(f));
    }
    gl_sqlite_db_reset(db, st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Tokens rise in the whole database, so that an id that is pushed again meets no old claim. */
static int claim(struct gl_sqlite_db *db, const struct gl_take *take, gl_ms now,
                 struct found *found, size_t n)
{
    const enum gl_sqlite_statement st = GL_SQLITE_CLAIM;
    gl_ms until = take->lease_ms < INT64_MAX - now ? now + take->lease_ms : INT64_MAX;
    int64_t token;
    int rc = gl_sqlite_db_number(db, GL_SQLITE_CLAIMS, &token);
    for (size_t i = 0; i < n && rc == SQLITE_OK; i++) {
        found[i].item.token = (uint64_t)++token;
        gl_sqlite_db_bind_int(db, st, 1, found[i].n);
        gl_sqlite_db_bind_int(db, st, 2, token);
        gl_sqlite_db_bind_str(db, st, 3, take->session);
        gl_sqlite_db_bind_int(db, st, 4, until);
        rc = gl_sqlite_db_run(db, st);
    }
    if (rc != SQLITE_OK || n == 0) {
        return rc;
    }
    gl_sqlite_db_bind_int(db, GL_SQLITE_CLAIMS_SET, 1, token);
    return gl_sqlite_db_run(db, GL_SQLITE_CLAIMS_SET);
}

int gl_sqlite_items_take(struct gl_sqlite_db *db, const struct gl_take *take,
                         struct gl_store_req *req, struct gl_arena *arena)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf rows = {0};
    gl_ms now = gl_sqlite_items_now();
    int rc = find_free(db, take, now, arena, &rows);
    size_t n = rows.n / sizeof(struct found);
    if (rc != SQLITE_OK || n == 0) {
        return rc;
    }
    struct found *found = gl_arena_copy(arena, rows.p, rows.n);
    rc = claim(db, take, now, found, n);
    struct gl_queue_item *items = GL_NEW_ARRAY(arena, struct gl_queue_item, n);
    for (size_t i = 0; i < n; i++) {
        items[i] = found[i].item;
    }
    req->items = items;
    req->items_n = n;
    return rc;
}
