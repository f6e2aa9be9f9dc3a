#include "keeper/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "os/failpoint.h"
#include "os/fs.h"

enum {
    FILE_BYTES_MAX = 1 << 30,
    STACK_BYTES = 128 << 10, /* of the syncer */
    SYNC_US_SLOW = 500,      /* a slower disk is synced by the thread */
    SYNC_US_MAX = 1000000,
};

/* Sync a file; 0 or an errno. *ret_us: how long it took. */
static int sync_file(int fd, uint32_t *ret_us)
{
    struct timespec begin, end;

    GL_ASSERT(fd >= 0);
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    GL_FAILPOINT("keeper.before_end_sync");
    int err = fdatasync(fd) < 0 ? errno : 0;
    GL_FAILPOINT("keeper.after_end_sync");
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    int64_t us = (end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000;
    *ret_us = us < SYNC_US_MAX ? (uint32_t)us : SYNC_US_MAX;
    return err;
}

/* ---- the sync thread ---- */

struct gl_syncer {
    pthread_t thread;
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t changed;
    int fd;      /* to sync; negative: nothing to do */
    int err;     /* result of the last sync: 0 or an errno */
    uint32_t us; /* ... and its duration */
    bool quit;
    int done_fd; /* an eventfd; never changes */
};

static void *sync_loop(void *owner)
{
    struct gl_syncer *s = owner;
    pthread_mutex_lock(&s->lock);
    while (!s->quit) {
        if (s->fd < 0) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        int fd = s->fd;
        pthread_mutex_unlock(&s->lock);
        uint32_t us;
        int err = sync_file(fd, &us);
        pthread_mutex_lock(&s->lock);
        s->fd = -1;
        s->err = err;
        s->us = us;
        pthread_cond_broadcast(&s->changed);
        (void)!write(s->done_fd, &(uint64_t){1}, sizeof(uint64_t)); /* cannot be full */
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static int start_syncer(struct gl_journal *j, struct gl_why *why)
{
    GL_ASSERT(j->done_fd < 0);
    pthread_attr_t attr;
    struct gl_syncer *s = gl_mem_alloc(sizeof(*s));
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->changed, NULL);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    s->fd = -1;
    s->done_fd = j->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int err = s->done_fd < 0 ? errno : pthread_create(&s->thread, &attr, sync_loop, s);
    (void)pthread_attr_destroy(&attr);
    if (err != 0) {
        gl_mem_free(s);
        return gl_why(why, GL_E_IO, "cannot start a thread: %s", strerror(err));
    }
    j->syncer = s;
    return 0;
}

static void stop_syncer(struct gl_journal *j)
{
    struct gl_syncer *s = j->syncer;
    if (s != NULL) {
        pthread_mutex_lock(&s->lock);
        s->quit = true;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
        (void)pthread_join(s->thread, NULL);
        (void)pthread_mutex_destroy(&s->lock);
        (void)pthread_cond_destroy(&s->changed);
        gl_mem_free(s);
        j->syncer = NULL;
    }
}

static void queue_sync(struct gl_journal *j)
{
    struct gl_syncer *s = j->syncer;
    pthread_mutex_lock(&s->lock);
    s->fd = j->fd;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* ---- opening ---- */

static int replay(struct gl_journal *j, gl_str text, gl_journal_each *each, void *owner)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    uint64_t good = 0;
    for (size_t at = 0, used = 0; at < text.n; at += used) {
        gl_str rest = {.p = text.p + at, .n = text.n - at}, message;
        if (gl_keeper_record(rest, &message, &used) < 0) {
            used = gl_keeper_record_bytes(rest);
            if (used == 0) {
                break;
            }
            continue;
        }
        struct gl_keeper_msg m;
        gl_arena_reset(&a);
        /* A valid checksum over an unreadable message: written by a newer release. Skip it, but
         * keep it. */
        int r = gl_keeper_decode(&m, message, &a, NULL) == 0 ? each(owner, &m) : 0;
        if (r < 0) {
            return r;
        }
        good += used;
        j->bytes = at + used;
    }
    j->has_hole = j->bytes > good;
    j->bad_bytes = text.n - good;
    j->synced = j->bytes;
    GL_ASSERT(j->synced == j->bytes);
    GL_ASSERT(j->bad_bytes <= text.n);
    return 0;
}

static char *copy_text(gl_str text)
{
    char *copy = gl_mem_alloc(text.n + 1);
    memcpy(copy, text.p, text.n);
    return copy;
}

int gl_journal_open(struct gl_journal *j, const char *folder, gl_journal_each *each, void *owner,
                    struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    *j = (struct gl_journal){.fd = -1, .done_fd = -1};
    j->folder = copy_text(gl_str_of(folder));
    j->path = copy_text(gl_str_fmt(&a, "%s/journal", folder));
    int r = gl_fs_read(j->path, FILE_BYTES_MAX, &text, reterr_why);
    if (r < 0 && r != GL_E_NOT_FOUND) {
        return r;
    }
    r = replay(j, gl_buf_view(&text), each, owner);
    if (r < 0) {
        return gl_why(reterr_why, r, "cannot replay %s", j->path);
    }
    j->fd = open(j->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (j->fd < 0) {
        return gl_fs_why(reterr_why, errno, "open", j->path);
    }
    return start_syncer(j, reterr_why);
}

int gl_journal_repair(struct gl_journal *j, struct gl_why *reterr_why)
{
    GL_ASSERT(j->fd >= 0);
    GL_ASSERT(j->pending.n == 0);
    return ftruncate(j->fd, (off_t)j->bytes) == 0 ? 0
                                                  : gl_fs_why(reterr_why, errno, "repair", j->path);
}

void gl_journal_close(struct gl_journal *j)
{
    stop_syncer(j);
    gl_fs_closep(&j->fd);
    gl_fs_closep(&j->done_fd);
    gl_buf_done(&j->pending);
    gl_buf_done(&j->unsynced);
    gl_mem_free(j->path);
    gl_mem_free(j->folder);
}

/* ---- writing ---- */

uint64_t gl_journal_add(struct gl_journal *j, const struct gl_keeper_msg *m)
{
    gl_keeper_add_record(m, &j->pending);
    j->pending_needs_sync = j->pending_needs_sync || m->type == GL_KEEPER_ENDED;
    GL_ASSERT(j->pending.n > 0);
    return j->bytes + j->pending.n;
}

/* Write at the known end, so that a record half-written by an earlier failure is overwritten. */
static int write_at(int fd, gl_str bytes, uint64_t at)
{
    GL_ASSERT(fd >= 0);
    while (bytes.n > 0) {
        ssize_t n = pwrite(fd, bytes.p, bytes.n, (off_t)at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? errno : EIO;
        }
        bytes.p += n;
        bytes.n -= (size_t)n;
        at += (uint64_t)n;
    }
    return 0;
}

/* Rewrite what did not reach the disk: after a failed sync the kernel may consider the pages clean,
 * and a second sync would report success without writing them. */
static void requeue_unsynced(struct gl_journal *j)
{
    struct gl_buf again = j->unsynced;

    GL_ASSERT(j->syncing == 0);
    gl_buf_str(&again, gl_buf_view(&j->pending));
    gl_buf_done(&j->pending);
    j->pending = again;
    j->pending_needs_sync = true;
    j->unsynced = (struct gl_buf){0};
    j->unsynced_needs_sync = false;
    j->bytes = j->synced;
    GL_ASSERT(j->unsynced.n == 0);
    GL_ASSERT(j->bytes == j->synced);
}

static int finish_sync(struct gl_journal *j, int err, uint32_t us, struct gl_why *why)
{
    GL_ASSERT(j->syncing <= j->bytes);
    j->sync_us = (7 * j->sync_us + us) / 8;
    uint64_t reached = j->syncing;
    j->syncing = 0;
    if (err != 0) {
        requeue_unsynced(j);
        return gl_fs_why(why, err, "sync", j->path);
    }
    size_t done = (size_t)(reached - j->synced);
    GL_ASSERT(done <= j->unsynced.n);
    j->unsynced.n -= done;
    memmove(j->unsynced.p, j->unsynced.p + done, j->unsynced.n);
    j->synced = reached;
    /* What was written meanwhile may or may not hold an end; one sync too many does no harm. */
    j->unsynced_needs_sync = j->unsynced.n > 0;
    GL_ASSERT(j->synced <= j->bytes);
    GL_ASSERT(j->unsynced.n == j->bytes - j->synced);
    return 0;
}

/* A renamed file is durable only once its folder is synced. */
static int sync_name(struct gl_journal *j, struct gl_why *why)
{
    int r = j->is_renamed ? gl_fs_sync_folder(j->folder, why) : 0;
    j->is_renamed = r < 0;
    return r;
}

static int begin_sync(struct gl_journal *j, struct gl_why *why)
{
    GL_ASSERT(j->unsynced_needs_sync);
    GL_ASSERT(j->syncing == 0);
    int r = sync_name(j, why);
    if (r < 0) {
        requeue_unsynced(j);
        return r;
    }
    j->syncing = j->bytes;
    if (j->sync_us >= SYNC_US_SLOW) {
        queue_sync(j);
        return 0;
    }
    uint32_t us;
    int err = sync_file(j->fd, &us);
    return finish_sync(j, err, us, why);
}

int gl_journal_flush(struct gl_journal *j, struct gl_why *reterr_why)
{
    GL_ASSERT(j->synced <= j->bytes);
    if (j->pending.n > 0) {
        int err = write_at(j->fd, gl_buf_view(&j->pending), j->bytes);
        if (err != 0) {
            return gl_fs_why(reterr_why, err, "write", j->path);
        }
        j->bytes += j->pending.n;
        gl_buf_str(&j->unsynced, gl_buf_view(&j->pending));
        j->unsynced_needs_sync = j->unsynced_needs_sync || j->pending_needs_sync;
        gl_buf_reset(&j->pending);
        j->pending_needs_sync = false;
    }
    if (j->syncing != 0) {
        return 0;
    }
    if (j->unsynced_needs_sync) {
        return begin_sync(j, reterr_why);
    }
    j->synced = j->bytes;
    gl_buf_reset(&j->unsynced);
    GL_ASSERT(j->unsynced.n == 0);
    return 0;
}

int gl_journal_sync_done(struct gl_journal *j, struct gl_why *reterr_why)
{
    uint64_t count;
    struct gl_syncer *s = j->syncer;

    GL_ASSERT(j->done_fd >= 0);
    (void)!read(j->done_fd, &count, sizeof(count)); /* only a wake-up: the state is below */
    pthread_mutex_lock(&s->lock);
    bool done = j->syncing != 0 && s->fd < 0;
    int err = s->err;
    uint32_t us = s->us;
    pthread_mutex_unlock(&s->lock);
    return done ? finish_sync(j, err, us, reterr_why) : 0;
}

int gl_journal_wait(struct gl_journal *j, struct gl_why *reterr_why)
{
    struct gl_syncer *s = j->syncer;

    GL_ASSERT(j->done_fd >= 0);
    pthread_mutex_lock(&s->lock);
    while (s->fd >= 0) {
        pthread_cond_wait(&s->changed, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return gl_journal_sync_done(j, reterr_why);
}

/* ---- rewriting ---- */

static void forget(struct gl_journal *j, uint64_t bytes)
{
    GL_ASSERT(j->syncing == 0);
    j->bytes = j->synced = bytes;
    gl_buf_reset(&j->pending);
    gl_buf_reset(&j->unsynced);
    j->pending_needs_sync = j->unsynced_needs_sync = false;
}

/* Write a new file next to the old one. *ret_fd is open and synced, except for the rename. */
static int write_replacement(struct gl_journal *j, gl_str content, int *ret_fd, struct gl_why *why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const char *temp = gl_str_fmt(&a, "%s.new", j->path).p;
    GL_CLEANUP(gl_fs_closep)
    int fd = open(temp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

    GL_ASSERT(j->syncing == 0);
    if (fd < 0) {
        return gl_fs_why(why, errno, "open", temp);
    }
    int err = write_at(fd, content, 0);
    err = err != 0 ? err : fsync(fd) < 0 ? errno : 0;
    GL_FAILPOINT("file.written");
    err = err != 0 ? err : rename(temp, j->path) < 0 ? errno : 0;
    GL_FAILPOINT("file.renamed");
    if (err != 0) {
        (void)unlink(temp); /* a leftover would be overwritten anyway */
        return gl_fs_why(why, err, "replace", j->path);
    }
    *ret_fd = gl_fs_take(&fd);
    return 0;
}

int gl_journal_replace(struct gl_journal *j, gl_str content, struct gl_why *reterr_why)
{
    GL_ASSERT(j->syncing == 0);
    int fd = -1, r = write_replacement(j, content, &fd, reterr_why);
    if (r < 0) {
        return r;
    }
    /* From here on the old file has no name: write nothing more to it. */
    gl_fs_closep(&j->fd);
    j->fd = fd;
    j->is_renamed = true;
    forget(j, content.n);
    if (sync_name(j, NULL) < 0) { /* the next flush retries it and reports the error */
        j->synced = 0;
        gl_buf_str(&j->unsynced, content);
        j->unsynced_needs_sync = true;
    }
    GL_ASSERT(j->bytes == content.n);
    GL_ASSERT(j->synced <= j->bytes);
    return 0;
}

void gl_journal_clear(struct gl_journal *j)
{
    GL_ASSERT(j->syncing == 0);
    if (ftruncate(j->fd, 0) == 0) {
        forget(j, 0);
    }
}
