/* sqlite_record.h - a row of the table `record` as a record, checked. */
#ifndef GL_STORE_SQLITE_RECORD_H
#define GL_STORE_SQLITE_RECORD_H

#include "port/store.h"
#include "port/sum.h"
#include "store/sqlite/sqlite_db.h"

/* From the row of a statement whose columns from `at` on are rev, owner, token, live, value, sum; 0
 * for a sum that is not to be compared. Kind and id are there already. */
static inline void gl_sqlite_record_fill(struct gl_sqlite_db *db, enum gl_sqlite_statement st,
                                         int at, struct gl_arena *arena, struct gl_record *r)
{
    r->rev = (uint64_t)gl_sqlite_db_int(db, st, at);
    r->owner = gl_str_dup(arena, gl_sqlite_db_str(db, st, at + 1));
    r->token = (uint64_t)gl_sqlite_db_int(db, st, at + 2);
    r->live = gl_sqlite_db_int(db, st, at + 3) != 0;
    r->value = gl_str_dup(arena, gl_sqlite_db_str(db, st, at + 4));
    int64_t sum = gl_sqlite_db_int(db, st, at + 5);
    r->damaged = sum != 0 && sum != gl_sum_record(r);
}

#endif
