#include "keeper/workdir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/sha256.h"
#include "keeper/rundir.h"
#include "keeper/trash.h"
#include "os/fs.h"
#include "os/run_owner.h"

enum { COPY_BYTES = 64 << 10 };

int gl_workdir_write(int fd, gl_str bytes)
{
    GL_ASSERT(fd >= 0);
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

/* ---- one file ---- */

/* Copy, and check that the content matches its hash: disks fail, and files get edited. */
static int copy_blob(int from, int to, gl_str hash, bool *ret_good)
{
    struct gl_sha256 sum;
    uint8_t digest[GL_SHA256_BYTES];
    char bytes[COPY_BYTES];

    GL_ASSERT(hash.n == GL_SHA256_HEX - 1);
    gl_sha256_init(&sum);
    for (;;) {
        ssize_t n = read(from, bytes, sizeof(bytes));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return errno;
        }
        if (n == 0) {
            break;
        }
        gl_sha256_add(&sum, bytes, (size_t)n);
        int err = gl_workdir_write(to, (gl_str){.p = bytes, .n = (size_t)n});
        if (err != 0) {
            return err;
        }
    }
    gl_sha256_done(&sum, digest);
    *ret_good = true;
    for (size_t i = 0; i < sizeof(digest); i++) {
        static const char hex[] = "0123456789abcdef";
        *ret_good = *ret_good && hash.p[2 * i] == hex[digest[i] >> 4] &&
                    hash.p[2 * i + 1] == hex[digest[i] & 15];
    }
    return 0;
}

static int put_blob(struct gl_keeper *k, const struct gl_exec_start *s,
                    const struct gl_exec_file *f, int to, const char *name, struct gl_why *why)
{
    bool good = false;
    const char *blob = gl_str_fmt(&k->scratch, "%.*s/blobs/%.2s/%.*s", GL_STR_ARG(s->key.context),
                                  f->blob.p, GL_STR_ARG(f->blob))
                           .p;
    GL_CLEANUP(gl_fs_closep)
    int from = openat(k->contexts_fd, blob, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    GL_ASSERT(f->blob.n > 2);
    if (from < 0 &&
        (errno == ENOENT || errno == ELOOP)) { /* missing, or a link, which counts as missing */
        return gl_why(why, GL_E_DAMAGED, "the snapshot of '%.*s' is gone: %s/%s: %s",
                      GL_STR_ARG(f->name), k->contexts, blob, strerror(errno));
    }
    if (from < 0) {
        return gl_fs_why(why, errno, "read the snapshot of a file:", blob);
    }
    int err = copy_blob(from, to, f->blob, &good);
    if (err != 0) {
        return gl_fs_why(why, err, "copy to", name);
    }
    return good ? 0
                : gl_why(
                      why, GL_E_DAMAGED,
                      "the snapshot of '%.*s' is damaged: the content of %s/%s does not match its "
                      "hash",
                      GL_STR_ARG(f->name), k->contexts, blob);
}

/* A worker's files are readable by all: a container it starts may use another uid. */
static mode_t file_mode(const struct gl_exec_start *s, const struct gl_exec_file *f)
{
    if (s->is_worker) {
        return f->executable ? 0755 : 0644;
    }
    return f->executable ? 0700 : 0600;
}

static int open_file(struct gl_keeper *k, char *name, mode_t mode, bool is_worker)
{
    int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
    int fd = openat(k->contexts_fd, name, flags, mode);
    if (fd < 0 && errno == ENOENT) { /* in a subfolder that does not exist yet */
        char *slash = strrchr(name, '/');
        *slash = 0;
        int err = gl_rundir_mkdirs(k, name, is_worker ? 0755 : 0700);
        *slash = '/';
        errno = err;
        if (err == 0 || err == EEXIST) {
            fd = openat(k->contexts_fd, name, flags, mode);
        }
    }
    if (fd >= 0 && is_worker) {
        (void)fchmod(fd, mode); /* an upload may replace an existing file */
    }
    return fd;
}

gl_str gl_workdir_path(struct gl_arena *a, gl_str path)
{
    char *p = (char *)(uintptr_t)gl_str_dup(a, path).p;
    for (size_t i = path.n; i > 0 && p[i - 1] != '/'; i--) {
        p[i - 1] = p[i - 1] == ':' ? '.' : p[i - 1];
    }
    return (gl_str){.p = p, .n = path.n};
}

int gl_workdir_put(struct gl_keeper *k, const struct gl_exec_start *s, gl_str path,
                   const struct gl_exec_file *f, struct gl_why *reterr_why)
{
    gl_str folder = s->is_worker ? gl_workdir_path(&k->scratch, path) : path;
    char *name =
        (char *)(uintptr_t)gl_str_fmt(&k->scratch, "%s/work/%.*s", folder.p, GL_STR_ARG(f->name)).p;
    GL_CLEANUP(gl_fs_closep) int to = open_file(k, name, file_mode(s, f), s->is_worker);
    if (to < 0) {
        return gl_fs_why(reterr_why, errno, "make", name);
    }
    if (f->blob.n > 0) {
        return put_blob(k, s, f, to, name, reterr_why);
    }
    int err = gl_workdir_write(to, f->text);
    return err == 0 ? 0 : gl_fs_why(reterr_why, err, "write", name);
}

/* ---- a worker's folder ---- */

/* It must be new and empty: an existing one is left from an earlier start. */
static int make_work(struct gl_keeper *k, const char *work, struct gl_why *why)
{
    int err = gl_rundir_mkdirs(k, work, 0700);
    if (err == EEXIST) {
        gl_trash_put(k, work);
        err = gl_rundir_mkdirs(k, work, 0700);
    }
    return err == 0 ? 0 : gl_fs_why(why, err, "create the working folder", work);
}

/* A folder below the working folder may have no files, so it is created here. Any other must
 * exist. */
static int make_cwd(struct gl_keeper *k, const struct gl_exec_start *s, const char *cwd,
                    struct gl_why *why)
{
    GL_ASSERT(s->is_worker);
    if (!gl_str_starts(s->cwd, GL_S(GL_EXEC_WORK))) {
        return 0;
    }
    int err = gl_rundir_mkdirs(k, cwd, 0755);
    return err == 0 || err == EEXIST ? 0 : gl_fs_why(why, err, "create the folder", cwd);
}

/* Checked before anything is created or removed there, and again afterwards. */
static int refuse_links(struct gl_keeper *k, const char *path, const char *folder,
                        struct gl_why *why)
{
    int r = gl_fs_refuse_links(k->contexts_fd, path, why);
    return r < 0 ? r : gl_fs_refuse_links(k->contexts_fd, folder, why);
}

int gl_workdir_make(struct gl_keeper *k, const struct gl_exec_start *s, const char *cwd,
                    gl_str path, struct gl_why *reterr_why)
{
    gl_str folder = gl_workdir_path(&k->scratch, path);
    const char *work = gl_rundir_join(&k->scratch, folder, GL_S("work")).p;
    int r = refuse_links(k, path.p, folder.p, reterr_why);

    GL_ASSERT(s->is_worker);
    if (r < 0) {
        return r;
    }
    int err = gl_rundir_mkdirs(k, path.p, 0700); /* for the log */
    if (err != 0 && err != EEXIST) {
        return gl_fs_why(reterr_why, err, "create the folder", path.p);
    }
    r = make_work(k, work, reterr_why);
    if (r == 0) {
        r = refuse_links(k, path.p, work, reterr_why);
    }
    for (size_t i = 0; r == 0 && i < s->files_n; i++) {
        r = gl_workdir_put(k, s, path, &s->files[i], reterr_why);
    }
    if (r == 0) {
        r = make_cwd(k, s, cwd, reterr_why);
    }
    if (r == 0 && s->take_folder.n > 0) {
        r = gl_run_owner_take(gl_str_c(&k->scratch, s->take_folder), s->key.job, reterr_why);
    }
    if (r == 0 && s->make_folder.n > 0) {
        /* RUNS/RUN/data: the last two components must be real folders, not links. */
        r = gl_fs_mkdirs_own(gl_str_c(&k->scratch, s->make_folder), 2, reterr_why);
    }
    return r;
}

void gl_workdir_remove(struct gl_keeper *k, gl_str path, bool all)
{
    gl_trash_put(k, gl_workdir_path(&k->scratch, path).p);
    if (all) {
        gl_trash_put(k, path.p);
    }
}
