#include "keeper/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "keeper/dir_cache.h"
#include "keeper/trash.h"
#include "keeper/workdir.h"
#include "os/fs.h"

enum { EMPTY_JOBS_KEPT = 64 };

gl_str gl_rundir_join(struct gl_arena *a, gl_str folder, gl_str name)
{
    size_t n = folder.n + 1 + name.n;
    char *p = gl_arena_alloc(a, n + 1);

    GL_ASSERT(name.n > 0);
    memcpy(p, folder.p, folder.n);
    p[folder.n] = '/';
    memcpy(p + folder.n + 1, name.p, name.n);
    return (gl_str){.p = p, .n = n};
}

gl_str gl_rundir_path(struct gl_arena *a, const struct gl_attempt_key *key)
{
    gl_str runs = gl_rundir_join(a, key->context, GL_S("runs"));

    GL_ASSERT(key->job.n > 0);
    GL_ASSERT(key->attempt.n > 0);
    return gl_rundir_join(a, gl_rundir_join(a, runs, key->job), key->attempt);
}

/* Create `path` and its missing parents. EEXIST: it already existed. */
static int make_folders(int at, char *path, mode_t mode)
{
    if (mkdirat(at, path, mode) == 0) {
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
    int err = make_folders(at, path, mode);
    *slash = '/';
    if (err != 0 && err != EEXIST) {
        return err;
    }
    return mkdirat(at, path, mode) == 0 ? 0 : errno;
}

int gl_rundir_mkdirs(struct gl_keeper *k, const char *path, mode_t mode)
{
    return make_folders(k->contexts_fd,
                        (char *)(uintptr_t)gl_str_dup(&k->scratch, gl_str_of(path)).p, mode);
}

/* The caller closes *ret_fd, also on failure. `former_bytes`: the size of the file in a cached
 * folder; negative: unknown content. A cached file is overwritten and truncated afterwards if
 * needed: truncating first frees its block, which can take the disk two milliseconds, while
 * overwriting takes four microseconds. */
static int write_file(struct gl_keeper *k, gl_str path, gl_str file, gl_str content,
                      int64_t former_bytes, int *ret_fd, struct gl_why *why)
{
    const char *name = gl_rundir_join(&k->scratch, path, file).p;
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (former_bytes < 0 ? O_TRUNC : 0);
    int fd = *ret_fd = openat(k->contexts_fd, name, flags, 0600);

    GL_ASSERT(former_bytes >= -1);
    if (fd < 0) {
        return gl_fs_why(why, errno, "make", name);
    }
    int err = gl_workdir_write(fd, content);
    if (err == 0 && former_bytes > (int64_t)content.n && ftruncate(fd, (off_t)content.n) < 0) {
        err = errno;
    }
    return err == 0 ? 0 : gl_fs_why(why, err, "write", name);
}

/* All variables, each with its NUL. */
static gl_str join_env(struct gl_arena *a, char *const *env)
{
    size_t n = 0;
    for (char *const *e = env; *e != NULL; e++) {
        n += strlen(*e) + 1;
    }
    char *text = gl_arena_alloc(a, n), *at = text;
    for (char *const *e = env; *e != NULL; e++) {
        size_t bytes = strlen(*e) + 1;
        memcpy(at, *e, bytes);
        at += bytes;
    }
    return (gl_str){.p = text, .n = n};
}

static int make_folder(struct gl_keeper *k, const struct gl_exec_start *s, gl_str path,
                       struct gl_why *why)
{
    char *name = (char *)(uintptr_t)gl_rundir_join(&k->scratch, path, GL_S("work")).p;

    GL_ASSERT(path.n > 0);
    name[path.n] = 0;
    int err = make_folders(k->contexts_fd, name, 0700);
    name[path.n] = '/';
    if ((err == 0 || err == EEXIST) && s->cwd.n == 0) {
        err = make_folders(k->contexts_fd, name, 0700);
    }
    return err == 0 || err == EEXIST ? 0 : gl_fs_why(why, err, "create the working folder", name);
}

int gl_rundir_make(struct gl_keeper *k, const struct gl_exec_start *s, char *const *env,
                   struct gl_floor *job, gl_str path, struct gl_why *reterr_why)
{
    gl_str input = s->input.n > 0 ? s->input : GL_S("{}");
    struct gl_dir_cache_sizes former = {-1, -1};
    const char *last = s->cwd.n == 0 ? gl_rundir_join(&k->scratch, path, GL_S("work")).p : path.p;
    int r = 0;
    if (!gl_dir_cache_take(k, job, path, &former)) {
        /* A step could have put a link at the path of a later one's folder: create nothing below
         * it. */
        r = gl_fs_refuse_links(k->contexts_fd, last, reterr_why);
        r = r < 0 ? r : make_folder(k, s, path, reterr_why);
    }
    r = r < 0 ? r : gl_fs_refuse_links(k->contexts_fd, last, reterr_why);
    if (r == 0) {
        int fds[] = {-1, -1};
        r = write_file(k, path, GL_S("input.json"), input, former.input_bytes, &fds[0], reterr_why);
        if (r == 0) {
            r = write_file(k, path, GL_S("env"), join_env(&k->scratch, env), former.env_bytes,
                           &fds[1], reterr_why);
        }
        gl_keeper_close_fds(fds, GL_COUNT(fds));
    }
    for (size_t i = 0; r == 0 && i < s->files_n; i++) {
        r = gl_workdir_put(k, s, path, &s->files[i], reterr_why);
    }
    return r;
}

int gl_rundir_output(struct gl_keeper *k, gl_str path, struct gl_buf *out,
                     struct gl_why *reterr_why)
{
    const char *name = gl_rundir_join(&k->scratch, path, GL_S("output.json")).p;
    /* The step may have created anything here: a pipe, a link, a folder. Follow none of them and
     * never block. */
    GL_CLEANUP(gl_fs_closep)
    int fd =
        openat(k->contexts_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    GL_ASSERT(out->n == 0);
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
    if (out->n > GL_OUTPUT_BYTES_MAX) { /* it is still being written to */
        gl_buf_reset(out);
        return gl_why(reterr_why, GL_E_LIMIT, "output larger than 1 MiB");
    }
    return out->n == 0 ? GL_E_NOT_FOUND : 0;
}

void gl_rundir_replace_output(struct gl_keeper *k, gl_str path, gl_str output)
{
    const char *name = gl_rundir_join(&k->scratch, path, GL_S("output.json")).p;
    GL_CLEANUP(gl_fs_closep)
    int fd = openat(k->contexts_fd, name, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || gl_workdir_write(fd, output) != 0) {
        (void)unlinkat(k->contexts_fd, name, 0); /* better no file than one with secrets */
    }
}

void gl_rundir_clear(struct gl_keeper *k, gl_str path)
{
    gl_trash_put(k, gl_rundir_join(&k->scratch, path, GL_S("work")).p);
}
