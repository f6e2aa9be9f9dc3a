/* sqlite_read.h - the reads of the port, on a reader's connection.
 *
 * Each fills the results of its op's request from `arena` and returns the rc. `db` may be NULL: the
 * context is empty. */
#ifndef GL_STORE_SQLITE_READ_H
#define GL_STORE_SQLITE_READ_H

#include "store/sqlite/sqlite_op.h"

struct gl_sqlite_db;

int gl_sqlite_read_op(struct gl_sqlite_db *db, struct gl_sqlite_op *op, struct gl_arena *arena);

#endif
