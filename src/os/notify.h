/* notify.h - reports the state of the node to the service manager: the protocol of systemd's
 * Type=notify.
 *
 * Each message is one datagram to the socket that NOTIFY_SOCKET names: a path or, with a leading
 * '@', an abstract name. Without that variable these functions do nothing. A manager that does
 * not listen is not an error. */
#ifndef GL_OS_NOTIFY_H
#define GL_OS_NOTIFY_H

#include "base/err.h"
#include "base/times.h"

struct gl_notify {
    int fd;            /* connected; negative: no service manager */
    gl_ms watchdog_ms; /* send "WATCHDOG=1" at least this often; 0: never */
};

/* The variables that are read; NULL or "" if unset. */
struct gl_notify_env {
    const char *socket;        /* NOTIFY_SOCKET */
    const char *watchdog_usec; /* WATCHDOG_USEC */
    const char *watchdog_pid;  /* WATCHDOG_PID: set only for this process */
};

struct gl_notify_env gl_notify_env(void); /* as this process sees it */

/* GL_E_INVALID, GL_E_IO: the socket cannot be used. `ret` is then silent and remains usable. */
int gl_notify_open(struct gl_notify *ret, const struct gl_notify_env *env,
                   struct gl_why *reterr_why);
void gl_notify_close(struct gl_notify *n);

/* Lines like "READY=1\nSTATUS=...". */
void gl_notify_send(const struct gl_notify *n, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
