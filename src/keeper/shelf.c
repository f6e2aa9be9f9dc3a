#include "keeper/shelf.h"

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
    SHELF_MAX = 256,
    IDLE_JOBS_KEPT = 64, /* so that a job between two steps is not the one that is taken from */
    FOLDER_MODE = 0700,
};

/* ---- looking ---- */

/* Does the folder hold exactly these names (NULL: none), besides "." and ".."? */
static bool holds_only(int folder, const char *one, const char *other)
{
    char bytes[512] __attribute__((aligned(8))); /* if that is too small there is too much in it */
    size_t expected = (size_t)(one != NULL) + (other != NULL), found = 0;
    ssize_t n = getdents64(folder, bytes, sizeof(bytes));
    for (ssize_t at = 0; at < n;) {
        const struct dirent64 *e = (const struct dirent64 *)(const void *)(bytes + at);
        at += e->d_reclen;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }
        if ((one == NULL || strcmp(e->d_name, one) != 0) &&
            (other == NULL || strcmp(e->d_name, other) != 0)) {
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

/* Is it as we would make it? Then the length of its input file, else 0. */
static uint32_t look_untouched(struct gl_keeper *k, gl_str path)
{
    struct stat st;
    GL_CLEANUP(gl_fs_closep) int folder = open_folder(k->contexts_fd, path.p);
    if (!is_ours(folder) || !holds_only(folder, "work", "input.json")) {
        return 0;
    }
    GL_CLEANUP(gl_fs_closep) int work = open_folder(folder, "work");
    if (!is_ours(work) || !holds_only(work, NULL, NULL)) {
        return 0;
    }
    if (fstatat(folder, "input.json", &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
        (st.st_mode & 07777) != 0600 || st.st_nlink != 1 || st.st_size > UINT32_MAX) {
        return 0;
    }
    return (uint32_t)st.st_size;
}

/* ---- the list ---- */

static const char *job_path(struct gl_keeper *k, const struct gl_floor *job)
{
    gl_str id;
    gl_str context = gl_str_cut(job->key, '/', &id);
    return gl_str_fmt(&k->scratch, "%.*s/runs/%.*s", GL_STR_ARG(context), GL_STR_ARG(id)).p;
}

static const char *shelved_path(struct gl_keeper *k, const struct gl_shelved *s)
{
    return gl_str_fmt(&k->scratch, "%s/%s", job_path(k, s->job), s->attempt).p;
}

/* One of this job, or NULL. */
static struct gl_shelved *find(struct gl_keeper *k, const struct gl_floor *job)
{
    for (size_t i = k->shelved_n; job->shelved_n > 0 && i-- > 0;) {
        if (k->shelved[i].job == job) {
            return &k->shelved[i];
        }
    }
    return NULL;
}

static void drop(struct gl_keeper *k, struct gl_shelved *s)
{
    struct gl_floor *job = s->job;
    *s = k->shelved[--k->shelved_n];
    job->shelved_n--;
    gl_charge_review(k, job);
}

/* ---- taking ---- */

/* Give a new job the folder of the one that has been idle for longest. */
static bool take_job_folder(struct gl_keeper *k, struct gl_floor *job)
{
    if (k->floors_empty_n <= IDLE_JOBS_KEPT) {
        return false;
    }
    struct gl_floor *old = GL_CONTAINER(gl_list_first(&k->floors_empty), struct gl_floor, empty);
    struct gl_shelved *s = find(k, old);
    const char *from = job_path(k, old);
    GL_CLEANUP(gl_fs_closep) int fd = open_folder(k->contexts_fd, from);
    bool moved = is_ours(fd) && holds_only(fd, s != NULL ? s->attempt : NULL, NULL) &&
                 renameat(k->contexts_fd, from, k->contexts_fd, job_path(k, job)) == 0;
    if (moved && s != NULL) {
        s->job = job;
        job->shelved_n++;
        old->shelved_n--;
    }
    old->has_folder = !moved;
    old->has_left = !moved; /* something is in it that we do not know: leave it alone from now on */
    gl_charge_review(k, old);
    return moved;
}

static void get_job_folder(struct gl_keeper *k, struct gl_floor *job)
{
    if (!take_job_folder(k, job)) {
        int err = gl_rundir_mkdirs(k, job_path(k, job));
        job->has_left = job->has_left || err == EEXIST; /* of an earlier keeper: leave it alone */
    }
    job->has_folder = true;
}

uint32_t gl_shelf_take(struct gl_keeper *k, struct gl_floor *job, gl_str path)
{
    if (!job->has_folder) {
        get_job_folder(k, job);
    }
    struct gl_shelved *s = find(k, job);
    if (s == NULL && k->shelved_n > 0) {
        s = &k->shelved[k->shelved_n - 1];
    }
    if (s == NULL) {
        return 0;
    }
    uint32_t input_bytes = s->input_bytes;
    const char *from = shelved_path(k, s);
    drop(k, s);
    if (strcmp(from, path.p) != 0 && renameat(k->contexts_fd, from, k->contexts_fd, path.p) < 0) {
        return 0;
    }
    return input_bytes;
}

/* ---- keeping ---- */

void gl_shelf_put(struct gl_keeper *k, struct gl_charge *c, gl_str path)
{
    uint32_t input_bytes = k->shelved_n < SHELF_MAX ? look_untouched(k, path) : 0;
    if (input_bytes == 0) {
        c->floor->has_left = true;
        return;
    }
    if (k->shelved == NULL) {
        k->shelved = gl_mem_alloc(sizeof(struct gl_shelved) * SHELF_MAX);
    }
    struct gl_shelved *s = &k->shelved[k->shelved_n++];
    s->job = c->floor;
    s->input_bytes = input_bytes;
    memcpy(s->attempt, c->key.attempt.p, c->key.attempt.n);
    s->attempt[c->key.attempt.n] = 0;
    c->floor->shelved_n++;
}

/* ---- removing ---- */

/* What cannot be removed stays, and is in nobody's way. */
static void remove_folder(struct gl_keeper *k, const char *path)
{
    GL_CLEANUP(gl_fs_closep) int fd = open_folder(k->contexts_fd, path);
    if (fd >= 0) {
        (void)unlinkat(fd, "input.json", 0);
        (void)unlinkat(fd, "work", AT_REMOVEDIR);
        (void)unlinkat(k->contexts_fd, path, AT_REMOVEDIR);
    }
}

void gl_shelf_forget(struct gl_keeper *k, struct gl_floor *job)
{
    struct gl_shelved *s;
    while ((s = find(k, job)) != NULL) {
        remove_folder(k, shelved_path(k, s));
        drop(k, s);
    }
    if (job->has_folder && !job->has_left) {
        (void)unlinkat(k->contexts_fd, job_path(k, job), AT_REMOVEDIR);
    }
}

void gl_shelf_clear(struct gl_keeper *k)
{
    struct gl_floor *job;
    for (size_t i = 0; (job = gl_map_next(&k->floors, &i)) != NULL;) {
        gl_shelf_forget(k, job);
        gl_arena_reset(&k->scratch);
    }
    gl_mem_free(k->shelved);
    k->shelved = NULL;
    k->shelved_n = 0;
}
