/* sqlite_query.h - questions to a connection that has none of a store's statements, and opening one
 * for them: checks, backups, schemas. */
#ifndef GL_STORE_SQLITE_QUERY_H
#define GL_STORE_SQLITE_QUERY_H

#include "store/sqlite/sqlite_db.h"

/* `path` is borrowed until it is closed. It waits `busy_ms` for the lock of somebody else. */
int gl_sqlite_query_open(struct gl_sqlite_db *db, const char *path, int flags, int busy_ms,
                         struct gl_why *reterr_why);
void gl_sqlite_query_closep(struct gl_sqlite_db *db); /* all zero is fine */

/* The rc. The first column of the first row, as text; "" if there is none or it is null. */
int gl_sqlite_query_text(sqlite3 *conn, const char *sql, char *ret, size_t bytes);
/* The same as a number, or 0. */
int gl_sqlite_query_number(sqlite3 *conn, const char *sql, int64_t *ret);

#endif
