#include "keeper/trash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "os/fs.h"

enum {
    STACK_BYTES = 128 << 10,
    NAME_BYTES = 64,
    FOLDER_MODE = 0700,
};

struct gl_trash {
    pthread_t thread;
    pthread_mutex_t lock; /* guards `more` */
    pthread_cond_t changed;
    bool more; /* the trash has new entries */
    atomic_bool quit;
    int fd;             /* the trash folder; never changes */
    uint64_t put_n;     /* used by the keeper for unique names */
    uint64_t flatten_n; /* used by the thread for unique names */
};

/* ---- the thread ---- */

static int open_folder(int at, const char *name)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(at, name, flags);
    if (fd < 0 && errno == EACCES && fchmodat(at, name, FOLDER_MODE, 0) == 0) {
        fd = openat(at, name, flags);
    }
    return fd;
}

/* A nested folder is moved up into the trash and removed later, so nesting depth costs no stack. */
static bool remove_entry(struct gl_trash *t, int folder, const char *name)
{
    char up[NAME_BYTES];
    if (unlinkat(folder, name, 0) == 0) {
        return true;
    }
    if (errno != EISDIR && errno != EPERM) {
        return false;
    }
    if (unlinkat(folder, name, AT_REMOVEDIR) == 0) {
        return true;
    }
    (void)snprintf(up, sizeof(up), "%d.b%llu", (int)getpid(), (unsigned long long)t->flatten_n++);
    if (renameat(folder, name, t->fd, up) == 0) {
        return true;
    }
    /* A folder without write permission cannot be moved either. */
    return errno == EACCES && fchmodat(folder, name, FOLDER_MODE, 0) == 0 &&
           renameat(folder, name, t->fd, up) == 0;
}

/* Remove what is in a folder; returns the number of entries removed. Closes `fd`. */
static size_t empty_folder(struct gl_trash *t, int fd)
{
    size_t removed = 0;

    GL_ASSERT(fd >= 0);
    (void)fchmod(fd, FOLDER_MODE); /* the step may have made it read-only */
    DIR *d = fdopendir(fd);
    if (d == NULL) {
        (void)close(fd);
        return 0;
    }
    for (struct dirent *e; !atomic_load(&t->quit) && (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            removed += remove_entry(t, dirfd(d), e->d_name);
        }
    }
    (void)closedir(d);
    return removed;
}

/* Remove one entry of the trash. Folders inside it are moved next to it. */
static size_t remove_one(struct gl_trash *t, const char *name)
{
    if (unlinkat(t->fd, name, 0) == 0 || unlinkat(t->fd, name, AT_REMOVEDIR) == 0) {
        return 1;
    }
    int fd = open_folder(t->fd, name);
    size_t removed = fd < 0 ? 0 : empty_folder(t, fd);
    return removed + (unlinkat(t->fd, name, AT_REMOVEDIR) == 0);
}

/* Repeat until nothing is left that can be removed. */
static void empty_trash(struct gl_trash *t)
{
    for (size_t removed = 1; removed > 0 && !atomic_load(&t->quit);) {
        int fd = openat(t->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        removed = 0;
        if (d == NULL) {
            gl_fs_closep(&fd);
            return;
        }
        for (struct dirent *e; !atomic_load(&t->quit) && (e = readdir(d)) != NULL;) {
            if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
                removed += remove_one(t, e->d_name);
            }
        }
        (void)closedir(d);
    }
}

static void *trash_loop(void *owner)
{
    struct gl_trash *t = owner;
    pthread_mutex_lock(&t->lock);
    while (!atomic_load(&t->quit)) {
        if (!t->more) {
            pthread_cond_wait(&t->changed, &t->lock);
            continue;
        }
        t->more = false;
        pthread_mutex_unlock(&t->lock);
        empty_trash(t);
        pthread_mutex_lock(&t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* ---- the keeper's side ---- */

static struct gl_trash *start(int fd)
{
    GL_ASSERT(fd >= 0);
    pthread_attr_t attr;
    struct gl_trash *t = gl_mem_alloc(sizeof(*t));
    t->fd = fd;
    t->more = true; /* for what is there already */
    (void)pthread_mutex_init(&t->lock, NULL);
    (void)pthread_cond_init(&t->changed, NULL);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    int err = pthread_create(&t->thread, &attr, trash_loop, t);
    (void)pthread_attr_destroy(&attr);
    if (err != 0) {
        gl_mem_free(t);
        return NULL;
    }
    return t;
}

static void start_in(struct gl_keeper *k, bool make)
{
    const char *path = gl_str_fmt(&k->scratch, "%s/keeper/trash", k->config.data_dir).p;
    if (make) {
        (void)mkdir(path, FOLDER_MODE); /* it may exist; open() finds out */
    }
    GL_CLEANUP(gl_fs_closep)
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    k->trash = fd < 0 ? NULL : start(fd);
    if (k->trash != NULL) {
        fd = -1; /* the thread owns it now */
    }
}

void gl_trash_open(struct gl_keeper *k)
{
    const char *path = gl_str_fmt(&k->scratch, "%s/keeper/trash", k->config.data_dir).p;
    if (k->trash != NULL) {
        return; /* it was already needed */
    }
    if (rmdir(path) < 0 && errno != ENOENT) { /* not empty */
        start_in(k, false);
    }
}

/* A step may have replaced a parent folder with a link to something that is not ours. */
static bool is_below_link(struct gl_keeper *k, const char *path)
{
    const char *slash = strrchr(path, '/');
    gl_str above = {.p = path, .n = slash != NULL ? (size_t)(slash - path) : 0};
    return gl_fs_refuse_links(k->contexts_fd, gl_str_c(&k->scratch, above), NULL) < 0;
}

void gl_trash_put(struct gl_keeper *k, const char *path)
{
    char name[NAME_BYTES];
    if (is_below_link(k, path)) {
        return;
    }
    if (k->trash == NULL) {
        start_in(k, true);
    }
    struct gl_trash *t = k->trash;
    if (t == NULL) {
        return;
    }
    (void)snprintf(name, sizeof(name), "%d.a%llu", (int)k->pid, (unsigned long long)t->put_n++);
    if (renameat(k->contexts_fd, path, t->fd, name) == 0) {
        pthread_mutex_lock(&t->lock);
        t->more = true;
        pthread_cond_signal(&t->changed);
        pthread_mutex_unlock(&t->lock);
    }
}

void gl_trash_close(struct gl_keeper *k)
{
    struct gl_trash *t = k->trash;
    if (t == NULL) {
        return;
    }
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->quit, true);
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
    (void)pthread_join(t->thread, NULL);
    (void)pthread_mutex_destroy(&t->lock);
    (void)pthread_cond_destroy(&t->changed);
    gl_fs_closep(&t->fd);
    gl_mem_free(t);
    k->trash = NULL;
}
