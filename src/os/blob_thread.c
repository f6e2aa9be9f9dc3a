#include "os/blob_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "os/fs.h"
#include "os/paths.h"

enum { HASH_BYTES = 256 << 10 }; /* bytes read at a time for hashing */

struct blob_op {
    struct gl_link link; /* in the queue */
    struct gl_blob_thread *serve;
    struct gl_blob_req *req;
    void (*run)(struct blob_op *op);
    struct gl_loop_task task;
    struct gl_arena arena;
    gl_str context, hex;
    uint64_t at;
    void *buffer;
    size_t n;
    gl_str piece;
    bool check;
};

struct gl_blob_thread {
    struct gl_blobfs *blobs;
    struct gl_loop *loop;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t moved;
    struct gl_link queue;
    bool is_closing;
};

/* ---- the work, on the thread ---- */

static const char *part_path(struct blob_op *op)
{
    const char *folder =
        gl_paths_context(&op->arena, op->serve->blobs->data, op->context, GL_PATHS_BLOBS "/tmp");
    return gl_str_fmt(&op->arena, "%s/%.*s.part", folder, GL_STR_ARG(op->hex)).p;
}

static const char *whole_path(struct blob_op *op)
{
    return gl_blobfs_path(&op->arena, op->serve->blobs->data, op->context, op->hex);
}

static int fail(struct blob_op *op, int err, const char *verb, const char *path)
{
    op->req->status = gl_fs_why(&op->req->why, err, verb, path);
    return op->req->status;
}

/* Reads as many bytes as there are; -1 with errno. */
static ssize_t read_at(int fd, void *buffer, size_t n, uint64_t at)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = pread(fd, (char *)buffer + done, n - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static int check_hash(struct blob_op *op, int fd, const char *path)
{
    static const char digits[] = "0123456789abcdef";
    char *buffer = gl_arena_alloc(&op->arena, HASH_BYTES);
    uint8_t sum[GL_SHA256_BYTES];
    char hex[GL_SHA256_HEX - 1];
    struct gl_sha256 sha;
    uint64_t at = 0;
    ssize_t n;

    gl_sha256_init(&sha);
    while ((n = read_at(fd, buffer, HASH_BYTES, at)) > 0) {
        gl_sha256_add(&sha, buffer, (size_t)n);
        at += (uint64_t)n;
    }
    if (n < 0) {
        return fail(op, errno, "read", path);
    }
    gl_sha256_done(&sha, sum);
    for (size_t i = 0; i < sizeof(sum); i++) {
        hex[2 * i] = digits[sum[i] >> 4];
        hex[2 * i + 1] = digits[sum[i] & 15];
    }
    if (!gl_str_eq((gl_str){.p = hex, .n = sizeof(hex)}, op->hex)) {
        op->req->status =
            gl_why(&op->req->why, GL_E_DAMAGED, "the content of %s does not match its hash", path);
    }
    return op->req->status;
}

static void run_look(struct blob_op *op)
{
    struct gl_blob *blob = &op->serve->blobs->blob;
    const char *path = whole_path(op);
    struct stat st;

    if (!blob->has(blob, op->context, op->hex)) { /* this also makes it fresh */
        (void)fail(op, ENOENT, "open", path);
        return;
    }
    GL_CLEANUP(gl_fs_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        (void)fail(op, errno, "open", path);
        return;
    }
    op->req->size = (uint64_t)st.st_size;
    if (op->check) {
        (void)check_hash(op, fd, path); /* the request then has the result */
    }
}

static void run_read(struct blob_op *op)
{
    const char *path = whole_path(op);
    GL_CLEANUP(gl_fs_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read_at(fd, op->buffer, op->n, op->at);

    if (n < 0) {
        (void)fail(op, errno, fd < 0 ? "open" : "read", path);
        return;
    }
    op->req->n = (size_t)n;
}

static void run_write(struct blob_op *op)
{
    const char *path = part_path(op);
    const char *folder =
        gl_paths_context(&op->arena, op->serve->blobs->data, op->context, GL_PATHS_BLOBS "/tmp");
    size_t done = 0;

    if (op->at == 0) {
        op->req->status = gl_fs_mkdirs(folder, &op->req->why);
        if (op->req->status != 0) {
            return;
        }
    }
    GL_CLEANUP(gl_fs_closep)
    int fd = open(path, O_WRONLY | O_CLOEXEC | (op->at == 0 ? O_CREAT | O_TRUNC : 0), 0600);
    if (fd < 0) {
        (void)fail(op, errno, "write", path);
        return;
    }
    while (done < op->piece.n) {
        ssize_t n = pwrite(fd, op->piece.p + done, op->piece.n - done, (off_t)(op->at + done));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            (void)fail(op, errno, "write", path);
            (void)unlink(path); /* free the space of a full disk */
            return;
        }
        done += (size_t)n;
    }
}

static int seal(struct blob_op *op, int fd, const char *part)
{
    const char *path = whole_path(op);
    gl_str folder = gl_str_of(path);

    while (folder.p[folder.n - 1] != '/') {
        folder.n--;
    }
    folder.n--;
    if (check_hash(op, fd, part) != 0) {
        return op->req->status;
    }
    if (fsync(fd) < 0) {
        return fail(op, errno, "sync", part);
    }
    op->req->status = gl_fs_mkdirs(gl_str_c(&op->arena, folder), &op->req->why);
    if (op->req->status != 0) {
        return op->req->status;
    }
    if (rename(part, path) < 0) {
        return fail(op, errno, "rename to", path);
    }
    op->req->status = gl_fs_sync_folder(gl_str_c(&op->arena, folder), &op->req->why);
    return op->req->status;
}

static void run_seal(struct blob_op *op)
{
    const char *part = part_path(op);
    GL_CLEANUP(gl_fs_closep) int fd = open(part, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        (void)fail(op, errno, "open", part);
    } else if (seal(op, fd, part) != 0) {
        (void)unlink(part); /* it may have its final name already */
    }
}

/* ---- the thread ---- */

static void on_done(struct gl_loop_task *task)
{
    struct blob_op *op = task->owner;
    struct gl_blob_req *req = op->req;

    gl_arena_done(&op->arena);
    gl_mem_free(op);
    req->done(req);
}

static struct blob_op *take(struct gl_blob_thread *s)
{
    struct gl_link *l;

    pthread_mutex_lock(&s->lock);
    while ((l = gl_list_first(&s->queue)) == NULL && !s->is_closing) {
        pthread_cond_wait(&s->moved, &s->lock);
    }
    if (l != NULL) {
        gl_list_remove(l);
    }
    pthread_mutex_unlock(&s->lock);
    return l != NULL ? GL_CONTAINER(l, struct blob_op, link) : NULL;
}

static void *run(void *owner)
{
    struct gl_blob_thread *s = owner;

    (void)pthread_setname_np(pthread_self(), "glia-blobs"); /* for people inspecting the threads */
    for (struct blob_op *op; (op = take(s)) != NULL;) {
        op->run(op);
        gl_loop_post(s->loop, &op->task);
    }
    return NULL;
}

/* ---- the port ---- */

static struct blob_op *begin(struct gl_blob *port, struct gl_blob_req *req, gl_str context,
                             gl_str hex, void (*run_op)(struct blob_op *op))
{
    struct gl_blobfs *b = GL_CONTAINER(port, struct gl_blobfs, blob);
    struct blob_op *op = gl_mem_alloc(sizeof(*op));

    GL_ASSERT(req->done != NULL);
    req->status = 0;
    req->size = 0;
    req->n = 0;
    gl_list_init(&op->link);
    op->serve = b->serve;
    op->req = req;
    op->run = run_op;
    op->context = context;
    op->hex = hex;
    op->task = (struct gl_loop_task){.run = on_done, .owner = op};
    return op;
}

static void send(struct blob_op *op)
{
    struct gl_blob_thread *s = op->serve;

    pthread_mutex_lock(&s->lock);
    gl_list_push(&s->queue, &op->link);
    pthread_cond_signal(&s->moved);
    pthread_mutex_unlock(&s->lock);
}

static void port_look(struct gl_blob *port, struct gl_blob_req *req, gl_str context, gl_str hex,
                      bool check)
{
    struct blob_op *op = begin(port, req, context, hex, run_look);
    op->check = check;
    send(op);
}

static void port_read(struct gl_blob *port, struct gl_blob_req *req, gl_str context, gl_str hex,
                      uint64_t at, void *buffer, size_t n)
{
    struct blob_op *op = begin(port, req, context, hex, run_read);
    op->at = at;
    op->buffer = buffer;
    op->n = n;
    send(op);
}

static void port_write(struct gl_blob *port, struct gl_blob_req *req, gl_str context, gl_str hex,
                       uint64_t at, gl_str piece)
{
    struct blob_op *op = begin(port, req, context, hex, run_write);
    op->at = at;
    op->piece = piece;
    send(op);
}

static void port_seal(struct gl_blob *port, struct gl_blob_req *req, gl_str context, gl_str hex)
{
    send(begin(port, req, context, hex, run_seal));
}

/* ---- life ---- */

static void serve_free(struct gl_blob_thread *s)
{
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->moved);
    gl_mem_free(s);
}

int gl_blob_thread_open(struct gl_blob_thread **ret, struct gl_blobfs *blobs, struct gl_loop *loop,
                        struct gl_why *reterr_why)
{
    struct gl_blob_thread *s = gl_mem_alloc(sizeof(*s));
    sigset_t all, before;
    int err;

    s->blobs = blobs;
    s->loop = loop;
    gl_list_init(&s->queue);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->moved, NULL);
    (void)sigfillset(&all); /* signals are handled by other threads */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    err = pthread_create(&s->thread, NULL, run, s);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err != 0) {
        serve_free(s);
        return gl_why(reterr_why, GL_E_IO, "cannot start a thread: %s", strerror(err));
    }
    blobs->serve = s;
    blobs->blob.look = port_look;
    blobs->blob.read = port_read;
    blobs->blob.write = port_write;
    blobs->blob.seal = port_seal;
    *ret = s;
    return 0;
}

void gl_blob_thread_close(struct gl_blob_thread *s)
{
    if (s == NULL) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    s->is_closing = true;
    pthread_cond_signal(&s->moved);
    pthread_mutex_unlock(&s->lock);
    (void)pthread_join(s->thread, NULL);
    s->blobs->serve = NULL;
    serve_free(s);
}
