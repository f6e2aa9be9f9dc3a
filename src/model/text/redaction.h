/* redaction.h - replaces secrets in a text with "***".
 *
 *   gl_redaction_apply()           a text without its secrets
 *   gl_redaction_is_secret_name()  whether the value of a variable is a secret, by its name
 *
 * Removes too much rather than too little: `token: none` loses its "none". Call it before
 * truncating the text: half of a secret would not be recognised, and would remain.
 *
 * The keeper redacts the logs of steps by value instead (keeper/redact.h). */
#ifndef GL_MODEL_TEXT_REDACTION_H
#define GL_MODEL_TEXT_REDACTION_H

#include "base/str.h"

enum { GL_REDACTION_SECRETS_MAX = 64 }; /* variables whose values are searched for */

/* Replaces each of these: the value of a variable in `env` ("NAME=value") with a secret's name, if
 * it has GL_SECRET_BYTES_MIN bytes or more; what follows a secret's name (`token=...`,
 * `"api_key": "..."`, `--password ...`); what follows Bearer and Basic; user and password in a URL;
 * private keys in PEM form; tokens with a well-known prefix (JSON web tokens, ghp_, sk-, AKIA,
 * xoxb- and so on). The result lives in `a`. */
gl_str gl_redaction_apply(gl_str text, const gl_str *env, size_t env_n, struct gl_arena *a);

/* True for API_TOKEN, dbPassword, aws-secret-access-key; false for MAX_TOKENS, PWD and
 * IDEMPOTENCY_KEY. */
bool gl_redaction_is_secret_name(gl_str name);

#endif
