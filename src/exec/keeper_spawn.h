/* keeper_spawn.h - finds and starts the keeper's program. */
#ifndef GL_EXEC_KEEPER_SPAWN_H
#define GL_EXEC_KEEPER_SPAWN_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/times.h"

/* Find the program: next to our own, then in ../libexec/glia and ../libexec. */
int gl_keeper_spawn_find(struct gl_arena *a, const char **ret, struct gl_why *reterr_why);

struct gl_keeper_spawn {
    const char *program;
    const char *data_dir;
    gl_ms idle_ms;   /* 0: its default */
    bool is_restart; /* not the first start: a failpoint that killed the first keeper is not armed
                        again */
};

/* Start it. The returned process exits at once and must be waited for; the keeper itself is a
 * daemon, not our child. *ret_ready_fd (non-blocking) yields "ok" or an error message, then end of
 * file. */
int gl_keeper_spawn(const struct gl_keeper_spawn *s, pid_t *ret_pid, int *ret_ready_fd,
                    struct gl_why *reterr_why);

#endif
