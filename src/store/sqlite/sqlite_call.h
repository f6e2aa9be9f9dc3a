/* sqlite_call.h - what the writer does besides groups of commits, one call at a time: sessions and
 * the fate of transactions. */
#ifndef GL_STORE_SQLITE_CALL_H
#define GL_STORE_SQLITE_CALL_H

#include "store/sqlite/sqlite_op.h"

struct gl_sqlite_writer;

/* The request's status. Results are copied to the arena. */
int gl_sqlite_call_run(struct gl_sqlite_writer *w, struct gl_sqlite_op *op, struct gl_arena *arena);

#endif
