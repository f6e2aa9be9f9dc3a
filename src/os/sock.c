#include "os/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "os/fs.h"

/* Fill in the address of `path`. If it is too long, *folder is opened and must stay open until the
 * address has been used. */
static int address(const char *path, struct sockaddr_un *ret, int *folder,
                   struct gl_why *reterr_why)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t n = strlen(path);
    if (n < sizeof(ret->sun_path)) {
        memcpy(ret->sun_path, path, n);
        return 0;
    }
    const char *slash = strrchr(path, '/');
    if (slash == NULL || strlen(slash) > 64) {
        return gl_why(reterr_why, GL_E_LIMIT, "the name of the socket %s is too long", path);
    }
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const char *folder_path = gl_str_c(&a, (gl_str){.p = path, .n = (size_t)(slash - path) + 1});
    *folder = open(folder_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*folder < 0) {
        return gl_fs_why(reterr_why, errno, "open the folder", folder_path);
    }
    (void)snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d%s", *folder, slash);
    return 0;
}

/* A socket file outlives the process that created it. Anything else at this path is not ours to
 * remove. */
static int remove_stale(const char *path, struct gl_why *reterr_why)
{
    struct stat st;
    if (lstat(path, &st) < 0) {
        return errno == ENOENT ? 0 : gl_fs_why(reterr_why, errno, "access", path);
    }
    if (!S_ISSOCK(st.st_mode)) {
        return gl_why(reterr_why, GL_E_EXISTS, "%s exists and is not a socket; remove it", path);
    }
    if (unlink(path) < 0) {
        return gl_fs_why(reterr_why, errno, "remove", path);
    }
    return 0;
}

int gl_sock_listen(const char *path, int *ret_fd, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_fs_closep) int folder = -1;
    struct sockaddr_un sun;
    int err = address(path, &sun, &folder, reterr_why);
    if (err == 0) {
        err = remove_stale(path, reterr_why);
    }
    if (err < 0) {
        return err;
    }
    GL_CLEANUP(gl_fs_closep)
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return gl_fs_why(reterr_why, errno, "create the socket", path);
    }
    /* On Linux the mode of the descriptor becomes that of the file, so there is never a moment in
     * which others can connect. */
    if (fchmod(fd, 0600) < 0) {
        return gl_fs_why(reterr_why, errno, "set the mode of the socket", path);
    }
    if (bind(fd, (const struct sockaddr *)&sun, sizeof(sun)) < 0 || listen(fd, SOMAXCONN) < 0) {
        return gl_fs_why(reterr_why, errno, "listen on", path);
    }
    *ret_fd = gl_fs_take(&fd);
    return 0;
}

int gl_sock_connect(const char *path, int *ret_fd, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_fs_closep) int folder = -1;
    struct sockaddr_un sun;
    int err = address(path, &sun, &folder, reterr_why);
    if (err < 0) {
        return err;
    }
    GL_CLEANUP(gl_fs_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return gl_fs_why(reterr_why, errno, "create a socket for", path);
    }
    while (connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) < 0) {
        if (errno == ECONNREFUSED) {
            return gl_why(reterr_why, GL_E_GONE, "nothing is listening on %s", path);
        }
        if (errno != EINTR) {
            return gl_fs_why(reterr_why, errno, "connect to", path);
        }
    }
    *ret_fd = gl_fs_take(&fd);
    return 0;
}

int gl_sock_peer(int fd, uid_t *ret_uid, pid_t *ret_pid, struct gl_why *reterr_why)
{
    struct ucred cred;
    socklen_t n = sizeof(cred);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0) {
        return gl_fs_why(reterr_why, errno, "get the peer of", "a socket");
    }
    *ret_uid = cred.uid;
    *ret_pid = cred.pid;
    return 0;
}
