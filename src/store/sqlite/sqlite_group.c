/* sqlite_group.c - group commit: applies a run of transactions in one SQL transaction and syncs
 * once.
 *
 * The outcome of COMMIT decides the callers' status. Before COMMIT an error means that nothing
 * was written. If COMMIT itself fails, only a refused write proves that; otherwise the outcome is
 * unknown until the database has been reopened and recovered (sqlite_contexts.c). */
#include "store/sqlite/sqlite_parts.h"

#include "base/check.h"
#include "os/failpoint.h"
#include "store/sqlite/sqlite_error.h"

enum outcome {
    COMMITTED,
    ROLLED_BACK, /* certainly nothing was written */
    IN_DOUBT,    /* COMMIT failed */
};

/* Give all calls of the group the same status. */
static void fail(struct gl_call *first, size_t n, int status, const struct gl_why *why)
{
    GL_ASSERT(n > 0);
    GL_ASSERT(status < 0);
    for (size_t i = 0; i < n; i++, first = gl_call_next(first)) {
        first->req->status = status;
        first->req->why = *why;
    }
}

/* Has `resolve` answered that this transaction will never be committed? */
static bool is_barred(const struct gl_sqlite_worker *w, const struct gl_tx *tx)
{
    return tx->id != 0 && tx->id <= w->barrier &&
           gl_str_eq(tx->session, gl_buf_view(&w->barrier_session));
}

static int apply(struct gl_sqlite_worker *w, struct gl_sqlite_db *db, struct gl_call *call)
{
    GL_ASSERT(call->type == GL_CALL_COMMIT);
    if (is_barred(w, call->tx)) {
        call->req->refused = call->tx->guards_n; /* not refused by a guard */
        call->req->status =
            gl_why(&call->req->why, GL_E_CONFLICT,
                   "the transaction arrived after it had been reported as never arriving");
        return SQLITE_OK;
    }
    return gl_sqlite_apply(db, call);
}

/* Apply the transactions and record their outcomes, in the same SQL transaction: either both
 * survive a crash or neither does. Returns the rc. */
static int apply_all(struct gl_sqlite_worker *w, struct gl_sqlite_db *db, struct gl_call *first,
                     size_t n)
{
    int rc = gl_sqlite_session_propagate(w, db);
    size_t applied_n = 0;
    struct gl_call *call = first;

    GL_ASSERT(n > 0);
    for (size_t i = 0; i < n && rc == SQLITE_OK; i++, call = gl_call_next(call)) {
        rc = apply(w, db, call);
        applied_n += call->req->status == 0;
    }
    /* "Refused" and "never arrived" are one answer to `resolve`, so a group without effect is not
     * recorded and costs no sync. */
    if (rc == SQLITE_OK && applied_n > 0) {
        rc = gl_sqlite_session_remember(db, first, n, &w->text);
    }
    GL_ASSERT(applied_n <= n);
    return rc;
}

/* COMMIT writes the frames of the log and, last, the frame that completes the transaction. If a
 * write was refused, that frame is missing. Any other error may have come after it. */
static enum outcome after_failed_commit(const struct gl_sqlite_db *db, int rc)
{
    GL_ASSERT(rc != SQLITE_OK);
    return gl_sqlite_error_is_refusal(db, rc) ? ROLLED_BACK : IN_DOUBT;
}

static enum outcome try_group(struct gl_sqlite_worker *w, struct gl_sqlite_db *db,
                              struct gl_call *first, size_t n, int *ret_rc)
{
    GL_ASSERT(n > 0);
    GL_FAILPOINT("sqlite.before_begin");
    enum outcome outcome = ROLLED_BACK;
    uint64_t group_n = db->group_n;
    int rc = gl_sqlite_db_run(db, GL_SQLITE_BEGIN);
    if (rc == SQLITE_OK) {
        rc = apply_all(w, db, first, n);
    }
    if (rc == SQLITE_OK) {
        GL_FAILPOINT("sqlite.before_commit");
        rc = gl_sqlite_db_run(db, GL_SQLITE_COMMIT);
        outcome = rc == SQLITE_OK ? COMMITTED : after_failed_commit(db, rc);
    }
    if (outcome == COMMITTED) {
        GL_FAILPOINT("sqlite.after_commit");
        db->session_known = w->session.n > 0;
    } else {
        db->group_n = group_n;
    }
    *ret_rc = rc;
    GL_ASSERT((outcome == COMMITTED) == (rc == SQLITE_OK));
    return outcome;
}

/* Is the error caused by a single transaction rather than by the state of the disk? */
static bool is_poison(int rc)
{
    int primary = rc & 0xff;
    return primary == SQLITE_CONSTRAINT || primary == SQLITE_TOOBIG || primary == SQLITE_MISMATCH;
}

/* Can the connection be kept once the cause is gone? After an I/O error it may have read something
 * incomplete, and is closed. */
static bool is_transient(int rc)
{
    int primary = rc & 0xff;
    return primary == SQLITE_FULL || primary == SQLITE_BUSY || is_poison(rc);
}

static void clean_up(struct gl_sqlite_worker *w, struct gl_sqlite_db *db, enum outcome outcome,
                     int rc)
{
    GL_ASSERT(outcome != COMMITTED);
    if (outcome == IN_DOUBT || !is_transient(rc)) {
        gl_sqlite_contexts_drop(&w->contexts, db, outcome == IN_DOUBT);
    } else if (sqlite3_get_autocommit(db->conn) == 0) { /* some errors roll back by themselves */
        /* A failure cannot matter: without COMMIT nothing lasts. */
        (void)gl_sqlite_db_run(db, GL_SQLITE_ROLLBACK);
    }
}

/* One attempt for the whole group. Returns the rc; sets the status of all calls in any case. */
static int commit_once(struct gl_sqlite_worker *w, struct gl_call *first, size_t n)
{
    struct gl_why why;
    struct gl_sqlite_db *db = NULL;
    int status = gl_sqlite_contexts_get(&w->contexts, first->context, &db, &why);

    GL_ASSERT(n > 0);
    if (status < 0) {
        fail(first, n, status, &why);
        return SQLITE_OK; /* there is nothing to retry */
    }
    int rc;
    enum outcome outcome = try_group(w, db, first, n, &rc);
    if (outcome == COMMITTED) {
        return SQLITE_OK;
    }
    status = gl_sqlite_error_why(db, rc, &why);
    if (outcome == IN_DOUBT) {
        status = why.code = GL_E_UNKNOWN;
    }
    clean_up(w, db, outcome, rc);
    fail(first, n, status, &why);
    return rc;
}

void gl_sqlite_group_commit(struct gl_sqlite_worker *w, struct gl_call *first, size_t n)
{
    int rc = commit_once(w, first, n);

    GL_ASSERT(n > 0);
    GL_ASSERT(first->type == GL_CALL_COMMIT);
    if (n == 1 || !is_poison(rc)) {
        return;
    }
    /* Retry each in a transaction of its own, so that only the one that causes the error fails. */
    struct gl_call *call = first;
    for (size_t i = 0; i < n; i++, call = gl_call_next(call)) {
        (void)commit_once(w, call, 1); /* its status has the outcome */
    }
}
