/* module_spawn.h - starts and kills glia-module-host. Private to this folder. */
#ifndef GL_EXEC_MODULE_SPAWN_H
#define GL_EXEC_MODULE_SPAWN_H

#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

/* Start `program` with these NULL-terminated arguments. Its descriptor GL_MODULE_FD is the other
 * end of *ret_fd, which is non-blocking. It inherits no other descriptor, and no variable whose
 * name begins with GLIA_. */
int gl_module_spawn(const char *program, const char *const *args, pid_t *ret_pid, int *ret_fd,
                    struct gl_why *reterr_why);

/* Kill it and what it has forked, and wait for it. Returns its waitpid() status. */
int gl_module_end(pid_t pid);

#endif
