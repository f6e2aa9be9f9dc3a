/* sqlite_error.h - what SQLite's result codes mean for the port, in words for people. */
#ifndef GL_STORE_SQLITE_ERROR_H
#define GL_STORE_SQLITE_ERROR_H

#include <stdbool.h>

#include "base/err.h"

struct gl_sqlite_db;

/* The code and the sentence for `rc`, which the connection has just returned. The sentence names
 * the file and what to do. */
int gl_sqlite_error_why(const struct gl_sqlite_db *db, int rc, struct gl_why *why);

/* Was a write refused for a reason that proves it did not happen: no space or quota, read-only? A
 * failed sync proves nothing, and neither does an error that a network file system reports late. */
bool gl_sqlite_error_is_refusal(const struct gl_sqlite_db *db, int rc);

#endif
