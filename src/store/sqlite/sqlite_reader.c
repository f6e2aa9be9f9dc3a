/* sqlite_reader.c - the reader thread. A round takes reads of one context from the head of the
 * queue, answers them from one snapshot, and posts the results. The snapshot is taken after the
 * reads were issued, so each sees every commit whose `done` had run by then. */
#include "base/check.h"
#include "store/sqlite/sqlite_error.h"
#include "store/sqlite/sqlite_parts.h"

enum {
    ROUND_MAX = 64,        /* reads in one round ... */
    ROUND_BYTES = 1 << 20, /* ... which also ends when its results reach this size */
};

/* Open the database and begin a snapshot. *ret stays NULL if the context is empty. */
static int begin(struct gl_sqlite_worker *r, gl_str context, struct gl_sqlite_db **ret,
                 struct gl_why *reterr_why)
{
    struct gl_sqlite_db *db = NULL;
    int err = gl_sqlite_contexts_get(&r->contexts, context, &db, reterr_why);

    GL_ASSERT(context.n > 0);
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

static int answer(struct gl_sqlite_db *db, struct gl_call *call, struct gl_arena *arena)
{
    int rc = gl_sqlite_read(db, call, arena);

    return rc == SQLITE_OK ? call->req->status : gl_sqlite_error_why(db, rc, &call->req->why);
}

static bool same_context(const struct gl_call *call, struct gl_sqlite_completion *batch)
{
    const struct gl_call *first = gl_call_first(&batch->calls);
    return call != NULL && (first == NULL || gl_str_eq(call->context, first->context));
}

static void run_round(struct gl_sqlite_worker *r, struct gl_link *waiting)
{
    struct gl_sqlite_completion *batch = gl_sqlite_completion_new(r->store);

    GL_ASSERT(!gl_list_empty(waiting));
    /* A caller waits for a read, while a group of commits has already waited for a sync: reads run
     * before other posts. */
    batch->task.is_urgent = true;
    struct gl_why why;
    struct gl_sqlite_db *db = NULL;
    int err = begin(r, gl_call_first(waiting)->context, &db, &why);
    bool bad = false;
    for (size_t n = 0; n < ROUND_MAX && batch->arena.used_bytes < ROUND_BYTES; n++) {
        if (!same_context(gl_call_first(waiting), batch)) {
            break;
        }
        struct gl_call *call = gl_call_pop(waiting);
        gl_list_push(&batch->calls, &call->link);
        if (err < 0) {
            call->req->status = err;
            call->req->why = why;
            continue;
        }
        call->req->status = answer(db, call, &batch->arena);
        bad = bad || call->req->status < 0;
    }
    if (db != NULL) {
        (void)gl_sqlite_db_run(db, GL_SQLITE_RELEASE); /* nothing to commit */
    }
    /* After an error the connection is not trusted any more: the next round opens another. */
    if (bad) {
        gl_sqlite_contexts_drop(&r->contexts, db, false);
    }
    gl_sqlite_completion_post(batch);
    GL_ASSERT(!bad || err == 0);
}

void *gl_sqlite_reader_main(void *worker)
{
    struct gl_sqlite_worker *r = worker;
    struct gl_link waiting;
    gl_list_init(&waiting);
    while (gl_sqlite_queue_take(&r->queue, &waiting)) {
        run_round(r, &waiting);
    }
    gl_sqlite_contexts_done(&r->contexts);
    gl_loop_post(r->store->calls.loop, &r->ended);
    return NULL;
}
