#include "keeper/dir_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "keeper/rundir.h"
#include "os/fs.h"

enum {
    CACHED_MAX = 256,
    IDLE_JOBS_KEPT = 64, /* a job between two steps keeps its folder */
    FOLDER_MODE = 0700,
};

/* ---- checking ---- */

static bool is_one_of(const char *const *names, const char *name)
{
    while (*names != NULL && strcmp(*names, name) != 0) {
        names++;
    }
    return *names != NULL;
}

/* Does the folder hold exactly these names (NULL-terminated), besides "." and ".."? */
static bool holds_only(int folder, const char *const *names)
{
    char bytes[512]
        __attribute__((aligned(8))); /* if this is too small, the folder holds too much */
    size_t expected = 0, found = 0;
    while (names[expected] != NULL) {
        expected++;
    }
    ssize_t n = getdents64(folder, bytes, sizeof(bytes));
    for (ssize_t at = 0; at < n;) {
        const struct dirent64 *e = (const struct dirent64 *)(const void *)(bytes + at);
        at += e->d_reclen;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }
        if (!is_one_of(names, e->d_name)) {
            return false;
        }
        found++;
    }
    return n > 0 && found == expected && getdents64(folder, bytes, sizeof(bytes)) == 0;
}

static int open_folder(int at, const char *path)
{
    return openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_ours(int folder)
{
    struct stat st;
    return folder >= 0 && fstat(folder, &st) == 0 && (st.st_mode & 07777) == FOLDER_MODE;
}

static bool is_our_file(int folder, const char *name, int64_t *ret_bytes)
{
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_mode != (S_IFREG | 0600) ||
        st.st_nlink != 1) {
        return false;
    }
    *ret_bytes = st.st_size;
    return true;
}

/* Is the folder as we created it? Times and modes can be faked by the step, so every name in it is
 * checked. The files are rewritten in any case. */
static bool is_untouched(struct gl_keeper *k, gl_str path, struct gl_dir_cache_sizes *ret)
{
    static const char *const made[] = {"input.json", "env", "work", NULL};
    static const char *const nothing[] = {NULL};
    int folder = open_folder(k->contexts_fd, path.p);
    int work = folder >= 0 ? open_folder(folder, "work") : -1;
    bool untouched = is_ours(folder) && is_ours(work) && holds_only(work, nothing) &&
                     holds_only(folder, made) &&
                     is_our_file(folder, "input.json", &ret->input_bytes) &&
                     is_our_file(folder, "env", &ret->env_bytes);
    gl_keeper_close_fds((int[]){folder, work}, 2);
    return untouched;
}

/* ---- the list ---- */

static gl_str job_path(struct gl_keeper *k, const struct gl_floor *job)
{
    gl_str id;
    gl_str context = gl_str_cut(job->key, '/', &id);
    gl_str runs = gl_rundir_join(&k->scratch, context, GL_S("runs"));

    GL_ASSERT(job->key.n > 0);
    return gl_rundir_join(&k->scratch, runs, id);
}

static gl_str attempt_of(const struct gl_cached_dir *s)
{
    GL_ASSERT(s->attempt_n > 0);
    GL_ASSERT(s->attempt_n <= sizeof(s->attempt));
    return (gl_str){.p = s->attempt, .n = s->attempt_n};
}

static gl_str cached_path(struct gl_keeper *k, const struct gl_cached_dir *s)
{
    return gl_rundir_join(&k->scratch, job_path(k, s->job), attempt_of(s));
}

/* A cached folder of this job, or NULL. */
static struct gl_cached_dir *find(struct gl_keeper *k, const struct gl_floor *job)
{
    GL_ASSERT(job->cached_n <= k->cached_n);
    for (size_t i = k->cached_n; job->cached_n > 0 && i-- > 0;) {
        if (k->cached[i].job == job) {
            return &k->cached[i];
        }
    }
    return NULL;
}

/* A cached folder of another job; not of an idle job with nothing else in its folder, since giving
 * that away whole saves a new job more. */
static struct gl_cached_dir *find_other(struct gl_keeper *k)
{
    GL_ASSERT(k->cached_n <= CACHED_MAX);
    for (size_t i = k->cached_n; i-- > 0;) {
        if (gl_list_empty(&k->cached[i].job->empty)) {
            return &k->cached[i];
        }
    }
    return k->cached_n > CACHED_MAX / 2 ? &k->cached[k->cached_n - 1] : NULL;
}

static void drop(struct gl_keeper *k, struct gl_cached_dir *s)
{
    struct gl_floor *job = s->job;

    GL_ASSERT(k->cached_n > 0);
    GL_ASSERT(job->cached_n > 0);
    *s = k->cached[--k->cached_n];
    job->cached_n--;
    gl_attempt_update_job_folder(k, job);
}

/* ---- taking ---- */

/* Give a new job the folder of the job that has been idle longest. */
static bool take_job_folder(struct gl_keeper *k, struct gl_floor *job)
{
    GL_ASSERT(!job->has_folder);
    GL_ASSERT(job->cached_n == 0);
    if (k->floors_empty_n <= IDLE_JOBS_KEPT) {
        return false;
    }
    struct gl_floor *old = GL_CONTAINER(gl_list_first(&k->floors_empty), struct gl_floor, empty);
    GL_ASSERT(old->attempts_n == 0);
    GL_ASSERT(old->has_folder);
    struct gl_cached_dir *s = find(k, old);
    const char *const names[] = {s != NULL ? gl_str_c(&k->scratch, attempt_of(s)) : NULL, NULL};
    const char *from = job_path(k, old).p;
    GL_CLEANUP(gl_fs_closep) int fd = open_folder(k->contexts_fd, from);
    bool moved = is_ours(fd) && holds_only(fd, names) &&
                 renameat(k->contexts_fd, from, k->contexts_fd, job_path(k, job).p) == 0;
    if (moved && s != NULL) {
        s->job = job;
        job->cached_n++;
        old->cached_n--;
    }
    old->has_folder = !moved;
    old->has_files = !moved; /* it holds something unknown: leave it alone from now on */
    gl_attempt_update_job_folder(k, old);
    return moved;
}

static void get_job_folder(struct gl_keeper *k, struct gl_floor *job)
{
    GL_ASSERT(!job->has_folder);
    if (!take_job_folder(k, job)) {
        int err = gl_rundir_mkdirs(k, job_path(k, job).p, FOLDER_MODE);
        job->has_files =
            job->has_files || err == EEXIST; /* from an earlier keeper: leave it alone */
    }
    job->has_folder = true;
}

/* What cannot be removed stays; it does no harm. */
static void remove_folder(struct gl_keeper *k, const char *path)
{
    GL_CLEANUP(gl_fs_closep) int fd = open_folder(k->contexts_fd, path);
    if (fd >= 0) {
        (void)unlinkat(fd, "input.json", 0);
        (void)unlinkat(fd, "env", 0);
        (void)unlinkat(fd, "work", AT_REMOVEDIR);
        (void)unlinkat(k->contexts_fd, path, AT_REMOVEDIR);
    }
}

bool gl_dir_cache_take(struct gl_keeper *k, struct gl_floor *job, gl_str path,
                       struct gl_dir_cache_sizes *ret)
{
    if (!job->has_folder) {
        get_job_folder(k, job);
    }
    struct gl_cached_dir *s = find(k, job);
    if (s == NULL) {
        s = find_other(k);
    }
    if (s == NULL) {
        return false;
    }
    gl_str from = cached_path(k, s);
    struct gl_dir_cache_sizes sizes = s->sizes;
    drop(k, s);
    if (!gl_str_eq(from, path) && renameat(k->contexts_fd, from.p, k->contexts_fd, path.p) < 0) {
        return false;
    }
    /* The node removes the working folders of attempts that ended long ago. */
    if (faccessat(k->contexts_fd, gl_rundir_join(&k->scratch, path, GL_S("work")).p, F_OK,
                  AT_SYMLINK_NOFOLLOW) < 0) {
        remove_folder(k, path.p);
        return false;
    }
    *ret = sizes;
    return true;
}

/* ---- keeping ---- */

bool gl_dir_cache_put(struct gl_keeper *k, struct gl_attempt *a, gl_str path)
{
    struct gl_dir_cache_sizes sizes;

    GL_ASSERT(a->state == GL_ATTEMPT_CLEARING);
    if (k->cached_n == CACHED_MAX || !is_untouched(k, path, &sizes)) {
        a->floor->has_files = true;
        return false;
    }
    if (k->cached == NULL) {
        k->cached = gl_mem_alloc(sizeof(struct gl_cached_dir) * CACHED_MAX);
    }
    struct gl_cached_dir *s = &k->cached[k->cached_n++];
    s->job = a->floor;
    s->sizes = sizes;
    s->attempt_n = a->key.attempt.n;
    memcpy(s->attempt, a->key.attempt.p, a->key.attempt.n);
    a->floor->cached_n++;
    GL_ASSERT(k->cached_n <= CACHED_MAX);
    return true;
}

/* ---- removing ---- */

void gl_dir_cache_forget(struct gl_keeper *k, struct gl_floor *job)
{
    struct gl_cached_dir *s;
    while ((s = find(k, job)) != NULL) {
        remove_folder(k, cached_path(k, s).p);
        drop(k, s);
    }
    GL_ASSERT(job->cached_n == 0);
    if (job->has_folder && !job->has_files) {
        (void)unlinkat(k->contexts_fd, job_path(k, job).p, AT_REMOVEDIR);
    }
}

void gl_dir_cache_clear(struct gl_keeper *k)
{
    struct gl_floor *job;
    for (size_t i = 0; (job = gl_map_next(&k->floors, &i)) != NULL;) {
        gl_dir_cache_forget(k, job);
        gl_arena_reset(&k->scratch);
    }
    gl_mem_free(k->cached);
    k->cached = NULL;
    k->cached_n = 0;
}
