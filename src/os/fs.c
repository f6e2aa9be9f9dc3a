#include "os/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "os/failpoint.h"

int gl_fs_why(struct gl_why *why, int err, const char *verb, const char *path)
{
    int code = GL_E_IO;
    if (err == ENOENT) {
        code = GL_E_NOT_FOUND;
    } else if (err == EACCES || err == EPERM) {
        code = GL_E_DENIED;
    } else if (err == EEXIST) {
        code = GL_E_EXISTS;
    } else if (err == ENOSPC || err == EDQUOT || err == EROFS || err == EMFILE || err == ENFILE ||
               err == ENOMEM) {
        code = GL_E_UNAVAILABLE; /* a retry may succeed once space was freed */
    }
    return gl_why(why, code, "cannot %s %s: %s", verb, path, strerror(err));
}

void gl_fs_closep(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd); /* If the content must be durable, the caller has synced it. */
        *fd = -1;
    }
}

int gl_fs_take(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

static gl_str folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return GL_S(".");
    }
    return slash == path ? GL_S("/") : (gl_str){.p = path, .n = (size_t)(slash - path)};
}

/* Create one folder. Its parent is synced: a synced file inside must not be lost with it. */
static int make_folder(const char *path, struct gl_arena *a, struct gl_why *reterr_why)
{
    if (mkdir(path, 0700) < 0) {
        int err = errno;
        struct stat st;
        if (err == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
            return 0;
        }
        if (err == EEXIST) {
            err = ENOTDIR;
        }
        return gl_fs_why(reterr_why, err, "create the folder", path);
    }
    return gl_fs_sync_folder(gl_str_c(a, folder_of(path)), reterr_why);
}

int gl_fs_mkdirs(const char *path, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    gl_str whole = gl_str_of(path);
    while (whole.n > 1 && whole.p[whole.n - 1] == '/') {
        whole.n--;
    }
    for (size_t i = 1; i <= whole.n; i++) {
        if (i < whole.n && whole.p[i] != '/') {
            continue;
        }
        const char *part = gl_str_c(&a, (gl_str){.p = whole.p, .n = i});
        struct stat st;
        if (stat(part, &st) == 0 && S_ISDIR(st.st_mode)) {
            continue; /* Works even where mkdir is refused, as on a read-only file system. */
        }
        int err = make_folder(part, &a, reterr_why);
        if (err < 0) {
            return err;
        }
    }
    return 0;
}

/* Ask the kernel, in a single call; false: the check failed, or the kernel lacks the call. */
static bool is_without_links(int at, const char *path)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_NO_SYMLINKS};
    GL_CLEANUP(gl_fs_closep) int fd = (int)syscall(SYS_openat2, at, path, &how, sizeof(how));

    return fd >= 0 || errno == ENOENT;
}

int gl_fs_refuse_links(int at, const char *path, struct gl_why *reterr_why)
{
    if (is_without_links(at, path)) {
        return 0;
    }
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_fs_closep) int fd = -1;
    gl_str rest = gl_str_of(path);

    while (rest.n > 0) {
        gl_str part = gl_str_cut(rest, '/', &rest);
        int next = part.n > 0 ? openat(fd >= 0 ? fd : at, gl_str_c(&a, part),
                                       O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                              : -1;
        if (next < 0 && (errno == ELOOP || errno == ENOTDIR)) {
            return gl_why(
                reterr_why, GL_R_FOLDER_IS_LINK,
                "%s: '%.*s' is a symbolic link or a file where Glia keeps a folder of its "
                "own; remove it",
                path, GL_STR_ARG(part));
        }
        if (next < 0 && errno == ENOENT) {
            return 0;
        }
        if (next < 0) {
            return gl_fs_why(reterr_why, errno, "open the folder", path);
        }
        gl_fs_closep(&fd);
        fd = next;
    }
    return 0;
}

int gl_fs_mkdirs_own(const char *path, size_t own_n, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_fs_closep) int at = -1;
    gl_str root = gl_str_of(path);

    for (size_t i = 0; i < own_n; i++) {
        root = folder_of(gl_str_c(&a, root));
    }
    GL_ASSERT(path[0] == '/' && root.n > 0);
    int err = gl_fs_mkdirs(gl_str_c(&a, root), reterr_why);
    if (err < 0) {
        return err;
    }
    at = open(gl_str_c(&a, root), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0) {
        return gl_fs_why(reterr_why, errno, "open the folder", gl_str_c(&a, root));
    }
    for (size_t end = root.n + (root.n > 1); end < strlen(path);) {
        end += strcspn(path + end, "/");
        err = make_folder(gl_str_c(&a, (gl_str){.p = path, .n = end}), &a, reterr_why);
        if (err == 0) {
            size_t begin = root.n + (root.n > 1);
            err = gl_fs_refuse_links(
                at, gl_str_c(&a, (gl_str){.p = path + begin, .n = end - begin}), reterr_why);
        }
        if (err < 0) {
            return err;
        }
        end += path[end] == '/';
    }
    return 0;
}

static int write_all(int fd, gl_str content)
{
    size_t done = 0;
    while (done < content.n) {
        ssize_t n = write(fd, content.p + done, content.n - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return -1;
        }
        done += (size_t)n;
    }
    return 0;
}

static int fill_and_rename(int fd, const char *temp, const char *path, gl_str content,
                           struct gl_why *reterr_why)
{
    if (write_all(fd, content) < 0) {
        return gl_fs_why(reterr_why, errno, "write", path);
    }
    if (fsync(fd) < 0) {
        return gl_fs_why(reterr_why, errno, "sync", path);
    }
    GL_FAILPOINT("file.written");
    if (rename(temp, path) < 0) {
        return gl_fs_why(reterr_why, errno, "rename to", path);
    }
    GL_FAILPOINT("file.renamed");
    return 0;
}

int gl_fs_write_from(const char *temp_folder, const char *path, gl_str content,
                     struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    gl_str pattern = gl_str_fmt(&a, "%s/tmp.XXXXXX", temp_folder);
    char *temp = gl_arena_copy(&a, pattern.p, pattern.n + 1);
    GL_CLEANUP(gl_fs_closep) int fd = mkostemp(temp, O_CLOEXEC);
    if (fd < 0) {
        return gl_fs_why(reterr_why, errno, "write", path);
    }
    int err = fill_and_rename(fd, temp, path, content, reterr_why);
    if (err < 0) {
        (void)unlink(temp); /* Report the first failure. */
        return err;
    }
    return gl_fs_sync_folder(gl_str_c(&a, folder_of(path)), reterr_why);
}

int gl_fs_write(const char *path, gl_str content, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    return gl_fs_write_from(gl_str_c(&a, folder_of(path)), path, content, reterr_why);
}

int gl_fs_read(const char *path, size_t bytes_max, struct gl_buf *out, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_fs_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return gl_fs_why(reterr_why, errno, "open", path);
    }
    size_t before = out->n;
    for (;;) {
        char chunk[16384];
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            out->n = before;
            return gl_fs_why(reterr_why, errno, "read", path);
        }
        if (n == 0) {
            return 0;
        }
        /* Counted while reading: the size from stat may be outdated, or 0 for a pipe. */
        if ((size_t)n > bytes_max - (out->n - before)) {
            out->n = before;
            return gl_why(reterr_why, GL_E_LIMIT, "%s is larger than %zu bytes", path, bytes_max);
        }
        gl_buf_add(out, chunk, (size_t)n);
    }
}

int gl_fs_sync_folder(const char *path, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_fs_closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return gl_fs_why(reterr_why, errno, "open the folder", path);
    }
    if (fsync(fd) < 0) {
        return gl_fs_why(reterr_why, errno, "sync the folder", path);
    }
    return 0;
}
