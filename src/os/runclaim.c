#include "os/runclaim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "os/fs.h"

enum {
    LIST_BYTES_MAX = 64 << 10, /* some 2,400 jobs: the oldest are forgotten */
    TRIES_MAX = 100,
};

/* ---- the list ---- */

/* Whatever a worker has put in its place: no link is followed, and nothing is waited for. */
static int open_list(const char *folder)
{
    GL_CLEANUP(gl_fs_closep) int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    GL_CLEANUP(gl_fs_closep) int fd = -1;
    struct stat st;

    if (at < 0) {
        return -1;
    }
    fd = openat(at, GL_RUNCLAIM_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? gl_fs_take(&fd) : -1;
}

/* What cannot be read names nobody. */
static void read_list(const char *folder, struct gl_buf *out)
{
    GL_CLEANUP(gl_fs_closep) int fd = open_list(folder);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    off_t at = size > LIST_BYTES_MAX ? size - LIST_BYTES_MAX : 0;
    char piece[4096];
    ssize_t n;

    while (fd >= 0 && out->n < LIST_BYTES_MAX && (n = pread(fd, piece, sizeof(piece), at)) > 0) {
        gl_buf_add(out, piece, (size_t)n);
        at += n;
    }
}

/* Does it name this job? *ret_last: the last one it names; "" : none. */
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

static int write_list(const char *folder, gl_str before, gl_str job, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};

    while (before.n > LIST_BYTES_MAX / 2) {
        (void)gl_str_cut(before, '\n', &before);
    }
    gl_buf_str(&text, before);
    gl_buf_fmt(&text, "%s%.*s\n", before.n > 0 && before.p[before.n - 1] != '\n' ? "\n" : "",
               GL_STR_ARG(job));
    return gl_fs_write(gl_str_fmt(&a, "%s/%s", folder, GL_RUNCLAIM_NAME).p, gl_buf_view(&text),
                       reterr_why);
}

/* ---- taking ---- */

/* 0, or an errno. Never onto something that is there; where the file system cannot promise that, a
 * folder with something in it is still not replaced. */
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

static int sync_above(const char *folder, struct gl_arena *a, struct gl_why *reterr_why)
{
    return gl_fs_sync_folder(gl_str_fmt(a, "%s/..", folder).p, reterr_why);
}

/* "<folder>.<job>", "<folder>.<job>.2", ... */
static const char *aside(struct gl_arena *a, const char *folder, gl_str job, unsigned number)
{
    return number == 0 ? gl_str_fmt(a, "%s.%.*s", folder, GL_STR_ARG(job)).p
                       : gl_str_fmt(a, "%s.%.*s.%u", folder, GL_STR_ARG(job), number + 1).p;
}

/* It holds what another job has left. */
static int set_aside(const char *folder, gl_str last, unsigned number, struct gl_arena *a,
                     bool *ret_moved, struct gl_why *reterr_why)
{
    const char *to = aside(a, folder, last, number);
    int err = move_to(folder, to);

    *ret_moved = err == 0;
    if (err == EEXIST || err == ENOTEMPTY || err == ENOENT) {
        return 0; /* look again: whoever was faster may have been of this job */
    }
    if (err != 0) {
        return gl_fs_why(reterr_why, err, "set aside what an earlier job has left in", folder);
    }
    return gl_fs_mkdirs(folder, reterr_why);
}

int gl_runclaim_take(const char *folder, gl_str job, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};

    for (unsigned i = 0; i < TRIES_MAX; i++) {
        GL_CLEANUP(gl_buf_done) struct gl_buf list = {0};
        bool is_mine = true; /* to be taken, unless ... */
        gl_str last;
        int err = gl_fs_mkdirs(folder, reterr_why);

        if (err != 0) {
            return err;
        }
        read_list(folder, &list);
        if (look_for(gl_buf_view(&list), job, &last)) {
            return 0;
        }
        if (last.n > 0) {
            err = set_aside(folder, last, i, &a, &is_mine, reterr_why);
        }
        if (err == 0 && is_mine) {
            err = write_list(folder, gl_buf_view(&list), job, reterr_why);
            return err == 0 ? sync_above(folder, &a, reterr_why) : err;
        }
        if (err != 0) {
            return err;
        }
    }
    return gl_why(
        reterr_why, GL_E_EXISTS,
        "%s holds what an earlier job has left, and there are %d copies of that beside it "
        "already: remove some, or the folder",
        folder, TRIES_MAX);
}

/* ---- telling ---- */

void gl_runclaim_owner(const char *root, gl_str run_id, char ret[static GL_ULID_BYTES + 1])
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf list = {0};
    gl_str last = {0};

    if (gl_str_is_id(run_id)) {
        read_list(gl_str_fmt(&a, "%s/%.*s", root, GL_STR_ARG(run_id)).p, &list);
        (void)look_for(gl_buf_view(&list), (gl_str){0}, &last);
    }
    (void)snprintf(ret, GL_ULID_BYTES + 1, "%.*s", GL_STR_ARG(last));
}

bool gl_runclaim_is_of(const char *root, gl_str run_id, gl_str job)
{
    char owner[GL_ULID_BYTES + 1];

    gl_runclaim_owner(root, run_id, owner);
    return owner[0] == '\0' || gl_str_is(job, owner);
}
