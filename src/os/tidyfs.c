#include "os/tidyfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/mem.h"
#include "os/fs.h"
#include "os/paths.h"
#include "os/tree.h"

#define GONE ".gone" /* after the name of a folder that is being removed */

struct cleanup {
    struct gl_link link; /* in the queue */
    struct gl_tidyfs *tidy;
    struct gl_tidy_req *req;
    void (*run)(struct gl_tidyfs *t, struct cleanup *op);
    struct gl_loop_task task;
    gl_str context;
    const gl_str *names;
    size_t n;
    gl_ms age_ms;
    struct gl_arena results;
};

struct gl_tidyfs {
    struct gl_tidy port;
    struct gl_arena arena;
    const char *data;
    struct gl_blobfs *blobs;
    struct gl_loop *loop;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t moved;
    struct gl_link queue;
    atomic_bool closing; /* set under the lock, read without it */
    struct gl_loop_task ended;
    void (*closed)(void *owner);
    void *closed_owner;
};

/* ---- the work ---- */

static int open_runs(struct gl_tidyfs *t, struct cleanup *op)
{
    const char *path = gl_paths_context(&op->results, t->data, op->context, GL_PATHS_RUNS);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT) {
        op->req->status = gl_fs_why(&op->req->why, errno, "open the folder", path);
    }
    return fd;
}

static void remove_tree(struct gl_tidyfs *t, struct cleanup *op, int runs, const char *path)
{
    struct gl_tree_sum sum = {.stop = &t->closing};

    op->req->removed_n += gl_tree_remove(runs, path, &sum) && sum.bytes + sum.files_n > 0;
    op->req->bytes += sum.bytes;
}

/* The keeper gives the folder of an idle job, or a folder in it, to another job by renaming it, and
 * then it must not be emptied through a descriptor that was opened before. So it first gets a name
 * that the keeper does not know. If the keeper was faster, there is nothing to remove. */
static void remove_job(struct gl_tidyfs *t, struct cleanup *op, int runs, gl_str job)
{
    const char *from = gl_str_c(&op->results, job);
    const char *gone = gl_str_fmt(&op->results, ".%.*s" GONE, GL_STR_ARG(job)).p;

    if (renameat(runs, from, runs, gone) < 0 && (errno == EEXIST || errno == ENOTEMPTY)) {
        remove_tree(t, op, runs, gone); /* left by a removal that was interrupted */
        (void)renameat(runs, from, runs, gone);
    }
    remove_tree(t, op, runs, gone);
}

static void run_remove_jobs(struct gl_tidyfs *t, struct cleanup *op)
{
    GL_CLEANUP(gl_fs_closep) int runs = open_runs(t, op);
    for (size_t i = 0; runs >= 0 && i < op->n && !atomic_load(&t->closing); i++) {
        remove_job(t, op, runs, op->names[i]);
    }
}

static void run_remove_work(struct gl_tidyfs *t, struct cleanup *op)
{
    GL_CLEANUP(gl_fs_closep) int runs = open_runs(t, op);
    for (size_t i = 0; runs >= 0 && i < op->n && !atomic_load(&t->closing); i++) {
        remove_tree(t, op, runs, gl_str_fmt(&op->results, "%.*s/work", GL_STR_ARG(op->names[i])).p);
    }
}

static void closedirp(DIR **d)
{
    if (*d != NULL) {
        (void)closedir(*d);
    }
}

/* A subfolder of the folder `at`; the descriptor of `at` is closed if `own`. */
static DIR *open_in(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL && fd >= 0) {
        (void)close(fd);
    }
    return d;
}

static bool is_job(const char *name)
{
    return strlen(name) == GL_ULID_BYTES && name[0] != '.';
}

/* The job whose folder this is, or was before its removal began; "" if it is none. */
static gl_str job_of(const char *name)
{
    gl_str all = gl_str_of(name);

    if (all.n == 1 + GL_ULID_BYTES + strlen(GONE) && name[0] == '.' &&
        gl_str_ends(all, GL_S(GONE))) {
        return (gl_str){.p = name + 1, .n = GL_ULID_BYTES};
    }
    return is_job(name) ? all : (gl_str){0};
}

static void keep_names(struct cleanup *op, struct gl_buf *found)
{
    op->req->names_n = found->n / sizeof(gl_str);
    op->req->names = found->n > 0 ? gl_arena_copy(&op->results, found->p, found->n) : NULL;
    gl_buf_done(found);
}

static void run_list_jobs(struct gl_tidyfs *t, struct cleanup *op)
{
    GL_CLEANUP(gl_fs_closep) int runs = open_runs(t, op);
    GL_CLEANUP(closedirp) DIR *d = runs < 0 ? NULL : open_in(runs, ".");
    struct gl_buf found = {0};
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        gl_str name = job_of(e->d_name);
        if (name.n > 0) {
            name = gl_str_dup(&op->results, name);
            gl_buf_add(&found, &name, sizeof(name));
        }
    }
    keep_names(op, &found);
}

/* Was it untouched for this long? What counts: a growing log, files created or removed at the top
 * of the working folder, and the attempt's own files. */
static bool is_old(int attempt, gl_ms age_ms)
{
    static const char *const names[] = {".", "work", "log", "output.json", "input.json"};
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    for (size_t i = 0; i < GL_COUNT(names); i++) {
        struct stat st;
        if (fstatat(attempt, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            ((gl_ms)now.tv_sec - (gl_ms)st.st_mtim.tv_sec) * 1000 <= age_ms) {
            return false;
        }
    }
    return true;
}

static void list_work_of(struct cleanup *op, DIR *job, const char *id, struct gl_buf *found)
{
    for (struct dirent *e; found->n / sizeof(gl_str) < op->n && (e = readdir(job)) != NULL;) {
        if (e->d_name[0] == '.' || strstr(e->d_name, ":attempt:") == NULL) {
            continue;
        }
        GL_CLEANUP(closedirp) DIR *attempt = open_in(dirfd(job), e->d_name);
        if (attempt != NULL && faccessat(dirfd(attempt), "work", F_OK, 0) == 0 &&
            is_old(dirfd(attempt), op->age_ms)) {
            gl_str name = gl_str_fmt(&op->results, "%s/%s", id, e->d_name);
            gl_buf_add(found, &name, sizeof(name));
        }
    }
}

static void run_list_work(struct gl_tidyfs *t, struct cleanup *op)
{
    GL_CLEANUP(gl_fs_closep) int runs = open_runs(t, op);
    GL_CLEANUP(closedirp) DIR *d = runs < 0 ? NULL : open_in(runs, ".");
    struct gl_buf found = {0};
    for (struct dirent *e; d != NULL && found.n / sizeof(gl_str) < op->n &&
                           !atomic_load(&t->closing) && (e = readdir(d)) != NULL;) {
        GL_CLEANUP(closedirp) DIR *job = is_job(e->d_name) ? open_in(dirfd(d), e->d_name) : NULL;
        if (job != NULL) {
            list_work_of(op, job, e->d_name, &found);
        }
    }
    keep_names(op, &found);
}

static void run_remove_blobs(struct gl_tidyfs *t, struct cleanup *op)
{
    gl_blobfs_remove(t->blobs, op->context, op->names, op->n, op->age_ms, op->req);
}

static void run_measure(struct gl_tidyfs *t, struct cleanup *op)
{
    struct gl_tree_sum sum = {.stop = &t->closing};
    gl_tree_measure(AT_FDCWD, gl_paths_context(&op->results, t->data, op->context, GL_PATHS_RUNS),
                    &sum);
    gl_tree_measure(AT_FDCWD, gl_paths_context(&op->results, t->data, op->context, GL_PATHS_BLOBS),
                    &sum);
    op->req->bytes = sum.bytes;
}

/* ---- the thread ---- */

static void on_done(struct gl_loop_task *task)
{
    struct cleanup *op = task->owner;
    struct gl_tidy_req *req = op->req;

    req->done(req);
    gl_arena_done(&op->results);
    gl_mem_free(op);
}

static struct cleanup *take(struct gl_tidyfs *t)
{
    struct gl_link *l;
    pthread_mutex_lock(&t->lock);
    while ((l = gl_list_first(&t->queue)) == NULL && !atomic_load(&t->closing)) {
        pthread_cond_wait(&t->moved, &t->lock);
    }
    if (l != NULL) {
        gl_list_remove(l);
    }
    pthread_mutex_unlock(&t->lock);
    return l != NULL ? GL_CONTAINER(l, struct cleanup, link) : NULL;
}

static void *run(void *owner)
{
    struct gl_tidyfs *t = owner;
    for (struct cleanup *op; (op = take(t)) != NULL;) {
        if (atomic_load(&t->closing)) {
            op->req->status = gl_why(&op->req->why, GL_R_NODE_STOPPING, "the node is stopping");
        } else {
            op->run(t, op);
        }
        gl_loop_post(t->loop, &op->task);
    }
    gl_loop_post(t->loop, &t->ended);
    return NULL;
}

static void tidyfs_free(struct gl_tidyfs *t)
{
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->moved);
    gl_arena_done(&t->arena);
    gl_mem_free(t);
}

static void on_ended(struct gl_loop_task *task)
{
    struct gl_tidyfs *t = task->owner;
    void (*closed)(void *) = t->closed;
    void *owner = t->closed_owner;

    (void)pthread_join(t->thread, NULL);
    tidyfs_free(t);
    closed(owner);
}

/* ---- the port ---- */

static struct cleanup *begin(struct gl_tidy *port, struct gl_tidy_req *req, gl_str context,
                             void (*run_op)(struct gl_tidyfs *t, struct cleanup *op))
{
    struct gl_tidyfs *t = GL_CONTAINER(port, struct gl_tidyfs, port);
    struct cleanup *op = gl_mem_alloc(sizeof(*op));
    GL_ASSERT(req->done != NULL);
    req->status = 0;
    req->removed_n = req->bytes = req->young = 0;
    req->names = NULL;
    req->names_n = 0;
    gl_list_init(&op->link);
    op->tidy = t;
    op->req = req;
    op->run = run_op;
    op->context = context;
    op->task = (struct gl_loop_task){.run = on_done, .owner = op};
    return op;
}

static void send(struct cleanup *op)
{
    struct gl_tidyfs *t = op->tidy;
    pthread_mutex_lock(&t->lock);
    gl_list_push(&t->queue, &op->link);
    pthread_cond_signal(&t->moved);
    pthread_mutex_unlock(&t->lock);
}

static void send_names(struct cleanup *op, const gl_str *names, size_t n, gl_ms age_ms)
{
    op->names = names;
    op->n = n;
    op->age_ms = age_ms;
    send(op);
}

static void remove_jobs(struct gl_tidy *port, struct gl_tidy_req *req, gl_str context,
                        const gl_str *jobs, size_t jobs_n)
{
    send_names(begin(port, req, context, run_remove_jobs), jobs, jobs_n, 0);
}

static void list_jobs(struct gl_tidy *port, struct gl_tidy_req *req, gl_str context)
{
    send(begin(port, req, context, run_list_jobs));
}

static void list_work(struct gl_tidy *port, struct gl_tidy_req *req, gl_str context, gl_ms age_ms,
                      size_t limit)
{
    send_names(begin(port, req, context, run_list_work), NULL, limit, age_ms);
}

static void remove_work(struct gl_tidy *port, struct gl_tidy_req *req, gl_str context,
                        const gl_str *attempts, size_t attempts_n)
{
    send_names(begin(port, req, context, run_remove_work), attempts, attempts_n, 0);
}

static void remove_blobs(struct gl_tidy *port, struct gl_tidy_req *req, gl_str context,
                         const gl_str *keep, size_t keep_n, gl_ms age_ms)
{
    send_names(begin(port, req, context, run_remove_blobs), keep, keep_n, age_ms);
}

static void measure(struct gl_tidy *port, struct gl_tidy_req *req, gl_str context)
{
    send(begin(port, req, context, run_measure));
}

/* ---- life ---- */

int gl_tidyfs_open(struct gl_tidyfs **ret, const char *data, struct gl_blobfs *blobs,
                   struct gl_loop *loop, struct gl_why *reterr_why)
{
    struct gl_tidyfs *t = gl_mem_alloc(sizeof(*t));
    sigset_t all, before;

    t->port = (struct gl_tidy){.remove_jobs = remove_jobs,
                               .list_jobs = list_jobs,
                               .list_work = list_work,
                               .remove_work = remove_work,
                               .remove_blobs = remove_blobs,
                               .measure = measure};
    t->data = gl_str_c(&t->arena, gl_str_of(data));
    t->blobs = blobs;
    t->loop = loop;
    gl_list_init(&t->queue);
    t->ended = (struct gl_loop_task){.run = on_ended, .owner = t};
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->moved, NULL);
    (void)sigfillset(&all); /* signals are handled by other threads */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&t->thread, NULL, run, t);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err != 0) {
        tidyfs_free(t);
        return gl_why(reterr_why, GL_E_IO, "cannot start a thread: %s", strerror(err));
    }
    *ret = t;
    return 0;
}

struct gl_tidy *gl_tidyfs_port(struct gl_tidyfs *t)
{
    return &t->port;
}

void gl_tidyfs_close(struct gl_tidyfs *t, void (*closed)(void *owner), void *owner)
{
    t->closed = closed;
    t->closed_owner = owner;
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->closing, true);
    pthread_cond_signal(&t->moved);
    pthread_mutex_unlock(&t->lock);
}
