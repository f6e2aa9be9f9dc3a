#include "offline.h"

#include <pthread.h>
#include <signal.h>

#include "api/query.h"
#include "exec/keeper_spawn.h"
#include "os/loop.h"
#include "os/paths.h"
#include "store/sqlite.h"
#include "store/sqlite_backup.h"
#include "stores.h"

int gl_offline_backup(const char *from, const char *to, uint64_t *ret_jobs,
                      uint64_t *ret_unfinished, struct gl_why *reterr_why)
{
    return gl_sqlite_backup_make(from, to, ret_jobs, ret_unfinished, reterr_why);
}

int gl_offline_hold(const char *path, const char *reason, uint64_t *ret_jobs,
                    uint64_t *ret_unfinished, struct gl_why *reterr_why)
{
    return gl_sqlite_backup_hold(path, reason, ret_jobs, ret_unfinished, reterr_why);
}

/* ---- questions without a node ---- */

struct question {
    struct gl_loop *loop;
    struct gl_store *store;
    struct gl_query_context queries;
    struct gl_request *rq;
    struct gl_buf *body;
    int code;
    struct gl_why *why;
    struct gl_loop_task task;
};

static void on_question_closed(void *owner)
{
    gl_loop_stop(((struct question *)owner)->loop);
}

static void on_question_answered(void *owner, struct gl_request *rq)
{
    struct question *q = owner;

    if (rq->code != 0) {
        q->code = gl_why(q->why, rq->code, "%s", rq->why.text);
    } else {
        gl_buf_str(q->body, rq->body);
    }
    q->store->ops->close(q->store, on_question_closed, q);
}

static void ask_question(struct gl_loop_task *t)
{
    struct question *q = t->owner;

    gl_query_run(&q->queries, q->rq, on_question_answered, q);
}

/* Reading another store than that of the folder is fine, if it is said which; without a word, an
 * empty one must not be taken for it. */
static int check_meant(const char *data, const char *store, struct gl_why *reterr_why)
{
    struct gl_stores_memory memory;
    int err = store[0] == '\0' ? gl_stores_recall(data, &memory, reterr_why) : 0;

    return err != 0 || store[0] != '\0' ? err : gl_stores_match(data, store, &memory, reterr_why);
}

int gl_offline_query(const char *data, const char *store, struct gl_request *rq,
                     struct gl_buf *body, struct gl_why *reterr_why)
{
    struct gl_stores_config config = {.url = store, .data = data, .read_only = true};
    struct question q = {.rq = rq, .body = body, .why = reterr_why};
    sigset_t all, before;
    int err = check_meant(data, store, reterr_why);

    err = err != 0 ? err : gl_loop_new(&q.loop, reterr_why);
    if (err != 0) {
        return err;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    err = gl_stores_open(&q.store, &config, q.loop, reterr_why);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err == 0) {
        gl_query_init(&q.queries, q.store);
        q.task = (struct gl_loop_task){.run = ask_question, .owner = &q};
        gl_loop_post(q.loop, &q.task);
        gl_loop_run(q.loop);
        gl_query_done(&q.queries);
        err = q.code;
    }
    gl_loop_free(q.loop);
    return err;
}

/* ---- doubts ---- */

int gl_offline_check_store(const char *data, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};

    return gl_sqlite_check(gl_paths_context(&a, data, GL_S("default"), GL_PATHS_STATE), reterr_why);
}

int gl_offline_find_keeper(struct gl_arena *a, const char **ret, struct gl_why *reterr_why)
{
    return gl_keeper_spawn_find(a, ret, reterr_why);
}
