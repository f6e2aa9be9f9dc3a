#include "keeper/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "os/fs.h"

gl_str gl_rundir_path(struct gl_arena *a, const struct gl_attempt_key *key)
{
    return gl_str_fmt(a, "%.*s/runs/%.*s/%.*s", GL_STR_ARG(key->context), GL_STR_ARG(key->job),
                      GL_STR_ARG(key->attempt));
}

/* Make `path` and what is missing above it. */
static int make_folders(int at, char *path)
{
    if (mkdirat(at, path, 0700) == 0 || errno == EEXIST) {
        return 0;
    }
    if (errno != ENOENT) {
        return errno;
    }
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return ENOENT;
    }
    *slash = 0;
    int err = make_folders(at, path);
    *slash = '/';
    if (err != 0) {
        return err;
    }
    return mkdirat(at, path, 0700) == 0 || errno == EEXIST ? 0 : errno;
}

static int write_all(int fd, gl_str bytes)
{
    while (bytes.n > 0) {
        ssize_t n = write(fd, bytes.p, bytes.n);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return errno;
        }
        bytes.p += n;
        bytes.n -= (size_t)n;
    }
    return 0;
}

/* `old_bytes`: the file is there from an earlier attempt, with this length. */
static int write_input(struct gl_keeper *k, gl_str path, gl_str input, uint32_t old_bytes,
                       struct gl_why *why)
{
    const char *name = gl_str_fmt(&k->scratch, "%s/input.json", path.p).p;
    int how = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (old_bytes > 0 ? 0 : O_TRUNC);
    GL_CLEANUP(gl_fs_closep) int fd = openat(k->contexts_fd, name, how, 0600);
    if (fd < 0) {
        return gl_fs_why(why, errno, "make", name);
    }
    input = input.n > 0 ? input : GL_S("{}");
    int err = write_all(fd, input);
    if (err == 0 && old_bytes > input.n && ftruncate(fd, (off_t)input.n) < 0) {
        err = errno;
    }
    return err == 0 ? 0 : gl_fs_why(why, err, "write", name);
}

static int copy_content(int from, int to)
{
    for (;;) {
        ssize_t n = sendfile(to, from, NULL, 1 << 20);
        if (n == 0) {
            return 0;
        }
        if (n < 0 && errno != EINTR) {
            return errno;
        }
    }
}

/* Copied, not linked: a step that writes into its file must not change what others will see. */
static int copy_file(struct gl_keeper *k, const struct gl_exec_start *s, gl_str path,
                     const struct gl_exec_file *f, struct gl_why *why)
{
    const char *blob = gl_str_fmt(&k->scratch, "%.*s/blobs/%.2s/%.*s", GL_STR_ARG(s->key.context),
                                  f->blob.p, GL_STR_ARG(f->blob))
                           .p;
    char *name =
        (char *)(uintptr_t)gl_str_fmt(&k->scratch, "%s/work/%.*s", path.p, GL_STR_ARG(f->name)).p;
    GL_CLEANUP(gl_fs_closep)
    int from = openat(k->contexts_fd, blob, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (from < 0) {
        return gl_fs_why(why, errno, "read the snapshot of a file:", blob);
    }
    int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
    mode_t mode = f->executable ? 0700 : 0600;
    GL_CLEANUP(gl_fs_closep) int to = openat(k->contexts_fd, name, flags, mode);
    if (to < 0 && errno == ENOENT) { /* in a subfolder that is not there yet */
        char *slash = strrchr(name, '/');
        *slash = 0;
        int err = make_folders(k->contexts_fd, name);
        *slash = '/';
        errno = err;
        if (err == 0) {
            to = openat(k->contexts_fd, name, flags, mode);
        }
    }
    if (to < 0) {
        return gl_fs_why(why, errno, "make", name);
    }
    int err = copy_content(from, to);
    return err == 0 ? 0 : gl_fs_why(why, err, "copy to", name);
}

/* The folder of a job that has none yet. If it cannot be made, what follows will say why. */
static void make_job_folder(struct gl_keeper *k, gl_str path)
{
    char *name = (char *)(uintptr_t)gl_str_dup(&k->scratch, path).p;
    *strrchr(name, '/') = 0;
    (void)make_folders(k->contexts_fd, name);
}

/* Take a folder from the shelf. 0: there was none, or it would not go; else the length of the input
 * file in it. */
static uint32_t take_folder(struct gl_keeper *k, gl_str path)
{
    struct gl_shelf *shelf = &k->shelf;
    char name[16];
    if (shelf->n == 0) {
        return 0;
    }
    (void)snprintf(name, sizeof(name), "%u", shelf->folders[shelf->n - 1].number);
    if (renameat(shelf->fd, name, k->contexts_fd, path.p) < 0) {
        if (errno != ENOENT) {
            return 0;
        }
        make_job_folder(k, path);
        if (renameat(shelf->fd, name, k->contexts_fd, path.p) < 0) {
            return 0;
        }
    }
    return shelf->folders[--shelf->n].input_bytes;
}

static int make_folder(struct gl_keeper *k, const struct gl_exec_start *s, gl_str path,
                       struct gl_why *why)
{
    char *name = (char *)(uintptr_t)gl_str_fmt(&k->scratch, "%s/work", path.p).p;
    name[path.n] = 0;
    int err = make_folders(k->contexts_fd, name);
    name[path.n] = '/';
    if (err == 0 && s->cwd.n == 0) {
        err = make_folders(k->contexts_fd, name);
    }
    return err == 0 ? 0 : gl_fs_why(why, err, "make the working folder", name);
}

int gl_rundir_make(struct gl_keeper *k, const struct gl_exec_start *s, gl_str path, bool new_job,
                   struct gl_why *reterr_why)
{
    if (new_job) { /* Saves the calls that would only find it missing. */
        make_job_folder(k, path);
    }
    uint32_t old_bytes = take_folder(k, path);
    int r = old_bytes > 0 ? 0 : make_folder(k, s, path, reterr_why);
    if (r == 0) {
        r = write_input(k, path, s->input, old_bytes, reterr_why);
    }
    for (size_t i = 0; r == 0 && i < s->files_n; i++) {
        r = copy_file(k, s, path, &s->files[i], reterr_why);
    }
    return r;
}

/* ---- the shelf ---- */

/* Does the folder hold exactly these names (none: NULL), besides "." and ".."? */
static bool holds_only(int folder, const char *one, const char *other)
{
    char bytes[512] __attribute__((aligned(8))); /* more would not fit in: more is there */
    size_t expected = (one != NULL) + (size_t)(other != NULL), found = 0;
    ssize_t n = getdents64(folder, bytes, sizeof(bytes));
    for (ssize_t at = 0; at < n;) {
        const struct dirent64 *e = (const struct dirent64 *)(const void *)(bytes + at);
        at += e->d_reclen;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }
        if (one == NULL || (strcmp(e->d_name, one) != 0 && strcmp(e->d_name, other) != 0)) {
            return false;
        }
        found++;
    }
    return n > 0 && found == expected && getdents64(folder, bytes, sizeof(bytes)) == 0;
}

/* Is it as we would make it? Then the length of its input file, else 0. */
static uint32_t look_untouched(struct gl_keeper *k, gl_str path)
{
    struct stat st;
    GL_CLEANUP(gl_fs_closep)
    int folder = openat(k->contexts_fd, path.p, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0 || fstat(folder, &st) < 0 || (st.st_mode & 07777) != 0700 ||
        !holds_only(folder, "work", "input.json")) {
        return 0;
    }
    GL_CLEANUP(gl_fs_closep)
    int work = openat(folder, "work", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (work < 0 || fstat(work, &st) < 0 || (st.st_mode & 07777) != 0700 ||
        !holds_only(work, NULL, NULL)) {
        return 0;
    }
    if (fstatat(folder, "input.json", &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        (st.st_mode & ~(mode_t)S_IFMT) != 0600 || !S_ISREG(st.st_mode) || st.st_nlink != 1 ||
        st.st_size > UINT32_MAX) {
        return 0;
    }
    return (uint32_t)st.st_size;
}

void gl_rundir_put_back(struct gl_keeper *k, gl_str path)
{
    struct gl_shelf *shelf = &k->shelf;
    char name[16];
    uint32_t input_bytes = shelf->n < GL_KEEPER_SHELF_MAX ? look_untouched(k, path) : 0;
    if (input_bytes == 0) {
        return; /* it stays where it is */
    }
    (void)snprintf(name, sizeof(name), "%u", shelf->number);
    if (renameat(k->contexts_fd, path.p, shelf->fd, name) == 0) {
        shelf->folders[shelf->n].number = shelf->number++;
        shelf->folders[shelf->n++].input_bytes = input_bytes;
    }
}

static void remove_shelved(int shelf_fd, const char *name)
{
    GL_CLEANUP(gl_fs_closep)
    int fd = openat(shelf_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        /* What cannot be removed stays, and is in nobody's way. */
        (void)unlinkat(fd, "input.json", 0);
        (void)unlinkat(fd, "work", AT_REMOVEDIR);
        (void)unlinkat(shelf_fd, name, AT_REMOVEDIR);
    }
}

int gl_rundir_open_shelf(struct gl_keeper *k, struct gl_why *reterr_why)
{
    const char *path = gl_str_fmt(&k->scratch, "%s/keeper/shelf", k->config.data_dir).p;
    int r = gl_fs_mkdirs(path, reterr_why);
    if (r < 0) {
        return r;
    }
    k->shelf.fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = k->shelf.fd < 0 ? NULL : fdopendir(dup(k->shelf.fd));
    if (folder == NULL) {
        return gl_fs_why(reterr_why, errno, "open", path);
    }
    for (struct dirent *e; (e = readdir(folder)) != NULL;) { /* of a keeper that was killed */
        if (e->d_name[0] != '.') {
            remove_shelved(k->shelf.fd, e->d_name);
        }
    }
    (void)closedir(folder);
    return 0;
}

void gl_rundir_close_shelf(struct gl_keeper *k)
{
    for (char name[16]; k->shelf.n > 0;) {
        (void)snprintf(name, sizeof(name), "%u", k->shelf.folders[--k->shelf.n].number);
        remove_shelved(k->shelf.fd, name);
    }
    gl_fs_closep(&k->shelf.fd);
}

/* ---- the output ---- */

int gl_rundir_output(struct gl_keeper *k, gl_str path, struct gl_buf *out,
                     struct gl_why *reterr_why)
{
    const char *name = gl_str_fmt(&k->scratch, "%s/output.json", path.p).p;
    /* The step may have made anything of it: a pipe, a link, a folder. None of them is followed or
     * waited for. */
    GL_CLEANUP(gl_fs_closep)
    int fd =
        openat(k->contexts_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    if (fd < 0) {
        return errno == ENOENT ? GL_E_NOT_FOUND
                               : gl_why(reterr_why, GL_E_IO, "the output file cannot be read: %s",
                                        strerror(errno));
    }
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        return gl_why(reterr_why, GL_E_IO, "the output is not a regular file");
    }
    if (st.st_size > GL_OUTPUT_BYTES_MAX) {
        return gl_why(reterr_why, GL_E_LIMIT, "output larger than 1 MiB");
    }
    char bytes[16 << 10];
    ssize_t n;
    while ((n = read(fd, bytes, sizeof(bytes))) > 0 && out->n <= GL_OUTPUT_BYTES_MAX) {
        gl_buf_add(out, bytes, (size_t)n);
    }
    if (out->n > GL_OUTPUT_BYTES_MAX) { /* somebody still writes to it */
        gl_buf_reset(out);
        return gl_why(reterr_why, GL_E_LIMIT, "output larger than 1 MiB");
    }
    return out->n == 0 ? GL_E_NOT_FOUND : 0;
}
