/* sqlite_apply.c - one transaction of the port: evaluate all guards, then apply all writes. The
 * order matters: a refused transaction must not have written anything, because the transactions of
 * its group share one SQL transaction. */
#include "store/sqlite/sqlite_parts.h"

#include "base/check.h"

/* Evaluates GL_GUARD_DEAD (`dead`) or GL_GUARD_ALIVE. An unknown session is dead; "" is neither.
 * Returns the rc. */
static int session_is(struct gl_sqlite_db *db, gl_str session, bool dead, bool *ret)
{
    bool known, is_dead;
    int rc = gl_sqlite_session_find(db, session, &known, &is_dead);
    *ret = dead ? session.n > 0 && (!known || is_dead) : known && !is_dead;
    return rc;
}

/* Columns of GL_SQLITE_GUARD. */
enum { REV, OWNER, TOKEN, LIVE };

/* Does the guard hold for the existing record the statement is positioned on? */
static bool holds_on_row(struct gl_sqlite_db *db, const struct gl_guard *g)
{
    const enum gl_sqlite_statement st = GL_SQLITE_GUARD;

    GL_ASSERT(g->type != GL_GUARD_DEAD && g->type != GL_GUARD_ALIVE);
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

/* *ret is meaningful only if the rc is SQLITE_OK. */
static int guard_holds(struct gl_sqlite_db *db, const struct gl_guard *g, bool *ret)
{
    GL_ASSERT(g->type == GL_GUARD_DEAD || g->type == GL_GUARD_ALIVE || g->kind.n > 0);
    if (g->type == GL_GUARD_DEAD || g->type == GL_GUARD_ALIVE) {
        return session_is(db, g->owner, g->type == GL_GUARD_DEAD, ret);
    }
    gl_sqlite_db_bind(db, GL_SQLITE_GUARD, gl_arg_text(g->kind), gl_arg_text(g->id));
    int rc = gl_sqlite_db_step(db, GL_SQLITE_GUARD);
    *ret = rc == SQLITE_ROW ? holds_on_row(db, g)
                            : g->type == GL_GUARD_ABSENT || g->type == GL_GUARD_NOT_LIVE;
    gl_sqlite_db_reset(db, GL_SQLITE_GUARD);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* The statement for each type of write, and the columns that are its parameters after kind and id
 * (see column_of()). */
static const struct {
    enum gl_sqlite_statement st;
    const char *columns;
} writes[] = {
    [GL_WRITE_PUT] = {GL_SQLITE_PUT, "rotlvc"},
    [GL_WRITE_PUT_NEW] = {GL_SQLITE_PUT_NEW, "rotlvc"},
    [GL_WRITE_DELETE] = {GL_SQLITE_DELETE, ""},
    [GL_WRITE_INDEX] = {GL_SQLITE_INDEX, "s"},
    [GL_WRITE_UNINDEX] = {GL_SQLITE_UNINDEX, "s"},
    [GL_WRITE_LOG] = {GL_SQLITE_LOG, "nv"},
    [GL_WRITE_LOG_TRIM] = {GL_SQLITE_LOG_TRIM, "n"},
};

static struct gl_arg column_of(const struct gl_write *w, char column)
{
    switch (column) {
    case 'r':
        return gl_arg_u64(w->rev);
    case 'o':
        return gl_arg_text(w->owner);
    case 't':
        return gl_arg_u64(w->token);
    case 'l':
        return gl_arg_i64(w->live);
    case 'v':
        return gl_arg_text(w->value);
    case 'c':
        return gl_arg_i64(gl_call_checksum(w));
    case 's':
        return gl_arg_i64(w->score);
    case 'n':
        return gl_arg_i64(w->seq);
    default:
        GL_UNREACHABLE();
    }
}

/* The texts are bound without a copy: the transaction is borrowed until the call completes. */
static int write_one(struct gl_sqlite_db *db, const struct gl_write *w)
{
    const char *columns = writes[w->type].columns;
    struct gl_arg args[8]; /* the first n are set */
    size_t n = 2;

    GL_ASSERT((size_t)w->type < GL_COUNT(writes));
    GL_ASSERT(w->kind.n > 0);
    args[0] = gl_arg_text(w->kind);
    args[1] = gl_arg_text(w->id);
    for (; *columns != '\0'; columns++) {
        args[n++] = column_of(w, *columns);
    }
    GL_ASSERT(n <= GL_COUNT(args));
    gl_sqlite_db_bind_n(db, writes[w->type].st, args, n);
    return gl_sqlite_db_run(db, writes[w->type].st);
}

int gl_sqlite_apply(struct gl_sqlite_db *db, struct gl_call *call)
{
    const struct gl_tx *tx = call->tx;

    GL_ASSERT(call->type == GL_CALL_COMMIT);
    call->req->status = gl_call_check_sizes(tx, SIZE_MAX, &call->req->why);
    if (call->req->status < 0) {
        return SQLITE_OK;
    }
    for (size_t i = 0; i < tx->guards_n; i++) {
        bool holds = false;
        int rc = guard_holds(db, &tx->guards[i], &holds);
        if (rc != SQLITE_OK) {
            return rc;
        }
        if (!holds) {
            gl_call_conflict(call, i);
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
