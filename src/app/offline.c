/* offline.c - each operation runs a loop of its own on the calling thread, opens the stores it
 * needs, and closes them again. */
#include "app/offline.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "api/migrate.h"
#include "api/query.h"
#include "app/stores.h"
#include "exec/keeper_spawn.h"
#include "os/lock.h"
#include "os/loop.h"
#include "os/paths.h"
#include "os/random.h"
#include "os/run_questions.h"
#include "port/storeurl.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/sqlite_backup.h"

int gl_offline_backup(const char *from, const char *to, bool salvage, uint64_t *ret_jobs,
                      uint64_t *ret_unfinished, struct gl_why *reterr_why)
{
    return gl_sqlite_backup_make(from, to, salvage, ret_jobs, ret_unfinished, reterr_why);
}

int gl_offline_pause(const char *path, const char *reason, uint64_t *ret_jobs,
                     uint64_t *ret_unfinished, struct gl_why *reterr_why)
{
    return gl_sqlite_backup_pause(path, reason, ret_jobs, ret_unfinished, reterr_why);
}

/* ---- a loop of our own ---- */

static void stop_loop(struct gl_loop_task *t)
{
    gl_loop_stop(t->owner);
}

/* Not at once: the loop frees what the adapter closed in its next turn. */
static void stop_soon(struct gl_loop *loop, struct gl_loop_task *task)
{
    *task = (struct gl_loop_task){.run = stop_loop, .owner = loop};
    gl_loop_post(loop, task);
}

/* ---- queries without a node ---- */

struct offline_query {
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
    struct offline_query *q = owner;

    stop_soon(q->loop, &q->task);
}

static void on_question_answered(void *owner, struct gl_request *rq)
{
    struct offline_query *q = owner;

    if (rq->code != 0) {
        q->code = gl_why(q->why, gl_err_join(rq->code, rq->why.reason), "%s", rq->why.text);
    } else {
        gl_buf_str(q->body, rq->body);
    }
    q->store->ops->close(q->store, on_question_closed, q);
}

static void ask_question(struct gl_loop_task *t)
{
    struct offline_query *q = t->owner;

    gl_query_run(&q->queries, q->rq, on_question_answered, q);
}

/* Loads what the folder remembers. The identity counts only if it is the identity of this very
 * store. */
static void load_if_same_url(const char *data, const char *store, struct gl_stores_memory *ret)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};

    if (gl_stores_load(data, ret, NULL) != 0 ||
        !gl_str_is(gl_storeurl_safe(&a, gl_str_of(store)), ret->url)) {
        ret->identity[0] = '\0';
    }
}

/* Reading another store than the folder's is allowed if it is named explicitly. By default, an
 * empty SQLite store must not be mistaken for the folder's shared one. */
static int check_choice(const char *data, const char *store, struct gl_stores_memory *memory,
                        struct gl_why *reterr_why)
{
    int err;

    if (store[0] != '\0') {
        load_if_same_url(data, store, memory);
        return 0;
    }
    err = gl_stores_load(data, memory, reterr_why);
    return err != 0 ? err : gl_stores_match(data, store, memory, reterr_why);
}

int gl_offline_query(const char *data, const char *store, const char *runs_root,
                     struct gl_request *rq, struct gl_buf *body, struct gl_why *reterr_why)
{
    struct gl_stores_memory memory;
    struct gl_stores_config config = {.url = store,
                                      .data = data,
                                      .allow_loss = true, /* reading cannot lose anything */
                                      .read_only = true,
                                      .identity = memory.identity};
    struct gl_questions asks = gl_run_questions_reader(runs_root);
    struct offline_query q = {.rq = rq, .body = body, .why = reterr_why};
    sigset_t all, before;
    int err = check_choice(data, store, &memory, reterr_why);

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
        q.queries.asks = &asks;
        q.task = (struct gl_loop_task){.run = ask_question, .owner = &q};
        gl_loop_post(q.loop, &q.task);
        gl_loop_run(q.loop);
        gl_query_done(&q.queries);
        err = q.code;
    }
    gl_loop_free(q.loop);
    return err;
}

/* ---- migration ---- */

struct migration_side {
    const char *url, *folder; /* of SQLite; NULL: a server */
    struct gl_lock lock;
    struct gl_store *store;
    char identity[GL_STORES_TEXT_MAX]; /* a server's identity, once it has been reached */
};

struct migration {
    struct gl_offline_migration *m;
    struct gl_arena arena;
    struct gl_loop *loop;
    struct gl_lock lock; /* of the data folder */
    struct migration_side from, to;
    struct gl_migrate run;
    struct gl_loop_task task;
};

static void on_identity(void *owner, gl_str identity)
{
    struct migration_side *s = owner;

    (void)snprintf(s->identity, sizeof(s->identity), "%.*s", GL_STR_ARG(identity));
}

static void on_side_closed(void *owner)
{
    struct migration *v = owner;

    if (v->to.store != NULL) {
        struct gl_store *store = v->to.store;

        v->to.store = NULL;
        store->ops->close(store, on_side_closed, v);
    } else {
        stop_soon(v->loop, &v->task);
    }
}

static void on_migrated(struct gl_migrate *run)
{
    struct migration *v = run->owner;

    v->from.store->ops->close(v->from.store, on_side_closed, v);
}

static void on_progress_made(struct gl_migrate *run)
{
    struct migration *v = run->owner;

    if (v->m->on_progress != NULL) {
        v->m->on_progress(v->m->owner, run->sum.writes_n);
    }
}

static void start_migration(struct gl_loop_task *t)
{
    gl_migrate_run(&((struct migration *)t->owner)->run);
}

/* A folder is protected by its lock, a server by the check for live sessions. */
static int lock_side(struct migration *v, struct migration_side *s, struct gl_why *reterr_why)
{
    int err;

    s->lock.fd = -1;
    s->folder = gl_stores_folder(&v->arena, s->url, v->m->data);
    if (s->folder == NULL || strcmp(s->folder, v->m->data) == 0) {
        return 0; /* its lock is already held */
    }
    err = gl_paths_prepare(s->folder, v->m->context, reterr_why);
    return err != 0 ? err : gl_lock_take_as(&s->lock, s->folder, "migrate", reterr_why);
}

static int open_side(struct migration *v, struct migration_side *s, struct gl_why *reterr_why)
{
    struct gl_stores_config config = {
        .url = s->url, .data = v->m->data, .allow_loss = v->m->allow_loss};
    struct gl_store_events events = {.owner = s, .met = on_identity};
    sigset_t all, before;
    int err;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    err = gl_stores_open(&s->store, &config, v->loop, reterr_why);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err == 0 && s->store->ops->shared) {
        s->store->ops->listen(s->store, &events);
    }
    return err;
}

static bool is_same_store(const struct migration_side *a, const struct migration_side *b)
{
    return a->folder != NULL && b->folder != NULL ? strcmp(a->folder, b->folder) == 0
                                                  : strcmp(a->url, b->url) == 0;
}

static int open_sides(struct migration *v, struct gl_why *reterr_why)
{
    int err = gl_paths_prepare(v->m->data, v->m->context, reterr_why);

    err = err != 0 ? err : gl_lock_take_as(&v->lock, v->m->data, "migrate", reterr_why);
    err = err != 0 ? err : lock_side(v, &v->from, reterr_why);
    err = err != 0 ? err : lock_side(v, &v->to, reterr_why);
    if (err == 0 && is_same_store(&v->from, &v->to)) {
        err = gl_why(reterr_why, GL_R_MIGRATION_SAME, "source and target are the same store");
    }
    err = err != 0 ? err : open_side(v, &v->from, reterr_why);
    return err != 0 ? err : open_side(v, &v->to, reterr_why);
}

/* If this folder belongs to the source, make it belong to the target, so that its next node finds
 * the jobs. */
static int rebind_folder(struct migration *v, struct gl_why *reterr_why)
{
    struct gl_stores_memory memory;
    int err = gl_stores_load(v->m->data, &memory, reterr_why);
    bool is_ours = v->from.folder != NULL ? strcmp(v->from.folder, v->m->data) == 0
                                          : strcmp(v->from.identity, memory.identity) == 0;

    if (err != 0 || !is_ours || (v->to.folder != NULL && strcmp(v->to.folder, v->m->data) != 0)) {
        return err;
    }
    v->m->has_moved = true;
    memory.incarnations = gl_stores_incarnations(v->m->data);
    gl_stores_set(&memory, v->to.folder != NULL ? "sqlite:" : v->to.url, gl_str_of(v->to.identity));
    return gl_stores_save(v->m->data, &memory, reterr_why);
}

static int move(struct migration *v, struct gl_why *reterr_why)
{
    struct gl_entropy entropy = gl_random_entropy();
    uint8_t chance[8];
    char nonce[17];
    int err;

    entropy.fill(&entropy, chance, sizeof(chance));
    for (size_t i = 0; i < sizeof(chance); i++) {
        (void)snprintf(nonce + 2 * i, 3, "%02x", chance[i]);
    }
    v->run = (struct gl_migrate){
        .from = v->from.store,
        .to = v->to.store,
        .context = v->m->context,
        .source = v->from.folder != NULL ? gl_str_fmt(&v->arena, "sqlite:%s", v->from.folder)
                                         : gl_storeurl_safe(&v->arena, gl_str_of(v->from.url)),
        .nonce = gl_str_of(nonce),
        .done = on_migrated,
        .on_progress = on_progress_made,
        .owner = v,
    };
    v->task = (struct gl_loop_task){.run = start_migration, .owner = v};
    gl_loop_post(v->loop, &v->task);
    gl_loop_run(v->loop);
    v->m->entries = v->run.sum.writes_n;
    v->m->jobs = v->run.jobs_n;
    v->m->is_continued = v->run.is_continued;
    err = v->run.code != 0 ? gl_why(reterr_why, gl_err_join(v->run.code, v->run.why.reason), "%s",
                                    v->run.why.text)
                           : rebind_folder(v, reterr_why);
    gl_migrate_done(&v->run);
    return err;
}

static void on_one_closed(void *owner)
{
    struct migration *v = owner;

    stop_soon(v->loop, &v->task);
}

int gl_offline_migrate(struct gl_offline_migration *m, struct gl_why *reterr_why)
{
    struct migration v = {.m = m, .lock.fd = -1, .from.url = m->from, .to.url = m->to};
    int err = gl_loop_new(&v.loop, reterr_why);

    v.from.lock.fd = v.to.lock.fd = -1;
    if (err == 0) {
        err = open_sides(&v, reterr_why);
        if (err == 0) {
            err = move(&v, reterr_why);
        } else if (v.from.store != NULL) {
            v.from.store->ops->close(v.from.store, on_one_closed, &v);
            gl_loop_run(v.loop);
        }
        gl_loop_free(v.loop);
    }
    gl_lock_drop(&v.to.lock);
    gl_lock_drop(&v.from.lock);
    gl_lock_drop(&v.lock);
    gl_arena_done(&v.arena);
    return err;
}

/* ---- checks ---- */

int gl_offline_check_store(const char *data, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};

    return gl_sqlite_check(gl_paths_context(&a, data, GL_CONTEXT_DEFAULT, GL_PATHS_STATE),
                           reterr_why);
}

int gl_offline_check(const char *data, const char *store, struct gl_arena *a,
                     struct gl_findings *ret, struct gl_why *reterr_why)
{
    struct gl_stores_memory memory;
    struct gl_stores_config config = {
        .url = store, .data = data, .allow_loss = true, .identity = memory.identity};

    load_if_same_url(data, store, &memory);
    return gl_stores_check(&config, a, ret, reterr_why);
}

bool gl_offline_is_other_store(const char *data, const char *store)
{
    struct gl_stores_memory memory;

    return gl_stores_load(data, &memory, NULL) == 0 &&
           gl_stores_match(data, store, &memory, NULL) != 0;
}

int gl_offline_check_own(const char *data, const char *store, struct gl_arena *a,
                         struct gl_findings *ret, struct gl_why *reterr_why)
{
    struct gl_stores_memory memory;
    struct gl_stores_config config = {
        .url = store, .data = data, .allow_loss = true, .identity = memory.identity};
    int err = gl_stores_load(data, &memory, reterr_why);

    if (err == 0 && gl_stores_match(data, store, &memory, reterr_why) != 0) {
        gl_findings_add(ret, a, GL_FINDING_BAD, "%s", reterr_why->text);
        return 0;
    }
    return err != 0 ? err : gl_stores_check(&config, a, ret, reterr_why);
}

int gl_offline_find_keeper(struct gl_arena *a, const char **ret, struct gl_why *reterr_why)
{
    return gl_keeper_spawn_find(a, ret, reterr_why);
}
