/* sqlite_error.h - translates SQLite's result codes to statuses of the port, with a sentence for
 * people. Nothing outside this folder sees an SQLite code. */
#ifndef GL_STORE_SQLITE_ERROR_H
#define GL_STORE_SQLITE_ERROR_H

#include <stdbool.h>

#include "base/err.h"

struct gl_sqlite_db;

/* The status and the sentence for `rc`, which the connection has just returned. The sentence names
 * the file and says what to do. */
int gl_sqlite_error_why(const struct gl_sqlite_db *db, int rc, struct gl_why *why);

/* Was a write refused in a way that proves nothing was written: out of space, over quota,
 * read-only? A failed sync proves nothing, and neither does an error that a network file system
 * reports late. */
bool gl_sqlite_error_is_refusal(const struct gl_sqlite_db *db, int rc);

#endif
