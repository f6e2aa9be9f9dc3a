/* sqlite_query.h - one-off queries on a plain connection, one without the store's prepared
 * statements: for checks, backups and schema upgrades. Open, query, close. */
#ifndef GL_STORE_SQLITE_QUERY_H
#define GL_STORE_SQLITE_QUERY_H

#include "store/sqlite/sqlite_db.h"

/* `path` is borrowed until the connection is closed. Waits up to `busy_ms` for another process's
 * lock. */
int gl_sqlite_query_open(struct gl_sqlite_db *db, const char *path, int flags, int busy_ms,
                         struct gl_why *reterr_why);
void gl_sqlite_query_closep(struct gl_sqlite_db *db); /* a zeroed struct is fine */

/* Returns the rc. *ret: the first column of the first row as text; "" if there is no row or it is
 * null. */
int gl_sqlite_query_text(sqlite3 *conn, const char *sql, char *ret, size_t bytes);
/* The same as a number; 0 if there is no row or it is null. */
int gl_sqlite_query_number(sqlite3 *conn, const char *sql, int64_t *ret);

#endif
