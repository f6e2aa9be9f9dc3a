/* sqlite_checksum.h - makes the checksum of port/checksum.h available to SQL, for checks and
 * backups that read a database outside a store. */
#ifndef GL_STORE_SQLITE_CHECKSUM_H
#define GL_STORE_SQLITE_CHECKSUM_H

#include <sqlite3.h>

/* The SQL expression for the checksum of a row of `record`. */
#define GL_SQLITE_CHECKSUM "glia_sum(kind, id, rev, owner, token, live, value)"

/* Register the SQL function glia_sum on a connection. Returns the rc. */
int gl_sqlite_checksum_register(sqlite3 *conn);

#endif
