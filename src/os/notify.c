#include "os/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "os/fs.h"

enum { MESSAGE_BYTES_MAX = 1024 };

struct gl_notify_env gl_notify_env(void)
{
    return (struct gl_notify_env){
        .socket = getenv("NOTIFY_SOCKET"),
        .watchdog_usec = getenv("WATCHDOG_USEC"),
        .watchdog_pid = getenv("WATCHDOG_PID"),
    };
}

static gl_ms watchdog_ms(const struct gl_notify_env *env)
{
    gl_str pid = gl_str_of(env->watchdog_pid);
    uint64_t usec, number;

    if (pid.n > 0 && (!gl_str_u64(pid, &number) || number != (uint64_t)getpid())) {
        return 0;
    }
    if (!gl_str_u64(gl_str_of(env->watchdog_usec), &usec) || usec == 0 || usec > INT64_MAX) {
        return 0;
    }
    return usec < 1000 ? 1 : (gl_ms)(usec / 1000);
}

int gl_notify_open(struct gl_notify *ret, const struct gl_notify_env *env,
                   struct gl_why *reterr_why)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    gl_str name = gl_str_of(env->socket);
    socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + name.n);

    *ret = (struct gl_notify){.fd = -1};
    if (name.n == 0) {
        return 0;
    }
    if (name.n >= sizeof(to.sun_path) || name.n < 2 || (name.p[0] != '/' && name.p[0] != '@')) {
        return gl_why(reterr_why, GL_E_INVALID, "NOTIFY_SOCKET=%s is not the address of a socket",
                      env->socket);
    }
    memcpy(to.sun_path, name.p, name.n);
    if (name.p[0] == '@') {
        to.sun_path[0] = '\0'; /* the NUL is not part of an abstract address */
    } else {
        n++;
    }
    GL_CLEANUP(gl_fs_closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, n) < 0) {
        return gl_fs_why(reterr_why, errno, "notify", env->socket);
    }
    ret->fd = gl_fs_take(&fd);
    ret->watchdog_ms = watchdog_ms(env);
    return 0;
}

void gl_notify_close(struct gl_notify *n)
{
    gl_fs_closep(&n->fd);
}

void gl_notify_send(const struct gl_notify *n, const char *fmt, ...)
{
    char message[MESSAGE_BYTES_MAX];
    va_list args;
    int bytes;

    if (n->fd < 0) {
        return;
    }
    va_start(args, fmt);
    bytes = vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    if (bytes > 0) {
        size_t length = (size_t)bytes < sizeof(message) ? (size_t)bytes : sizeof(message) - 1;

        /* Never block: a busy manager must not hold up the node. */
        (void)send(n->fd, message, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}
