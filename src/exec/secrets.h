/* secrets.h - reads the secrets of a step.
 *
 *     NAME=env:VARIABLE     a variable of the node's own environment
 *     NAME=file:/path       the content of a file, without its last newline
 *
 * Secrets are read when a step starts, not when its flow is read: the next attempt sees a changed
 * secret. Error messages name the reference and never the value. */
#ifndef GL_EXEC_SECRETS_H
#define GL_EXEC_SECRETS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* `ret` gets `n` texts "NAME=value", allocated in `a`. GL_E_INVALID: one cannot be read, or could
 * not be kept out of a log (gl_keeper_check_secret). Never blocks on a pipe. */
int gl_secrets_read(const gl_str *references, size_t n, struct gl_arena *a, const gl_str **ret,
                    struct gl_why *reterr_why);

#endif
