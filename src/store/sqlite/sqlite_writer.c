/* sqlite_writer.c - the writer thread: group commit, other calls, checkpoints.
 *
 * One round takes what is queued, cuts a group from the head, applies it in one SQL transaction,
 * and posts the completions. Then, if the write-ahead log has grown, it runs a checkpoint while the
 * control thread handles those completions.
 *
 * Failpoints, in the order in which a group reaches them:
 *     sqlite.before_begin       the group has been cut
 *     sqlite.before_commit      everything is written, nothing is durable
 *     sqlite.after_commit       durable, but not reported yet
 *     sqlite.after_post         reported to the control thread
 *     sqlite.before_checkpoint, sqlite.after_checkpoint
 * and around other commits:
 *     sqlite.before_session, sqlite.after_session     of a session_open
 *     sqlite.before_recovery, sqlite.after_recovery   settling a failed COMMIT */
#include "base/check.h"
#include "os/failpoint.h"
#include "store/sqlite/sqlite_parts.h"

/* Pages of write-ahead log between checkpoints: 2 MiB. A larger number delays the group after the
 * checkpoint for longer and leaves more in the log; a smaller one syncs the database more often
 * (docs/store-sqlite.md). */
enum { CHECKPOINT_PAGES = 250 };

static size_t bytes_of(const struct gl_tx *tx)
{
    size_t bytes = 0;
    for (size_t i = 0; i < tx->writes_n; i++) {
        bytes += tx->writes[i].value.n;
    }
    return bytes;
}

/* A group has one context, because it is one file, and one session, because outcomes are remembered
 * per session. */
static bool same_group(const struct gl_call *call, const struct gl_call *first)
{
    return call != NULL && call->type == GL_CALL_COMMIT &&
           gl_str_eq(call->context, first->context) &&
           gl_str_eq(call->tx->session, first->tx->session);
}

/* Move the group at the head of `from` to `to`: commits that go together, or one call of another
 * type. Returns their number. Calls are never reordered. */
static size_t cut_group(struct gl_link *from, struct gl_link *to, size_t group_max)
{
    struct gl_call *first = gl_call_pop(from);

    GL_ASSERT(group_max > 0);
    gl_list_push(to, &first->link);
    if (first->type != GL_CALL_COMMIT) {
        return 1;
    }
    size_t n = 1, bytes = bytes_of(first->tx);
    while (n < group_max && bytes < GL_SQLITE_GROUP_BYTES &&
           same_group(gl_call_first(from), first)) {
        struct gl_call *call = gl_call_pop(from);
        bytes += bytes_of(call->tx);
        gl_list_push(to, &call->link);
        n++;
    }
    GL_ASSERT(n <= group_max);
    return n;
}

static void checkpoint(struct gl_sqlite_db *db)
{
    GL_ASSERT(db->wal_pages >= 0);
    if (db->wal_pages < CHECKPOINT_PAGES) { /* SQLite has restarted the log */
        db->wal_pages_next = CHECKPOINT_PAGES;
    }
    if (db->wal_pages < db->wal_pages_next) {
        return;
    }
    GL_FAILPOINT("sqlite.before_checkpoint");
    /* A failure loses nothing: the pages stay in the log, which grows until a later checkpoint
     * succeeds. If the disk is the cause, the next commit reports it. */
    (void)sqlite3_wal_checkpoint_v2(db->conn, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    GL_FAILPOINT("sqlite.after_checkpoint");
    db->wal_pages_next = db->wal_pages + CHECKPOINT_PAGES;
    GL_ASSERT(db->wal_pages_next > db->wal_pages);
}

static void run_group(struct gl_sqlite_worker *w, struct gl_link *waiting)
{
    struct gl_sqlite_completion *batch = gl_sqlite_completion_new(w->store);
    size_t n = cut_group(waiting, &batch->calls, w->store->group_max);
    struct gl_call *first = gl_call_first(&batch->calls);

    if (first->type == GL_CALL_COMMIT) {
        gl_sqlite_group_commit(w, first, n);
    } else {
        w->arena = &batch->arena;
        first->req->status = gl_sqlite_call_run(w, first);
    }
    /* Looked up again: an error may have closed it. */
    struct gl_sqlite_db *db = gl_sqlite_contexts_find(&w->contexts, first->context);
    GL_ASSERT(n > 0);
    GL_ASSERT(n <= w->store->group_max);
    gl_sqlite_completion_post(batch);
    GL_FAILPOINT("sqlite.after_post");
    if (db != NULL) {
        checkpoint(db);
    }
}

/* When idle, move everything into the database and truncate the log, so that nothing depends on it
 * while the store rests. Does not wait for a reader that blocks this, because commits may
 * arrive. */
static void truncate_log(struct gl_sqlite_db *db)
{
    GL_ASSERT(db->wal_pages >= 0);
    if (db->wal_pages == 0) {
        return;
    }
    GL_FAILPOINT("sqlite.before_checkpoint");
    (void)sqlite3_busy_timeout(db->conn, 0);
    int rc = sqlite3_wal_checkpoint_v2(db->conn, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    (void)sqlite3_busy_timeout(db->conn, GL_SQLITE_BUSY_MS);
    GL_FAILPOINT("sqlite.after_checkpoint");
    if (rc == SQLITE_OK) {
        db->wal_pages = 0;
        db->wal_pages_next = CHECKPOINT_PAGES;
    }
}

void *gl_sqlite_writer_main(void *worker)
{
    struct gl_sqlite_worker *w = worker;
    struct gl_link waiting;
    bool has_written = false;
    gl_list_init(&waiting);
    for (;;) {
        if (has_written && gl_list_empty(&waiting) &&
            !gl_sqlite_queue_wait(&w->queue, w->store->idle_ms)) {
            gl_sqlite_contexts_each(&w->contexts, truncate_log);
            has_written = false;
        }
        if (!gl_sqlite_queue_take(&w->queue, &waiting)) {
            break;
        }
        run_group(w, &waiting);
        has_written = true;
    }
    gl_sqlite_contexts_done(&w->contexts);
    gl_loop_post(w->store->calls.loop, &w->ended);
    return NULL;
}
