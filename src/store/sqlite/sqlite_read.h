/* sqlite_read.h - the reads of the port, on a reader's connection.
 *
 * Each fills the results of its call's request from `arena` and returns the rc. `db` may be NULL:
 * the context is empty. */
#ifndef GL_STORE_SQLITE_READ_H
#define GL_STORE_SQLITE_READ_H

#include "store/common/calls.h"

struct gl_sqlite_db;

int gl_sqlite_read(struct gl_sqlite_db *db, struct gl_call *call, struct gl_arena *arena);

#endif
