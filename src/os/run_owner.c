#include "os/run_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "os/fs.h"

enum {
    LIST_BYTES_MAX = 64 << 10, /* about 2,400 jobs: the oldest are dropped */
    TRIES_MAX = 100,
};

/* ---- the list ---- */

/* <runs root>/<run id> */
struct run_paths {
    const char *folder, *root;
    gl_str run_id;
    const char *lists, *list; /* the folder of the lists, and the list of this run */
};

static struct run_paths place_of(struct gl_arena *a, gl_str root, gl_str run_id)
{
    return (struct run_paths){
        .folder = gl_str_fmt(a, "%.*s/%.*s", GL_STR_ARG(root), GL_STR_ARG(run_id)).p,
        .root = gl_str_c(a, root),
        .run_id = run_id,
        .lists = gl_str_fmt(a, "%.*s/" GL_RUN_OWNER_FOLDER, GL_STR_ARG(root)).p,
        .list =
            gl_str_fmt(a, "%.*s/" GL_RUN_OWNER_FOLDER "/%.*s", GL_STR_ARG(root), GL_STR_ARG(run_id))
                .p,
    };
}

/* A worker may have replaced the list: follow no link, and never block on a pipe. */
static int open_list(const struct run_paths *p)
{
    GL_CLEANUP(gl_fs_closep)
    int fd = open(p->list, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? gl_fs_take(&fd) : -1;
}

/* A list that cannot be read is empty. */
static void read_list(const struct run_paths *p, struct gl_buf *out)
{
    GL_CLEANUP(gl_fs_closep) int fd = open_list(p);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    off_t at = size > LIST_BYTES_MAX ? size - LIST_BYTES_MAX : 0;
    char piece[4096];
    ssize_t n;

    while (fd >= 0 && out->n < LIST_BYTES_MAX && (n = pread(fd, piece, sizeof(piece), at)) > 0) {
        gl_buf_add(out, piece, (size_t)n);
        at += n;
    }
}

/* Does it name this job? *ret_last: the last job it names; "" : none. */
static bool look_for(gl_str list, gl_str job, gl_str *ret_last)
{
    bool is_there = false;

    *ret_last = (gl_str){0};
    while (list.n > 0) {
        gl_str line = gl_str_trim(gl_str_cut(list, '\n', &list));

        if (gl_id_valid(line)) {
            is_there |= gl_str_eq(line, job);
            *ret_last = line;
        }
    }
    return is_there;
}

/* A run without its own id has the id of its job, and no list. Folders set aside, "<run id>.<job>"
 * or "<run id>.<job>.2", have none either. */
static gl_str job_in_name(gl_str name)
{
    size_t end = name.n;
    gl_str job;

    while (end > 0 && name.p[end - 1] >= '0' && name.p[end - 1] <= '9') {
        end--;
    }
    if (end > 0 && end < name.n && name.p[end - 1] == '.') {
        name.n = end - 1;
    }
    if (name.n < GL_ULID_BYTES) {
        return (gl_str){0};
    }
    job = (gl_str){.p = name.p + name.n - GL_ULID_BYTES, .n = GL_ULID_BYTES};
    return gl_id_valid(job) && (job.p == name.p || job.p[-1] == '.') ? job : (gl_str){0};
}

/* Does the folder belong to this job? *ret_last: the last job it belonged to; "" : none. */
static bool is_of(const struct run_paths *p, gl_str list, gl_str job, gl_str *ret_last)
{
    bool is_there = look_for(list, job, ret_last);

    if (ret_last->n == 0) {
        *ret_last = job_in_name(p->run_id);
        is_there = ret_last->n > 0 && gl_str_eq(*ret_last, job);
    }
    return is_there;
}

static int write_list(const struct run_paths *p, gl_str before, gl_str job,
                      struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};

    while (before.n > LIST_BYTES_MAX / 2) {
        (void)gl_str_cut(before, '\n', &before);
    }
    gl_buf_str(&text, before);
    gl_buf_fmt(&text, "%s%.*s\n", before.n > 0 && before.p[before.n - 1] != '\n' ? "\n" : "",
               GL_STR_ARG(job));
    return gl_fs_write(p->list, gl_buf_view(&text), reterr_why);
}

/* ---- renaming the folder of an earlier job ---- */

/* 0, or an errno. Never replaces anything that exists; where the file system cannot guarantee that,
 * a folder that is not empty is still not replaced. */
static int move_to(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) {
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS) {
        return errno;
    }
    return rename(from, to) == 0 ? 0 : errno;
}

/* "<folder>.<job>", "<folder>.<job>.2", ... */
static const char *aside(struct gl_arena *a, const char *folder, gl_str job, unsigned number)
{
    return number == 0 ? gl_str_fmt(a, "%s.%.*s", folder, GL_STR_ARG(job)).p
                       : gl_str_fmt(a, "%s.%.*s.%u", folder, GL_STR_ARG(job), number + 1).p;
}

/* The folder holds what another job left, or that job has replaced it by a link or a file.
 * *ret_gone: there is nothing any more; otherwise check again. */
static int set_aside(const char *folder, gl_str last, unsigned number, struct gl_arena *a,
                     bool *ret_gone, struct gl_why *reterr_why)
{
    int err = rmdir(folder) == 0 ? 0 : errno; /* an empty one, as kill -9 leaves it */

    if (err != 0 && err != ENOENT) {
        err = move_to(folder, aside(a, folder, last, number));
    }
    *ret_gone = err == 0 || err == ENOENT;
    return *ret_gone || err == EEXIST || err == ENOTEMPTY
               ? 0
               : gl_fs_why(reterr_why, err, "set aside what an earlier job has left in", folder);
}

/* ---- taking the folder ---- */

static int make_folders(const struct run_paths *p, struct gl_why *reterr_why)
{
    int err = gl_fs_mkdirs_own(p->folder, 1, reterr_why);

    return err == 0 ? gl_fs_mkdirs_own(p->lists, 1, reterr_why) : err;
}

/* The rename of the old folder is durable before the list names the new owner. */
static int make_and_write(const struct run_paths *p, gl_str list, gl_str job,
                          struct gl_why *reterr_why)
{
    int err = make_folders(p, reterr_why);

    err = err == 0 ? gl_fs_sync_folder(p->root, reterr_why) : err;
    return err == 0 ? write_list(p, list, job, reterr_why) : err;
}

static int take(const struct run_paths *p, gl_str job, struct gl_arena *a,
                struct gl_why *reterr_why)
{
    for (unsigned i = 0; i < TRIES_MAX; i++) {
        GL_CLEANUP(gl_buf_done) struct gl_buf list = {0};
        bool is_gone = true;
        gl_str last;
        int err = 0;

        read_list(p, &list);
        if (is_of(p, gl_buf_view(&list), job, &last)) {
            return gl_fs_mkdirs_own(p->folder, 1, reterr_why);
        }
        if (last.n > 0) {
            err = set_aside(p->folder, last, i, a, &is_gone, reterr_why);
        }
        if (err != 0 || is_gone) {
            return err != 0 ? err : make_and_write(p, gl_buf_view(&list), job, reterr_why);
        }
    }
    return gl_why(
        reterr_why, GL_E_EXISTS,
        "%s holds the files of an earlier job, and there are already %d such folders next "
        "to it: remove some, or the folder",
        p->folder, TRIES_MAX);
}

int gl_run_owner_take(const char *folder, gl_str job, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const char *slash = strrchr(folder, '/');
    struct run_paths p;

    if (slash == NULL || !gl_str_is_id(gl_str_of(slash + 1))) {
        return gl_why(reterr_why, GL_E_INVALID, "%s is not a run folder", folder);
    }
    p = place_of(&a, (gl_str){.p = folder, .n = (size_t)(slash - folder)}, gl_str_of(slash + 1));
    return take(&p, job, &a, reterr_why);
}

/* ---- reading ---- */

void gl_run_owner_find(const char *root, gl_str run_id, char ret[static GL_ULID_BYTES + 1])
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf list = {0};
    gl_str last = {0};

    if (gl_str_is_id(run_id)) {
        struct run_paths p = place_of(&a, gl_str_of(root), run_id);

        read_list(&p, &list);
        (void)is_of(&p, gl_buf_view(&list), (gl_str){0}, &last);
    }
    (void)snprintf(ret, GL_ULID_BYTES + 1, "%.*s", GL_STR_ARG(last));
}

bool gl_run_owner_is_job(const char *root, gl_str run_id, gl_str job)
{
    char owner[GL_ULID_BYTES + 1];

    gl_run_owner_find(root, run_id, owner);
    return owner[0] == '\0' || gl_str_is(job, owner);
}
