/* sqlite_apply.h - one transaction of the port, inside the SQL transaction of its group.
 *
 * All guards are read before the first write. A refused transaction has therefore written nothing,
 * and the group needs no savepoints. */
#ifndef GL_STORE_SQLITE_APPLY_H
#define GL_STORE_SQLITE_APPLY_H

#include "store/common/calls.h"

struct gl_sqlite_db;

/* Sets call->req->status: 0 applied, GL_E_CONFLICT (with `refused`), GL_E_LIMIT.
 * Returns the rc. If it is not SQLITE_OK the transaction may be half written: the SQL transaction
 * must be rolled back. */
int gl_sqlite_apply(struct gl_sqlite_db *db, struct gl_call *call);

#endif
