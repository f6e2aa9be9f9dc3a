/* sqlite_call.c - the writer's calls other than commits. Sessions are rows in the default context;
 * other contexts learn of a session by their next commit (gl_sqlite_session_propagate()). */
#include "store/sqlite/sqlite_parts.h"

#include "base/check.h"
#include "base/limits.h"
#include "os/failpoint.h"
#include "store/sqlite/sqlite_error.h"

/* Abandon a transaction that failed. Whether its COMMIT took effect does not matter to any call in
 * this file, because each may be repeated. But the file's state must be settled before it is used
 * again, so the connection is dropped as in doubt. */
static int abandon(struct gl_sqlite_worker *w, struct gl_sqlite_db *db, int rc, struct gl_why *why)
{
    int err = gl_sqlite_error_why(db, rc, why);

    GL_ASSERT(rc != SQLITE_OK);
    gl_sqlite_contexts_drop(&w->contexts, db, true);
    return err;
}

static int check_about(gl_str about, struct gl_why *reterr_why)
{
    if (about.n <= GL_ABOUT_BYTES_MAX) {
        return 0;
    }
    return gl_why(reterr_why, GL_E_LIMIT,
                  "the description of the node has %zu bytes; a session accepts up to %d", about.n,
                  (int)GL_ABOUT_BYTES_MAX);
}

/* ---- sessions ---- */

static int begin_session(struct gl_sqlite_db *db, const struct gl_call *call, struct gl_buf *id,
                         uint64_t *ret_incarnation)
{
    int rc = gl_sqlite_db_run(db, GL_SQLITE_BEGIN);

    GL_ASSERT(call->options->node.n > 0);
    if (rc != SQLITE_OK) {
        return rc;
    }
    rc = gl_sqlite_session_begin(db, call->options->node, call->options->nonce,
                                 call->options->about, id, ret_incarnation);
    if (rc == SQLITE_OK) {
        GL_FAILPOINT("sqlite.before_session");
        rc = gl_sqlite_db_run(db, GL_SQLITE_COMMIT);
        GL_FAILPOINT("sqlite.after_session");
    }
    return rc;
}

static void forget_session(struct gl_sqlite_db *db)
{
    db->session_known = false;
}

static void set_text(struct gl_buf *b, gl_str text)
{
    gl_buf_reset(b);
    gl_buf_str(b, text);
}

/* The row is committed before the worker's memory changes: after a failed COMMIT the old session is
 * still the current one here, and the caller opens again. */
static int session_open(struct gl_sqlite_worker *w, struct gl_call *call)
{
    struct gl_store_req *req = call->req;
    struct gl_sqlite_db *db = NULL;
    int err = check_about(call->options->about, &req->why);

    GL_ASSERT(call->type == GL_CALL_SESSION_OPEN);
    if (err == 0) {
        err = gl_sqlite_contexts_get(&w->contexts, call->context, &db, &req->why);
    }
    if (err < 0) {
        return err;
    }
    gl_buf_reset(&w->text);
    int rc = begin_session(db, call, &w->text, &req->session.incarnation);
    if (rc != SQLITE_OK) {
        return abandon(w, db, rc, &req->why);
    }
    set_text(&w->session, gl_buf_view(&w->text));
    set_text(&w->about, call->options->about);
    w->session_over = false;
    gl_sqlite_contexts_each(&w->contexts, forget_session);
    db->session_known = true;
    req->session.id = gl_str_dup(w->arena, gl_buf_view(&w->session));
    GL_ASSERT(w->session.n > 0);
    GL_ASSERT(!w->session_over);
    return 0;
}

static bool is_current(const struct gl_sqlite_worker *w, gl_str session)
{
    return w->session.n > 0 && gl_str_eq(session, gl_buf_view(&w->session));
}

/* Look a session up in the default database. 0 or a status. */
static int find_session(struct gl_sqlite_worker *w, struct gl_call *call, struct gl_sqlite_db **ret,
                        bool *ret_known, bool *ret_dead)
{
    GL_ASSERT(call->session.id.n > 0 || call->type == GL_CALL_SESSION_DEAD);
    *ret_known = *ret_dead = false;
    int err = gl_sqlite_contexts_get(&w->contexts, call->context, ret, &call->req->why);
    if (err < 0) {
        return err;
    }
    int rc = gl_sqlite_session_find(*ret, call->session.id, ret_known, ret_dead);
    return rc == SQLITE_OK ? 0 : gl_sqlite_error_why(*ret, rc, &call->req->why);
}

static int gone_why(const struct gl_call *call, bool known)
{
    return gl_why(&call->req->why, GL_E_GONE, "session %.*s is %s", GL_STR_ARG(call->session.id),
                  known ? "dead" : "unknown");
}

/* Run one statement, which is a transaction of its own, with a sync. */
static int change_session(struct gl_sqlite_worker *w, struct gl_sqlite_db *db,
                          enum gl_sqlite_statement st, struct gl_call *call)
{
    const struct gl_arg args[] = {gl_arg_text(call->session.id), gl_arg_text(call->session.about)};

    GL_ASSERT(st == GL_SQLITE_SESSION_ABOUT || st == GL_SQLITE_SESSION_END);
    gl_sqlite_db_bind_n(db, st, args, st == GL_SQLITE_SESSION_ABOUT ? 2 : 1);
    int rc = gl_sqlite_db_run(db, st);
    return rc == SQLITE_OK ? 0 : abandon(w, db, rc, &call->req->why);
}

/* There is no deadline to move: only another session_open, which requires the lock on the folder,
 * ends a session. So this writes nothing unless the published text has changed. */
static int session_renew(struct gl_sqlite_worker *w, struct gl_call *call)
{
    gl_str about = call->session.about;
    bool current = is_current(w, call->session.id);

    GL_ASSERT(call->type == GL_CALL_SESSION_RENEW);
    if (current && !w->session_over && gl_str_eq(about, gl_buf_view(&w->about))) {
        return 0;
    }
    bool known, dead;
    struct gl_sqlite_db *db = NULL;
    int err = check_about(about, &call->req->why);
    err = err < 0 ? err : find_session(w, call, &db, &known, &dead);
    if (err < 0) {
        return err;
    }
    if (!known || dead) {
        return gone_why(call, known);
    }
    err = change_session(w, db, GL_SQLITE_SESSION_ABOUT, call);
    if (err == 0 && current) {
        set_text(&w->about, about);
    }
    return err;
}

static int session_end(struct gl_sqlite_worker *w, struct gl_call *call)
{
    bool known, dead;
    struct gl_sqlite_db *db = NULL;
    int err = find_session(w, call, &db, &known, &dead);

    GL_ASSERT(call->type == GL_CALL_SESSION_END);
    if (err < 0 || dead) {
        return err;
    }
    if (!known) {
        return gone_why(call, known);
    }
    if (is_current(w, call->session.id)) {
        /* Even if the row cannot be written now: its holder wants to leave, and the row decides. */
        w->session_over = true;
        gl_sqlite_contexts_each(&w->contexts,
                                forget_session); /* each database learns of it by its next commit */
    }
    return change_session(w, db, GL_SQLITE_SESSION_END, call);
}

static int session_dead(struct gl_sqlite_worker *w, struct gl_call *call)
{
    bool known;
    struct gl_sqlite_db *db = NULL;
    int err = find_session(w, call, &db, &known, &call->req->session_dead);

    GL_ASSERT(call->type == GL_CALL_SESSION_DEAD);
    call->req->session_dead |= err == 0 && !known;
    return err;
}

/* ---- outcomes of transactions ---- */

/* "Never arrived" must stay true: from now on a transaction of this session with this number or a
 * lower one is refused. The barrier is kept in memory only, because a transaction that has not been
 * called yet does not outlive the process. */
static void raise_barrier(struct gl_sqlite_worker *w, gl_str session, uint64_t tx_id)
{
    bool same = gl_str_eq(session, gl_buf_view(&w->barrier_session));
    if (same && tx_id <= w->barrier) {
        return;
    }
    set_text(&w->barrier_session, session);
    w->barrier = tx_id;
    GL_ASSERT(w->barrier == tx_id);
}

/* Read the outcome from the remembered groups. 0 or a status. */
static int recall(struct gl_sqlite_worker *w, struct gl_call *call, int *ret_status)
{
    struct gl_sqlite_db *db = NULL;
    int err = gl_sqlite_contexts_get(&w->contexts, call->context, &db, &call->req->why);

    GL_ASSERT(call->type == GL_CALL_RESOLVE);
    if (err < 0) {
        return err;
    }
    int rc = gl_sqlite_session_recall(db, call->resolve.session, call->resolve.tx_id, ret_status);
    return rc == SQLITE_OK ? 0 : gl_sqlite_error_why(db, rc, &call->req->why);
}

static int resolve(struct gl_sqlite_worker *w, struct gl_call *call)
{
    struct gl_why *why = &call->req->why;
    /* A context without a file has never committed anything; `resolve` must not create it. */
    bool nothing = !w->store->read_only && gl_str_is_id(call->context) &&
                   !gl_sqlite_db_exists(w->store, call->context);
    int status = GL_E_CONFLICT;
    int err = nothing ? 0 : recall(w, call, &status);

    GL_ASSERT(call->type == GL_CALL_RESOLVE);
    if (err < 0) {
        return err;
    }
    if (status == GL_E_CONFLICT) {
        raise_barrier(w, call->resolve.session, call->resolve.tx_id);
        return gl_why(why, status, "the transaction was refused, or never arrived");
    }
    if (status == GL_E_UNKNOWN) {
        return gl_why(why, status,
                      "the transaction is too old: its outcome is no longer remembered");
    }
    return status;
}

int gl_sqlite_call_run(struct gl_sqlite_worker *w, struct gl_call *call)
{
    static int (*const runs[GL_CALLS_N])(struct gl_sqlite_worker *, struct gl_call *) = {
        [GL_CALL_SESSION_OPEN] = session_open, [GL_CALL_SESSION_RENEW] = session_renew,
        [GL_CALL_SESSION_END] = session_end,   [GL_CALL_SESSION_DEAD] = session_dead,
        [GL_CALL_RESOLVE] = resolve,
    };

    GL_ASSERT(call->type != GL_CALL_COMMIT);
    GL_ASSERT(call->type < GL_CALLS_N);
    return runs[call->type](w, call);
}
