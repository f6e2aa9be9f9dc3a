/* sqlite_session.h - sessions, and the memory of what became of their transactions. */
#ifndef GL_STORE_SQLITE_SESSION_H
#define GL_STORE_SQLITE_SESSION_H

#include "base/str.h"
#include "store/common/calls.h"

struct gl_sqlite_db;
struct gl_sqlite_worker;

/* Inside an SQL transaction; all return the rc. */

/* Write the row of a new session, with the node's last incarnation + 1, and mark every other one
 * dead. The id is appended to `id`. */
int gl_sqlite_session_begin(struct gl_sqlite_db *db, gl_str node, gl_str nonce, gl_str about,
                            struct gl_buf *id, uint64_t *ret_incarnation);
/* Tell a database, unless it knows, about the writer's session, which was begun in another one:
 * that it is there and every other one dead, or that it is over. */
int gl_sqlite_session_introduce(struct gl_sqlite_worker *w, struct gl_sqlite_db *db);
/* *ret_known: it has a row. */
int gl_sqlite_session_find(struct gl_sqlite_db *db, gl_str id, bool *ret_known, bool *ret_dead);

/* Remember a group, with the next group_n, in one row: its session, its first and last transaction,
 * and those among them that were not applied (req->status != 0). `n`: number of calls from `first`.
 */
int gl_sqlite_session_remember(struct gl_sqlite_db *db, const struct gl_call *first, size_t n,
                               struct gl_buf *scratch);
/* *ret_status: 0 committed; GL_E_CONFLICT refused, or never arrived; GL_E_UNKNOWN forgotten. */
int gl_sqlite_session_recall(struct gl_sqlite_db *db, gl_str session, uint64_t tx_id,
                             int *ret_status);

#endif
