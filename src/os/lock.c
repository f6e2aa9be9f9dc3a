#include "os/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/check.h"
#include "os/fs.h"

/* The pid is for people only: the kernel's lock decides, and the file may be read just before its
 * new holder has written it. */
static int busy(int fd, const char *data, struct gl_why *reterr_why)
{
    char text[32];
    ssize_t n = pread(fd, text, sizeof(text), 0);
    gl_str pid = gl_str_trim((gl_str){.p = text, .n = n > 0 ? (size_t)n : 0});
    uint64_t number;
    if (gl_str_u64(pid, &number)) {
        return gl_why(reterr_why, GL_E_BUSY, "the data folder %s is in use by process %.*s", data,
                      GL_STR_ARG(pid));
    }
    return gl_why(reterr_why, GL_E_BUSY, "the data folder %s is in use by another process", data);
}

int gl_lock_take(struct gl_lock *ret, const char *data, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const char *path = gl_str_fmt(&a, "%s/lock", data).p;
    GL_CLEANUP(gl_fs_closep) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return gl_fs_why(reterr_why, errno, "open", path);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EWOULDBLOCK) {
            return busy(fd, data, reterr_why);
        }
        return gl_fs_why(reterr_why, errno, "lock", path);
    }
    char text[32];
    int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    /* The folder is ours even if the disk is too full to say so. */
    if (ftruncate(fd, 0) == 0) {
        ssize_t written = pwrite(fd, text, (size_t)n, 0);
        (void)written;
    }
    ret->fd = gl_fs_take(&fd);
    return 0;
}

void gl_lock_drop(struct gl_lock *l)
{
    gl_fs_closep(&l->fd);
}
