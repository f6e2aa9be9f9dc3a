/* sqlite_session.c - session rows, and the ring of remembered groups (table txgroup) from which
 * `resolve` answers.
 *
 * A group is one row: its session, the range of its transaction ids, and the ids in that range that
 * were refused. The ring keeps the newest GL_SQLITE_GROUPS_KEPT groups of the database. If a
 * transaction is in no row, it either never arrived or its row was overwritten; recall_absent()
 * tells these apart. */
#include "store/sqlite/sqlite_parts.h"

#include "base/check.h"
#include "base/limits.h"
#include "store/sqlite/sqlite.h"

/* Insert a live session and mark all others dead. Old sessions of the node are forgotten, so the
 * table does not grow with each restart. Returns the rc. */
static int add(struct gl_sqlite_db *db, gl_str id, gl_str node, uint64_t incarnation, gl_str about)
{
    GL_ASSERT(id.n > 0);
    GL_ASSERT(incarnation > 0);
    gl_sqlite_db_bind(db, GL_SQLITE_SESSION_KILL, gl_arg_text(id));
    int rc = gl_sqlite_db_run(db, GL_SQLITE_SESSION_KILL);
    if (rc != SQLITE_OK) {
        return rc;
    }
    if (incarnation > GL_SESSIONS_KEPT) {
        gl_sqlite_db_bind(db, GL_SQLITE_SESSION_FORGET, gl_arg_text(node),
                          gl_arg_u64(incarnation - GL_SESSIONS_KEPT));
        rc = gl_sqlite_db_run(db, GL_SQLITE_SESSION_FORGET);
    }
    if (rc != SQLITE_OK) {
        return rc;
    }
    gl_sqlite_db_bind(db, GL_SQLITE_SESSION_ADD, gl_arg_text(id), gl_arg_text(node),
                      gl_arg_u64(incarnation), gl_arg_u64(db->group_n), gl_arg_text(about));
    return gl_sqlite_db_run(db, GL_SQLITE_SESSION_ADD);
}

int gl_sqlite_session_begin(struct gl_sqlite_db *db, gl_str node, gl_str nonce, gl_str about,
                            struct gl_buf *id, uint64_t *ret_incarnation)
{
    GL_ASSERT(node.n > 0);
    GL_ASSERT(id->n == 0);
    gl_sqlite_db_bind(db, GL_SQLITE_SESSION_LAST, gl_arg_text(node));
    int64_t last;
    int rc = gl_sqlite_db_number(db, GL_SQLITE_SESSION_LAST, &last);
    if (rc != SQLITE_OK) {
        return rc;
    }
    uint64_t incarnation = (uint64_t)last + 1;
    gl_buf_fmt(id, "%.*s#%llu.%.*s", GL_STR_ARG(node), (unsigned long long)incarnation,
               GL_STR_ARG(nonce));
    *ret_incarnation = incarnation;
    GL_ASSERT(incarnation > 0);
    return add(db, gl_buf_view(id), node, incarnation, about);
}

/* The row in a database other than the default one is derived from the id. */
static int register_session(struct gl_sqlite_db *db, gl_str id)
{
    gl_str rest;
    gl_str node = gl_str_cut(id, '#', &rest);
    uint64_t incarnation = 0;
    bool ok = gl_str_u64(gl_str_cut(rest, '.', &rest), &incarnation);

    GL_ASSERT(id.n > 0);
    GL_ASSERT(ok); /* gl_sqlite_session_begin() made this id */
    return add(db, id, node, incarnation,
               (gl_str){0}); /* only the default database publishes `about` */
}

int gl_sqlite_session_propagate(struct gl_sqlite_worker *w, struct gl_sqlite_db *db)
{
    if (db->session_known || w->session.n == 0) {
        return SQLITE_OK;
    }
    int rc = register_session(db, gl_buf_view(&w->session));
    if (rc != SQLITE_OK || !w->session_over) {
        return rc;
    }
    gl_sqlite_db_bind(db, GL_SQLITE_SESSION_END, gl_arg_text(gl_buf_view(&w->session)));
    return gl_sqlite_db_run(db, GL_SQLITE_SESSION_END);
}

int gl_sqlite_session_find(struct gl_sqlite_db *db, gl_str id, bool *ret_known, bool *ret_dead)
{
    gl_sqlite_db_bind(db, GL_SQLITE_SESSION_GET, gl_arg_text(id));
    int rc = gl_sqlite_db_step(db, GL_SQLITE_SESSION_GET);
    *ret_known = rc == SQLITE_ROW;
    *ret_dead = rc == SQLITE_ROW && gl_sqlite_db_int(db, GL_SQLITE_SESSION_GET, 0) != 0;
    gl_sqlite_db_reset(db, GL_SQLITE_SESSION_GET);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int gl_sqlite_session_remember(struct gl_sqlite_db *db, const struct gl_call *first, size_t n,
                               struct gl_buf *scratch)
{
    uint64_t lowest = UINT64_MAX, highest = 0;

    GL_ASSERT(n > 0);
    gl_buf_reset(scratch);
    gl_buf_char(scratch, '[');
    const struct gl_call *call = first;
    for (size_t i = 0; i < n; i++, call = gl_call_next(call)) {
        uint64_t id = call->tx->id;
        if (id == 0) {
            continue; /* id 0: `resolve` is never called for it */
        }
        lowest = id < lowest ? id : lowest;
        highest = id > highest ? id : highest;
        if (call->req->status != 0) {
            gl_buf_c(scratch, scratch->n > 1 ? "," : "");
            gl_buf_u64(scratch, id);
        }
    }
    gl_buf_char(scratch, ']');
    if (highest == 0) {
        return SQLITE_OK;
    }
    GL_ASSERT(lowest <= highest);
    uint64_t number = ++db->group_n;
    gl_sqlite_db_bind(db, GL_SQLITE_REMEMBER, gl_arg_u64(number % GL_SQLITE_GROUPS_KEPT),
                      gl_arg_u64(number), gl_arg_text(first->tx->session), gl_arg_u64(lowest),
                      gl_arg_u64(highest), gl_arg_text(gl_buf_view(scratch)));
    return gl_sqlite_db_run(db, GL_SQLITE_REMEMBER);
}

/* Is `id` in a list like "[3,17]"? */
static bool listed(gl_str list, uint64_t id)
{
    gl_str rest = {list.p + 1, list.n >= 2 ? list.n - 2 : 0};
    while (rest.n > 0) {
        uint64_t v;
        if (gl_str_u64(gl_str_cut(rest, ',', &rest), &v) && v == id) {
            return true;
        }
    }
    return false;
}

/* No row contains the transaction. Was there one that has been overwritten? The groups of a session
 * have numbers above its `since`, and the ring has lost all numbers below its first. */
static int recall_absent(struct gl_sqlite_db *db, gl_str session, uint64_t tx_id, int *ret_status)
{
    int64_t group_first, since = 0, tx_first;
    int rc = gl_sqlite_db_number(db, GL_SQLITE_GROUP_FIRST, &group_first);
    if (rc != SQLITE_OK) {
        return rc;
    }
    gl_sqlite_db_bind(db, GL_SQLITE_SESSION_GET, gl_arg_text(session));
    rc = gl_sqlite_db_step(db, GL_SQLITE_SESSION_GET);
    if (rc == SQLITE_ROW) {
        since = gl_sqlite_db_int(db, GL_SQLITE_SESSION_GET, 1);
    }
    gl_sqlite_db_reset(db, GL_SQLITE_SESSION_GET);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        return rc;
    }
    gl_sqlite_db_bind(db, GL_SQLITE_RECALL_FIRST, gl_arg_text(session));
    rc = gl_sqlite_db_number(db, GL_SQLITE_RECALL_FIRST, &tx_first);
    if (rc != SQLITE_OK) {
        return rc;
    }
    bool lost_some = group_first > since + 1;
    /* Ids are ascending: a transaction above the session's first remembered id cannot have been in
     * an overwritten group. */
    bool newer_than_lost = tx_first != 0 && tx_id > (uint64_t)tx_first;
    *ret_status = lost_some && !newer_than_lost ? GL_E_UNKNOWN : GL_E_CONFLICT;
    return SQLITE_OK;
}

int gl_sqlite_session_recall(struct gl_sqlite_db *db, gl_str session, uint64_t tx_id,
                             int *ret_status)
{
    gl_sqlite_db_bind(db, GL_SQLITE_RECALL, gl_arg_text(session), gl_arg_u64(tx_id));
    int rc = gl_sqlite_db_step(db, GL_SQLITE_RECALL);
    if (rc == SQLITE_ROW) {
        bool refused = listed(gl_sqlite_db_str(db, GL_SQLITE_RECALL, 0), tx_id);
        *ret_status = refused ? GL_E_CONFLICT : 0;
    }
    gl_sqlite_db_reset(db, GL_SQLITE_RECALL);
    if (rc == SQLITE_ROW) {
        return SQLITE_OK;
    }
    return rc == SQLITE_DONE ? recall_absent(db, session, tx_id, ret_status) : rc;
}
