#include "store/sqlite/sqlite_apply.h"

#include "base/check.h"
#include "base/limits.h"
#include "port/sum.h"
#include "store/sqlite/sqlite_db.h"
#include "store/sqlite/sqlite_session.h"

/* rc; *ret: the session is dead, which one that is not known is, too; or it is known and not dead.
 */
static int session_is(struct gl_sqlite_db *db, gl_str session, bool dead, bool *ret)
{
    bool known, is_dead;
    int rc = gl_sqlite_session_find(db, session, &known, &is_dead);
    *ret = dead ? session.n > 0 && (!known || is_dead) : known && !is_dead;
    return rc;
}

/* Columns of GL_SQLITE_GUARD. */
enum { REV, OWNER, TOKEN, LIVE };

static bool holds_on_row(struct gl_sqlite_db *db, const struct gl_guard *g)
{
    const enum gl_sqlite_statement st = GL_SQLITE_GUARD;
    switch (g->type) {
    case GL_GUARD_PRESENT:
        return true;
    case GL_GUARD_AT:
        return (uint64_t)gl_sqlite_db_int(db, st, REV) == g->rev;
    case GL_GUARD_NOT_LIVE:
        return gl_sqlite_db_int(db, st, LIVE) == 0;
    case GL_GUARD_OWNED:
        return (uint64_t)gl_sqlite_db_int(db, st, TOKEN) == g->token &&
               gl_str_eq(gl_sqlite_db_str(db, st, OWNER), g->owner) &&
               (g->rev == 0 || (uint64_t)gl_sqlite_db_int(db, st, REV) == g->rev);
    case GL_GUARD_ABSENT:
    case GL_GUARD_DEAD:
    case GL_GUARD_ALIVE:
        break;
    }
    return false;
}

static int guard_holds(struct gl_sqlite_db *db, const struct gl_guard *g, bool *ret)
{
    if (g->type == GL_GUARD_DEAD || g->type == GL_GUARD_ALIVE) {
        return session_is(db, g->owner, g->type == GL_GUARD_DEAD, ret);
    }
    gl_sqlite_db_bind_str(db, GL_SQLITE_GUARD, 1, g->kind);
    gl_sqlite_db_bind_str(db, GL_SQLITE_GUARD, 2, g->id);
    int rc = gl_sqlite_db_step(db, GL_SQLITE_GUARD);
    *ret = rc == SQLITE_ROW ? holds_on_row(db, g)
                            : g->type == GL_GUARD_ABSENT || g->type == GL_GUARD_NOT_LIVE;
    gl_sqlite_db_reset(db, GL_SQLITE_GUARD);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int put(struct gl_sqlite_db *db, enum gl_sqlite_statement st, const struct gl_write *w)
{
    struct gl_record r = {.kind = w->kind,
                          .id = w->id,
                          .rev = w->rev,
                          .owner = w->owner,
                          .token = w->token,
                          .live = w->live,
                          .value = w->value};
    gl_sqlite_db_bind_str(db, st, 1, w->kind);
    gl_sqlite_db_bind_str(db, st, 2, w->id);
    gl_sqlite_db_bind_int(db, st, 3, (int64_t)w->rev);
    gl_sqlite_db_bind_str(db, st, 4, w->owner);
    gl_sqlite_db_bind_int(db, st, 5, (int64_t)w->token);
    gl_sqlite_db_bind_int(db, st, 6, w->live);
    gl_sqlite_db_bind_str(db, st, 7, w->value);
    gl_sqlite_db_bind_int(db, st, 8, gl_sum_record(&r));
    return gl_sqlite_db_run(db, st);
}

static int delete_record(struct gl_sqlite_db *db, const struct gl_write *w)
{
    gl_sqlite_db_bind_str(db, GL_SQLITE_DELETE, 1, w->kind);
    gl_sqlite_db_bind_str(db, GL_SQLITE_DELETE, 2, w->id);
    return gl_sqlite_db_run(db, GL_SQLITE_DELETE);
}

static int move_entry(struct gl_sqlite_db *db, enum gl_sqlite_statement st,
                      const struct gl_write *w)
{
    gl_sqlite_db_bind_str(db, st, 1, w->kind);
    gl_sqlite_db_bind_int(db, st, 2, w->score);
    gl_sqlite_db_bind_str(db, st, 3, w->id);
    return gl_sqlite_db_run(db, st);
}

static int change_log(struct gl_sqlite_db *db, enum gl_sqlite_statement st,
                      const struct gl_write *w)
{
    gl_sqlite_db_bind_str(db, st, 1, w->kind);
    gl_sqlite_db_bind_str(db, st, 2, w->id);
    gl_sqlite_db_bind_int(db, st, 3, w->seq);
    if (st == GL_SQLITE_LOG) {
        gl_sqlite_db_bind_str(db, st, 4, w->value);
    }
    return gl_sqlite_db_run(db, st);
}

static int write_one(struct gl_sqlite_db *db, const struct gl_write *w)
{
    switch (w->type) {
    case GL_WRITE_PUT:
        return put(db, GL_SQLITE_PUT, w);
    case GL_WRITE_PUT_NEW:
        return put(db, GL_SQLITE_PUT_NEW, w);
    case GL_WRITE_DELETE:
        return delete_record(db, w);
    case GL_WRITE_INDEX:
        return move_entry(db, GL_SQLITE_INDEX, w);
    case GL_WRITE_UNINDEX:
        return move_entry(db, GL_SQLITE_UNINDEX, w);
    case GL_WRITE_LOG:
        return change_log(db, GL_SQLITE_LOG, w);
    case GL_WRITE_LOG_TRIM:
        return change_log(db, GL_SQLITE_LOG_TRIM, w);
    }
    GL_UNREACHABLE();
}

static int check_sizes(const struct gl_tx *tx, struct gl_why *reterr_why)
{
    for (size_t i = 0; i < tx->writes_n; i++) {
        const struct gl_write *w = &tx->writes[i];
        if (w->value.n > GL_RECORD_BYTES_MAX) {
            return gl_why(reterr_why, GL_E_LIMIT,
                          "%.*s %.*s has %zu bytes; the store takes up to %d in one piece",
                          GL_STR_ARG(w->kind), GL_STR_ARG(w->id), w->value.n,
                          (int)GL_RECORD_BYTES_MAX);
        }
    }
    return 0;
}

int gl_sqlite_apply(struct gl_sqlite_db *db, const struct gl_tx *tx, struct gl_store_req *req)
{
    req->status = check_sizes(tx, &req->why);
    if (req->status < 0) {
        return SQLITE_OK;
    }
    for (size_t i = 0; i < tx->guards_n; i++) {
        bool holds = false;
        int rc = guard_holds(db, &tx->guards[i], &holds);
        if (rc != SQLITE_OK) {
            return rc;
        }
        if (!holds) {
            req->refused = i;
            req->status = gl_why(&req->why, GL_E_CONFLICT,
                                 "guard %zu of the transaction on %.*s "
                                 "%.*s did not hold",
                                 i, GL_STR_ARG(tx->guards[i].kind), GL_STR_ARG(tx->guards[i].id));
            return SQLITE_OK;
        }
    }
    for (size_t i = 0; i < tx->writes_n; i++) {
        int rc = write_one(db, &tx->writes[i]);
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    return SQLITE_OK;
}
