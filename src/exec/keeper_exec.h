/* keeper_exec.h - the exec port implemented by a keeper, and the client of that keeper.
 *
 * Everything runs on the loop's thread and nothing blocks. The keeper is started when it is not
 * running, and again when it has exited; meanwhile requests are answered GL_E_UNAVAILABLE, and so
 * are requests that were sent but not answered when a connection breaks: use attach to find out
 * whether they took effect.
 *
 * The output of a step is checked here, not in the keeper. The file in GLIA_OUTPUT must hold JSON
 * of at most 1 MiB; otherwise a step that exited with 0 ends with `error` set and no output, which
 * counts as a failure. Without that file, the last line of stdout counts if it is a JSON object.
 *
 * Call order: gl_keeper_exec_open(), gl_keeper_exec_connect() once, then the port's operations. */
#ifndef GL_EXEC_KEEPER_EXEC_H
#define GL_EXEC_KEEPER_EXEC_H

#include "os/loop.h"
#include "port/exec.h"

struct gl_keeper_exec_config {
    const char *data_dir;    /* absolute; copied */
    const char *keeper_path; /* NULL: next to our own executable, then in ../libexec; copied */
    gl_ms idle_ms;           /* how long an idle keeper stays; 0: its own default */
    gl_ms orphan_grace_ms; /* the keeper stops its steps after this long without a message from us;
                              0: never */
};

/* Prepare; nothing is started before gl_keeper_exec_connect(). `events` is copied, its owner
 * borrowed until closed. */
int gl_keeper_exec_open(struct gl_exec **ret, const struct gl_keeper_exec_config *config,
                        struct gl_loop *loop, const struct gl_exec_events *events,
                        struct gl_why *reterr_why);

/* Connect as this incarnation of the node, and stay connected. Call once. A keeper that has seen a
 * higher incarnation refuses us, which `down` reports. */
void gl_keeper_exec_connect(struct gl_exec *x, uint64_t incarnation);

#endif
