#include "os/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "os/fs.h"

enum {
    DEPTH_MAX = 32,
    TRIES_MAX = 100000, /* folders moved up because they are too deep, before giving up */
    BLOCK_BYTES = 512,  /* st_blocks counts these, whatever the file system */
};

struct tree_walk {
    int root_fd; /* the folder to which folders that are too deep are moved first; -1: leave them */
    unsigned moved_n;
    dev_t dev;
    struct gl_tree_sum *sum;
};

static void add(struct gl_tree_sum *sum, const struct stat *st)
{
    sum->files_n += !S_ISDIR(st->st_mode);
    /* A file with several names still exists under the others. */
    sum->bytes +=
        S_ISDIR(st->st_mode) || st->st_nlink <= 1 ? (uint64_t)st->st_blocks * BLOCK_BYTES : 0;
}

static bool is_stopped(const struct gl_tree_sum *sum)
{
    return sum->stop != NULL && atomic_load(sum->stop);
}

static bool is_dot(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* Open a folder for reading; `force`: even if its owner has removed his own permissions. */
static DIR *open_folder(int at, const char *name, bool force)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(at, name, flags);

    if (fd < 0 && errno == EACCES && force && fchmodat(at, name, 0700, 0) == 0) {
        fd = openat(at, name, flags);
    }
    if (fd < 0) {
        return NULL;
    }
    if (force) {
        (void)fchmod(
            fd, 0700); /* else nothing can be removed from it; if that fails, removing fails, too */
    }
    DIR *d = fdopendir(fd);
    if (d == NULL) {
        (void)close(fd);
    }
    return d;
}

static bool is_folder(struct tree_walk *w, int at, const char *name, struct stat *st,
                      bool *ret_skip)
{
    *ret_skip = fstatat(at, name, st, AT_SYMLINK_NOFOLLOW) < 0 || st->st_dev != w->dev;
    return !*ret_skip && S_ISDIR(st->st_mode);
}

/* A folder that is too deep is moved up and removed from there. */
static bool move_up(struct tree_walk *w, int at, const char *name)
{
    char to[32];

    if (w->moved_n >= TRIES_MAX) {
        return false;
    }
    (void)snprintf(to, sizeof(to), ".glia-deep-%u", w->moved_n++);
    return renameat(at, name, w->root_fd, to) == 0;
}

static void remove_content(struct tree_walk *w, DIR *d, unsigned depth);

static void remove_one(struct tree_walk *w, int at, const char *name, unsigned depth)
{
    struct stat st;
    bool skip;

    if (!is_folder(w, at, name, &st, &skip)) {
        if (!skip && unlinkat(at, name, 0) == 0) {
            add(w->sum, &st);
        }
        return;
    }
    if (depth >= DEPTH_MAX && move_up(w, at, name)) {
        return;
    }
    DIR *d = depth >= DEPTH_MAX ? NULL : open_folder(at, name, true);
    if (d != NULL) {
        remove_content(w, d, depth + 1);
        (void)closedir(d);
    }
    if (unlinkat(at, name, AT_REMOVEDIR) == 0) {
        add(w->sum, &st);
    }
}

static void remove_content(struct tree_walk *w, DIR *d, unsigned depth)
{
    for (struct dirent *e; !is_stopped(w->sum) && (e = readdir(d)) != NULL;) {
        if (!is_dot(e->d_name)) {
            remove_one(w, dirfd(d), e->d_name, depth);
        }
    }
}

bool gl_tree_remove(int at, const char *name, struct gl_tree_sum *sum)
{
    struct tree_walk w = {.root_fd = -1, .sum = sum};
    struct stat st;

    if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return errno == ENOENT;
    }
    w.dev = st.st_dev;
    DIR *d = S_ISDIR(st.st_mode) ? open_folder(at, name, true) : NULL;
    if (d == NULL) {
        remove_one(&w, at, name, 0);
        return faccessat(at, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
    }
    w.root_fd = dirfd(d);
    unsigned before;
    do { /* repeat while folders from below are moved up */
        before = w.moved_n;
        rewinddir(d);
        remove_content(&w, d, 1);
    } while (w.moved_n > before && !is_stopped(sum));
    (void)closedir(d);
    if (unlinkat(at, name, AT_REMOVEDIR) < 0) {
        return false;
    }
    add(sum, &st);
    return true;
}

static void measure(struct tree_walk *w, int at, const char *name, unsigned depth)
{
    struct stat st;
    bool skip;
    bool folder = is_folder(w, at, name, &st, &skip);

    if (skip) {
        return;
    }
    add(w->sum, &st);
    DIR *d = folder && depth < DEPTH_MAX ? open_folder(at, name, false) : NULL;
    for (struct dirent *e; d != NULL && !is_stopped(w->sum) && (e = readdir(d)) != NULL;) {
        if (!is_dot(e->d_name)) {
            measure(w, dirfd(d), e->d_name, depth + 1);
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
}

void gl_tree_measure(int at, const char *name, struct gl_tree_sum *sum)
{
    struct tree_walk w = {.root_fd = -1, .sum = sum};
    struct stat st;

    if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        w.dev = st.st_dev;
        measure(&w, at, name, 0);
    }
}
