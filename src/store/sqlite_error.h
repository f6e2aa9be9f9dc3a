/* sqlite_error.h - what SQLite's result codes mean for the port, in words for people. */
#ifndef GL_STORE_SQLITE_ERROR_H
#define GL_STORE_SQLITE_ERROR_H

#include <stdbool.h>

#include "base/err.h"

struct gl_sqlite_db;

/* The code and the sentence for `rc`, which the connection has just returned. The sentence names the
 * file and what to do. */
int gl_sqlite_error_why(const struct gl_sqlite_db *db, int rc, struct gl_why *why);

/* Is there no space (or quota) left? */
bool gl_sqlite_error_full(const struct gl_sqlite_db *db, int rc);

#endif
