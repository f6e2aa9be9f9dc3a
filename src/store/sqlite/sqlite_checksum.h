/* sqlite_checksum.h - port/checksum.h for SQL, on connections that are not a store's. */
#ifndef GL_STORE_SQLITE_CHECKSUM_H
#define GL_STORE_SQLITE_CHECKSUM_H

#include <sqlite3.h>

/* The columns of `record` that the sum is made of, as the arguments of the function. */
#define GL_SQLITE_CHECKSUM "glia_sum(kind, id, rev, owner, token, live, value)"

/* Teach the connection the function glia_sum. The rc. */
int gl_sqlite_checksum_register(sqlite3 *conn);

#endif
