/* sqlite_items.h - the items of queues, and who has claimed them. */
#ifndef GL_STORE_SQLITE_ITEMS_H
#define GL_STORE_SQLITE_ITEMS_H

#include "port/store.h"

struct gl_sqlite_db;

/* Inside an SQL transaction; all return the rc. */

int gl_sqlite_items_write(struct gl_sqlite_db *db, const struct gl_write *w); /* PUSH, POP, ... */
/* *ret: does GL_GUARD_CLAIMED hold? */
int gl_sqlite_items_guard(struct gl_sqlite_db *db, const struct gl_guard *g, bool *ret);
/* Claim items; they are copied to the arena. */
int gl_sqlite_items_take(struct gl_sqlite_db *db, const struct gl_take *take,
                         struct gl_store_req *req, struct gl_arena *arena);

/* The clock of leases: the wall's, because they must mean the same after a restart. */
gl_ms gl_sqlite_items_now(void);

#endif
