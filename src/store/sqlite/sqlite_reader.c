/* The reader thread. A round takes reads of one context from the head of the queue, answers them
 * from one snapshot, and posts them. The snapshot is taken after the reads were issued, so each
 * sees every commit whose `done` had run by then. */
#include "store/sqlite/sqlite_batch.h"
#include "store/sqlite/sqlite_error.h"
#include "store/sqlite/sqlite_parts.h"
#include "store/sqlite/sqlite_read.h"

enum {
    ROUND_MAX = 64,        /* reads in one round ... */
    ROUND_BYTES = 1 << 20, /* ... and when its results have reached this, it ends */
};

/* Open the database and take a snapshot. *ret stays NULL if the context is empty. */
static int begin(struct gl_sqlite_reader *r, gl_str context, struct gl_sqlite_db **ret,
                 struct gl_why *reterr_why)
{
    struct gl_sqlite_db *db = NULL;
    int err = gl_sqlite_contexts_get(&r->contexts, context, &db, reterr_why);
    if (err < 0) {
        return err == GL_E_NOT_FOUND ? 0 : err;
    }
    int rc = gl_sqlite_db_run(db, GL_SQLITE_SNAPSHOT);
    if (rc != SQLITE_OK) {
        err = gl_sqlite_error_why(db, rc, reterr_why);
        gl_sqlite_contexts_drop(&r->contexts, db, false);
        return err;
    }
    *ret = db;
    return 0;
}

static int answer(struct gl_sqlite_db *db, struct gl_sqlite_op *op, struct gl_arena *arena)
{
    int rc = gl_sqlite_read_op(db, op, arena);
    return rc == SQLITE_OK ? op->req->status : gl_sqlite_error_why(db, rc, &op->req->why);
}

static bool goes_with(const struct gl_sqlite_op *op, const struct gl_sqlite_batch *batch)
{
    const struct gl_sqlite_op *first = batch->ops.first;
    return op != NULL && (first == NULL || gl_str_eq(op->context, first->context));
}

static void run_round(struct gl_sqlite_reader *r, struct gl_sqlite_ops *waiting)
{
    struct gl_sqlite_batch *batch = gl_sqlite_batch_new(r->store);
    batch->task.is_urgent = true;
    struct gl_why why;
    struct gl_sqlite_db *db = NULL;
    int err = begin(r, waiting->first->context, &db, &why);
    bool bad = false;
    for (size_t n = 0; n < ROUND_MAX && batch->arena.used_bytes < ROUND_BYTES; n++) {
        if (!goes_with(waiting->first, batch)) {
            break;
        }
        struct gl_sqlite_op *op = gl_sqlite_op_pop(waiting);
        gl_sqlite_op_push(&batch->ops, op);
        if (err < 0) {
            op->req->status = err;
            op->req->why = why;
            continue;
        }
        op->req->status = answer(db, op, &batch->arena);
        bad = bad || op->req->status < 0;
    }
    if (db != NULL) {
        (void)gl_sqlite_db_run(db, GL_SQLITE_RELEASE); /* There is nothing to commit. */
    }
    if (bad) {
        gl_sqlite_contexts_drop(&r->contexts, db, false);
    }
    gl_sqlite_batch_post(batch);
}

void *gl_sqlite_reader_main(void *reader)
{
    struct gl_sqlite_reader *r = reader;
    struct gl_sqlite_ops waiting = {0};
    while (gl_sqlite_queue_take(&r->queue, &waiting)) {
        run_round(r, &waiting);
    }
    gl_sqlite_contexts_done(&r->contexts);
    gl_loop_post(r->store->loop, &r->ended);
    return NULL;
}
