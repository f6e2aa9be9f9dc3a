/* sock.h - unix sockets by path, of any length.
 *
 * The kernel accepts at most 107 bytes; a longer path is reached through its folder's descriptor
 * in /proc. */
#ifndef GL_OS_SOCK_H
#define GL_OS_SOCK_H

#include <sys/types.h>

#include "base/err.h"

/* Listen on `path`, mode 0600, replacing the socket of a dead process: only the holder of the
 * folder's lock may call this. The descriptor is non-blocking. */
int gl_sock_listen(const char *path, int *ret_fd, struct gl_why *reterr_why);

/* Connect; the descriptor is blocking. GL_E_NOT_FOUND: there is no such socket; GL_E_GONE: nothing
 * is listening. */
int gl_sock_connect(const char *path, int *ret_fd, struct gl_why *reterr_why);

/* User and pid of the peer. */
int gl_sock_peer(int fd, uid_t *ret_uid, pid_t *ret_pid, struct gl_why *reterr_why);

#endif
