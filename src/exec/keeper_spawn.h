/* keeper_spawn.h - finding and starting the keeper's program. */
#ifndef GL_EXEC_KEEPER_SPAWN_H
#define GL_EXEC_KEEPER_SPAWN_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/times.h"

/* Where the program is: beside our own, then in ../libexec/glia and ../libexec. */
int gl_keeper_spawn_find(struct gl_arena *a, const char **ret, struct gl_why *reterr_why);

struct gl_keeper_spawn {
    const char *program;
    const char *data_dir;
    gl_ms idle_ms;   /* 0: not said */
    bool is_restart; /* not the first time: a failpoint that has killed it is not armed again */
};

/* Start it. The process returned ends at once and must be waited for; the keeper itself is nobody's
 * child. *ret_ready_fd (it does not block) gives "ok" or a reason, and then its end. */
int gl_keeper_spawn(const struct gl_keeper_spawn *s, pid_t *ret_pid, int *ret_ready_fd,
                    struct gl_why *reterr_why);

#endif
