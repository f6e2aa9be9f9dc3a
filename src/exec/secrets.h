/* secrets.h - reading what a step must know and nobody else may see.
 *
 *     NAME=env:VARIABLE     a variable of the node's own environment
 *     NAME=file:/path       a file without its last newline
 *
 * Read when a step starts, not when its flow is read: a secret that was changed is seen by the next
 * attempt. A sentence about a secret names the reference and never the value. */
#ifndef GL_EXEC_SECRETS_H
#define GL_EXEC_SECRETS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* `ret` gets `n` texts "NAME=value", which live in `a`. GL_E_INVALID: one cannot be read, or is
 * nothing that could be kept out of a log (gl_keeper_check_secret). Never blocks on a pipe. */
int gl_secrets_read(const gl_str *references, size_t n, struct gl_arena *a, const gl_str **ret,
                    struct gl_why *reterr_why);

#endif
