/* sqlite_export.h - everything in a database as the writes that would make it, page by page. */
#ifndef GL_STORE_SQLITE_EXPORT_H
#define GL_STORE_SQLITE_EXPORT_H

#include "store/sqlite/sqlite_op.h"

struct gl_sqlite_db;

/* The rc. req->status besides: GL_E_INVALID for a page that follows none of ours, GL_E_DAMAGED for
 * a record that must not be carried on as if it were sound. Results are copied to the arena. */
int gl_sqlite_export_page(struct gl_sqlite_db *db, struct gl_sqlite_op *op, struct gl_arena *arena);

#endif
