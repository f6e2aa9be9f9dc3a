/* keeper_exec.h - the exec port over a keeper: its client.
 *
 * Everything happens on the loop's thread and nothing blocks. The keeper is started when it is not
 * there, and again when it has gone; meanwhile requests are answered GL_E_UNAVAILABLE. What was
 * asked and not answered when a connection breaks is answered GL_E_UNAVAILABLE too: whether it
 * happened tells attach.
 *
 * The output of a step is checked here, not in the keeper. What it left in GLIA_OUTPUT must be JSON
 * of at most 1 MiB: otherwise a step that exited with 0 ends with `error` set and without an
 * output, and EXITED with code 0 and an error is a failure. Without that file, the last line of its
 * stdout counts if it is a JSON object. */
#ifndef GL_EXEC_KEEPER_EXEC_H
#define GL_EXEC_KEEPER_EXEC_H

#include "os/loop.h"
#include "port/exec.h"

struct gl_keeper_exec_config {
    const char *data_dir;    /* absolute; copied */
    const char *keeper_path; /* NULL: beside our own executable, then in ../libexec; copied */
    gl_ms idle_ms;           /* how long a keeper without work stays; 0: its own default */
    gl_ms orphan_grace_ms;   /* the keeper ends its steps if we are silent for so long; 0: never */
};

/* Prepare; nothing is started before gl_keeper_exec_connect(). `events` is copied, its owner
 * borrowed until closed. */
int gl_keeper_exec_open(struct gl_exec **ret, const struct gl_keeper_exec_config *config,
                        struct gl_loop *loop, const struct gl_exec_events *events,
                        struct gl_why *reterr_why);

/* Connect for this incarnation of the node, and stay connected. Once. A keeper that has seen a
 * higher incarnation refuses us: `down` says so. */
void gl_keeper_exec_connect(struct gl_exec *x, uint64_t incarnation);

#endif
