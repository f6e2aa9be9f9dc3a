#include "os/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "os/fs.h"
#include "os/paths.h"

enum { TEXT_BYTES = 96 };

/* Three lines: pid, start time, purpose. It may be read before a new holder has written it. */
static struct gl_lock_holder read_holder(int fd)
{
    struct gl_lock_holder h = {0};
    char text[TEXT_BYTES];
    ssize_t n = pread(fd, text, sizeof(text), 0);
    gl_str rest = {.p = text, .n = n > 0 ? (size_t)n : 0};
    int64_t pid;
    gl_str what;

    if (gl_str_i64(gl_str_cut(rest, '\n', &rest), &pid)) {
        h.pid = pid;
    }
    (void)gl_times_parse(gl_str_cut(rest, '\n', &rest), &h.since);
    what = gl_str_cut(rest, '\n', &rest);
    if (gl_str_is_id(what) && what.n < sizeof(h.what)) {
        memcpy(h.what, what.p, what.n);
    }
    return h;
}

static int busy(int fd, const char *data, struct gl_why *reterr_why)
{
    struct gl_lock_holder h = read_holder(fd);
    char when[GL_TIMES_BYTES];

    if (h.pid == 0) {
        return gl_why(reterr_why, GL_R_FOLDER_IN_USE,
                      "the data folder %s is in use by another process", data);
    }
    return gl_why(reterr_why, GL_R_FOLDER_IN_USE,
                  "the data folder %s is in use by process %lld%s%s%s%s%s", data, (long long)h.pid,
                  h.what[0] != '\0' ? " (glia " : "", h.what, h.what[0] != '\0' ? ")" : "",
                  h.since != 0 ? ", since " : "",
                  h.since != 0 ? gl_times_format(h.since, when).p : "");
}

/* The lock is held even if the disk is too full to record the holder. */
static void sign(int fd, const char *what)
{
    char text[TEXT_BYTES], when[GL_TIMES_BYTES];
    struct timespec t;
    int n;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    (void)gl_times_format((gl_ms)t.tv_sec * 1000 + t.tv_nsec / 1000000, when);
    n = snprintf(text, sizeof(text), "%ld\n%s\n%s\n", (long)getpid(), when, what);
    GL_ASSERT(n > 0 && n < TEXT_BYTES);
    /* Never empty, for a concurrent reader. */
    if (pwrite(fd, text, (size_t)n, 0) == n) {
        int cut = ftruncate(fd, n);
        (void)cut; /* the rest of an older, longer text follows the third line */
    }
}

static int open_file(const char *data, const char *name, int *ret_fd, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const char *path = gl_paths_in(&a, data, name);

    *ret_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return *ret_fd >= 0 ? 0 : gl_fs_why(reterr_why, errno, "open", path);
}

int gl_lock_take_as(struct gl_lock *ret, const char *data, const char *what,
                    struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_fs_closep) int fd = -1;
    int err = open_file(data, GL_PATHS_LOCK, &fd, reterr_why);

    if (err != 0) {
        return err;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        return errno == EWOULDBLOCK ? busy(fd, data, reterr_why)
                                    : gl_fs_why(reterr_why, errno, "lock", data);
    }
    sign(fd, what);
    ret->fd = gl_fs_take(&fd);
    return 0;
}

int gl_lock_take(struct gl_lock *ret, const char *data, struct gl_why *reterr_why)
{
    return gl_lock_take_as(ret, data, "", reterr_why);
}

void gl_lock_drop(struct gl_lock *l)
{
    gl_fs_closep(&l->fd);
}

/* Tries a shared lock, so that two concurrent checks do not see each other. A process that takes
 * the lock at that moment finds it busy, and must handle that anyway. */
bool gl_lock_find(const char *data, struct gl_lock_holder *ret)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_fs_closep)
    int fd = open(gl_paths_in(&a, data, GL_PATHS_LOCK), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
        return false;
    }
    *ret = read_holder(fd);
    return true;
}

/* The reservation is a record lock (fcntl): it can be checked without being taken, and commands
 * check it often. */

int gl_lock_reserve(struct gl_lock *ret, const char *data, struct gl_why *reterr_why)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    GL_CLEANUP(gl_fs_closep) int fd = -1;
    int err = open_file(data, GL_PATHS_RESERVATION, &fd, reterr_why);

    if (err != 0) {
        return err;
    }
    if (fcntl(fd, F_OFD_SETLK, &whole) < 0) {
        return errno == EAGAIN || errno == EACCES ? busy(fd, data, reterr_why)
                                                  : gl_fs_why(reterr_why, errno, "claim", data);
    }
    sign(fd, "serve");
    ret->fd = gl_fs_take(&fd);
    return 0;
}

bool gl_lock_is_reserved(const char *data)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    GL_CLEANUP(gl_fs_closep)
    int fd = open(gl_paths_in(&a, data, GL_PATHS_RESERVATION), O_RDWR | O_CLOEXEC | O_NOFOLLOW);

    return fd >= 0 && fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}
