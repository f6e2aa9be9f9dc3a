/* The writer thread: group commit, sessions, checkpoints.
 *
 * One round takes what waits, cuts a group from its head, applies it in one SQL transaction, and
 * posts the completions; then, if the write-ahead log has grown, it moves pages into the database
 * while the control thread works on those completions.
 *
 * Failpoints, in the order in which a group meets them:
 *     sqlite.before_begin       the group is cut
 *     sqlite.before_commit      everything is written, nothing is durable
 *     sqlite.after_commit       durable, and nobody knows
 *     sqlite.after_post         the control thread has been told
 *     sqlite.before_checkpoint, sqlite.after_checkpoint
 * and around other commits:
 *     sqlite.before_session, sqlite.after_session     of a session_open
 *     sqlite.before_recovery, sqlite.after_recovery   making a failed COMMIT certain */
#include "base/check.h"
#include "os/failpoint.h"
#include "store/sqlite_batch.h"
#include "store/sqlite_error.h"
#include "store/sqlite_group.h"
#include "store/sqlite_parts.h"
#include "store/sqlite_session.h"

/* Pages of write-ahead log between checkpoints: 4 MiB. A larger number stalls the group behind the
 * checkpoint for longer, a smaller one syncs the database more often (docs/store-sqlite.md). */
enum { CHECKPOINT_PAGES = 500 };

/* ---- sessions ---- */

static int begin_session(struct gl_sqlite_db *db, const struct gl_sqlite_op *op, struct gl_buf *id,
                         uint64_t *ret_incarnation)
{
    int rc = gl_sqlite_db_run(db, GL_SQLITE_BEGIN);
    if (rc != SQLITE_OK) {
        return rc;
    }
    rc = gl_sqlite_session_begin(db, op->u.open.node, op->u.open.nonce, id, ret_incarnation);
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

static int session_open(struct gl_sqlite_writer *w, struct gl_sqlite_op *op, struct gl_arena *arena)
{
    struct gl_store_req *req = op->req;
    struct gl_sqlite_db *db = NULL;
    int err = gl_sqlite_contexts_get(&w->contexts, op->context, &db, &req->why);
    if (err < 0) {
        return err;
    }
    gl_buf_reset(&w->text);
    int rc = begin_session(db, op, &w->text, &req->session.incarnation);
    if (rc != SQLITE_OK) {
        /* Certain or not: the caller opens another, which ends this one if it did come to be. */
        err = gl_sqlite_error_why(db, rc, &req->why);
        gl_sqlite_contexts_drop(&w->contexts, db, true);
        return err;
    }
    gl_buf_reset(&w->session);
    gl_buf_str(&w->session, gl_buf_view(&w->text));
    gl_sqlite_contexts_each(&w->contexts, forget_session);
    db->session_known = true;
    req->session.id = gl_str_dup(arena, gl_buf_view(&w->session));
    return 0;
}

static int find_session(struct gl_sqlite_writer *w, struct gl_sqlite_op *op, bool *ret_known,
                        bool *ret_dead)
{
    *ret_known = *ret_dead = false;
    struct gl_sqlite_db *db = NULL;
    int err = gl_sqlite_contexts_get(&w->contexts, op->context, &db, &op->req->why);
    if (err < 0) {
        return err;
    }
    int rc = gl_sqlite_session_find(db, op->u.session, ret_known, ret_dead);
    return rc == SQLITE_OK ? 0 : gl_sqlite_error_why(db, rc, &op->req->why);
}

/* There is no deadline to move: only another session_open, which needs the folder's lock, ends a
 * session. So this writes nothing. */
static int session_renew(struct gl_sqlite_writer *w, struct gl_sqlite_op *op)
{
    if (gl_str_eq(op->u.session, gl_buf_view(&w->session))) {
        return 0;
    }
    bool known, dead;
    int err = find_session(w, op, &known, &dead);
    if (err < 0) {
        return err;
    }
    if (!known || dead) {
        return gl_why(&op->req->why, GL_E_GONE, "session %.*s is %s", GL_STR_ARG(op->u.session),
                      dead ? "dead" : "not known");
    }
    return 0;
}

static int session_dead(struct gl_sqlite_writer *w, struct gl_sqlite_op *op)
{
    bool known;
    int err = find_session(w, op, &known, &op->req->session_dead);
    if (err == 0 && !known) {
        return gl_why(&op->req->why, GL_E_NOT_FOUND, "there is no session %.*s",
                      GL_STR_ARG(op->u.session));
    }
    return err;
}

static int resolve(struct gl_sqlite_writer *w, struct gl_sqlite_op *op)
{
    struct gl_why *why = &op->req->why;
    if (!w->store->read_only && gl_str_is_id(op->context) &&
        !gl_sqlite_db_exists(w->store, op->context)) {
        return gl_why(why, GL_E_CONFLICT, "nothing was ever committed in this context");
    }
    struct gl_sqlite_db *db = NULL;
    int err = gl_sqlite_contexts_get(&w->contexts, op->context, &db, why);
    if (err < 0) {
        return err;
    }
    int status = 0;
    int rc = gl_sqlite_session_recall(db, op->u.resolve.session, op->u.resolve.tx_id, &status);
    if (rc != SQLITE_OK) {
        return gl_sqlite_error_why(db, rc, why);
    }
    if (status == GL_E_CONFLICT) {
        return gl_why(why, status, "the transaction was refused, or never arrived");
    }
    if (status == GL_E_UNKNOWN) {
        return gl_why(why, status, "the transaction is older than the store remembers");
    }
    return status;
}

static int run_one(struct gl_sqlite_writer *w, struct gl_sqlite_op *op, struct gl_arena *arena)
{
    switch (op->type) {
    case GL_SQLITE_OP_SESSION_OPEN:
        return session_open(w, op, arena);
    case GL_SQLITE_OP_SESSION_RENEW:
        return session_renew(w, op);
    case GL_SQLITE_OP_SESSION_DEAD:
        return session_dead(w, op);
    case GL_SQLITE_OP_RESOLVE:
        return resolve(w, op);
    default:
        GL_UNREACHABLE();
    }
}

/* ---- groups ---- */

static size_t bytes_of(const struct gl_tx *tx)
{
    size_t bytes = 0;
    for (size_t i = 0; i < tx->writes_n; i++) {
        bytes += tx->writes[i].value.n;
    }
    return bytes;
}

static bool goes_with(const struct gl_sqlite_op *op, const struct gl_sqlite_op *first)
{
    return op->type == GL_SQLITE_OP_COMMIT && gl_str_eq(op->context, first->context) &&
           gl_str_eq(op->u.tx->session, first->u.tx->session);
}

/* Move the group at the head of `from` to `to`: commits that go together, or one op of another
 * type. Their number. */
static size_t cut_group(struct gl_sqlite_ops *from, struct gl_sqlite_ops *to, size_t group_max)
{
    struct gl_sqlite_op *first = gl_sqlite_op_pop(from);
    gl_sqlite_op_push(to, first);
    if (first->type != GL_SQLITE_OP_COMMIT) {
        return 1;
    }
    size_t n = 1, bytes = bytes_of(first->u.tx);
    while (from->first != NULL && n < group_max && bytes < GL_SQLITE_GROUP_BYTES &&
           goes_with(from->first, first)) {
        bytes += bytes_of(from->first->u.tx);
        gl_sqlite_op_push(to, gl_sqlite_op_pop(from));
        n++;
    }
    return n;
}

static void checkpoint(struct gl_sqlite_db *db)
{
    if (db->wal_pages < CHECKPOINT_PAGES) { /* SQLite has started the log anew. */
        db->wal_pages_next = CHECKPOINT_PAGES;
    }
    if (db->wal_pages < db->wal_pages_next) {
        return;
    }
    GL_FAILPOINT("sqlite.before_checkpoint");
    /* A failure loses nothing: the pages stay in the log, which grows until a later one succeeds.
     * If it is the disk, the next commit says so. */
    (void)sqlite3_wal_checkpoint_v2(db->conn, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    GL_FAILPOINT("sqlite.after_checkpoint");
    db->wal_pages_next = db->wal_pages + CHECKPOINT_PAGES;
}

static void run_group(struct gl_sqlite_writer *w, struct gl_sqlite_ops *waiting)
{
    struct gl_sqlite_batch *batch = gl_sqlite_batch_new(w->store);
    size_t n = cut_group(waiting, &batch->ops, w->store->group_max);
    struct gl_sqlite_op *first = batch->ops.first;
    if (first->type == GL_SQLITE_OP_COMMIT) {
        gl_sqlite_group_commit(w, first, n);
    } else {
        first->req->status = run_one(w, first, &batch->arena);
    }
    struct gl_sqlite_db *db = gl_sqlite_contexts_find(&w->contexts, first->context);
    gl_sqlite_batch_post(batch);
    GL_FAILPOINT("sqlite.after_post");
    if (db != NULL) {
        checkpoint(db);
    }
}

void *gl_sqlite_writer_main(void *writer)
{
    struct gl_sqlite_writer *w = writer;
    struct gl_sqlite_ops waiting = {0};
    while (gl_sqlite_queue_take(&w->queue, &waiting)) {
        run_group(w, &waiting);
    }
    gl_sqlite_contexts_done(&w->contexts);
    gl_loop_post(w->store->loop, &w->ended);
    return NULL;
}
